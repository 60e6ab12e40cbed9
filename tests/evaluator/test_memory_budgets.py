"""Whole budgets: ranks and pins, the verdict on a card, what would change it, and capacity."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.adapters import adapter_params, adapter_params_on
from evaluator.budgets import Component, FitWord, MemoryBudget, RankBudget
from evaluator.findings import Code
from evaluator.formats import weight_format
from evaluator.jobs import Lora, Precision, Recompute, Workload
from evaluator.memory import budget, capacity, fit, max_concurrent_sequences, smallest_change
from evaluator.models import preset, presets
from evaluator.parameters import total_params
from evaluator.partition import rank_classes
from evaluator.plans import Plan, refusal_of
from evaluator.ranges import Range, exact
from evaluator.shapes import Attention
from evaluator.shares import Allowance
from evaluator.units import GB, GIB
from evaluator.weights import weights_on
from evaluator.workload import COMPONENTS, parse_workload, workload_presets
from tests.evaluator.test_memory import GPT_JOB, ONE, part, serving, training

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


@pytest.mark.parametrize("plan", [ONE, Plan(tp=2), Plan(pp=2), Plan(replicas=2)])
def test_capacity_says_the_room_and_what_a_sequence_takes_of_it(plan: Plan) -> None:
    workload = serving(concurrency=8)
    held = capacity(workload, plan, 80 * GIB)
    assert held
    assert held.sequences == held.room // held.each * plan.replicas
    each = held.each // workload.serving.sequence_tokens if workload.serving else 0
    assert held.tokens == held.room // (each * 16) * 16


def test_what_a_card_must_report_is_told_with_its_share() -> None:
    """Graphs of vLLM before 0.21 lie outside of its share, and have to be on the card."""
    memory = budget(parse_workload(workload_presets()["serve-llama-8b"]), ONE)
    (rank,) = memory.ranks
    inside, whole = memory.asked(rank)
    assert inside.how == "(all but cuda graphs) ÷ 0.9"
    assert inside.reports.typical == pytest.approx(inside.needed.typical / 0.9)
    assert (whole.how, whole.needed) == ("all", rank.bytes)
    graphs = rank.component("cuda_graphs")
    assert graphs
    assert whole.needed.typical - inside.needed.typical == pytest.approx(graphs.bytes.typical)
    assert budget(training(), ONE).asked(rank) == ()


def test_layers_that_are_unpacked_are_not_told_as_gathered() -> None:
    lora = {"rank": 16}
    alone = budget(training(weights_format="bnb-nf4", lora=lora), ONE).ranks[0]
    unpacked = alone.component("gathered_layers")
    assert unpacked
    assert "unpacked into 16 bits" in unpacked.formula
    assert "QLoRA" in unpacked.source
    sharded = budget(training(weights_format="bnb-nf4", lora=lora), Plan(dp=2, shard=2)).ranks[0]
    gathered = sharded.component("gathered_layers")
    assert gathered
    assert "ZeRO-3" in gathered.source


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
