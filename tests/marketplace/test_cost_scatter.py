"""Marks are true to scale, the line is the one that nothing beats, and words state the finding."""

from __future__ import annotations

from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from evaluator.ranges import Range
from marketplace.cost_scatter import (
    BOTTOM,
    HEIGHT,
    LEFT,
    MOST_TICKS,
    RIGHT,
    TOP,
    WIDTH,
    Spot,
    cost_scatter,
    figure,
    frontier,
    span,
)

ENDS = st.floats(1e-3, 1e9)
RANGES = st.lists(ENDS, min_size=3, max_size=3).map(lambda ends: Range(*sorted(ends)))
SPOTS = st.builds(Spot, st.just("#1"), st.text(max_size=5), st.just("declared"), RANGES, RANGES)


def spot(label: str, time: float, cost: float, grade: str = "declared") -> Spot:
    near = [Range(value * 0.8, value, value * 1.5) for value in (time, cost)]
    return Spot(label, "8x H100, Ridge", grade, *near)


@given(st.lists(SPOTS, min_size=1, max_size=8))
def test_everything_lies_inside_the_axes(spots: list[Spot]) -> None:
    found = cost_scatter(spots, "hours", "USD")
    assert found is not None
    for point in found.points:
        assert LEFT <= point.left <= point.x <= point.right <= WIDTH - RIGHT
        assert TOP <= point.top <= point.y <= point.bottom <= HEIGHT - BOTTOM
    assert 1 <= len(found.times) <= MOST_TICKS
    assert 1 <= len(found.costs) <= MOST_TICKS


@given(st.lists(SPOTS, min_size=1, max_size=8))
def test_the_line_joins_those_that_none_beats_in_both(spots: list[Spot]) -> None:
    best = frontier(spots)
    for one in spots:
        beaten = any(
            other.time.typical <= one.time.typical
            and other.cost.typical <= one.cost.typical
            and (other.time.typical, other.cost.typical) != (one.time.typical, one.cost.typical)
            for other in spots
        )
        assert beaten != any(one is held for held in best)
    assert [one.time.typical for one in best] == sorted(one.time.typical for one in best)


def test_nothing_is_drawn_without_a_time_and_a_cost() -> None:
    assert cost_scatter([], "hours", "USD") is None


def test_the_words_name_the_cheapest_and_the_fastest() -> None:
    found = cost_scatter([spot("#1", 10, 5), spot("#2", 2, 50), spot("#3", 20, 60)], "h", "USD")
    assert found is not None
    assert "Cheapest of the 3 shown: #1" in found.description
    assert "Fastest: #2" in found.description
    assert "than #2, #1, by typical values" in found.description
    assert [point.best for point in found.points] == [True, True, False]


def test_one_that_is_both_is_said_once() -> None:
    found = cost_scatter([spot("#1", 1, 1), spot("#2", 2, 2)], "hours", "USD")
    assert found is not None
    assert found.description.startswith("#1 8x H100, Ridge is both the cheapest and the fastest")
    assert found.line == ""


def test_of_two_that_are_equally_fast_the_cheaper_one_is_named() -> None:
    found = cost_scatter([spot("#2", 1, 2), spot("#1", 1, 1)], "hours", "USD")
    assert found is not None
    assert found.description.startswith("#1 8x H100, Ridge is both the cheapest and the fastest")


def test_figures_have_three_digits_and_no_power_of_ten() -> None:
    assert [figure(one) for one in (0.00123, 1.0, 12.34, 99.99, 123.4, 1234567.0)] == [
        "0.00123", "1", "12.3", "100", "123", "1,234,567",
    ]  # fmt: skip
    assert span(Range(3.001, 3.002, 3.003)) == "3"


def test_both_ends_of_a_range_are_equally_exact() -> None:
    assert span(Range(0.34, 0.4, 0.454)) == "0.340–0.454"
    assert span(Range(9.31, 11, 13)) == "9.31–13.0"
    assert span(Range(46.3, 100, 1707.4)) == "46.3–1,707"
    assert span(Range(9.9951, 50, 99.96)) == "10.0–100"


def test_the_drawing(snapshot: SnapshotAssertion) -> None:
    grades = ["unknown", "declared", "measured", "benchmarked"]
    spots = [spot(f"#{at}", 40 / (at + 1), 5.0 + at * 9, grade) for at, grade in enumerate(grades)]
    found = cost_scatter(spots, "hours", "USD")
    assert render_to_string("_cost_scatter.svg", {"scatter": found}) == snapshot
