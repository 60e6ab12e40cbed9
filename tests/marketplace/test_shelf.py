"""Columns in memory filter, sort and page as the rows themselves would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketplace.expressions import Check, matches, parse_numbers, parse_words
from marketplace.shelf import Shelf, shelf
from marketplace.words import MOST_LOOKED, Words
from tests.pages.catalog import make_listing, make_source

COUNTS = st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=25)
ASKED = st.sampled_from([">=5", "2..4", "1 or 8", "not 2..4", "unknown", "known and not 3"])
NAMES = st.lists(st.sampled_from([None, "", "H100", "h100", "H100 NVL", "B200"]), max_size=25)
NAMED = st.sampled_from(["h100", "=h100", "not nvl", "unknown", "b200 or nvl", "known"])


def made(counts: list[int | None], names: list[str | None] | None = None) -> Shelf:
    values = [np.nan if one is None else float(one) for one in counts]
    return Shelf(
        version=(),
        keys=np.arange(1, len(counts) + 1) * 3,
        words={"gpu": Words.of(names or [None] * len(counts))},
        numbers={"gpus": np.array(values, dtype=float)},
        gone=np.zeros(len(counts), dtype=bool),
    )


@given(COUNTS, ASKED)
def test_numbers_pass_as_single_values_do(counts: list[int | None], text: str) -> None:
    node = parse_numbers(text)
    found = made(counts).where({"gpus": node})
    assert found.tolist() == [matches(node, one) for one in counts]


@given(NAMES, NAMED)
def test_words_pass_as_single_values_do(names: list[str | None], text: str) -> None:
    node = parse_words(text)
    found = made([1] * len(names), names).where({"gpu": node})
    assert found.tolist() == [matches(node, one or None) for one in names]


@given(COUNTS, st.booleans(), st.integers(1, 6))
def test_pages_show_each_row_once_and_the_unknown_last(
    counts: list[int | None], descending: bool, size: int
) -> None:
    held, found, after = made(counts), list[int](), 0
    passing = held.where({})
    while True:
        page = held.page(passing, "gpus", after, size, descending=descending)
        assert page.total == len(counts)
        found += page.keys
        if page.next_key is None:
            break
        after = page.next_key
    values = dict(zip((np.arange(1, len(counts) + 1) * 3).tolist(), counts, strict=True))
    sign = -1 if descending else 1
    order = sorted(values, key=lambda key: (values[key] is None, sign * (values[key] or 0), key))
    assert found == order


@given(COUNTS, NAMES, st.data())
def test_what_is_alike_is_looked_up_as_it_would_be_searched_for(
    counts: list[int | None], names: list[str | None], data: st.DataObject
) -> None:
    length = min(len(counts), len(names))
    held = made(counts[:length], names[:length])
    prices = data.draw(st.lists(st.sampled_from([1.0, 2.0, np.nan]), min_size=length, max_size=25))
    held.numbers["price"] = np.array(prices[:length], dtype=float)  # type: ignore[index]
    held.gone[::3] = True
    for gpu, gpus in (("h100", 4), ("B200", 1), ("absent", 1)):
        same = {"gpu": Check("is", gpu.casefold()), "gpus": Check("eq", gpus)}
        found = held.page(held.where(same), "price", 0, 25)
        assert tuple(held.alike(gpu, gpus)) == found.keys


class Interrupting(str):
    """A name that calls back as soon as it is looked at, as a thread that comes in between."""

    calls: list[Callable[[], object]]

    def __hash__(self) -> int:
        if self.calls:
            self.calls.pop()()
        return str.__hash__(self)


def test_who_asks_while_kinds_are_told_apart_gets_all_of_a_kind() -> None:
    held = made([4, 4, 4], ["H100", "L4", "H100"])
    held.numbers["price"] = np.array([1.0, 2.0, 3.0])  # type: ignore[index]
    name, found = Interrupting("l4"), list[Sequence[int]]()
    name.calls = [lambda: found.append(tuple(held.alike("H100", 4)))]
    held.words["gpu"] = replace(held.words["gpu"], folded=("h100", name))  # type: ignore[index]
    assert held.alike("H100", 4) == [3, 9]
    assert found == [(3, 9)]
    assert not name.calls


def test_a_place_counts_although_its_row_passes_no_longer() -> None:
    held = made([1, 2, 3, 4])
    found = held.page(held.where({"gpus": parse_numbers("!=2")}), "gpus", after=6, size=9)
    assert found.keys == (9, 12)


def test_words_are_put_in_order_without_case() -> None:
    names = ["b", "A", None, "C", "a"]
    held = made([1] * 5, names)
    keys = held.page(held.where({}), "gpu", 0, 9).keys
    assert [names[key // 3 - 1] for key in keys] == ["A", "a", "b", "C", None]


@pytest.mark.django_db
def test_an_empty_catalog_is_an_empty_shelf() -> None:
    held = shelf()
    assert held.page(held.where({}), "price", 0, 10).keys == ()
    assert held.offered("gpu") == []


@pytest.mark.django_db
def test_prices_in_another_currency_are_not_compared() -> None:
    source = make_source()
    make_listing(source, "usd", amount=Decimal(9))
    make_listing(source, "eur", amount=Decimal(1), machine_hour_currency="EUR")
    held = shelf()
    assert held.where({"price": parse_numbers("<=9")}).tolist() == [True, False]
    assert held.where({"price": parse_numbers("unknown")}).tolist() == [False, True]


@pytest.mark.django_db
def test_it_is_read_again_only_when_something_changed() -> None:
    source = make_source()
    make_listing(source)
    first = shelf()
    assert shelf() is first
    make_listing(source, "new")
    assert len(shelf().keys) == 2


def test_a_search_is_made_once_for_its_words_and_never_for_others() -> None:
    words = Words.of(["H100 a", "H100 b", None, "A100"])
    for _ in range(2):
        assert words.passing(Check("has", "h100")).tolist() == [True, True, False, False]
        assert words.passing(Check("lacks", "h100")).tolist() == [False, False, False, True]
        assert words.passing(Check("is", "h100")).tolist() == [False] * 4
        assert words.passing(Check("is", "a100")).tolist() == [False, False, False, True]
    assert len(words._looked) == 3
    for number in range(MOST_LOOKED):
        words.passing(Check("has", str(number)))
    assert len(words._looked) == MOST_LOOKED
