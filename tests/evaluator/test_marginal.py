"""What each added GPU costs and saves."""

from __future__ import annotations

from decimal import Decimal

import pytest

from evaluator.marginal import cost_of_saved_hour, marginal_table
from evaluator.plans import Plan
from evaluator.ranges import exact
from evaluator.scaling import Point

MILLION_TOKENS_AN_HOUR = 10**6 / 3600


def points(*rates: tuple[int, float]) -> list[Point]:
    return [Point(Plan(dp=gpus), exact(rate * MILLION_TOKENS_AN_HOUR)) for gpus, rate in rates]


def two_each(gpus: int) -> Decimal:
    return Decimal(2) * gpus


def test_cost_of_one_job_on_more_gpus_and_of_each_saved_hour() -> None:
    """(cost_n2 - cost_n1) / (hours_n1 - hours_n2); 90 % goodput makes 100 and 60 hours here."""
    first, second = marginal_table(points((1, 1), (2, 5 / 3)), 90 * 10**6, two_each)
    assert first.cost is not None
    assert second.cost is not None
    assert (first.cost.typical, second.cost.typical) == (200, 240)
    assert second.ratio == pytest.approx(1.2)
    assert second.saved_hour == pytest.approx(Decimal(1))
    assert second.words == "each saved hour costs 1.00"
    assert first.words == "the fewest GPUs that hold it"


def test_a_superlinear_step_pays_for_itself() -> None:
    _, second = marginal_table(points((1, 1), (2, 3)), 90 * 10**6, two_each)
    assert second.saved_hour is not None
    assert second.saved_hour < 0
    assert second.words == "faster and no dearer"


def test_gpus_that_save_no_hour_say_so() -> None:
    """L70 on L40S: 177.7 tokens/s on 4, 176.2 on 8."""
    _, second = marginal_table(points((4, 177.7), (8, 176.2)), 10**9, two_each)
    assert second.saved_hour is None
    assert second.words == "no hour is saved"


def test_without_a_price_there_is_time_and_no_money() -> None:
    first, second = marginal_table(points((1, 1), (2, 2)), 10**9, lambda gpus: None)
    assert first.hours is not None
    assert first.cost is None
    assert second.saved_hour is None


def test_a_server_is_compared_by_its_tokens() -> None:
    first, second = marginal_table(points((1, 1), (2, 1.5)), None, two_each)
    assert first.hours is None
    assert first.per_million is not None
    assert first.per_million.typical == pytest.approx(Decimal(2))
    assert second.words == "a token costs 1.33 times"


def test_a_token_of_a_machine_that_is_rented_whole_gets_cheaper_with_its_gpus() -> None:
    first, second = marginal_table(points((1, 1), (2, 1.5)), None, lambda _: Decimal(8))
    assert first.per_million
    assert second.per_million
    assert second.per_million.typical / first.per_million.typical == pytest.approx(Decimal(2) / 3)
    assert second.words == "a token costs 0.67 times; 1.33 times where each GPU is paid"


def test_without_a_price_a_token_is_told_by_the_gpu_alone() -> None:
    _, second = marginal_table(points((1, 1), (2, 1.5)), None, lambda _: None)
    assert second.words == "a token costs 1.33 times where each GPU is paid"


def test_no_hour_saved_has_no_price() -> None:
    assert cost_of_saved_hour((Decimal(1), 1.0), (Decimal(2), 1.0)) is None


def test_a_row_is_held_against_the_fastest_before_it() -> None:
    """A slower one between them is no base from which the next would look cheap."""
    _, slower, faster = marginal_table(points((1, 1), (2, 0.5), (4, 2)), 90 * 10**6, two_each)
    assert slower.words == "no hour is saved"
    assert faster.ratio == pytest.approx(2)
    assert faster.words == "each saved hour costs 4.00"
    _, _, again = marginal_table(points((1, 1), (2, 0.5), (4, 1)), 90 * 10**6, two_each)
    assert again.words == "no hour is saved"
