"""Shapes are true to scale and say in words what they show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.budgets import Component, Fit, FitWord, MemoryBudget, RankBudget
from evaluator.ranges import Range
from evaluator.units import GIB
from marketplace.pictures import BAR_WIDTH, MEMORY_WIDTH, MOST_ROWS, fit_bar, memory_picture

SIZES = st.integers(min_value=1, max_value=4000 * GIB)


def ranges() -> st.SearchStrategy[Range]:
    return st.lists(SIZES, min_size=3, max_size=3).map(lambda sizes: Range(*sorted(sizes)))


def budgets() -> st.SearchStrategy[MemoryBudget]:
    component = st.builds(
        Component, st.sampled_from(["weights", "kv_cache"]), ranges(), st.just("")
    )
    ranks = st.builds(RankBudget, st.text(max_size=9), st.lists(component, min_size=1).map(tuple))
    return st.builds(MemoryBudget, st.lists(ranks, min_size=1, max_size=6).map(tuple))


def fit_of(needed: Range, allowed: int) -> Fit:
    return Fit(FitWord.TIGHT, "every rank", needed, allowed)


@given(ranges(), SIZES)
def test_a_fit_bar_keeps_the_order_of_need_and_limit(needed: Range, allowed: int) -> None:
    bar = fit_bar(fit_of(needed, allowed))
    assert bar is not None
    assert 0 <= bar.low <= bar.typical <= bar.high <= BAR_WIDTH
    assert (bar.high <= bar.limit) == (needed.high <= allowed)


def test_nothing_is_drawn_of_what_is_not_known() -> None:
    assert fit_bar(Fit(FitWord.UNKNOWN)) is None
    assert memory_picture(MemoryBudget(()), Fit(FitWord.UNKNOWN)) is None


@given(budgets(), SIZES)
def test_segments_fill_a_row_without_gap_or_overlap(memory: MemoryBudget, allowed: int) -> None:
    picture = memory_picture(memory, fit_of(memory.ranks[0].bytes, allowed))
    assert picture is not None
    for row in picture.rows:
        ends = [0.0, *(segment.x + segment.width for segment in row.segments)]
        assert [segment.x for segment in row.segments] == pytest.approx(ends[:-1], abs=1e-6)
        assert row.low <= ends[-1] + 1e-6
        assert ends[-1] <= row.high + 1e-6


@given(budgets(), SIZES)
def test_everything_lies_inside_the_picture(memory: MemoryBudget, allowed: int) -> None:
    picture = memory_picture(memory, fit_of(memory.ranks[0].bytes, allowed))
    assert picture is not None
    assert picture.limit is not None
    places = [picture.limit.x, *(row.high for row in picture.rows), *(t.x for t in picture.ticks)]
    assert all(0 <= x <= MEMORY_WIDTH for x in places)
    assert all(row.y < picture.base for row in picture.rows)


@given(budgets())
def test_the_rank_that_needs_most_stands_first(memory: MemoryBudget) -> None:
    picture = memory_picture(memory, Fit(FitWord.UNKNOWN))
    assert picture is not None
    needs = [row.needed.typical for row in picture.rows]
    assert needs == sorted(needs, reverse=True)
    assert len(picture.rows) + picture.left_out == len(memory.ranks)
    assert len(picture.rows) <= MOST_ROWS


def test_the_description_states_the_finding() -> None:
    weights = Component("weights", Range(15 * GIB, 15 * GIB, 15 * GIB), "n × 2")
    memory = MemoryBudget((RankBudget("every rank", (weights,)),))
    picture = memory_picture(memory, Fit(FitWord.FITS, "every rank", weights.bytes, 72 * GIB))
    assert picture is not None
    assert "15.0 GiB needed per GPU" in picture.description
    assert "72.0 GiB usable: fits" in picture.description
