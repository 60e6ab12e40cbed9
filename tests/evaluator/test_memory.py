"""Memory per GPU: the worked examples of the formulas, and what must hold for every plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.activations import activations_component, in_flight, logits_component
from evaluator.adapters import adapter_params, adapter_params_on
from evaluator.budgets import Component, FitWord, MemoryBudget, RankBudget
from evaluator.findings import Code
from evaluator.formats import weight_format
from evaluator.jobs import Lora, Precision, Recompute, ServingJob, TrainingJob, Workload
from evaluator.kv_cache import bytes_per_token, sequence_bytes
from evaluator.memory import budget, fit, max_concurrent_sequences, smallest_change
from evaluator.models import preset, presets
from evaluator.parameters import total_params
from evaluator.partition import layer_groups, params_on, rank_classes, stages_of
from evaluator.plans import Plan, refusal_of
from evaluator.ranges import Range, exact
from evaluator.recipes import RECIPES
from evaluator.shapes import Attention, ModelShape, Norms
from evaluator.shares import Allowance
from evaluator.states import local_count, sharded_bytes_per_param, trainable_params
from evaluator.units import GB, GIB
from evaluator.weights import weights_on
from evaluator.workload import COMPONENTS, parse_workload, workload_presets

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


# --- budgets


def test_first_middle_and_last_stages_are_told_apart() -> None:
    names = [rank.rank for rank in budget(training("llama-3.1-70b"), Plan(pp=4)).ranks]
    assert names == ["first stage", "middle stages", "last stage"]


def test_without_a_pipeline_all_ranks_are_alike() -> None:
    assert [rank.rank for rank in budget(serving(), Plan(tp=2)).ranks] == ["every rank"]


@pytest.mark.parametrize("slug", workload_presets())
def test_every_component_shows_where_it_comes_from(slug: str) -> None:
    workload = parse_workload(workload_presets()[slug])
    for rank in budget(workload, Plan(dp=8, shard=8)).ranks:
        assert all(one.formula and one.source for one in rank.components)


def test_a_pinned_component_outranks_its_estimate() -> None:
    pinned = serving(pins={"activations": 3 * GIB})
    assert part(pinned, ONE, "activations") == exact(3 * GIB)


def test_every_name_that_can_be_pinned_is_a_component() -> None:
    seeing = preset("llama-3.1-8b")
    seeing = replace(seeing, given_params=(total_params(seeing) or 0) + 10**9)
    extras = serving(lora={}, draft_params=10**9, engine="tensorrt-llm")
    margin = serving(engine="llama.cpp", engine_version="b7414")
    jobs = (serving(), training(), training(zero_stage=2), replace(extras, model=seeing), margin)
    plans = (Plan(dp=2), Plan(dp=2, shard=2), Plan(tp=2))
    ranks = [rank for job in jobs for plan in plans for rank in budget(job, plan).ranks]
    assert {part.name for rank in ranks for part in rank.components} == set(COMPONENTS)


def test_replicas_share_the_requests() -> None:
    job = serving(concurrency=32)
    shared = part(job, Plan(replicas=4), "kv_cache").typical
    assert shared == part(job, ONE, "kv_cache").typical / 4


LENGTHS = st.integers(16, 100_000)


@given(LENGTHS, LENGTHS, st.integers(1, 500), st.integers(1, 500))
def test_a_serving_budget_never_falls_with_length_or_requests(
    tokens: int, more: int, requests: int, others: int
) -> None:
    small = serving(input_tokens=tokens, concurrency=requests)
    large = serving(input_tokens=tokens + more, concurrency=requests + others)
    lesser, greater = budget(small, ONE).ranks[0].bytes, budget(large, ONE).ranks[0].bytes
    assert lesser.low <= greater.low
    assert lesser.typical <= greater.typical
    assert lesser.high <= greater.high


PLANS = st.sampled_from([ONE, Plan(tp=4), Plan(pp=4), Plan(dp=8, shard=8), Plan(tp=2, pp=2)])


@given(
    PLANS,
    st.sampled_from(list(Recompute)),
    st.integers(16, 32_768),
    st.integers(1, 8),
    st.integers(1, 1000),
)
def test_a_training_budget_never_falls_with_length_or_batch(
    plan: Plan, recompute: Recompute, tokens: int, batch: int, more: int
) -> None:
    small = training(seq_len=tokens, micro_batch=batch, recompute=recompute.value)
    large = training(seq_len=tokens + more, micro_batch=batch + 1, recompute=recompute.value)
    for lesser, greater in zip(budget(small, plan).ranks, budget(large, plan).ranks, strict=True):
        assert lesser.bytes.typical <= greater.bytes.typical
        assert lesser.bytes.high <= greater.bytes.high


@given(st.sampled_from(list(presets())), st.sampled_from([1, 2, 4]))
def test_more_tensor_ranks_never_raise_weights(slug: str, tp: int) -> None:
    shape, form = preset(slug), weight_format("bf16")
    assert form is not None
    rank = rank_classes(shape, ONE)[0]
    narrow = weights_on(shape, form, Plan(tp=tp), rank)
    assert weights_on(shape, form, Plan(tp=2 * tp), rank).typical <= narrow.typical


@given(
    st.sampled_from(["llama-3.1-8b", "gemma-2-9b", "mixtral-8x7b-v0.1", "deepseek-v3"]),
    st.booleans(),
    st.integers(4, 200),
    st.integers(1, 200),
    st.sampled_from([1, 2, 4]),
)
def test_a_budget_never_falls_with_layers(
    slug: str, serve: bool, layers: int, more: int, pp: int
) -> None:
    job, plan = serving(slug) if serve else training(slug), Plan(pp=pp)
    for end in ("low", "typical", "high"):
        fewer, deeper = (
            max(getattr(rank.bytes, end) for rank in budget(with_layers(job, depth), plan).ranks)
            for depth in (layers, layers + more)
        )
        assert fewer <= deeper * (1 + 1e-12)


def test_a_plan_fits_only_where_every_rank_does_at_its_high_end() -> None:
    """The last stage needs less than the first in the typical case, and more at the most."""
    ranks = [
        RankBudget(name, (Component("weights", size, ""),))
        for name, size in (("first", Range(8, 10, 11)), ("last", Range(7, 9, 14)))
    ]
    memory = MemoryBudget(tuple(ranks))
    assert fit(memory, 12).word is FitWord.TIGHT
    assert fit(memory, 14).word is FitWord.FITS


def with_layers(job: Workload, layers: int) -> Workload:
    return replace(job, model=replace(job.model, layers=layers))


def test_an_unknown_architecture_gives_no_budget_and_says_why() -> None:
    unknown = replace(serving(), model=replace(preset("llama-3.1-8b"), computable=False))
    memory = budget(unknown, ONE)
    assert memory.binding is None
    assert [one.code for one in memory.findings] == [Code.ARCHITECTURE_UNKNOWN]
    assert fit(memory, 80 * GIB).word is FitWord.UNKNOWN


def test_a_stated_count_is_enough_for_a_budget() -> None:
    stated = replace(preset("llama-3.1-8b"), computable=False, given_params=8_000_000_000)
    weights = part(replace(serving(), model=stated), Plan(tp=2), "weights")
    assert weights.typical == 8_000_000_000
    assert weights.low < weights.typical < weights.high


# --- fit


def needing(low: float, typical: float, high: float, utilization: float = 1.0) -> MemoryBudget:
    component = Component("weights", Range(low, typical, high), "stated")
    allowance = Allowance(utilization)
    return MemoryBudget((RankBudget("every rank", (component,)),), allowance)


@pytest.mark.parametrize(
    ("usable", "word", "missing"),
    [
        (31, FitWord.FITS, 0),
        (30, FitWord.FITS, 0),
        (29, FitWord.TIGHT, 0),
        (20, FitWord.TIGHT, 0),
        (19, FitWord.DOES_NOT_FIT, 1),
        (None, FitWord.UNKNOWN, 0),
    ],
)
def test_a_fit_is_one_of_four_words(usable: int | None, word: FitWord, missing: int) -> None:
    verdict = fit(needing(10, 20, 30), usable)
    assert (verdict.word, verdict.missing_bytes) == (word, missing)


def test_utilization_is_a_share_of_the_reported_total() -> None:
    verdict = fit(needing(10, 20, 30, utilization=0.9), 30)
    assert verdict.allowed_bytes == 27
    assert verdict.word is FitWord.TIGHT


def test_the_heaviest_rank_decides() -> None:
    memory = budget(training("llama-3.1-70b"), Plan(pp=4))
    assert memory.binding is not None
    assert memory.binding.bytes.typical == max(rank.bytes.typical for rank in memory.ranks)


def test_70b_in_fp8_loads_on_one_80_gb_gpu_and_cannot_serve() -> None:
    job = serving("llama-3.3-70b-instruct", weights_format="fp8", input_tokens=15_000)
    usable = round(79.18 * GIB)
    assert fit(budget(job, ONE), usable).word is FitWord.DOES_NOT_FIT
    assert fit(budget(job, Plan(tp=2)), usable).word is FitWord.FITS


def test_seventy_billion_train_on_64_gpus_and_not_on_8() -> None:
    job = parse_workload(workload_presets()["train-llama-70b"])
    usable = 79 * GIB
    assert fit(budget(job, Plan(dp=8, shard=8)), usable).word is FitWord.DOES_NOT_FIT
    assert fit(budget(job, Plan(dp=64, shard=64, nodes=8)), usable).word is FitWord.FITS


# --- what would change it


def test_what_fits_needs_no_change() -> None:
    assert smallest_change(serving(), ONE, 80 * GIB) == ()


def test_an_unknown_memory_has_no_change_to_offer() -> None:
    assert smallest_change(serving("llama-3.1-405b"), ONE, None) == ()


def test_a_change_that_is_named_admits_the_plan() -> None:
    job = serving(concurrency=64, input_tokens=4096, output_tokens=512)
    usable = 24 * GIB
    changes = {change.key: change for change in smallest_change(job, ONE, usable)}
    fewer = serving(
        concurrency=int(changes["concurrency"].value), input_tokens=4096, output_tokens=512
    )
    assert fit(budget(fewer, ONE), usable).word is not FitWord.DOES_NOT_FIT
    assert changes["concurrency"].words.startswith("Serve ")


def test_every_refusal_ends_with_the_memory_that_a_gpu_needs() -> None:
    changes = smallest_change(serving("llama-3.1-70b"), ONE, 24 * GIB)
    enough = int(changes[-1].value) * GIB
    memory = budget(serving("llama-3.1-70b"), ONE)
    assert changes[-1].key == "usable_gib"
    assert fit(memory, enough).word is not FitWord.DOES_NOT_FIT
    assert fit(memory, enough - GIB).word is FitWord.DOES_NOT_FIT


def test_recomputing_comes_before_a_larger_plan() -> None:
    job = training("llama-3.1-8b", seq_len=32_768)
    keys = [change.key for change in smallest_change(job, Plan(dp=8, shard=8), 80 * GIB)]
    assert keys[0] == "recompute"


def changed(workload: Workload, plan: Plan, usable: int) -> dict[str, str]:
    return {change.key: change.value for change in smallest_change(workload, plan, usable)}


def test_states_may_wait_in_host_memory() -> None:
    """8 billion parameters: 16 bytes each are 128 GB, without the optimizer's 12 still 32 GB."""
    job = training("llama-3.1-8b", recompute="full", seq_len=512)
    assert changed(job, ONE, 80 * GB)["offload"] == "optimizer"
    assert changed(job, ONE, 24 * GB)["offload"] == "params"
    words = next(one.words for one in smallest_change(job, ONE, 80 * GB) if one.key == "offload")
    assert "GB in each machine" in words


def test_a_frozen_base_is_offloaded_whole_or_not_at_all() -> None:
    job = training("llama-3.1-8b", recompute="full", seq_len=512, lora={})
    assert changed(job, ONE, 14 * GB).get("offload") == "params"


def test_a_job_that_recomputes_all_may_still_move_its_inputs_to_the_host() -> None:
    job = training("llama-3.1-8b", recompute="full", seq_len=65_536, chunked_loss=True)
    plan, moved = Plan(dp=64, shard=64), "offload"
    smaller = replace(job, training=replace(job.training or GPT_JOB, recompute=Recompute.OFFLOAD))
    room = int(budget(smaller, plan).ranks[0].bytes.typical) + GIB // 8
    assert changed(job, plan, room)["recompute"] == moved
    assert "recompute" not in changed(smaller, plan, room // 2)


def test_scores_are_recomputed_before_whole_layers() -> None:
    job = training("llama-3.1-8b", seq_len=8192, attention="unfused")
    needed = part(job, ONE, "activations").typical
    assert needed > 0
    room = budget(job, ONE).ranks[0].bytes.typical - needed / 4
    assert changed(job, ONE, int(room))["recompute"] == "selective"


def test_a_model_of_an_odd_width_is_split_into_stages() -> None:
    """3 KV heads: no second tensor rank, but two stages."""
    small = replace(preset("llama-3.1-8b"), attention=Attention(9, 3, 128))
    job = replace(serving(), model=small)
    offered = changed(job, ONE, 12 * GIB)
    assert "tp" not in offered
    assert offered["pp"] == "2"


def test_only_legal_tensor_degrees_are_offered() -> None:
    job = serving("qwen2.5-7b", concurrency=512)
    for change in smallest_change(job, ONE, 24 * GIB):
        if change.key == "tp":
            assert refusal_of(job, Plan(tp=int(change.value))) is None


# --- capacity


def test_capacity_is_what_the_cache_holds_after_everything_else() -> None:
    job = serving(input_tokens=4096, output_tokens=512)
    most = max_concurrent_sequences(job, ONE, 80 * GIB)
    assert most is not None
    full = serving(input_tokens=4096, output_tokens=512, concurrency=most)
    assert fit(budget(full, ONE), 80 * GIB).word is not FitWord.DOES_NOT_FIT
    assert 85 < most < 115


def test_capacity_counts_every_replica() -> None:
    one = max_concurrent_sequences(serving(), ONE, 80 * GIB)
    assert one is not None
    assert max_concurrent_sequences(serving(), Plan(replicas=4), 80 * GIB) == 4 * one


def test_capacity_is_nothing_where_the_weights_do_not_fit() -> None:
    assert max_concurrent_sequences(serving("llama-3.1-70b"), ONE, 24 * GIB) == 0


def test_a_training_job_has_no_such_capacity() -> None:
    assert max_concurrent_sequences(training(), ONE, 80 * GIB) is None


def test_own_byte_counts_are_used_as_they_are() -> None:
    counts = {"param_bytes": 2, "grad_bytes": 0, "master_bytes": 0, "optimizer_bytes": 2}
    job = training(precision=counts).training
    assert job is not None
    assert job.precision == Precision(2, 0, 0, 2)


def test_vllm_must_hold_one_sequence_of_the_stated_limit() -> None:
    stated = serving("llama-3.1-8b", max_model_len=131_072)
    assert part(stated, ONE, "kv_cache").typical == 131_072 * 131_072
    elsewhere = serving("llama-3.1-8b", max_model_len=131_072, engine="sglang")
    assert part(elsewhere, ONE, "kv_cache").typical < GIB


def test_a_limit_above_the_requests_is_the_first_thing_to_lower() -> None:
    stated = serving("llama-3.1-8b", max_model_len=131_072)
    first = smallest_change(stated, ONE, 24 * GIB)[0]
    assert (first.key, first.value) == ("max_model_len", "1280")


def test_latent_attention_has_no_separate_key_and_value_adapters() -> None:
    shape = preset("deepseek-v3")
    only_output = Lora(rank=1, targets=("o_proj",))
    assert adapter_params(shape, Lora(rank=1)) == adapter_params(shape, only_output)
    assert adapter_params(shape, only_output) == 61 * (7168 + 128 * 128)


def test_the_profile_peak_reproduces_two_logged_engines() -> None:
    step = serving("llama-3.1-8b", max_num_batched_tokens=20_000, max_num_seqs=1)
    assert part(step, ONE, "activations").typical / GIB == pytest.approx(2.07, rel=0.01)
    sampler = serving("qwen3-8b", max_num_batched_tokens=2048, max_num_seqs=1024)
    assert part(sampler, ONE, "activations").typical / GIB == pytest.approx(5.6, rel=0.01)


def test_training_reserves_two_and_a_half_gibibytes() -> None:
    reserve = part(training("llama-3.1-8b"), ONE, "overhead")
    assert (reserve.low / GIB, reserve.typical / GIB) == (1, 2.5)


def test_tensor_ranks_keep_one_factor_of_an_adapter_whole() -> None:
    shape, plan = preset("llama-3.1-8b"), Plan(tp=4)
    held = adapter_params_on(shape, Lora(), plan, rank_classes(shape, plan)[0])
    assert held == adapter_params(shape, Lora()) * 5 / 8


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (("q_proj", "o_proj"), 2 * 4096 * 4096),
        (("model.layers.0.self_attn.k_proj",), 4096 * 1024 / 32),
        (("model.layers.*.mlp.down_proj",), 4096 * 14336),
        (("re:.*self_attn.*",), 2 * 4096 * (4096 + 1024)),
        (("re:visual.*", "re:.*mlp.gate$"), 0),
    ],
)
def test_single_projections_may_stay_in_16_bits(names: tuple[str, ...], kept: float) -> None:
    shape, form = preset("llama-3.1-8b"), weight_format("fp8")
    assert form is not None
    rank = rank_classes(shape, ONE)[0]
    plain = weights_on(shape, form, ONE, rank, loaded=False).typical
    spared = weights_on(replace(shape, kept_16bit=names), form, ONE, rank, loaded=False).typical
    more = (16 - form.bits.typical) / 8
    assert spared - plain == pytest.approx(32 * kept * more, rel=1e-6, abs=1)
