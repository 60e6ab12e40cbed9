"""One token followed: segments add up to the time per token on every GPU of every plan."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from evaluator.layouts import layout_of
from evaluator.machine import LinkClass
from evaluator.placement import pace, placement_of
from evaluator.plan_words import plan_words
from evaluator.plans import Plan
from evaluator.rentals import rental_of
from evaluator.timing import serving_times
from evaluator.token_path import ELSEWHERE, OTHER_STAGE, Doing, TokenPath, token_path
from tests.evaluator.machines import known, machine, serve, train

SWITCHED = machine("H100", form="SXM", gb=80, link=known(LinkClass.NVSWITCH))
PLANS = [
    Plan(),
    Plan(tp=4),
    Plan(pp=3),
    Plan(tp=2, pp=2),
    Plan(tp=2, replicas=4),
    Plan(tp=2, pp=2, replicas=2),
]


def path_of(plan: Plan, model: str = "llama-3.1-70b", on=SWITCHED, **keys) -> TokenPath:  # type: ignore[no-untyped-def]
    form = "awq-int4" if plan.tp * plan.pp == 1 else "fp8"
    asked = {"weights_format": form, "concurrency": 6} | keys
    found = token_path(serve(model, **asked), plan, on)
    assert found is not None
    return found


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.key)
def test_every_gpu_is_accounted_for_from_the_start_to_the_time_per_token(plan: Plan) -> None:
    form = "awq-int4" if plan.tp * plan.pp == 1 else "fp8"
    workload, rental = serve(weights_format=form, concurrency=6), rental_of(SWITCHED)
    assert rental is not None
    times = serving_times(workload, layout_of(plan), rental)
    path = token_path(workload, plan, SWITCHED)
    assert times is not None
    assert path is not None
    assert path.total == times.tpot.value
    assert {one.gpu for one in path.segments} == set(range(plan.gpus))
    assert len(path.idle) == 8 - plan.gpus
    for gpu in range(plan.gpus):
        held = path.of_gpu(gpu)
        assert held[0].start.high == 0
        assert held[-1].end == path.total
        assert all(one.end == after.start for one, after in pairwise(held))
        assert all(one.start.typical < one.end.typical for one in held)
    assert sum(path.shares().values()) == pytest.approx(1)


def test_tensor_ranks_read_at_once_and_stages_one_after_the_other() -> None:
    tensor, stages = path_of(Plan(tp=2)), path_of(Plan(pp=2))
    first, second = (
        next(one for one in tensor.of_gpu(gpu) if one.kind is Doing.COMPUTE) for gpu in (0, 1)
    )
    assert first.start == second.start
    before = [one for one in stages.of_gpu(0) if one.kind is Doing.COMPUTE]
    after = [one for one in stages.of_gpu(1) if one.kind is Doing.COMPUTE]
    assert before[-1].end.typical < after[0].start.typical
    assert stages.total.typical > 1.5 * tensor.total.typical


def test_a_tensor_step_holds_two_all_reduces_for_each_layer() -> None:
    (found,) = [one for one in path_of(Plan(tp=4)).of_gpu(0) if one.kind is Doing.COLLECTIVE]
    assert found.calls == 160
    assert found.bytes == 160 * 6 * 8192 * 2
    assert found.link == "NVSwitch between all GPUs"


def test_stages_hand_activations_on_and_the_token_back() -> None:
    hops = [one for one in path_of(Plan(pp=3)).segments if one.kind is Doing.HOP]
    assert [one.gpu for one in hops] == [0, 1, 2]
    assert hops[-1].what == "the token returns to the first stage"


def test_a_stage_with_fewer_layers_waits_for_the_largest() -> None:
    """80 layers over three stages are 27, 27 and 26."""
    path = path_of(Plan(pp=3))
    waits = [one.gpu for one in path.segments if "sets the pace" in one.what]
    assert waits == [2]
    assert pace(80, 3) == pytest.approx(27 * 3 / 80)
    assert pace(80, 4) == 1


def test_another_replica_takes_no_part() -> None:
    path = path_of(Plan(tp=2, replicas=4))
    assert {one.what for one in path.of_gpu(2)} == {ELSEWHERE}
    assert OTHER_STAGE in {one.what for one in path_of(Plan(pp=2)).of_gpu(0)}


def test_an_unknown_link_makes_the_path_conditional() -> None:
    unknown = path_of(Plan(tp=2), on=replace(SWITCHED, link=machine().link))
    assert unknown.conditional
    assert "not known" in unknown.widest
    assert "a link not known" in {one.link for one in unknown.segments}


def test_stages_on_two_machines_hop_over_the_network() -> None:
    joined = replace(SWITCHED, inter_node=known("InfiniBand NDR"))
    hops = [
        one
        for one in path_of(Plan(tp=8, pp=2, nodes=2), on=joined).segments
        if one.kind is Doing.HOP
    ]
    assert len(hops) == 16
    assert {one.link for one in hops} == {"InfiniBand NDR"}


def test_experts_on_two_machines_are_reached_over_the_network() -> None:
    joined = replace(SWITCHED, inter_node=known("InfiniBand NDR"))
    plan = Plan(dp=16, ep=16, nodes=2)
    path = path_of(plan, "qwen3-30b-a3b", joined, concurrency=64)
    (sent,) = [one for one in path.of_gpu(9) if one.kind is Doing.COLLECTIVE]
    assert (sent.link, sent.calls) == ("InfiniBand NDR", 96)
    assert sent.bytes == 96 * 4 * 2048 * 2 * 8


def test_more_users_than_the_cache_holds_do_not_make_a_step_larger() -> None:
    few, many = (path_of(Plan(tp=2), concurrency=n, max_num_seqs=256) for n in (400, 4000))
    read = [
        next(one.bytes for one in path.of_gpu(0) if "cache" in one.what) for path in (few, many)
    ]
    assert read[0] == read[1]


def test_a_training_job_has_no_token_to_follow() -> None:
    assert token_path(train(), Plan(tp=2), SWITCHED) is None


# --- placement and words


def test_tensor_ranks_are_neighbours_and_replicas_lie_outermost() -> None:
    placed = placement_of(serve().model, Plan(tp=2, pp=2, replicas=2), 8)
    seen = [(one.replica, one.stage, one.tensor) for one in placed.ranks]
    assert seen == sorted(seen)
    assert placed.idle == ()


def test_machines_that_are_larger_than_their_share_keep_gpus_idle() -> None:
    placed = placement_of(serve().model, Plan(tp=2, pp=2, nodes=2), 4)
    assert [one.gpu for one in placed.ranks] == [0, 1, 4, 5]
    assert [one.machine for one in placed.ranks] == [0, 0, 1, 1]
    assert placed.idle == (2, 3, 6, 7)


@pytest.mark.parametrize(
    ("plan", "line", "words"),
    [
        (Plan(), "communication", "Nothing moves between GPUs."),
        (Plan(replicas=2), "synchronisation", "No GPU waits for another."),
        (Plan(tp=2), "placement", "2 at a time, each hold 1/2 of every layer"),
        (Plan(tp=2), "placement", "6 GPUs stay idle: 2, 3, 4, 5, 6, 7."),
        (Plan(pp=3), "placement", "27, 27, 26 layers: the largest sets the pace"),
        (Plan(pp=2), "scheduling", "a single request leaves all stages but one idle"),
        (Plan(tp=2), "communication", "160 all-reduces"),
        (Plan(tp=2, replicas=4), "synchronisation", "Replicas never wait for each other."),
    ],
)
def test_a_serving_plan_in_plain_words(plan: Plan, line: str, words: str) -> None:
    assert words in getattr(plan_words(serve(), plan, 8), line)


@pytest.mark.parametrize(
    ("plan", "line", "words"),
    [
        (Plan(dp=8), "placement", "8 groups hold a whole copy"),
        (Plan(dp=8, shard=4), "placement", "4 GPUs share one copy"),
        (Plan(dp=8, shard=4), "placement", "there are 2 such copies"),
        (Plan(pp=4), "scheduling", "adds 19% of idle time"),
        (Plan(pp=4, virtual=2), "placement", "8 layers each, in 2 turns each"),
        (Plan(dp=8), "synchronisation", "all 8 groups wait for the sum of their gradients"),
        (Plan(dp=8, shard=8), "communication", "Parameters: "),
    ],
)
def test_a_training_plan_in_plain_words(plan: Plan, line: str, words: str) -> None:
    assert words in getattr(plan_words(train(global_batch=16), plan, 8), line)


def test_islands_that_were_seen_are_named_in_the_placement() -> None:
    found = plan_words(serve(), Plan(tp=2, replicas=2), 4, ((0, 3), (1, 2)))
    assert "these GPUs belong together: 0, 3; 1, 2." in found.placement
