"""A machine's attributes as rows: value, grade, source, time, and the provider's own words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from evaluator.facts import Fact
from evaluator.machine import Conflict, Machine
from marketplace.models import Listing
from marketplace.seen import SHOWN


@dataclass(frozen=True, slots=True)
class Attribute:
    """One line of the listing page. `said` is what the provider printed for it."""

    label: str
    text: str
    fact: Fact[Any]
    said: str = ""
    conflict: Conflict | None = None


def attributes_of(listing: Listing, machine: Machine) -> list[Attribute]:
    """Every attribute, the unknown ones too: what is missing is what has to be asked."""
    return list(_rows(listing, machine))


def _rows(listing: Listing, machine: Machine) -> Iterator[Attribute]:
    for name, label, print_value, keys in SHOWN:
        fact: Fact[Any] = getattr(machine, name)
        yield Attribute(
            label=label,
            text=print_value(fact.value) if fact.known else "",
            fact=fact,
            said=str(listing.words.get(_said_as(listing, keys), "")),
            conflict=machine.conflict_over(name),
        )


def _said_as(listing: Listing, keys: Iterable[str]) -> str:
    """The first of these names under which the catalog worded something."""
    return next((key for key in keys if listing.words.get(key)), "")


def other_words(listing: Listing) -> dict[str, str]:
    """What the provider printed besides the attributes above."""
    used = {_said_as(listing, keys) for _, _, _, keys in SHOWN}
    return {key: str(text) for key, text in listing.words.items() if key not in used and text}
