"""One more degree, or a larger GPU: each change that is named admits the plan alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evaluator.budgets import Change, FitWord
from evaluator.gpus import specs
from evaluator.jobs import Workload
from evaluator.memory import budget, fit, smallest_change
from evaluator.models import preset
from evaluator.plans import Plan
from evaluator.units import GIB
from evaluator.workload import parse_workload

ONE = Plan()


def workload(task: str, slug: str, **keys: Any) -> Workload:
    return parse_workload({"task": task, "model": {"preset": slug}, **keys})


def offered(job: Workload, plan: Plan, usable: int) -> dict[str, Change]:
    return {change.key: change for change in smallest_change(job, plan, usable)}


def admits(job: Workload, plan: Plan, usable: int) -> bool:
    return fit(budget(job, plan), usable).word in (FitWord.FITS, FitWord.TIGHT)


def test_experts_may_be_divided_over_copies_of_the_attention() -> None:
    job = workload("serve", "qwen3-235b-a22b")
    change = offered(job, Plan(tp=2), 140 * GIB)["ep"]
    assert change.value == "4"
    assert change.words == "Divide the experts of a layer over 4 ranks, 4 GPUs in all."
    assert admits(job, Plan(tp=2, dp=2, ep=4), 140 * GIB)
    assert not admits(job, Plan(tp=2), 140 * GIB)


def test_experts_are_divided_over_the_replicas_at_hand_without_another_gpu() -> None:
    job = workload("train", "qwen3-30b-a3b", recompute="full", seq_len=1024)
    plan = Plan(tp=4, dp=8)
    assert not admits(job, plan, 80 * GIB)
    words = offered(job, plan, 80 * GIB)["ep"].words
    assert f"{plan.gpus} GPUs in all" in words


@pytest.mark.parametrize(
    ("slug", "plan"), [("llama-3.1-70b", Plan(dp=8)), ("qwen3-235b-a22b", Plan(dp=8, shard=8))]
)
def test_what_has_no_experts_or_shares_them_already_is_not_divided(slug: str, plan: Plan) -> None:
    assert "ep" not in offered(workload("train", slug), plan, 40 * GIB)


def test_a_number_of_experts_that_does_not_divide_is_not_offered() -> None:
    odd = preset("mixtral-8x22b-v0.1")
    assert odd.experts is not None
    job = workload("serve", "mixtral-8x22b-v0.1")
    job = replace(job, model=replace(odd, experts=replace(odd.experts, count=7)))
    assert "ep" not in offered(job, ONE, 80 * GIB)


def test_copies_of_the_attention_share_the_requests() -> None:
    job = workload("serve", "mixtral-8x7b-v0.1", concurrency=64)
    one, four = (budget(job, plan).ranks[0].component("kv_cache") for plan in (ONE, Plan(dp=4)))
    assert one is not None
    assert four is not None
    assert four.bytes.typical == one.bytes.typical / 4


def test_a_long_sequence_may_be_shared_between_gpus() -> None:
    job = workload("train", "llama-3.1-8b", seq_len=131_072, recompute="full", chunked_loss=True)
    plan = Plan(dp=8, shard=8)
    change = offered(job, plan, 80 * GIB)["cp"]
    shared = replace(plan, cp=int(change.value), shard=8 * int(change.value))
    assert change.words == f"Share each sequence between {shared.cp} GPUs, {shared.gpus} in all."
    assert admits(job, shared, 80 * GIB)


def test_a_length_that_does_not_divide_is_not_shared() -> None:
    job = workload("train", "llama-3.1-8b", seq_len=100_001, recompute="full")
    assert "cp" not in offered(job, Plan(dp=8, shard=8), 80 * GIB)


def test_a_larger_gpu_is_named_with_one_of_each_vendor() -> None:
    change = smallest_change(workload("serve", "llama-3.1-70b"), ONE, 80 * GIB)[-1]
    least = int(change.value) * GIB
    vendors = {one.vendor for one in specs() if (one.usable_bytes or 0) >= least}
    named = [one for one in specs() if one.name in change.words]
    assert vendors <= {one.vendor for one in named}
    assert all((one.usable_bytes or 0) >= least for one in named)


def test_where_no_card_is_large_enough_none_is_named() -> None:
    change = smallest_change(workload("serve", "deepseek-v3"), ONE, 80 * GIB)[-1]
    assert "such as" not in change.words
