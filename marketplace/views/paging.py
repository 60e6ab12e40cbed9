"""Numbers and orders that an address names: no address asks for more than there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

KEY_DIGITS = 18
"""A longer number is no key of ours, and would not fit the database's integers."""


@dataclass(frozen=True, slots=True)
class Sort:
    """An order that an address may ask for, by a column of the shelf."""

    label: str
    by: str
    descending: bool = False


def whole_number(text: str) -> int:
    """A key from an address; 0, which no row has, for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= KEY_DIGITS else 0


def chosen(sorts: Mapping[str, Sort], word: str) -> tuple[str, Sort]:
    """The order named in an address, or the first one of the list."""
    name = word if word in sorts else next(iter(sorts))
    return name, sorts[name]


def capped(text: str, default: int, most: int) -> int:
    """A count from an address, between 1 and `most`."""
    return min(max(whole_number(text) or default, 1), most)
