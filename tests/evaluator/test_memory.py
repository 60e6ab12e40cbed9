"""Parts of the memory per GPU: weights, cache, states, activations, by the worked examples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.activations import activations_component, in_flight, logits_component
from evaluator.adapters import adapter_params
from evaluator.formats import weight_format
from evaluator.jobs import Lora, Recompute, ServingJob, TrainingJob, Workload
from evaluator.kv_cache import bytes_per_token, sequence_bytes
from evaluator.memory import budget
from evaluator.models import preset, presets
from evaluator.parameters import total_params
from evaluator.partition import layer_groups, params_on, rank_classes, stages_of
from evaluator.plans import Plan
from evaluator.ranges import Range
from evaluator.recipes import RECIPES
from evaluator.shapes import Attention, ModelShape, Norms
from evaluator.states import local_count, sharded_bytes_per_param, trainable_params
from evaluator.units import GB, GIB
from evaluator.weights import weights_on
from evaluator.workload import parse_workload

ONE = Plan()
G175 = ModelShape(
    name="GPT-3 175B",
    hidden=12288,
    layers=96,
    vocab=51200,
    attention=Attention(heads=96, kv_heads=96, head_dim=128, qkv_bias=True, output_bias=True),
    mlp_size=49152,
    gated=False,
    mlp_bias=True,
    tied=True,
    norms=Norms(2, bias=True),
    learned_positions=2048,
)
GPT_JOB = TrainingJob(seq_len=2048, micro_batch=1, fused_attention=False)


def serving(model: str = "llama-3.1-8b", **keys: Any) -> Workload:
    return parse_workload({"task": "serve", "model": {"preset": model}, **keys})


def training(model: str = "llama-3.1-8b", **keys: Any) -> Workload:
    return parse_workload({"task": "train", "model": {"preset": model}, **keys})


def part(workload: Workload, plan: Plan, name: str, stage: int = 0) -> Range:
    component = budget(workload, plan).ranks[stage].component(name)
    assert component is not None
    return component.bytes


# --- weights


@pytest.mark.parametrize(
    ("model", "weights", "gigabytes"),
    [
        ("llama-3.1-8b", "bf16", 16.06),
        ("llama-3.1-70b", "bf16", 141.1),
        ("llama-3.1-70b", "fp8", 72.7),
        ("llama-3.1-70b", "nvfp4", 42.7),
        ("llama-2-7b", "gguf:Q8_0", 7.16),
    ],
)
def test_weights_take_the_bytes_of_their_format(model: str, weights: str, gigabytes: float) -> None:
    size = part(serving(model, weights_format=weights), ONE, "weights")
    assert size.typical / GB == pytest.approx(gigabytes, rel=0.005)


@pytest.mark.parametrize(
    ("name", "bits"),
    [("gptq-int4:g32", 4.625), ("awq-int4:g128", 4.15625), ("int4:g64", 4.3125)],
)
def test_smaller_groups_have_more_scales(name: str, bits: float) -> None:
    form = weight_format(name)
    assert form is not None
    assert form.bits.ordered
    assert form.bits.typical == pytest.approx(bits)


@pytest.mark.parametrize("name", ["fp8:g32", "awq-int4:g0", "awq-int4:g\u0663", "awq-int4:32"])
def test_groups_of_no_size_are_no_format(name: str) -> None:
    assert weight_format(name) is None


def test_8_bit_weights_keep_embedding_and_head_at_16_bits() -> None:
    shape, form = preset("llama-3.1-70b"), weight_format("int8")
    assert form is not None
    size = weights_on(shape, form, ONE, rank_classes(shape, ONE)[0])
    assert size.typical > (total_params(shape) or 0) + shape.vocab * shape.hidden * 2


def test_a_checkpoint_may_keep_whole_modules_and_layers_at_16_bits() -> None:
    names = ("self_attn", "embed_tokens", "lm_head", "model.layers.0", "model.layers.125")
    shape = replace(preset("llama-3.1-405b"), kept_16bit=names)
    form, plan = weight_format("fp8"), Plan(tp=8)
    assert form is not None
    size = weights_on(shape, form, plan, rank_classes(shape, plan)[0])
    assert size.typical / GIB == pytest.approx(56.7, rel=0.01)


def test_many_names_of_kept_layers_stay_few_groups() -> None:
    names = tuple(f"model.layers.{index}.mlp" for index in range(0, 1000, 2))
    shape = replace(preset("llama-3.1-8b"), layers=1000, kept_16bit=names)
    groups = layer_groups(shape, rank_classes(shape, ONE)[0])
    assert sorted((group.count, *group.kept) for group in groups) == [(500,), (500, "mlp")]


@pytest.mark.parametrize(("model", "file", "loaded"), [("gpt-oss-120b", 60.8, 64.5)])
def test_mxfp4_experts_are_padded_when_loaded(model: str, file: float, loaded: float) -> None:
    shape, form = preset(model), weight_format("mxfp4")
    assert form is not None
    rank = rank_classes(shape, ONE)[0]
    on_disk = weights_on(shape, form, ONE, rank, loaded=False)
    assert on_disk.typical / GIB == pytest.approx(file, rel=0.002)
    assert weights_on(shape, form, ONE, rank).typical / GIB == pytest.approx(loaded, rel=0.002)


@pytest.mark.parametrize("plan", [Plan(tp=2), Plan(pp=2), Plan(tp=4, pp=3)])
def test_the_ranks_together_hold_at_least_the_model(plan: Plan) -> None:
    for shape in map(preset, presets()):
        held = sum(local_count(shape, plan, stage) for stage in stages_of(shape, plan))
        assert held * plan.tp >= (total_params(shape) or 0), shape.name


def test_the_last_stage_of_a_tied_model_holds_a_copy_of_the_embedding() -> None:
    shape, plan = preset("llama-3.2-1b"), Plan(pp=2)
    first, last = rank_classes(shape, plan)
    assert params_on(shape, last, ONE) - params_on(shape, first, ONE) == shape.hidden


# --- cache


@pytest.mark.parametrize(
    ("model", "kv_dtype", "expected"),
    [
        ("llama-3.1-8b", "bf16", 131_072),
        ("llama-3.1-70b", "bf16", 327_680),
        ("llama-3.1-70b", "fp8", 163_840),
        ("deepseek-v3", "bf16", 70_272),
    ],
)
def test_a_token_takes_its_published_bytes(model: str, kv_dtype: str, expected: int) -> None:
    shape, job = preset(model), ServingJob(kv_dtype=kv_dtype)
    assert bytes_per_token(shape, job, ONE, rank_classes(shape, ONE)[0]) == expected


def test_a_latent_cache_is_on_every_tensor_rank() -> None:
    shape, job = preset("deepseek-v3"), ServingJob()
    each = {
        bytes_per_token(shape, job, plan, rank_classes(shape, plan)[0])
        for plan in (ONE, Plan(tp=8))
    }
    assert len(each) == 1


def test_an_engine_without_latent_attention_stores_whole_heads() -> None:
    lite, full = preset("deepseek-v2-lite"), preset("deepseek-r1")
    padded = ServingJob(mla_kv=False)
    plain = ServingJob(engine="llama.cpp", mla_kv=False)
    assert bytes_per_token(lite, padded, ONE, rank_classes(lite, ONE)[0]) == 442_368
    assert bytes_per_token(full, plain, ONE, rank_classes(full, ONE)[0]) == 4_997_120


@given(st.sampled_from(list(presets())), st.sampled_from([1, 2, 4, 8]))
def test_cache_per_gpu_never_rises_with_tensor_ranks(slug: str, tp: int) -> None:
    shape, job = preset(slug), ServingJob()
    narrow, wide = Plan(tp=tp), Plan(tp=2 * tp)
    rank = rank_classes(shape, ONE)[0]
    assert bytes_per_token(shape, job, wide, rank) <= bytes_per_token(shape, job, narrow, rank)


def test_heads_are_copied_when_ranks_outnumber_them() -> None:
    shape, job = preset("llama-3.1-8b"), ServingJob()
    rank = rank_classes(shape, ONE)[0]
    each = [bytes_per_token(shape, job, Plan(tp=tp), rank) for tp in (8, 16)]
    assert each == [16_384, 16_384]


def test_a_sequence_takes_whole_blocks() -> None:
    shape, job = preset("llama-3.1-8b"), ServingJob()
    rank = rank_classes(shape, ONE)[0]
    assert sequence_bytes(shape, job, ONE, rank, 17) == 32 * 131_072


def test_a_window_caps_the_cache_of_its_layers() -> None:
    shape, rank = preset("gpt-oss-120b"), rank_classes(preset("gpt-oss-120b"), ONE)[0]
    chunked = ServingJob(max_num_batched_tokens=1024)
    size = sequence_bytes(shape, chunked, ONE, rank, 131_072)
    assert size == 18 * 2 * 8 * 64 * 2 * (131_072 + 1152)
    ignored = replace(chunked, window_kv=False)
    assert sequence_bytes(shape, ignored, ONE, rank, 131_072) == 36 * 2048 * 131_072


# --- training states


@pytest.mark.parametrize(
    ("precision", "stage", "gigabytes"),
    [
        (("adamw", "mixed"), 0, 128.5),
        (("adamw", "mixed"), 1, 44.2),
        (("adamw", "mixed"), 2, 30.1),
        (("adamw", "mixed"), 3, 16.06),
        (("adamw", "mixed-fp32-grads"), 1, 60.2),
    ],
)
def test_llama_8b_on_eight_ranks_has_the_states_of_the_zero_table(
    precision: tuple[str, str], stage: int, gigabytes: float
) -> None:
    each = sharded_bytes_per_param(RECIPES[precision], stage, 8 if stage else 1)
    assert each * 8_030_261_248 / GB == pytest.approx(gigabytes, rel=0.002)


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        (("adamw", "mixed"), 16),
        (("adamw", "mixed-fp32-grads"), 18),
        (("adamw", "fp32"), 16),
        (("adamw", "bf16"), 8),
        (("adamw-8bit", "mixed"), 10),
        (("sgd", "mixed"), 12),
        (("adafactor", "mixed"), 8),
    ],
)
def test_a_recipe_takes_its_bytes_per_parameter(recipe: tuple[str, str], expected: float) -> None:
    assert RECIPES[recipe].bytes_per_param == pytest.approx(expected, rel=0.01)


def test_full_sharding_divides_the_states_and_plain_data_parallel_does_not() -> None:
    job = training()
    whole = part(job, ONE, "model_states").typical
    assert part(job, Plan(dp=8), "model_states").typical == whole
    assert part(job, Plan(dp=8, shard=8), "model_states").typical == pytest.approx(whole / 8)


def test_full_sharding_gathers_a_whole_layer_and_prefetches_the_next() -> None:
    plan, layer = Plan(dp=8, shard=8), 2 * 218_112_000
    gathered = part(training(), plan, "gathered_layers")
    ahead = part(training(), plan, "prefetched_layers")
    assert gathered.typical == pytest.approx(layer, rel=0.001)
    assert gathered.high == 2 * 2 * 128_256 * 4096
    assert (ahead.low, ahead.typical, ahead.high) == (0, gathered.typical, 2 * gathered.typical)


def test_a_base_of_four_bits_is_unpacked_and_not_prefetched() -> None:
    rank = budget(training(lora={}, weights_format="bnb-nf4"), ONE).ranks[0]
    assert rank.component("gathered_layers")
    assert rank.component("prefetched_layers") is None


def test_plain_data_parallel_may_keep_its_gradients_twice() -> None:
    buckets = part(training(), Plan(dp=8), "gradient_buckets")
    assert (buckets.typical, buckets.high) == (0, 2 * 8_030_261_248)


def test_lora_has_the_published_number_of_adapter_parameters() -> None:
    assert adapter_params(preset("llama-3.1-8b"), Lora(rank=16)) == 13_631_488


def test_lora_freezes_the_base() -> None:
    states = part(training(lora={"rank": 16}), ONE, "model_states")
    assert states.typical / GB == pytest.approx(16.06 + 0.218, rel=0.002)


def test_qlora_freezes_a_base_of_four_bits() -> None:
    states = part(training(lora={}, weights_format="bnb-nf4"), ONE, "model_states")
    assert 5 < states.typical / GB < 6.5


def test_trainable_parameters_are_the_adapters_or_the_model() -> None:
    assert trainable_params(training()) == 8_030_261_248
    assert trainable_params(training(lora={})) == 13_631_488


# --- activations


@pytest.mark.parametrize(
    ("plan", "change", "gigabytes"),
    [
        (ONE, {}, 275.4),
        (Plan(tp=8), {"sequence_parallel": False}, 55.6),
        (Plan(tp=8), {}, 34.4),
        (Plan(tp=8), {"recompute": Recompute.SELECTIVE}, 10.27),
    ],
)
def test_gpt_3_keeps_the_activations_of_the_published_table(
    plan: Plan, change: dict[str, Any], gigabytes: float
) -> None:
    job = replace(GPT_JOB, **change)
    rank = rank_classes(G175, plan)[0]
    size = activations_component(G175, job, plan, rank).bytes
    assert size.typical / GB == pytest.approx(gigabytes, rel=0.005)


def test_full_recompute_keeps_the_inputs_and_one_layer_in_its_backward_pass() -> None:
    job = replace(GPT_JOB, recompute=Recompute.FULL, fused_attention=True)
    size = activations_component(G175, job, ONE, rank_classes(G175, ONE)[0]).bytes
    assert size.typical / GB == pytest.approx(4.83 + 1.5 * 34 * 2048 * 12288 / GB, rel=0.005)


def test_a_llama_block_keeps_167_936_bytes_per_token() -> None:
    size = part(training(seq_len=8192), ONE, "activations")
    assert size.typical == 32 * 8192 * 167_936
    assert size.low < 0.8 * size.typical < 1.1 * size.typical < size.high
    assert size.high / size.low < 1.55


def test_pipelining_does_not_lower_the_peak_of_the_first_stage() -> None:
    job = training("llama-3.1-70b")
    alone = part(job, ONE, "activations").typical
    assert part(job, Plan(pp=8), "activations").typical == alone


@pytest.mark.parametrize(("stage", "held"), [(0, 4), (1, 3), (2, 1)])
def test_a_later_stage_holds_fewer_micro_batches(stage: int, held: int) -> None:
    plan, shape = Plan(pp=4), preset("llama-3.1-70b")
    assert in_flight(TrainingJob(), plan, rank_classes(shape, plan)[stage]) == held


def test_few_micro_batches_limit_what_is_in_flight() -> None:
    plan, shape = Plan(pp=4), preset("llama-3.1-70b")
    job = TrainingJob(global_batch=2)
    assert in_flight(job, plan, rank_classes(shape, plan)[0]) == 2


def test_only_the_last_stage_computes_logits() -> None:
    first, middle, last = budget(training("llama-3.1-70b"), Plan(pp=4)).ranks
    assert [rank.component("logits") is None for rank in (first, middle, last)] == [
        True,
        True,
        False,
    ]


def test_logits_take_their_fp32_copy_and_gradient() -> None:
    size = logits_component(preset("llama-3.1-8b"), TrainingJob(seq_len=8192), ONE).bytes
    assert size.typical / 2 == pytest.approx(4.20 * GB, rel=0.002)
