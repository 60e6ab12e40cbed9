"""Names that rows carry: one that takes the place of another may have moved values."""

from __future__ import annotations

import json

from marketplace.catalog.base import Page
from marketplace.catalog.layouts import Columns, columns_of, fields_of, renamed


def fields(*rows: str) -> tuple[Columns, ...]:
    return fields_of(row.split() for row in rows)


def change(before: tuple[Columns, ...], now: tuple[Columns, ...]) -> str:
    return renamed(before, now, frozenset(before))


BEFORE = fields("gpu price region", "gpu price region", "gpu price note")


def test_a_name_that_takes_the_place_of_another_is_told() -> None:
    now = fields("gpu fee region", "gpu fee region", "gpu fee")
    assert change(BEFORE, now) == "price gone, fee new"


def test_a_name_that_is_only_new_or_only_gone_is_no_change() -> None:
    assert change(BEFORE, fields("gpu price region gift", "gpu price region gift")) == ""
    assert change(BEFORE, fields("gpu region", "gpu region")) == ""


def test_a_name_that_few_rows_carry_comes_and_goes() -> None:
    assert change(BEFORE, fields("gpu price region", "gpu price region gift", "gpu price")) == ""
    assert change(BEFORE, fields("gpu price", "gpu price", "gpu price region gift")) == ""


def test_a_name_that_was_known_once_is_no_new_one() -> None:
    now = fields("gpu fee", "gpu fee")
    assert renamed(BEFORE, now, frozenset((*BEFORE, *fields("fee")))) == ""


def answer(data: object) -> tuple[Columns, ...]:
    return columns_of([Page("https://api.example/v1", json.dumps(data).encode())])


def test_keys_of_an_answer_are_fields_wherever_its_list_is() -> None:
    rows = [{"name": "a", "price": {"hour": 1}}, {"name": "b", "price": {"hour": 2}}]
    listed = answer({"data": {"rows": rows}, "total": 2})
    assert listed == answer(rows) == answer({"x-1": rows[0], "x-2": rows[1]})
    assert {one[1] for one in listed} == {"name", "price", "price.hour"}


def test_an_answer_that_is_none_has_no_fields() -> None:
    assert columns_of([Page("https://api.example/v1", b"{nothing")]) == ()
    assert answer({"message": "no"}) == ()
