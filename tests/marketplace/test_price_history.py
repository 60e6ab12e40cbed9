"""Prices over time: steps true to scale, gaps where nothing was offered, and words for both."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from marketplace.drawing.price_history import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Observation,
    price_history,
)

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def ago(days: int) -> datetime:
    return NOW - timedelta(days=days)


def seen(amount: str, since: int, until: int | None = None, **other: str) -> Observation:
    given = {"currency": "USD", "name": "on demand", **other}
    end = None if until is None else ago(until)
    return Observation(Decimal(amount), since=ago(since), until=end, **given)


def numbers(path: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?[0-9.]+", path)]


def test_nothing_is_drawn_of_what_was_never_seen() -> None:
    assert price_history([], NOW) is None


def test_one_price_is_a_line_from_its_first_day_to_now() -> None:
    history = price_history([seen("20.00", 10)], NOW)
    assert history is not None
    x, y, end = numbers(history.series[0].path)
    assert (x, end) == (LEFT, WIDTH - RIGHT)
    assert TOP < y < HEIGHT - BOTTOM
    assert history.description == "on demand: 20.00 USD per machine and hour since 2026-11-20."


def test_a_price_that_takes_anothers_place_is_a_step() -> None:
    history = price_history([seen("20", 10, 4), seen("18", 4)], NOW)
    assert history is not None
    assert re.fullmatch(r"M\S+ \S+H\S+L\S+ \S+H\S+", history.series[0].path)
    assert "2 prices since 2026-11-20, from 18.00 to 20.00" in history.description


def test_a_time_without_a_price_is_a_gap() -> None:
    history = price_history([seen("20", 10, 8), seen("18", 3, 1)], NOW)
    assert history is not None
    assert history.series[0].path.count("M") == 2
    assert history.description.endswith("until 2026-11-29.")


def test_another_currency_is_counted_and_not_drawn_on_the_same_scale() -> None:
    prices = [seen("20", 9, 5), seen("21", 5), seen("19", 4, currency="EUR")]
    history = price_history(prices, NOW)
    assert history is not None
    assert (history.currency, history.left_out, len(history.series)) == ("USD", 1, 1)


def test_each_way_to_buy_has_a_line_of_its_own_up_to_four() -> None:
    prices = [seen("20.00", 9, name=f"reserved, {year} years") for year in range(1, 7)]
    history = price_history(prices, NOW)
    assert history is not None
    assert [one.tone for one in history.series] == [1, 2, 3, 4]
    assert history.left_out == 2


AMOUNTS = st.decimals(min_value="0.00000001", max_value="1000000", places=8)


@given(st.lists(st.tuples(AMOUNTS, st.integers(0, 2000), st.integers(0, 2000)), min_size=1))
def test_everything_lies_inside_the_picture(drawn: list[tuple[Decimal, int, int]]) -> None:
    observed = [
        Observation(amount, "USD", "spot", ago(max(a, b)), ago(min(a, b)) if a % 3 else None)
        for amount, a, b in drawn
    ]
    history = price_history(observed, NOW)
    assert history is not None
    for step in re.findall(r"[ML](\S+) ([0-9.]+)|H([0-9.]+)", history.series[0].path):
        x, y, end = (float(one) if one else None for one in step)
        assert all(LEFT - 0.1 <= one <= WIDTH - RIGHT + 0.1 for one in (x, end) if one is not None)
        assert y is None or TOP - 0.1 <= y <= HEIGHT - BOTTOM + 0.1
