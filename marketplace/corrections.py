"""A curator's values for a listing: checked when they are entered, and never touched by a sync.

Stored in `Listing.corrections` as {attribute: {"value", "grade", "source", "as_of"}}, with "why"
and "until" where they were given: after that day the catalog's value counts again. A value of null
says that the catalog's value is not believed. The grade is always "declared": a measured value
comes with its evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import Any, get_args, get_type_hints

from evaluator.facts import Grade
from evaluator.machine import Machine
from marketplace import machines
from marketplace.locks import PRICE, day_of, is_price

PARTS = ("value", "grade", "source", "as_of", "why", "until")
LONGEST_WHY = 300
FROM_LISTING: Mapping[str, type] = {"gpu_count": int, "vram_bytes_per_gpu": int}
"""Columns that reach the evaluator in another shape than they are stored."""


class InvalidCorrections(ValueError):
    """One message for each thing that is wrong: attribute, what was read, what was expected."""

    def __init__(self, messages: list[str]) -> None:
        super().__init__(" ".join(messages))
        self.messages = messages


@cache
def correctable() -> Mapping[str, type]:
    """Attribute to the type of its value."""
    hints = get_type_hints(Machine)
    named = (*machines.COLUMNS, *machines.OTHERS)
    return {PRICE: Decimal, **FROM_LISTING, **{name: get_args(hints[name])[0] for name in named}}


def read_corrections(document: Any, *, who: str, now: datetime) -> dict[str, dict[str, Any]]:
    """What a curator typed, in the stored form: {attribute: value} or with source and date.

    Raises InvalidCorrections.
    """
    if not isinstance(document, dict):
        raise InvalidCorrections([f"Read {_kind(document)}, expected an object."])
    messages = [said for name, given in document.items() for said in _mistakes(name, given)]
    if messages:
        raise InvalidCorrections(messages)
    return {name: _stored(given, who, now) for name, given in document.items()}


def _mistakes(name: str, given: Any) -> Iterator[str]:
    kind = correctable().get(name)
    if kind is None:
        yield f"{name}: unknown attribute, expected one of {', '.join(sorted(correctable()))}."
        return
    parts = _parts(given)
    if unknown := parts.keys() - set(PARTS):
        yield f"{name}: unknown key {', '.join(sorted(unknown))}, expected {', '.join(PARTS)}."
    if "value" not in parts:
        yield f"{name}: no value is given."
    elif not _is_value(parts["value"], kind):
        yield f"{name}: read {parts['value']!r}, expected {_expected(kind)}."
    if parts.get("grade", Grade.DECLARED.word) != Grade.DECLARED.word:
        yield f"{name}: read the grade {parts['grade']!r}, expected declared."
    if not _is_why(parts.get("why", "")):
        yield f"{name}: why: read {parts['why']!r:.80}, expected a text."
    if parts.get("until") and not day_of(parts["until"]):
        yield f"{name}: until: read {parts['until']!r:.80}, expected a day such as 2027-01-31."


def _parts(given: Any) -> dict[str, Any]:
    return given if isinstance(given, dict) else {"value": given}


def _is_why(given: Any) -> bool:
    return isinstance(given, str) and len(given) <= LONGEST_WHY and (given or "x").isprintable()


def _is_value(value: Any, kind: type) -> bool:
    if value is None:
        return True
    if kind is Decimal:
        return is_price(value)
    if issubclass(kind, StrEnum):
        return value in [word.value for word in kind]
    if kind is str:
        return isinstance(value, str) and len(value.strip()) > 0 and value.isprintable()
    if kind is int:
        return type(value) is int and 0 < value < 2**63
    return type(value) is kind


def _expected(kind: type) -> str:
    if issubclass(kind, StrEnum):
        return "null or one of " + ", ".join(word.value for word in kind)
    if kind is Decimal:
        return 'null or what an hour of the rental costs, such as "18.50 USD"'
    names = {int: "a whole number above 0", str: "a text", bool: "true or false"}
    return "null or " + names[kind]


def _stored(given: Any, who: str, now: datetime) -> dict[str, Any]:
    parts = _parts(given)
    said = {name: str(parts[name]) for name in ("why", "until") if parts.get(name)}
    return {
        "value": parts["value"],
        "grade": Grade.DECLARED.word,
        "source": str(parts.get("source") or who),
        "as_of": str(parts.get("as_of") or now.isoformat()),
        **said,
    }


def _kind(document: Any) -> str:
    return {list: "a list", str: "a text", type(None): "nothing"}.get(type(document), "a number")
