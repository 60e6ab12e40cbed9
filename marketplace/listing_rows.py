"""The rows of the table of listings: values that never change, two queries for a page of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from evaluator.prices import Quote
from marketplace.listings import quotes_of
from marketplace.models import Listing, Price
from marketplace.shelf import Shelf

COLUMNS = (
    *("pk", "title", "sku", "provider__name", "region", "zone", "configuration"),
    *("gpu_model", "gpu_count", "nodes", "gpu_fraction", "form_factor", "link"),
    *("vram_bytes_per_gpu", "vcpus", "ram_bytes", "local_storage_bytes"),
    *("machine_hour_amount", "machine_hour_currency", "availability", "last_seen", "gone_at"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A listing with its prices in force. `alike` counts the current listings, its own included,
    that describe its hardware: resellers list one machine under many names. They are told, never
    merged: price, place and terms differ. A row that leaves the host open is like no other.
    """

    key: int
    title: str
    sku: str
    provider: str
    region: str
    zone: str
    configuration: str
    gpu_model: str | None
    gpu_count: int | None
    nodes: int
    gpu_fraction: str
    form_factor: str | None
    link: str | None
    vram_bytes_per_gpu: int | None
    vcpus: int | None
    ram_bytes: int | None
    local_storage_bytes: int | None
    machine_hour_amount: Decimal | None
    machine_hour_currency: str
    availability: str
    last_seen: datetime
    gone_at: datetime | None
    in_force: tuple[Quote, ...]
    alike: int

    @property
    def name(self) -> str:
        return self.title or self.sku


def rows_of(held: Shelf, keys: Sequence[int]) -> list[Row]:
    """In the order of their keys; one that was deleted meanwhile is left out."""
    listings = Listing.objects.filter(pk__in=keys).order_by()
    read = {row[0]: dict(zip(COLUMNS, row, strict=True)) for row in listings.values_list(*COLUMNS)}
    for key in read.keys() & held.reverted.keys():
        read[key]["machine_hour_amount"], read[key]["machine_hour_currency"] = held.reverted[key]
    prices = Price.objects.filter(listing__in=keys, superseded_at=None)
    quotes = quotes_of(prices.order_by("purchase", "term", "-first_seen"))
    alike = held.times_offered(row["configuration"] for row in read.values())
    return [_row(read[key], quotes.get(key, ()), alike) for key in keys if key in read]


def _row(read: dict[str, Any], in_force: tuple[Quote, ...], alike: dict[str, int]) -> Row:
    described = all(read[name] for name in ("configuration", "gpu_model", "vcpus", "ram_bytes"))
    same = alike[read["configuration"]] if described else 0
    return Row(*[*read.values(), in_force, same])
