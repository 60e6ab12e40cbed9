from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.economics import Terms, choose_rate, cost_per_hour, rentals_of, terms_of
from evaluator.findings import Code, finding
from evaluator.plans import Plan
from evaluator.prices import Basis, Purchase, Quote, TimeUnit
from tests.evaluator.machines import serve

HOURLY = Quote(Decimal("1.49"), "USD", TimeUnit.HOUR, Basis.GPU)
USD = Terms("USD")


def test_a_rate_per_gpu_is_paid_for_every_gpu_of_every_rental() -> None:
    rate = choose_rate([HOURLY], 8, USD)
    assert rate.per_hour == Decimal("11.92")
    assert cost_per_hour(rate, 2) == Decimal("23.84")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"basis": Basis.UNKNOWN}, "per machine or per GPU"),
        ({"currency": None}, "no currency is stated"),
        ({"purchase": Purchase.SPOT}, "only a spot price"),
        ({"purchase": Purchase.RESERVED, "term": "1 year"}, "only a reserved price"),
        ({"unit": TimeUnit.MONTH}, "booked by the month"),
        ({"unit": TimeUnit.WEEK}, "booked by the week"),
        ({"unit": TimeUnit.TERM}, "booked by the term"),
        ({"currency": "EUR"}, "priced in EUR and compared in USD"),
    ],
)
def test_a_price_that_lacks_a_part_is_shown_and_not_ranked(
    change: dict[str, object], words: str
) -> None:
    quote = replace(HOURLY, **change)  # type: ignore[arg-type]
    rate = choose_rate([quote], 8, USD)
    assert not rate.ranked
    assert rate.quote == quote
    assert words in rate.not_ranked_because


def test_a_rate_per_gpu_of_an_unknown_count_is_not_ranked() -> None:
    rate = choose_rate([HOURLY], None, USD)
    assert (rate.per_hour, rate.ranked) == (None, False)


def test_no_price_is_no_rate() -> None:
    rate = choose_rate([], 8, USD)
    assert (rate.quote, rate.not_ranked_because) == (None, "no price is published")


@pytest.mark.parametrize(
    ("code", "gaps"),
    [
        (Code.PRICE_FROM, {"words": "from 2"}),
        (Code.AMOUNT_AMBIGUOUS, {"words": "1.234"}),
        (Code.CURRENCY_AMBIGUOUS, {"words": "$"}),
    ],
)
def test_a_doubt_of_the_catalog_about_the_price_keeps_it_out(
    code: Code, gaps: dict[str, str]
) -> None:
    assert not choose_rate([HOURLY], 8, USD, [finding(code, **gaps)]).ranked


@pytest.mark.parametrize("unit", [TimeUnit.SECOND, TimeUnit.HOUR, TimeUnit.DAY])
def test_what_can_be_taken_for_a_day_or_less_is_ranked(unit: TimeUnit) -> None:
    assert choose_rate([replace(HOURLY, unit=unit)], 8, USD).ranked


def test_spot_counts_only_where_it_is_asked_for() -> None:
    spot = replace(HOURLY, purchase=Purchase.SPOT, amount=Decimal("0.5"))
    assert choose_rate([HOURLY, spot], 8, terms_of(serve())).quote == HOURLY
    wanted = terms_of(serve(needs={"spot": True}))
    assert choose_rate([HOURLY, spot], 8, wanted).quote == spot


def test_the_currency_of_the_budget_is_the_one_that_is_ranked() -> None:
    euro = terms_of(serve(budget={"amount": 100, "currency": "EUR"}))
    assert choose_rate([replace(HOURLY, currency="EUR")], 8, euro).ranked
    assert not choose_rate([HOURLY], 8, euro).ranked


QUOTES = [
    HOURLY,
    replace(HOURLY, amount=Decimal("12"), basis=Basis.MACHINE),
    replace(HOURLY, amount=Decimal("0.1"), currency="EUR"),
    replace(HOURLY, amount=Decimal("400"), unit=TimeUnit.MONTH),
]


@pytest.mark.parametrize("quotes", list(permutations(QUOTES)))
def test_the_lowest_comparable_rate_counts_in_any_order(quotes: tuple[Quote, ...]) -> None:
    assert choose_rate(quotes, 8, USD).quote == HOURLY


@given(st.integers(1, 16), st.integers(1, 8))
def test_started_rentals_are_paid_whole(nodes: int, per_rental: int) -> None:
    rentals = rentals_of(Plan(dp=nodes, nodes=nodes), per_rental)
    assert (rentals - 1) * per_rental < nodes <= rentals * per_rental
