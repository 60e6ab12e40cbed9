"""Which plans are tried and which are refused: experts, long sequences, turns, engines."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.collectives import traffic
from evaluator.exchanges import Operation
from evaluator.facts import UNKNOWN
from evaluator.findings import Code
from evaluator.jobs import Schedule, Workload
from evaluator.layouts import layout_of
from evaluator.link_verdicts import LinkWord
from evaluator.links import Use, demands_of
from evaluator.machine import LinkClass
from evaluator.memory import budget
from evaluator.obstacles import fixed
from evaluator.parameters import expert_params, total_params
from evaluator.plans import Kind, Plan, narrowness, plans_of, refusal_of
from evaluator.rentals import rental_of
from evaluator.reports import from_report, to_report
from evaluator.timing import ServingTimes, serving_times, step_estimate, times_of
from evaluator.topology import judge_link
from evaluator.verdict import judge
from tests.evaluator.machines import known, machine, serve, train, with_shape

EXPERTS = "qwen3-30b-a3b"
ON = machine("H100", form="SXM", gb=80, link=known(LinkClass.NVSWITCH))
LONG = train(seq_len=131_072, global_batch=16)
JOBS = [serve(), serve(EXPERTS), train(global_batch=64), LONG, train(EXPERTS, global_batch=64)]


def names(workload: Workload, gpus: int = 8, nodes: int = 1) -> set[str]:
    return {plan.key for plan in plans_of(workload, gpus, [nodes]).plans}


def step_of(workload: Workload, plan: Plan, on: Any = ON) -> float:
    rental = rental_of(on, plan.nodes)
    assert rental is not None
    found = step_estimate(workload, layout_of(plan), rental)
    assert found is not None
    return found.value.typical


# --- which plans are tried


@pytest.mark.parametrize("workload", JOBS, ids=lambda one: f"{one.task}-{one.model.name}")
@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_plans_of_eight_gpus_stay_in_bounds(workload: Workload, nodes: int) -> None:
    space = plans_of(workload, 8, [nodes])
    assert 1 <= len(space.plans) <= 64
    assert list(space.plans) == sorted(space.plans, key=narrowness)
    assert len({plan.key for plan in space.plans}) == len(space.plans)
    assert all(plan.gpus <= 8 * nodes for plan in space.plans)
    assert all(plan.gpus == 8 * nodes for plan in space.plans if nodes > 1)


def test_experts_are_dealt_out_only_where_there_are_some() -> None:
    assert not any(plan.ep > 1 for one in (serve(), train()) for plan in plans_of(one, 8).plans)
    assert {"tp8-ep8", "dp8-ep8", "tp2-dp4-ep8"} <= names(serve(EXPERTS))
    assert {"dp8-shard8-ep8", "tp2-dp4-shard4-ep8", "dp8-ep8"} <= names(train(EXPERTS))


def test_sequences_are_cut_only_where_they_are_long() -> None:
    assert not any(plan.cp > 1 for plan in plans_of(train(seq_len=8192), 8).plans)
    assert {"shard8-cp8", "tp2-shard4-cp4", "dp2-shard8-cp4"} <= names(LONG)
    shortest = min(LONG.training.seq_len // plan.cp for plan in plans_of(LONG, 8).plans)  # type: ignore[union-attr]
    assert shortest >= 8192


def test_stages_take_turns_and_join_with_sharding() -> None:
    found = names(train(global_batch=64))
    assert {"pp4-virtual2", "pp4-virtual4", "pp2-dp4-shard4", "tp2-pp2-dp2-shard2"} <= found


def test_hybrid_sharding_keeps_copies_inside_and_between_machines() -> None:
    assert {"dp8-shard4", "dp8-shard2"} <= names(train())
    assert {"dp16-shard8-nodes2", "tp2-dp8-shard4-nodes2"} <= names(train(), 8, 2)


def test_stages_may_lie_on_machines_and_shards_inside_them() -> None:
    assert "pp2-dp8-shard8-nodes2" in names(train(), 8, 2)


def test_replicas_over_machines_stay_inside_each() -> None:
    found = [plan for plan in plans_of(serve(), 8, [2]).plans if plan.replicas > 1]
    assert {plan.tp for plan in found} == {1, 2, 4, 8}
    assert not any(plan.joins_machines for plan in found)


@pytest.mark.parametrize(
    ("plan", "label", "kind"),
    [
        (Plan(dp=8, ep=8), "DP 8 × EP 8", Kind.EXPERT),
        (Plan(tp=8, ep=8), "TP 8 × EP 8", Kind.EXPERT),
        (Plan(tp=2, dp=4, ep=8), "TP 2 × DP 4 × EP 8", Kind.COMBINED),
        (Plan(pp=4, virtual=2), "PP 4 interleaved 2", Kind.PIPELINE),
        (Plan(cp=8, shard=8), "CP 8 × FSDP 8", Kind.CONTEXT),
        (Plan(tp=2, pp=2, dp=2, shard=2), "TP 2 × PP 2 × FSDP 2", Kind.COMBINED),
        (Plan(tp=4, dp=2, ep=2, etp=4), "TP 4 × DP 2 × EP 2 of TP 4", Kind.COMBINED),
    ],
)
def test_labels_and_families_of_the_new_degrees(plan: Plan, label: str, kind: Kind) -> None:
    assert (plan.label, plan.kind) == (label, kind)
    assert plan.reason


# --- which are refused, and what would admit them


REFUSED = [
    (serve(EXPERTS), Plan(tp=3), "32 attention heads", "Use a tensor parallel degree of 2."),
    (serve(EXPERTS), Plan(dp=6, ep=6), "128 experts", "of 4 and an expert parallel degree of 4."),
    (serve(EXPERTS), Plan(dp=8, ep=4), "an engine of 8 ranks", "expert parallel degree of 8."),
    (train(EXPERTS), Plan(dp=4, ep=8), "4 ranks", "Use an expert parallel degree of 4."),
    (train(), Plan(pp=6), "32 layers", "Use 4 pipeline stages."),
    (train(), Plan(pp=4, virtual=3), "32 layers", "Use 2 virtual stages."),
    (train(), Plan(pp=32, virtual=2), "32 layers", "Use a virtual of 1."),
    (train(global_batch=4), Plan(pp=8), "a step of 4 micro-batches", "Set global_batch to 8."),
    (train(global_batch=12), Plan(pp=8, virtual=2), "12 micro-batches", "global_batch to 16."),
    (train(seq_len=1000), Plan(cp=8), "1000 tokens", "Set seq_len to 1008."),
    (train(global_batch=10), Plan(dp=4), "10 sequences", "Set global_batch to 12."),
    (train(), Plan(dp=8, shard=3), "8 ranks", "Use a shard group of 2."),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "plan", "quantity", "change"), REFUSED)
def test_what_cannot_be_divided_is_named_with_what_can(
    workload: Workload, plan: Plan, quantity: str, change: str
) -> None:
    found = refusal_of(workload, plan)
    assert found is not None
    assert found.code is Code.PLAN_INDIVISIBLE
    assert quantity in found.sentence
    assert found.remedy.endswith(change)


@pytest.mark.parametrize(
    ("workload", "plan", "words", "change"),
    [
        (serve(EXPERTS, engine="llama.cpp"), Plan(dp=2, ep=2), "llama.cpp", "Set engine to vllm."),
        (serve(engine="transformers"), Plan(pp=2), "transformers", "Set engine to vllm."),
        (serve(), Plan(cp=2), "Context parallel is not supported by vllm", "Use a cp of 1."),
        (serve(), Plan(tp=2, ep=2), "a model without experts", "Use an ep of 1."),
        (serve(), Plan(pp=2, virtual=2), "Interleaving", "Use a virtual of 1."),
        (train(schedule="gpipe"), Plan(pp=2, virtual=2), "gpipe", "Set schedule to 1f1b."),
    ],
)
def test_what_an_engine_or_a_schedule_lacks_is_named(
    workload: Workload, plan: Plan, words: str, change: str
) -> None:
    found = refusal_of(workload, plan)
    assert found is not None
    assert found.code is Code.PLAN_UNSUPPORTED
    assert words in found.sentence
    assert found.remedy == change


CHANGED = re.compile(
    r"tensor parallel degree of (?P<tp>\d+)|expert parallel degree of (?P<ep>\d+)"
    r"|(?P<pp>\d+) pipeline stages|(?P<virtual>\d+) virtual stages|shard group of (?P<shard>\d+)"
    r"|an? (?P<name>\w+) of (?P<value>\d+)|(?P<key>\w+) to (?P<text>\w+)"
)


def changed(workload: Workload, plan: Plan, remedy: str) -> tuple[Workload, Plan]:
    """The workload and the plan with all the named changes made, as somebody reads them."""
    fix: dict[str, int | str] = {}
    for found in CHANGED.finditer(remedy):
        named = found.groupdict()
        if named["key"]:
            fix[named["key"]] = int(named["text"]) if named["text"].isdigit() else named["text"]
        elif named["name"]:
            fix[named["name"]] = int(named["value"])
        else:
            fix |= {name: int(text) for name, text in named.items() if text}
    assert fix, remedy
    return fixed(workload, plan, fix)


plans = st.builds(
    Plan,
    tp=st.sampled_from([1, 2, 3, 4, 8]),
    pp=st.sampled_from([1, 2, 3, 4, 6, 8]),
    dp=st.sampled_from([1, 2, 3, 4, 6]),
    ep=st.sampled_from([1, 2, 3, 6, 8]),
    cp=st.sampled_from([1, 2, 3]),
    virtual=st.sampled_from([1, 2, 3, 5]),
)


@given(plans, st.integers(1, 40), st.integers(256, 4096))
@settings(deadline=None)
def test_the_changes_of_a_training_plan_admit_it(plan: Plan, batch: int, length: int) -> None:
    workload = train(EXPERTS, global_batch=batch, seq_len=length)
    assert_admitted(workload, plan)


SERVED = st.sampled_from([EXPERTS, "llama-3.1-8b", "deepseek-v2-lite", "qwen3.5-35b-a3b"])


@given(SERVED, plans, st.sampled_from(["bf16", "awq-int4"]), st.sampled_from(["vllm", "llama.cpp"]))
@settings(deadline=None)
def test_the_changes_of_a_serving_plan_admit_it(
    model: str, plan: Plan, form: str, engine: str
) -> None:
    assert_admitted(serve(model, weights_format=form, engine=engine), plan)


def assert_admitted(workload: Workload, plan: Plan) -> None:
    """A refusal names what admits the plan; done at once, nothing else stands in the way."""
    found = refusal_of(workload, plan)
    if found is not None:
        assert refusal_of(*changed(workload, plan, found.remedy)) is None, found.remedy


def test_tensor_ranks_that_share_experts_change_with_them() -> None:
    """Fewer tensor ranks alone would leave an engine with more expert ranks than GPUs."""
    found = refusal_of(serve(EXPERTS), Plan(tp=3, ep=3))
    assert found is not None
    assert "a tensor parallel degree of 2 and an expert parallel degree of 2." in found.remedy


def test_experts_that_lie_whole_need_not_be_divided_by_tensor_ranks() -> None:
    """An expert of 704 channels in groups of 128 cannot be shared by two ranks, but dealt out."""
    job = serve(EXPERTS, weights_format="awq-int4")
    experts = job.model.experts
    assert experts is not None
    odd = with_shape(job, experts=replace(experts, size=704))
    assert refusal_of(odd, Plan(tp=2)) is not None
    assert refusal_of(odd, Plan(tp=2, ep=2)) is None


# --- what the plans hold, move and take


def test_dealt_out_experts_leave_each_gpu_its_share() -> None:
    whole = budget(serve(EXPERTS), Plan()).binding
    dealt = budget(serve(EXPERTS), Plan(dp=8, ep=8)).binding
    assert whole is not None
    assert dealt is not None
    model = serve(EXPERTS).model
    total, experts = total_params(model) or 0, expert_params(model)
    share = (total - experts * 7 / 8) / total
    weights = [one.component("weights").bytes.typical for one in (whole, dealt)]  # type: ignore[union-attr]
    assert weights[1] / weights[0] == pytest.approx(share, rel=0.02)


def test_groups_that_read_different_requests_keep_a_cache_of_their_own() -> None:
    job = serve(EXPERTS, concurrency=64)
    one, eight = (budget(job, plan).binding for plan in (Plan(), Plan(dp=8, ep=8)))
    assert one is not None
    assert eight is not None
    caches = [rank.component("kv_cache").bytes.typical for rank in (one, eight)]  # type: ignore[union-attr]
    assert caches[0] == pytest.approx(8 * caches[1])


def test_every_token_goes_to_its_experts_and_back() -> None:
    """48 layers, dispatch and combine, 8 experts of 2048 channels for each of 8 tokens."""
    decode, _ = traffic(serve(EXPERTS, concurrency=64), Plan(dp=8, ep=8))
    assert decode.operation is Operation.ALL_TO_ALL
    assert decode.calls == 96
    assert decode.message_bytes == 8 * 2048 * 2 * 8


def test_tensor_ranks_that_share_experts_exchange_as_tensor_ranks_do() -> None:
    plain, dealt = (traffic(serve(EXPERTS), plan) for plan in (Plan(tp=8), Plan(tp=8, ep=8)))
    assert plain == dealt


def test_training_experts_are_not_gathered_by_those_who_hold_them() -> None:
    """With 8 ranks that share the experts each holds an eighth, and gathers only the rest."""
    job = train(EXPERTS, global_batch=8)
    full = {one.purpose: one for one in traffic(job, Plan(dp=8, shard=8))}
    dealt = {one.purpose: one for one in traffic(job, Plan(dp=8, shard=8, ep=8))}
    experts, total = expert_params(job.model), total_params(job.model) or 0
    kept = dealt["parameters"].buffer_bytes / full["parameters"].buffer_bytes
    assert kept == pytest.approx((total - experts) / total, rel=1e-6)
    assert dealt["experts"].calls == 4 * 48
    assert "parameters of experts" not in dealt


def test_keys_and_values_go_around_once_and_back_twice() -> None:
    """2 (c - 1) / c x s x k x d x 2 bytes forward, twice more backward, in 32 layers and
    16 micro-batches."""
    found = {one.purpose: one for one in traffic(LONG, Plan(cp=8, shard=8))}["context"]
    assert found.sent_bytes == int(16 * 3 * 32 * 7 / 8 * 131_072 * 2 * 8 * 128 * 2)


def test_interleaved_stages_send_once_for_each_turn() -> None:
    job = train(global_batch=16)
    (plain,), (turned,) = (traffic(job, plan) for plan in (Plan(pp=4), Plan(pp=4, virtual=2)))
    assert turned.calls == 2 * plain.calls


@pytest.mark.parametrize(
    ("plan", "uses"),
    [
        (Plan(dp=8, ep=8), {Use.EXPERT}),
        (Plan(tp=8, ep=8), {Use.TENSOR}),
        (Plan(cp=4, shard=4), {Use.CONTEXT, Use.SHARDED}),
        (Plan(cp=4, dp=2, shard=4), {Use.CONTEXT, Use.SHARDED, Use.DATA}),
    ],
)
def test_every_exchange_asks_for_a_link(plan: Plan, uses: set[Use]) -> None:
    assert {demand.use for demand in demands_of(plan)} == uses


def test_experts_over_machines_ask_for_the_network() -> None:
    demands = demands_of(Plan(dp=16, ep=16, nodes=2))
    assert {demand.machines for demand in demands if demand.use is Use.EXPERT} == {1, 2}


def test_turns_shorten_the_bubble_and_dealing_out_experts_saves_gathering() -> None:
    job = train(global_batch=16)
    assert step_of(job, Plan(pp=4, virtual=2)) < step_of(job, Plan(pp=4))
    experts = train(EXPERTS, global_batch=64)
    gathered, dealt = Plan(dp=8, shard=8), Plan(dp=8, shard=8, ep=8)
    slow = machine("H100", form="SXM", gb=80, link=known(LinkClass.PCIE_P2P))
    assert step_of(experts, dealt, slow) < step_of(experts, gathered, slow)


def test_context_ranks_share_the_work_of_a_sequence() -> None:
    job = train(seq_len=131_072, global_batch=1)
    one, eight = step_of(job, Plan()), step_of(job, Plan(cp=8, shard=8))
    assert 4 < one / eight < 8


def test_experts_by_requests_are_timed_for_all_groups_together() -> None:
    rental = rental_of(ON)
    assert rental is not None
    job = serve(EXPERTS, concurrency=256)
    plain = serving_times(job, layout_of(Plan()), rental)
    dealt = serving_times(job, layout_of(Plan(dp=8, ep=8)), rental)
    assert plain is not None
    assert dealt is not None
    assert 1 < dealt.rate.value.typical / plain.rate.value.typical < 16
    assert "expert exchange" in dict(dealt.rate.terms)
    assert dealt.slots.typical > plain.slots.typical


def test_a_verdict_with_such_plans_is_kept_and_read_again() -> None:
    verdict = judge(serve(EXPERTS, concurrency=256), ON)
    dealt = next(one for one in verdict.plans if one.plan == Plan(dp=8, ep=8))
    kept = replace(verdict, plans=(dealt,), refused=())
    assert from_report(to_report(kept)).plans == (dealt,)


def test_schedules_beside_1f1b_have_no_turns() -> None:
    for schedule in (one for one in Schedule if one is not Schedule.ONE_F_ONE_B):
        assert not any(plan.virtual > 1 for plan in plans_of(train(schedule=schedule), 8).plans)


@pytest.mark.parametrize("kind", [LinkClass.P2P_DISABLED, LinkClass.PCIE_P2P, LinkClass.NVSWITCH])
@pytest.mark.parametrize(
    ("workload", "plan"),
    [
        (serve(EXPERTS, concurrency=64), Plan(dp=8, ep=8)),
        (serve(EXPERTS, concurrency=64), Plan(tp=2, dp=4, ep=8)),
        (train(EXPERTS, global_batch=64), Plan(dp=8, shard=8, ep=8)),
        (LONG, Plan(cp=8, shard=8)),
        (train(global_batch=64), Plan(pp=4, virtual=2, dp=2, shard=2)),
    ],
    ids=lambda one: one.key if isinstance(one, Plan) else one.task,
)
def test_a_link_that_becomes_known_never_widens_the_range_of_such_a_plan(
    workload: Workload, plan: Plan, kind: LinkClass
) -> None:
    before, after = (
        times_of(workload, plan, one)
        for one in (replace(ON, link=UNKNOWN), replace(ON, link=known(kind)))
    )
    assert before is not None
    assert after is not None
    wide, narrow = (one.rate if isinstance(one, ServingTimes) else one for one in (before, after))
    assert wide.conditional
    assert not narrow.conditional
    assert wide.value.low <= narrow.value.low
    assert narrow.value.high <= wide.value.high


def test_a_slow_network_is_told_what_would_have_to_pass_it() -> None:
    slow = replace(ON, inter_node=known("10 GbE"))
    for plan, words in (
        (Plan(dp=16, ep=16, nodes=2), "sends every token to its experts"),
        (Plan(dp=16, shard=16, nodes=2), "moves every parameter"),
        (Plan(cp=16, shard=16, nodes=2), "passes keys and values around"),
    ):
        found = judge_link(plan, slow, "")
        assert found.word is LinkWord.INSUFFICIENT
        assert words in found.reason
