"""Hours and money: the worked examples, rounding, deadlines from the low end."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.ranges import Range, exact
from evaluator.spending import (
    InTime,
    Reclaimed,
    affordable_ratio,
    billed_hours,
    cost_of,
    cost_per_million,
    cost_ratio,
    goodput,
    hours_for,
    meets,
    wall_hours,
)

HOUR = Decimal(1)


@pytest.mark.parametrize(("tokens_per_s", "dollars"), [(623.4, "2.23"), (917.26, "1.51")])
def test_money_for_a_million_tokens_on_two_gpus_at_2_50(tokens_per_s: float, dollars: str) -> None:
    found = cost_per_million(Decimal("5.00"), tokens_per_s)
    assert found.quantize(Decimal("0.01")) == Decimal(dollars)


def test_an_h200_may_cost_up_to_8_6_l40s() -> None:
    assert affordable_ratio(4166, 1943, 4) == pytest.approx(8.6, abs=0.05)


def test_checkpoints_on_spot_capacity() -> None:
    spot = Reclaimed(between_s=6 * 3600, saving_s=120, restart_s=600)
    assert spot.interval_s == pytest.approx(2277, abs=1)
    assert spot.overhead == pytest.approx(0.133, abs=0.001)
    assert spot.price_factor == pytest.approx(1.154, abs=0.001)


def test_twice_the_gpus_at_one_and_a_half_times_the_rate_cost_a_third_more() -> None:
    assert cost_ratio((4, 100), (8, 150)) == pytest.approx(4 / 3)


def test_a_started_unit_is_paid_and_a_minimum_term_too() -> None:
    assert billed_hours(2.01, HOUR) == 3
    assert billed_hours(2.01, Decimal("0.25")) == Decimal("2.25")
    assert billed_hours(2.01, HOUR, least_hours=Decimal(24)) == 24


def test_the_lowest_rate_takes_longest_and_costs_most() -> None:
    hours = hours_for(3.6e9, Range(50_000, 100_000, 200_000))
    assert (hours.low, hours.typical, hours.high) == pytest.approx((5, 10, 20))
    cost = cost_of(hours, Decimal("12.50"), HOUR)
    assert (cost.low, cost.high) == (Decimal("62.50"), Decimal("250.00"))


def test_a_deadline_holds_only_where_the_low_end_meets_it() -> None:
    hours = Range(5, 10, 20)
    assert meets(24, hours).word is InTime.YES
    assert meets(24, hours).slack_hours == 4
    assert meets(12, hours).word is InTime.LIKELY
    assert meets(9, hours).word is InTime.NO
    assert meets(12, hours).slack_hours == -8


def test_a_whole_run_keeps_less_of_the_step_rate_on_many_machines() -> None:
    assert goodput(4).typical < goodput(1).typical
    found = wall_hours(exact(10), goodput(1), setup_hours=1)
    assert found.typical == pytest.approx(1 + 10 / 0.9)


@given(st.floats(0.01, 10_000), st.floats(0.01, 10_000))
def test_a_later_deadline_is_never_worse(one: float, other: float) -> None:
    order = [InTime.NO, InTime.LIKELY, InTime.YES]
    early, late = sorted((one, other))
    hours = Range(10, 20, 40)
    assert order.index(meets(late, hours).word) >= order.index(meets(early, hours).word)
