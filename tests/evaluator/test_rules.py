"""The rule of an order is told in words, and no more evidence or leeway takes anything away."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.facts import Grade, declared
from evaluator.fleet import Fleet
from evaluator.jobs import Workload
from evaluator.machine import LinkClass
from evaluator.outlook import outlook_of
from evaluator.rules import Goal, rule_of
from evaluator.shortlist import Shortlist, shortlist
from evaluator.units import GIB
from evaluator.verdict import ORDER, judge_briefly
from evaluator.workbook import Workbook
from tests.evaluator.machines import known, machine, serve, train
from tests.evaluator.test_shortlist import MACHINES, offer

JOB = train("llama-3.1-8b", lora={"rank": 8}, tokens_to_train=10**9)
SERVED = serve("llama-3.1-8b", concurrency=16)


@pytest.mark.parametrize(
    ("workload", "goal", "words"),
    [
        (JOB, Goal.FINISH, "to the end of the job"),
        (train("llama-3.1-8b"), Goal.HOUR, "cost per hour"),
        (SERVED, Goal.TOKENS, "a million tokens"),
        (serve(targets={"tpot_ms": 30}), Goal.TOKENS, "meets every target"),
        (serve(targets={"tokens_per_s": 30}), Goal.HOUR, "cost per hour"),
        (train(tokens_to_train=1, deadline_hours=2), Goal.FINISH, "meets the deadline"),
    ],
)
def test_the_rule_follows_the_workload_and_is_told(
    workload: Workload, goal: Goal, words: str
) -> None:
    rule = rule_of(workload)
    assert rule.goal is goal
    assert words in rule.sentence
    assert rule.sentence.startswith("Ready comes before conditional")


def ranked(workload: Workload, offers: list[Any]) -> Shortlist:
    return shortlist(workload, Fleet.of(offers, MACHINES), limit=100)


def test_a_late_candidate_follows_a_dearer_one_in_time() -> None:
    cards = {"slow": machine("A100", 1, 80), "fast": machine("H100", 1, 80)}
    fleet = Fleet.of([offer("slow", "0.20", "slow"), offer("fast", "9.00", "fast")], cards)
    cheap = shortlist(JOB, fleet).rows
    assert JOB.training
    assert [row.offering.key for row in cheap] == ["slow", "fast"]
    limit = sum(row.outlook.hours.high for row in cheap if row.outlook and row.outlook.hours) / 2
    hurried = replace(JOB, training=replace(JOB.training, deadline_hours=limit))
    assert [row.offering.key for row in shortlist(hurried, fleet).rows] == ["fast", "slow"]


def test_the_narrowest_plan_that_keeps_the_targets_stands_beside_the_best_one() -> None:
    """Weights alone fit one GPU; the latency asks for more of them."""
    target = {"targets": {"tpot_ms": 14}, "concurrency": 16}
    for workload, narrowest in ((SERVED, 1), (serve("llama-3.1-8b", **target), 2)):
        fleet = Fleet.of([offer("b", "20")], {"b": machine("A100", 8, 80, link=NVSWITCH)})
        row = shortlist(workload, fleet).rows[-1]
        assert row.narrowest
        assert row.narrowest.plan.gpus >= narrowest
        assert row.narrowest.plan.gpus <= row.plan.plan.gpus


NVSWITCH = known(LinkClass.NVSWITCH)
WORKLOADS = st.sampled_from([JOB, SERVED, train("llama-3.1-70b"), serve("llama-3.1-70b")])
SXM = {"gb": 80, "form": "SXM"}
CARDS: dict[str, tuple[dict[str, Any], LinkClass]] = {
    "A100": (SXM, LinkClass.NVSWITCH),
    "H100": (SXM, LinkClass.NVSWITCH),
    "B200": ({}, LinkClass.NVSWITCH),
    "L40S": ({}, LinkClass.PCIE_P2P),
}
"""How a card is named in full, and the best link that its form permits."""


@settings(max_examples=12, deadline=None)
@given(
    WORKLOADS,
    st.sampled_from(list(CARDS)),
    st.sampled_from([2, 8]),
    st.sampled_from([Grade.MEASURED, Grade.BENCHMARKED]),
)
def test_a_link_that_suffices_never_worsens_a_verdict_and_never_widens_a_range(
    workload: Workload, card: str, count: int, grade: Grade
) -> None:
    named, link = CARDS[card]
    open_link = machine(card, count, **named)
    shown = machine(card, count, link=known(link, grade), **named)
    book = Workbook(workload)
    before, after = judge_briefly(book, open_link), judge_briefly(book, shown)
    assert ORDER[after.status] <= ORDER[before.status]
    for plan in [one.plan for one in before.plans if one.plan.exchanges][::5]:
        wide = outlook_of(workload, plan, open_link)
        narrow = outlook_of(workload, plan, shown)
        assert (wide is None) == (narrow is None)
        if wide and narrow:
            assert narrow.rate.low >= wide.rate.low * (1 - 1e-12)
            assert narrow.rate.high <= wide.rate.high * (1 + 1e-12)


def serving_keys(found: Shortlist) -> set[str]:
    rows = (*found.rows, *found.unranked)
    return {row.offering.key for row in rows if row.status.serves}


OFFERS = st.lists(
    st.builds(offer, st.sampled_from(list(MACHINES)), st.sampled_from(["1", "2.5", "9", None])),
    max_size=8,
    unique_by=lambda one: one.key,
)


@settings(max_examples=12, deadline=None)
@given(OFFERS, st.sampled_from([JOB, SERVED]), st.integers(1, 20), st.integers(0, 20))
def test_more_budget_deadline_or_memory_removes_no_candidate(
    offers: list[Any], workload: Workload, limit: int, more: int
) -> None:
    def allowed(hourly: int) -> Workload:
        needs = replace(workload.needs, max_price_per_hour=Decimal(hourly))
        job = workload.training and replace(workload.training, deadline_hours=float(hourly))
        return replace(workload, needs=needs, training=job, budget_amount=Decimal(hourly))

    before, after = (ranked(allowed(end), offers) for end in (limit, limit + more))
    assert serving_keys(before) <= serving_keys(after)
    larger = {
        key: replace(one, usable_bytes_per_gpu=declared((size or 0) + more * GIB))
        if (size := one.usable_bytes_per_gpu.value)
        else one
        for key, one in MACHINES.items()
    }
    grown = shortlist(workload, Fleet.of(offers, larger), limit=100)
    assert serving_keys(ranked(workload, offers)) <= serving_keys(grown)
