"""What a listing's columns and prices come to: its configuration and its price for an hour."""

from __future__ import annotations

from collections.abc import Iterable

from marketplace.machines import configuration_of, lock_of
from marketplace.models import Listing, Price
from marketplace.sync.prices import on_demand_hour, price_of, quote_of

DERIVED_COLUMNS = ("configuration", "machine_hour_amount", "machine_hour_currency")


def rental_gpus(listing: Listing) -> int | None:
    """GPUs over all machines of the rental: a curator's number, else the catalog's."""
    lock = lock_of(listing, "gpu_count")
    count: int | None = lock["value"] if lock and "value" in lock else listing.gpu_count
    return count


def derive(listing: Listing, prices: Iterable[Price]) -> None:
    """Set the derived columns from the row and its current prices. Saves nothing."""
    listing.configuration = configuration_of(listing)
    amount, currency = on_demand_hour(prices)
    listing.machine_hour_amount, listing.machine_hour_currency = amount, currency


def refresh(listing: Listing, *changed: str) -> None:
    """Derive again after a correction or a new fact, and save that with the changed columns.

    No other column is written: a sync may have moved it meanwhile.
    """
    current = listing.prices.filter(superseded_at__isnull=True)
    count = rental_gpus(listing)
    derive(listing, [price_of(quote_of(price), listing, count) for price in current])
    listing.save(update_fields=[*changed, *DERIVED_COLUMNS])
