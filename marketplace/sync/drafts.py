"""A listing row as it will stand: worked on as a row, kept as bare values."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from marketplace.models import Listing
from marketplace.sync.derived import DERIVED_COLUMNS
from marketplace.sync.jumps import Amount
from marketplace.sync.prices import Rate
from marketplace.sync.rows import CATALOG_COLUMNS, IDENTITY
from marketplace.sync.upserts import Table, Values

NAME = ("source", *IDENTITY, "generation")
RENEWED = (
    *CATALOG_COLUMNS,
    *DERIVED_COLUMNS,
    *("row_digest", "row_hint", "seen_in", "last_seen", "gone_at"),
)
COLUMNS = (*NAME, *RENEWED, "provider", "first_seen", "corrections")
KEYS = ("source", "provider", "seen_in")
LISTINGS = Table(Listing, COLUMNS, NAME, RENEWED)

_values = attrgetter(*(f"{name}_id" if name in KEYS else name for name in COLUMNS))


@dataclass(frozen=True, slots=True)
class Draft:
    """With its prices. `change`: new, changed or unchanged; `before`: its price for an hour."""

    listing: Listing
    rates: list[Rate]
    change: str
    before: Amount


class Packed(NamedTuple):
    """The same as it waits to be written. `key` is None for a new one, `values` are of COLUMNS."""

    key: int | None
    change: str
    values: Values
    rates: list[Rate]

    @property
    def name(self) -> Values:
        return self.values[: len(NAME)]

    @property
    def snapshot(self) -> int:
        return int(self.values[COLUMNS.index("seen_in")])

    @property
    def mark(self) -> tuple[str, str]:
        at = COLUMNS.index("row_digest")
        return (self.values[at], self.values[at + 1])

    def __str__(self) -> str:
        """For people to read: the provider's name of it, and where it is."""
        _, sku, region, zone, *_ = self.values
        return named(sku, region, zone)


def packed(draft: Draft) -> Packed:
    return Packed(draft.listing.pk, draft.change, _values(draft.listing), draft.rates)


def named(sku: str, region: str, zone: str) -> str:
    place = "/".join(filter(None, (region, zone)))
    return f"{sku} ({place})" if place else sku
