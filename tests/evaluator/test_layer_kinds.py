"""Models whose layers differ in kind: totals, active parameters, and what each rank holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evaluator.adapters import adapter_params
from evaluator.configs import read_model
from evaluator.fields import InvalidWorkload
from evaluator.findings import Code
from evaluator.formats import weight_format
from evaluator.jobs import Lora, ServingJob, Workload
from evaluator.kv_cache import bytes_per_token, cache_sizes, state_bytes
from evaluator.lora_targets import adapters_in_layer
from evaluator.memory import budget
from evaluator.parameters import active_params, layer_parts, total_params
from evaluator.partition import rank_classes, stages_of
from evaluator.plans import Plan
from evaluator.ranges import Range
from evaluator.shapes import Feed, Layer, Mixer, StateSpace
from evaluator.weights import weights_on
from evaluator.workload import parse_workload
from tests.evaluator.hybrids import (
    ALL,
    FALCON_H1,
    MAMBA,
    NEMOTRON,
    ORIGINAL_MAMBA,
    ORIGINAL_MAMBA_2,
    SHAPES,
    ZAMBA,
)

ONE = Plan()


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("mamba", 2_768_345_600),
        ("falcon", 7_272_665_088),
        ("mamba2", 7_285_403_648),
        ("jamba", 51_570_323_328),
        ("nemotron", 31_577_937_344),
        ("falcon_h1", 521_411_104),
    ],
)
def test_a_published_total_is_met_to_the_parameter(name: str, published: int) -> None:
    assert total_params(SHAPES[name]) == published


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("jamba", 52, 12),
        ("nemotron", 31.6, 3.6),
        ("latent", 120, 12.7),
        ("granite", 32, 9),
        ("bamba", 9.8, 9.8),
        ("qwen", 80, 3.9),
    ],
)
def test_totals_and_active_parameters_are_those_of_the_model_cards(
    name: str, total: float, active: float
) -> None:
    shape = SHAPES[name]
    assert (total_params(shape) or 0) / 1e9 == pytest.approx(total, rel=0.025)
    assert (active_params(shape) or 0) / 1e9 == pytest.approx(active, rel=0.025)


@pytest.mark.parametrize("name", ALL)
def test_every_key_of_a_hybrid_is_understood(name: str) -> None:
    _, findings = read_model(ALL[name])
    assert [one.code for one in findings] == []


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("mamba", "state_size"),
        ("mamba", "conv_kernel"),
        ("mamba", "expand"),
        ("falcon_h1", "mamba_n_heads"),
        ("mamba2", "num_heads"),
        ("mamba2", "n_groups"),
        ("jamba", "attn_layer_offset"),
        ("jamba", "expert_layer_period"),
        ("jamba", "mamba_d_conv"),
        ("nemotron", "n_routed_experts"),
        ("nemotron", "head_dim"),
        ("granite", "layer_types"),
        ("bamba", "attn_layer_indices"),
        ("qwen", "linear_value_head_dim"),
    ],
)
def test_a_hybrid_without_one_of_its_sizes_asks_for_a_count(name: str, missing: str) -> None:
    shape, findings = read_model(ALL[name] | {missing: None})
    assert total_params(shape) is None
    assert Code.ARCHITECTURE_UNKNOWN in {one.code for one in findings}


def test_a_config_may_hold_older_names_of_the_same_sizes() -> None:
    """As the published ones of Mamba do."""
    older = {"d_model": 2560, "n_layer": 64, "ssm_cfg": {}, "d_inner": 1536, "dt_rank": 160}
    shape, findings = read_model(MAMBA | older)
    assert total_params(shape) == 2_768_345_600
    assert findings == []


def test_layers_may_be_listed_by_name_instead_of_by_a_pattern() -> None:
    words = {"M": "mamba", "E": "moe", "*": "attention"}
    named = [words[letter] for letter in NEMOTRON["hybrid_override_pattern"]]
    shape, _ = read_model(NEMOTRON | {"hybrid_override_pattern": None, "layers_block_type": named})
    assert shape.kinds == SHAPES["nemotron"].kinds


def test_a_layer_that_only_mixes_has_one_norm_and_no_mlp() -> None:
    shape = SHAPES["nemotron"]
    parts = layer_parts(shape, Layer(Mixer.ATTENTION, Feed.NONE))
    assert sum(part.params for part in parts) == 2 * 2688 * 128 * (32 + 2) + 2688


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("pp", [2, 3, 4, 7])
def test_layers_of_all_stages_are_those_of_the_model(name: str, pp: int) -> None:
    shape = SHAPES[name]
    stages = stages_of(shape, Plan(pp=pp))
    assert sum(stage.cached for stage in stages) == shape.cached_layers
    assert shape.recurrence is not None
    assert sum(stage.recurrent for stage in stages) == shape.recurrence.layers


def test_a_stage_caches_for_its_own_attention_layers_alone() -> None:
    """The last 8 of 88 layers attend: the first of four stages keeps no token at all."""
    shape, job = SHAPES["latent"], ServingJob()
    first, _, last = rank_classes(shape, Plan(pp=4))
    assert bytes_per_token(shape, job, Plan(pp=4), first) == 0
    assert bytes_per_token(shape, job, Plan(pp=4), last) == 8 * 2 * 2 * 128 * 2
    states = [state_bytes(cache_sizes(shape, job), Plan(pp=4), rank) for rank in (first, last)]
    assert states[0] == 11 * 4 * (8192 * 128 + 3 * (8192 + 2048))
    assert states[1] == 7 * 4 * (8192 * 128 + 3 * (8192 + 2048))


def test_ranks_divide_the_channels_of_a_mamba_layer() -> None:
    shape, form = SHAPES["mamba"], weight_format("bf16")
    assert form is not None
    rank = rank_classes(shape, ONE)[0]
    whole = weights_on(shape, form, ONE, rank, loaded=False).typical
    half = weights_on(shape, form, Plan(tp=2), rank, loaded=False).typical
    assert whole == 2 * 2_768_345_600
    assert half == pytest.approx(whole / 2, rel=1e-4)


def test_convolutions_and_decays_keep_16_bits() -> None:
    shape, form = SHAPES["mamba"], weight_format("fp8")
    assert form is not None
    rank = rank_classes(shape, ONE)[0]
    whole = 50_280 * 2560 + 65 * 2560
    single = 64 * 5120 * (4 + 1 + 16 + 2)
    quantised = 2_768_345_600 - whole - single
    expected = 2 * (whole + single) + quantised * form.bits.typical / 8
    assert weights_on(shape, form, ONE, rank, loaded=False).typical == expected


def test_adapters_sit_on_the_layers_that_have_their_matrices() -> None:
    shape, lora = SHAPES["jamba"], Lora(rank=1)
    each = 2 * (4096 + 4096) + 2 * (4096 + 1024)
    assert adapter_params(shape, lora) == 4 * each
    assert adapters_in_layer(shape, lora, Layer(Mixer.RECURRENT, Feed.DENSE)) == 0


@pytest.mark.parametrize(
    ("name", "sides"),
    [
        ("mamba", 64 * ((2560 + 2 * 5120) + (5120 + 2560))),
        ("mamba2", 64 * ((4096 + 2 * 8192 + 2048 + 128) + (8192 + 4096))),
        ("qwen", 36 * ((2048 + 8192 + 4096) + (4096 + 2048))),
        ("nemotron", 23 * ((2688 + 2 * 4096 + 2048 + 64) + (4096 + 2688))),
    ],
)
def test_layers_with_a_state_have_adapters_of_their_own(name: str, sides: int) -> None:
    lora = Lora(rank=1, targets=("in_proj", "out_proj"))
    assert adapter_params(SHAPES[name], lora) == sides


def test_mamba_has_no_cache_that_grows() -> None:
    rank = rank_classes(SHAPES["mamba"], ONE)[0]
    assert bytes_per_token(SHAPES["mamba"], ServingJob(), ONE, rank) == 0
    assert SHAPES["mamba"].recurrent == StateSpace(5120, 16, 4, rank=160)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("task", ["serve", "train"])
def test_every_hybrid_has_a_budget(name: str, task: str) -> None:
    memory = budget(parse_workload({"task": task, "model": ALL[name]}), Plan(pp=2))
    assert memory.binding is not None
    assert all(part.bytes.high > 0 for part in memory.binding.components[:1])


def test_a_model_of_unknown_layers_has_wider_ranges_than_one_of_known_ones() -> None:
    document = {"task": "train", "model": {"preset": "llama-3.1-8b"}}
    known = parse_workload(document)
    guessed = replace(known, model=replace(known.model, computable=False, given_params=8 * 10**9))
    for name in ("model_states", "activations"):
        sizes = [part_of(job, Plan(tp=2), name) for job in (known, guessed)]
        widths = [size.high / size.low for size in sizes]
        assert widths[1] > 1.05 * widths[0]


def test_what_every_tensor_rank_holds_whole_is_told() -> None:
    """Of a dense model two norms a layer, and one at the end."""
    job = parse_workload({"task": "serve", "model": {"preset": "llama-3.1-8b"}})
    inputs = dict(budget(job, Plan(tp=2)).ranks[0].components[0].inputs)
    assert inputs["whole on every tensor rank"] == f"{65 * 4096:,} parameters"


def part_of(job: Workload, plan: Plan, name: str) -> Range:
    found = budget(job, plan).ranks[0].component(name)
    assert found is not None
    return found.bytes


# --- attention and a state side by side


def test_a_layer_that_does_both_keeps_tokens_and_a_state() -> None:
    shape, job = SHAPES["falcon_h1"], ServingJob()
    rank = rank_classes(shape, Plan(pp=2))[0]
    assert (rank.cached, rank.recurrent) == (18, 18)
    assert bytes_per_token(shape, job, Plan(pp=2), rank) == 18 * 2 * 2 * 64 * 2
    state = 1536 * 128 + 3 * (1536 + 2 * 128)
    assert state_bytes(cache_sizes(shape, job), Plan(pp=2), rank) == 18 * 4 * state


def test_adapters_of_a_layer_that_does_both_stand_on_both() -> None:
    both, alone = Layer(Mixer.BOTH, Feed.DENSE), Layer(Mixer.ATTENTION, Feed.DENSE)
    lora = Lora(8, ("q_proj", "in_proj"))
    attention = adapters_in_layer(SHAPES["falcon_h1"], lora, alone)
    assert attention == 8 * (1024 + 512)
    inside = 8 * (1024 + 1536 + 1536 + 256 + 24)
    assert adapters_in_layer(SHAPES["falcon_h1"], lora, both) == attention + inside


@pytest.mark.parametrize("key", ["projectors_bias", "mlp_bias", "attention_bias"])
def test_a_bias_of_a_parallel_hybrid_asks_for_a_count(key: str) -> None:
    shape, _ = read_model(FALCON_H1 | {key: True})
    assert total_params(shape) is None


# --- blocks that layers share


def test_shared_blocks_count_once_and_their_adapters_every_time() -> None:
    shape, findings = read_model(ZAMBA)
    assert total_params(shape) == 1_215_064_704
    assert findings == []
    assert (shape.cached_layers, shape.recurrence and shape.recurrence.layers) == (6, 38)


def test_shared_blocks_are_budgeted_by_their_count() -> None:
    served = parse_workload({"task": "serve", "model": ZAMBA})
    trained = parse_workload({"task": "train", "model": ZAMBA})
    weights = budget(served, ONE).ranks[0].component("weights")
    states = budget(trained, ONE).ranks[0].component("model_states")
    assert weights
    assert states
    assert weights.bytes.typical == pytest.approx(2 * 1_215_064_704, rel=0.01)
    assert states.bytes.typical == 16 * 1_215_064_704


@pytest.mark.parametrize("missing", ["mamba_d_state", "adapter_rank", "layers_block_type"])
def test_shared_blocks_without_a_size_ask_for_a_count(missing: str) -> None:
    shape, findings = read_model(ZAMBA | {missing: None})
    assert total_params(shape) is None
    assert Code.ARCHITECTURE_UNKNOWN in {one.code for one in findings}


# --- configs of the original repository


@pytest.mark.parametrize(
    ("config", "published"), [(ORIGINAL_MAMBA, 2_768_345_600), (ORIGINAL_MAMBA_2, 2_702_599_680)]
)
def test_an_original_config_gives_the_published_total(
    config: dict[str, Any], published: int
) -> None:
    shape, findings = read_model(config)
    assert total_params(shape) == published
    assert findings == []


@pytest.mark.parametrize(
    "changed",
    [
        {"attn_layer_idx": [9]},
        {"d_intermediate": 4096},
        {"ssm_cfg": {"layer": "Mamba3"}},
        {"ssm_cfg": {"layer": "Mamba2", "unheard": 1}},
    ],
)
def test_an_original_config_with_other_layers_asks_for_a_count(changed: dict[str, Any]) -> None:
    shape, _ = read_model(ORIGINAL_MAMBA_2 | changed)
    assert total_params(shape) is None


def test_a_size_of_an_original_config_that_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidWorkload, match=r"model.ssm_cfg.d_state: read 'many'"):
        read_model(ORIGINAL_MAMBA | {"ssm_cfg": {"d_state": "many"}})


# --- adapters where nothing attends


@pytest.mark.parametrize("task", ["finetune", "serve"])
def test_usual_targets_on_a_model_without_attention_are_told(task: str) -> None:
    document = {"task": task, "model": MAMBA, "lora": {"rank": 8}}
    found = {one.code: one.sentence for one in parse_workload(document).findings}
    assert "q_proj" in found[Code.NO_ADAPTERS]


@pytest.mark.parametrize("target", ["in_proj", "out_proj"])
def test_a_target_that_a_model_has_clears_it(target: str) -> None:
    document = {"task": "finetune", "model": MAMBA, "lora": {"targets": ["q_proj", target]}}
    workload = parse_workload(document)
    assert workload.findings == ()
    assert workload.training
    assert workload.training.lora
    assert adapter_params(workload.model, workload.training.lora) > 0


def test_a_model_of_unknown_parts_is_not_judged_by_its_targets() -> None:
    document = {"task": "finetune", "model": ZAMBA, "lora": {"rank": 8}}
    assert Code.NO_ADAPTERS not in {one.code for one in parse_workload(document).findings}
