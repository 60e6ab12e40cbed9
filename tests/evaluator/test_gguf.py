"""GGUF mixes against published file sizes, and which tensors take which bits."""

from __future__ import annotations

import pytest

from evaluator.formats import weight_format
from evaluator.gguf import GGUF_MIXES
from evaluator.models import preset
from evaluator.partition import rank_classes
from evaluator.plans import Plan
from evaluator.units import GB
from evaluator.weights import weights_on


def typical(model: str, name: str, plan: Plan, stage: int = 0) -> float:
    shape, form = preset(model), weight_format(f"gguf:{name}")
    assert form is not None
    return float(weights_on(shape, form, plan, rank_classes(shape, plan)[stage]).typical)


@pytest.mark.parametrize(
    ("model", "name", "gigabytes"),
    [
        ("llama-3.1-8b", "Q4_K_M", 4.92),
        ("llama-3.1-8b", "Q3_K_M", 4.02),
        ("llama-3.1-8b", "Q6_K", 6.60),
        ("llama-3.2-1b", "Q4_K_M", 0.808),
        ("llama-3.2-3b", "Q4_K_M", 2.02),
        ("gemma-2-9b", "Q4_K_M", 5.76),
        ("qwen2.5-32b", "Q4_K_M", 19.85),
        ("llama-2-7b", "Q4_0", 3.83),
        ("llama-2-7b", "Q4_K_M", 4.08),
        ("llama-2-7b", "Q2_K", 2.53),
        ("qwen2.5-0.5b", "Q4_K_M", 0.398),
        ("gemma-3-1b", "Q4_K_M", 0.806),
    ],
)
def test_published_files_are_met_whatever_the_share_of_the_vocabulary(
    model: str, name: str, gigabytes: float
) -> None:
    """Sizes that the model pages on Hugging Face list beside the files."""
    assert typical(model, name, Plan()) / GB == pytest.approx(gigabytes, rel=0.012)


@pytest.mark.parametrize("name", sorted(GGUF_MIXES))
def test_the_model_that_was_measured_gets_its_published_mean(name: str) -> None:
    size = typical("llama-3.1-8b", name, Plan())
    assert size * 8 / 8_030_261_248 == pytest.approx(GGUF_MIXES[name].mean, rel=0.001)


@pytest.mark.parametrize("name", sorted(GGUF_MIXES))
def test_layers_take_bits_between_those_of_the_smallest_block_and_the_head(name: str) -> None:
    mix = GGUF_MIXES[name]
    assert 1.5 < mix.layers <= mix.head


def test_the_last_stage_holds_the_wider_head() -> None:
    """An untied model of two even stages: both ends have as many parameters."""
    first, last = (typical("llama-3.1-8b", "Q4_K_M", Plan(pp=2), stage) for stage in (0, -1))
    assert (last - first) * 8 / (128_256 * 4_096) == pytest.approx(6.5625 - 4.5, rel=0.01)
