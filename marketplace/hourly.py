"""What a machine costs for an hour on demand, by the prices that its catalog has in force."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Protocol

from evaluator.prices import Purchase, TimeUnit
from marketplace.locks import PRICE, lock_in
from marketplace.models import Listing, Price

HOURLY = (TimeUnit.SECOND, TimeUnit.HOUR)


class Derived(Protocol):
    """A price whose hour of a whole rental was worked out."""

    @property
    def purchase(self) -> str: ...

    @property
    def unit(self) -> str: ...

    @property
    def currency(self) -> str: ...

    @property
    def machine_per_hour(self) -> Decimal | None: ...


def on_demand_hour(prices: Iterable[Derived]) -> tuple[Decimal | None, str]:
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


Hour = tuple[Decimal | None, str]


def after_locks() -> Mapping[int, Hour]:
    """By the key of its listing, what the catalog asks again since the lock on a price ended.

    The column of a listing holds the locked price until the next sync.
    """
    locked = Listing.objects.filter(gone_at=None, corrections__has_key=PRICE)
    ended = [
        key
        for key, corrections in locked.values_list("pk", "corrections")
        if lock_in(corrections, PRICE) is None
    ]
    return {key: on_demand_hour(prices) for key, prices in _in_force(ended).items()}


def _in_force(listings: Sequence[int]) -> Mapping[int, list[Price]]:
    found: dict[int, list[Price]] = {key: [] for key in listings}
    if found:
        for price in Price.objects.filter(listing__in=listings, superseded_at=None):
            found[price.listing_id].append(price)
    return found
