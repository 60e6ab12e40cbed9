"""Checkpoints that give their modules several formats, and 8-bit weights in groups."""

from __future__ import annotations

from typing import Any

import pytest

from evaluator.fields import InvalidWorkload
from evaluator.formats import weight_format
from evaluator.memory import budget
from evaluator.models import presets
from evaluator.plans import Plan
from evaluator.workload import parse_workload

FP8 = {"type": "float", "num_bits": 8, "strategy": "channel"}
INT4 = {"type": "int", "num_bits": 4, "group_size": 128}
HIDDEN, INNER, KEYS, LAYERS = 4096, 14_336, 1024, 32
ATTENTION = LAYERS * (2 * HIDDEN * HIDDEN + 2 * HIDDEN * KEYS)
MLP = LAYERS * 3 * HIDDEN * INNER


def document(*groups: tuple[list[str], Any], slug: str = "llama-3.1-8b") -> dict[str, Any]:
    described = {
        f"group_{at}": {"targets": targets, "weights": weights}
        for at, (targets, weights) in enumerate(groups)
    }
    stated = {"quant_method": "compressed-tensors", "config_groups": described}
    model = {**dict(presets()[slug].config), "quantization_config": stated}
    return {"task": "serve", "model": model}


def mean_bits(*groups: tuple[list[str], Any], slug: str = "llama-3.1-8b") -> float:
    name = parse_workload(document(*groups, slug=slug)).weights_format
    form = weight_format(name)
    assert form is not None
    return float(form.bits.typical)


def test_each_module_counts_with_the_format_that_names_it() -> None:
    found = mean_bits((["re:.*self_attn.*"], FP8), (["Linear"], INT4))
    expected = (ATTENTION * 8.01 + MLP * (4 + 20 / 128)) / (ATTENTION + MLP)
    assert found == pytest.approx(expected, abs=1e-3)


def test_the_order_of_the_descriptions_does_not_matter_where_they_name_different_modules() -> None:
    one = mean_bits((["re:.*self_attn.*"], FP8), (["Linear"], INT4))
    assert one == mean_bits((["Linear"], INT4), (["re:.*self_attn.*"], FP8))


def test_single_projections_have_their_share() -> None:
    found = mean_bits((["re:.*down_proj"], FP8), (["Linear"], INT4))
    third = MLP / 3
    expected = (third * 8.01 + (ATTENTION + MLP - third) * (4 + 20 / 128)) / (ATTENTION + MLP)
    assert found == pytest.approx(expected, abs=1e-3)


def test_what_no_description_names_keeps_16_bits() -> None:
    found = mean_bits((["re:.*self_attn.*"], FP8), (["re:.*down_proj"], INT4))
    rest = MLP * 2 / 3
    expected = (ATTENTION * 8.01 + MLP / 3 * (4 + 20 / 128) + rest * 16) / (ATTENTION + MLP)
    assert found == pytest.approx(expected, abs=1e-3)


def test_a_description_without_weights_leaves_16_bits() -> None:
    found = mean_bits((["re:.*self_attn.*"], None), (["Linear"], INT4))
    expected = (ATTENTION * 16 + MLP * (4 + 20 / 128)) / (ATTENTION + MLP)
    assert found == pytest.approx(expected, abs=1e-3)


def test_what_a_checkpoint_ignores_is_no_part_of_the_mean() -> None:
    two = document((["re:.*down_proj"], FP8), (["Linear"], INT4))
    two["model"]["quantization_config"]["ignore"] = ["re:.*self_attn.*", "lm_head"]
    form = weight_format(parse_workload(two).weights_format)
    assert form is not None
    assert form.bits.typical == pytest.approx((8.01 + 2 * (4 + 20 / 128)) / 3, abs=1e-3)


def test_layers_may_be_named_one_by_one() -> None:
    first = [f"model.layers.{index}.mlp" for index in range(8)]
    found = mean_bits((first, FP8), (["Linear"], INT4))
    eight = MLP / 4
    expected = (eight * 8.01 + (ATTENTION + MLP - eight) * (4 + 20 / 128)) / (ATTENTION + MLP)
    assert found == pytest.approx(expected, abs=1e-3)


def test_experts_may_have_fewer_bits_than_attention() -> None:
    found = mean_bits((["re:.*experts.*"], INT4), (["Linear"], FP8), slug="qwen3-30b-a3b")
    assert 4 + 20 / 128 < found < 4.5


def test_the_experts_of_a_layer_are_part_of_its_mlp() -> None:
    both = [
        mean_bits(([name], INT4), (["Linear"], FP8), slug="qwen3-30b-a3b")
        for name in ("re:.*mlp.*", "re:.*experts.*")
    ]
    assert both[0] == both[1]


def test_a_budget_has_the_mean_as_its_format() -> None:
    workload = parse_workload(document((["re:.*self_attn.*"], FP8), (["Linear"], INT4)))
    weights = budget(workload, Plan()).ranks[0].component("weights")
    assert weights is not None
    kept = 2 * 128_256 * HIDDEN * 2
    bits = mean_bits((["re:.*self_attn.*"], FP8), (["Linear"], INT4))
    assert weights.bytes.typical == pytest.approx(kept + (ATTENTION + MLP) * bits / 8, rel=0.002)
    assert {one.key for one in workload.assumptions} >= {"weights_format"}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"type": "int", "num_bits": 3}, "weights of 4 or 8 bits"),
        ({"type": "int", "num_bits": "4"}, "num_bits"),
        ({"type": "int", "num_bits": 4, "group_size": -7}, "group_size"),
        ([], "an object of keys"),
    ],
)
def test_a_description_that_means_nothing_is_refused(weights: Any, message: str) -> None:
    with pytest.raises(InvalidWorkload, match=message):
        parse_workload(document((["Linear"], FP8), (["re:.*mlp.*"], weights)))


def test_hundreds_of_descriptions_are_refused() -> None:
    with pytest.raises(InvalidWorkload, match="at most 100 descriptions"):
        parse_workload(document(*[(["Linear"], FP8)] * 101))


def test_a_pattern_is_never_run_as_a_regular_expression() -> None:
    """One that takes exponential time on every name is a word like any other."""
    found = mean_bits((["re:(a+)+$" * 20], FP8), (["Linear"], INT4))
    assert found == pytest.approx(4 + 20 / 128, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("gptq-int8", 8.19),
        ("gptq-int8:g128", 8 + 24 / 128),
        ("gptq-int8:g32", 8.75),
        ("gptq-int8:channel", 8.01),
        ("int8:g128", 8 + 24 / 128),
    ],
)
def test_8_bit_weights_in_groups_carry_their_scales(name: str, bits: float) -> None:
    form = weight_format(name)
    assert form is not None
    assert form.bits.typical == pytest.approx(bits, abs=1e-3)


@pytest.mark.parametrize(
    "name", ["mixed:", "mixed:x", "mixed:5", "mixed:-5.000", "mixed:\uff15.000"]
)
def test_a_mix_that_is_no_number_is_no_format(name: str) -> None:
    assert weight_format(name) is None


# --- modules one by one, as ModelOpt exports them

PARTS = ("q_proj", "k_proj", "v_proj", "o_proj")


def by_layers(slug: str = "llama-3.1-8b", **forms: str) -> dict[str, Any]:
    """Every projection of every layer with the algorithm of its module."""
    layers = {
        f"model.layers.{at}.{module}": {"quant_algo": algorithm}
        for at in range(int(presets()[slug].config["num_hidden_layers"]))
        for name, algorithm in forms.items()
        for module in MODULES[name]
    }
    stated = {
        "quant_method": "modelopt",
        "quant_algo": "MIXED_PRECISION",
        "quantized_layers": layers,
    }
    model = {**dict(presets()[slug].config), "quantization_config": stated}
    return {"task": "serve", "model": model}


MLP_PARTS = ("gate_proj", "up_proj", "down_proj")
MODULES = {
    "attention": [f"self_attn.{name}" for name in PARTS],
    "mlp": [f"mlp.{name}" for name in MLP_PARTS],
    "experts": [f"mlp.experts.{at}.{name}" for at in range(3) for name in MLP_PARTS],
}


def bits_of(text: dict[str, Any]) -> float:
    form = weight_format(parse_workload(text).weights_format)
    assert form is not None
    return float(form.bits.typical)


def test_modules_one_by_one_give_the_mean_of_their_formats() -> None:
    found = bits_of(by_layers(attention="FP8", mlp="NVFP4"))
    expected = (ATTENTION * 8.01 + MLP * 4.5) / (ATTENTION + MLP)
    assert found == pytest.approx(expected, abs=1e-3)


def test_a_module_that_is_not_listed_keeps_16_bits() -> None:
    expected = (ATTENTION * 16 + MLP * 4.5) / (ATTENTION + MLP)
    assert bits_of(by_layers(mlp="NVFP4")) == pytest.approx(expected, abs=1e-3)


def test_experts_named_each_alone_are_the_experts() -> None:
    one_by_one = bits_of(by_layers("qwen3-30b-a3b", attention="FP8", experts="NVFP4"))
    assert 4.5 < one_by_one < 4.7


def test_experts_that_a_checkpoint_ignores_keep_16_bits() -> None:
    model = dict(presets()["qwen3-30b-a3b"].config)
    kept = [f"model.layers.0.mlp.experts.{at}.{name}" for at in range(4) for name in MLP_PARTS]
    stated = {"quant_method": "fp8"}
    sizes = []
    for names in ([], kept):
        document = {
            "task": "serve",
            "model": {**model, "quantization_config": {**stated, "modules_to_not_convert": names}},
        }
        weights = budget(parse_workload(document), Plan()).ranks[0].component("weights")
        assert weights is not None
        sizes.append(float(weights.bytes.typical))
    assert sizes[1] - sizes[0] == pytest.approx(128 * 3 * 768 * 2048 * 0.999, rel=0.01)


def test_an_algorithm_that_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(
        InvalidWorkload, match=r"quantized_layers.*read 'W2A2', expected one of FP8"
    ):
        parse_workload(by_layers(mlp="W2A2"))
