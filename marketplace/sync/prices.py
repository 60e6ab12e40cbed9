"""Price observations: appended when they change, closed when they end, never rewritten."""

from __future__ import annotations

from collections.abc import Iterable, Set
from datetime import datetime
from decimal import Decimal

from evaluator.prices import Basis, Purchase, Quote, TimeUnit, machine_per_hour
from marketplace.models import Listing, Price
from marketplace.sync.rows import clean

PLACES = Decimal("1e-8")
LARGEST = Decimal(10) ** 12
HOURLY = (TimeUnit.SECOND, TimeUnit.HOUR)

Identity = tuple[object, ...]


def storable(quotes: Iterable[Quote]) -> list[Quote]:
    """Quotes that a price column can hold; a zero or a negative one is no price."""
    return [quote for quote in quotes if PLACES <= quote.amount < LARGEST]


def price_of(quote: Quote, listing: Listing, gpu_count: int | None) -> Price:
    """An unsaved row without snapshot and time. `gpu_count` counts the whole rental."""
    per_hour = machine_per_hour(quote, gpu_count)
    derivable = per_hour is not None and PLACES <= per_hour < LARGEST
    return Price(
        listing=listing,
        amount=quote.amount.quantize(PLACES),
        currency=quote.currency or "",
        unit=quote.unit.value,
        basis=quote.basis.value,
        purchase=quote.purchase.value,
        term=clean(quote.term)[:60],
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


def identity(price: Price) -> Identity:
    """Equal for observations of one and the same price; wording and dates stay out."""
    parts = (price.listing_id, price.purchase, price.term, price.unit, price.basis)
    return (*parts, price.currency, price.amount, price.machine_per_hour)


def on_demand_hour(prices: Iterable[Price]) -> tuple[Decimal | None, str]:
    """What the machine costs for an hour on demand, with its currency.

    (None, "") when no price says so, or when two say different things.
    """
    rates = {
        (price.machine_per_hour, price.currency)
        for price in prices
        if price.purchase == Purchase.ON_DEMAND
        and price.unit in HOURLY
        and price.machine_per_hour
        and price.currency
    }
    return next(iter(rates)) if len(rates) == 1 else (None, "")


def record(
    source_id: int, prices: Iterable[Price], settled: Set[int], at: datetime
) -> tuple[int, int]:
    """Append what is new, close what ended; return how many of each.

    `settled` are the keys of all listings whose prices are known now: those that were read, and
    those that were delisted, which have none. Prices of other listings stay as they are.
    """
    wanted = {identity(price): price for price in prices}
    standing = {identity(price): price.pk for price in _standing(source_id)}
    ended = [key for one, key in standing.items() if one not in wanted and one[0] in settled]
    fresh = [price for one, price in wanted.items() if one not in standing]
    for price in fresh:
        price.first_seen = at
    # Closed first, so that the new observation of a price can take its place.
    Price.objects.filter(pk__in=ended).update(superseded_at=at)
    Price.objects.bulk_create(fresh, batch_size=500)
    return len(fresh), len(ended)


def _standing(source_id: int) -> Iterable[Price]:
    current = Price.objects.filter(listing__source=source_id, superseded_at__isnull=True)
    return current.order_by("pk")
