"""Operations per token against the worked examples, in both attention conventions."""

from __future__ import annotations

import pytest

from evaluator.devices import crossover_batch, device_of
from evaluator.flops import published_flops, step_flops, work_of
from evaluator.models import preset
from evaluator.shapes import Attention, ModelShape
from tests.evaluator.cards import A100, H100, L40S, card, device

GIGA = 1e9
LLAMA_8B = preset("llama-3.1-8b")


def test_a_token_of_an_8b_at_8192_costs_61_gflops_with_full_attention() -> None:
    full = published_flops(LLAMA_8B, 8192, causal=False, recomputed=False)
    causal = published_flops(LLAMA_8B, 8192, causal=True, recomputed=False)
    assert full == pytest.approx(61.1 * GIGA, rel=0.005)
    assert causal == pytest.approx((48.2 + 12.9 / 2) * GIGA, rel=0.005)


def test_full_recomputation_is_one_more_forward_pass() -> None:
    plain = published_flops(LLAMA_8B, 8192, causal=False, recomputed=False)
    again = published_flops(LLAMA_8B, 8192, causal=False, recomputed=True)
    assert plain is not None
    assert again == pytest.approx(plain * 4 / 3)


def test_frozen_weights_need_two_passes_instead_of_three() -> None:
    plain = published_flops(LLAMA_8B, 8192, causal=True, recomputed=False)
    frozen = published_flops(LLAMA_8B, 8192, causal=True, recomputed=False, lora=True)
    assert plain is not None
    assert frozen == pytest.approx(plain * 2 / 3)


def test_the_closed_form_of_megatron_agrees_with_the_sum_over_layers() -> None:
    gpt3 = ModelShape(
        name="GPT-3", hidden=12288, layers=96, vocab=51200, attention=Attention(96, 96, 128),
        mlp_size=4 * 12288, gated=False, tied=True,
    )  # fmt: skip
    per_token = published_flops(gpt3, 2048, causal=False, recomputed=True)
    assert per_token is not None
    assert step_flops(gpt3, 1, 2048) == pytest.approx(per_token * 2048, rel=0.01)


@pytest.mark.parametrize(
    ("spec", "form", "width", "batch"),
    [(H100, "bf16", 2, 295), (H100, "fp8", 1, 295), (A100, "bf16", 2, 153), (L40S, "bf16", 2, 419)],
)  # fmt: skip
def test_crossover_batches(spec, form, width, batch) -> None:  # type: ignore[no-untyped-def]
    assert crossover_batch(device(spec), form, width) == pytest.approx(batch, abs=1)


def test_a_look_up_multiplies_nothing() -> None:
    work = work_of(LLAMA_8B, 1)
    assert work is not None
    assert work.matrices == pytest.approx(2 * (8.03e9 - 128256 * 4096), rel=0.001)


def test_a_model_of_unknown_size_has_no_work() -> None:
    unknown = ModelShape("x", 64, 2, 100, Attention(2, 2, 32), 128, computable=False)
    assert work_of(unknown, 8) is None


def test_a_card_without_a_published_bandwidth_takes_the_slowest_of_its_model() -> None:
    found = device_of(card("h100-sxm5-96"))
    assert found is not None
    assert found.memory_bytes_per_s <= 3.35e12
