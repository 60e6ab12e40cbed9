"""Price observations: appended when they change, closed when they end, never rewritten."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from evaluator.prices import Basis, Purchase, Quote, TimeUnit, machine_per_hour
from marketplace.models import Price
from marketplace.sync.rows import clean
from marketplace.sync.upserts import Table

PLACES = Decimal("1e-8")
LARGEST = Decimal(10) ** 12


def storable(quotes: Iterable[Quote]) -> list[Quote]:
    """Quotes that a price column can hold; a zero or a negative one is no price."""
    return [quote for quote in quotes if PLACES <= quote.amount < LARGEST]


class Rate(NamedTuple):
    """A price as it will stand, without listing, snapshot and time."""

    purchase: str
    term: str
    unit: str
    basis: str
    currency: str
    amount: Decimal
    machine_per_hour: Decimal | None
    words: str


def rate_of(quote: Quote, gpu_count: int | None) -> Rate:
    """`gpu_count` counts the whole rental."""
    per_hour = machine_per_hour(quote, gpu_count)
    derivable = per_hour is not None and PLACES <= per_hour < LARGEST
    return Rate(
        purchase=quote.purchase.value,
        term=clean(quote.term)[:60],
        unit=quote.unit.value,
        basis=quote.basis.value,
        currency=quote.currency or "",
        amount=quote.amount.quantize(PLACES),
        machine_per_hour=per_hour.quantize(PLACES) if per_hour and derivable else None,
        words=clean(quote.words)[:300],
    )


def quote_of(price: Price) -> Quote:
    return Quote(
        amount=price.amount,
        currency=price.currency or None,
        unit=TimeUnit(price.unit),
        basis=Basis(price.basis),
        purchase=Purchase(price.purchase),
        term=price.term,
        words=price.words,
    )


@dataclass(frozen=True, slots=True)
class Moved:
    """How many prices were added and closed, and the listings that they are of."""

    added: int
    closed: int
    listings: Set[int]


PRICES = Table(Price, (*Rate._fields, "listing", "snapshot", "first_seen"))


def record(
    rates: Mapping[int, Sequence[Rate]], snapshots: Mapping[int, int], at: datetime
) -> Moved:
    """Append what is new, close what ended, for the listings of these keys and no others.

    `rates` are all that a listing has now, `snapshots` the body that each was read from. Wording
    and dates make no other price.
    """
    wanted = {(key, *rate[:7]): rate for key, held in rates.items() for rate in held}
    standing = {tuple(one): key for key, *one in _standing(rates)}
    ended = {key: one[0] for one, key in standing.items() if one not in wanted}
    fresh = {one: rate for one, rate in wanted.items() if one not in standing}
    # Closed first, so that the new observation of a price can take its place.
    if ended:
        Price.objects.filter(pk__in=ended).update(superseded_at=at)
    PRICES.write([(*rate, one[0], snapshots[one[0]], at) for one, rate in fresh.items()])
    return Moved(len(fresh), len(ended), {one[0] for one in fresh} | set(ended.values()))


def end_prices(listings: Sequence[int], at: datetime) -> int:
    """What is no longer offered has no price; how many ended."""
    return Price.objects.filter(listing__in=listings, superseded_at=None).update(superseded_at=at)


def _standing(listings: Iterable[int]) -> Iterable[tuple[Any, ...]]:
    """Key of the price, key of its listing, then what makes it that price."""
    current = Price.objects.filter(listing__in=listings, superseded_at__isnull=True)
    return current.order_by("pk").values_list("pk", "listing_id", *Rate._fields[:7])
