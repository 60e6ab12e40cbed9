"""Which rank class decides a fit, where they disagree on the typical case and on the high end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.budgets import Component, Fit, FitWord, MemoryBudget, RankBudget
from evaluator.jobs import Workload
from evaluator.memory import budget, fit, smallest_change
from evaluator.plans import Plan
from evaluator.ranges import Range
from evaluator.shares import Allowance
from evaluator.workload import parse_workload


def rank(name: str, **sizes: tuple[float, float, float]) -> RankBudget:
    return RankBudget(name, tuple(Component(k, Range(*size), "") for k, size in sizes.items()))


def of(*ranks: RankBudget, utilization: float = 1.0, outside: tuple[str, ...] = ()) -> MemoryBudget:
    return MemoryBudget(ranks, Allowance(utilization), outside=outside)


FIRST = rank("first", weights=(8, 10, 11))
LAST = rank("last", weights=(7, 9, 14))


@pytest.mark.parametrize(
    ("usable", "word", "decides", "missing"),
    [
        (9, FitWord.DOES_NOT_FIT, "first", 1),
        (10, FitWord.TIGHT, "last", 0),
        (13, FitWord.TIGHT, "last", 0),
        (14, FitWord.FITS, "last", 0),
    ],
)
def test_a_miss_is_that_of_the_largest_typical_need_and_doubt_that_of_the_highest_end(
    usable: int, word: FitWord, decides: str, missing: int
) -> None:
    found = fit(of(FIRST, LAST), usable)
    assert (found.word, found.rank, found.missing_bytes) == (word, decides, missing)


def test_a_rank_that_needs_less_in_all_may_miss_its_share() -> None:
    """80 of a static share of 0.8 of 100 are left to the second rank, which has 85 inside."""
    outer = rank("outer", weights=(70, 70, 70), activations=(25, 25, 25))
    inner = rank("inner", weights=(85, 85, 85), activations=(1, 1, 1))
    memory = of(outer, inner, utilization=0.8, outside=("activations",))
    found = fit(memory, 100)
    assert (found.word, found.rank, found.missing_bytes) == (FitWord.DOES_NOT_FIT, "inner", 5)
    assert found.allowed_bytes == 80
    assert memory.binding is inner


def test_what_stays_inside_its_share_may_still_exceed_the_card() -> None:
    memory = of(
        rank("only", weights=(70, 70, 70), activations=(35, 35, 35)),
        utilization=0.8,
        outside=("activations",),
    )
    found = fit(memory, 100)
    assert (found.word, found.missing_bytes, found.share) == (FitWord.DOES_NOT_FIT, 5, 1.0)


ENDS = st.tuples(*(st.integers(1, 1000) for _ in range(3))).map(lambda ends: tuple(sorted(ends)))


@given(
    st.lists(st.tuples(ENDS, ENDS), min_size=1, max_size=4),
    st.integers(1, 3000),
    st.sampled_from([0.5, 0.9, 1.0]),
    st.booleans(),
)
def test_a_fit_is_the_worst_of_the_fits_of_its_ranks(
    sizes: list[Any], usable: int, utilization: float, split: bool
) -> None:
    ranks = [rank(str(at), weights=one, activations=two) for at, (one, two) in enumerate(sizes)]
    outside = ("activations",) if split else ()
    alone = [fit(of(one, utilization=utilization, outside=outside), usable) for one in ranks]
    together = fit(of(*ranks, utilization=utilization, outside=outside), usable)
    order = [FitWord.FITS, FitWord.TIGHT, FitWord.DOES_NOT_FIT]
    assert together.word is max((one.word for one in alone), key=order.index)
    assert together in [by_name(one, at) for at, one in enumerate(alone)]


def by_name(found: Fit, at: int) -> Fit:
    assert found.rank == str(at)
    return found


def serving(**keys: Any) -> Workload:
    model = {"preset": "llama-3.1-8b"}
    return parse_workload({"task": "serve", "model": model, "concurrency": 256, **keys})


def test_an_old_engine_samples_on_rank_0_which_then_has_least_room() -> None:
    old = budget(serving(engine_version="0.6"), Plan(tp=2))
    assert [one.rank for one in old.ranks] == ["rank 0", "other ranks"]
    first, other = (one.component("activations") for one in old.ranks)
    assert first is not None
    assert other is not None
    assert other.bytes.typical < first.bytes.typical
    assert old.binding is old.ranks[0]
    staged = budget(serving(engine_version="0.6"), Plan(tp=2, pp=2))
    assert [one.rank for one in staged.ranks][-1] == "last stage, other ranks"


def test_newer_engines_hold_the_same_on_every_tensor_rank() -> None:
    assert [one.rank for one in budget(serving(), Plan(tp=2)).ranks] == ["every rank"]


def test_the_memory_asked_for_is_that_of_the_rank_which_decides() -> None:
    job, plan = serving(engine="sglang", memory_utilization=0.6), Plan(pp=2)
    needed = smallest_change(job, plan, 2**33)[-1]
    enough = int(needed.value) * 2**30
    assert fit(budget(job, plan), enough).word is not FitWord.DOES_NOT_FIT
    assert fit(budget(job, plan), enough - 2**30).word is FitWord.DOES_NOT_FIT
