"""What a listing's columns and prices come to: its configuration and its price for an hour."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from marketplace.hourly import on_demand_hour
from marketplace.locks import PRICE, lock_in, locked_price
from marketplace.machines import (
    HARDWARE,
    configuration_of,
    is_ambiguous,
    lock_of,
    plain_machine,
)
from marketplace.models import Listing
from marketplace.sync.prices import Rate, quote_of, rate_of

DERIVED_COLUMNS = ("configuration", "machine_hour_amount", "machine_hour_currency")


def rental_gpus(listing: Listing) -> int | None:
    """GPUs over all machines of the rental: a curator's number, else the catalog's."""
    lock = lock_of(listing, "gpu_count")
    count: int | None = lock["value"] if lock and "value" in lock else listing.gpu_count
    return count


def configuration(listing: Listing, *, plain: bool) -> str:
    """Its fingerprint. Many listings are the same hardware: that is worked out once."""
    if not plain:
        return configuration_of(listing)
    hardware = tuple(getattr(listing, name) for name in HARDWARE)
    return _of_hardware(hardware, is_ambiguous(listing.findings))


@lru_cache(maxsize=8192)
def _of_hardware(hardware: tuple[Any, ...], ambiguous: bool) -> str:
    return plain_machine(hardware, ambiguous).fingerprint()


def derive(listing: Listing, prices: Iterable[Rate], *, plain: bool = False) -> None:
    """Set the derived columns from the row and its current prices. Saves nothing.

    `plain` says that nobody corrected the row and that it has no facts of its own.
    """
    listing.configuration = configuration(listing, plain=plain)
    amount, currency = _hour_of(listing, prices)
    listing.machine_hour_amount, listing.machine_hour_currency = amount, currency


def _hour_of(listing: Listing, prices: Iterable[Rate]) -> tuple[Decimal | None, str]:
    """A curator's price where one is locked, else what the catalog asks."""
    if lock_in(listing.corrections, PRICE) is None:
        return on_demand_hour(prices)
    locked = locked_price(listing.corrections)
    return (locked.amount, locked.currency or "") if locked else (None, "")


def refresh(listing: Listing, *changed: str) -> None:
    """Derive again after a correction or a new fact, and save that with the changed columns.

    No other column is written: a sync may have moved it meanwhile.
    """
    current = listing.prices.filter(superseded_at__isnull=True)
    count = rental_gpus(listing)
    derive(listing, [rate_of(quote_of(price), count) for price in current])
    listing.save(update_fields=[*changed, *DERIVED_COLUMNS])
