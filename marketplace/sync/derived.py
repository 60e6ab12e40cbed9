"""What a listing's columns and prices come to: its configuration and its price for an hour."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from evaluator.findings import Code
from marketplace.hourly import on_demand_hour
from marketplace.locks import PRICE, lock_in, locked_price
from marketplace.machines import COLUMNS, configuration_of, lock_of
from marketplace.models import Listing
from marketplace.sync.prices import Rate, quote_of, rate_of

DOUBTS = frozenset({Code.VRAM_AMBIGUOUS.value})
"""Findings that a machine's memory is read by."""

DERIVED_COLUMNS = ("configuration", "machine_hour_amount", "machine_hour_currency")


def rental_gpus(listing: Listing) -> int | None:
    """GPUs over all machines of the rental: a curator's number, else the catalog's."""
    lock = lock_of(listing, "gpu_count")
    count: int | None = lock["value"] if lock and "value" in lock else listing.gpu_count
    return count


HARDWARE = (*COLUMNS, "vram_bytes_per_gpu", "gpu_count", "nodes", "gpu_fraction")
"""Columns that a configuration is worked out from, where no person and no fact adds to them."""


def configuration(listing: Listing, *, plain: bool) -> str:
    """Its fingerprint. Many listings are the same hardware: that is worked out once."""
    if not plain:
        return configuration_of(listing)
    doubts = tuple(one["code"] for one in listing.findings if one["code"] in DOUBTS)
    return _of_hardware(tuple(getattr(listing, name) for name in HARDWARE), doubts)


@lru_cache(maxsize=8192)
def _of_hardware(values: tuple[Any, ...], doubts: tuple[str, ...]) -> str:
    bare = dict(zip(HARDWARE, values, strict=True))
    return configuration_of(Listing(**bare, findings=[{"code": code} for code in doubts]))


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
