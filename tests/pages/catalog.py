"""A small catalog in the database, made row by row: for pages whose rows a test has to know."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone

from marketplace.machines import configuration_of
from marketplace.models import Listing, Price, Provider, QuarantinedRow, Snapshot, Source, SyncRun


def make_source(key: str = "ridge", **changes: Any) -> Source:
    now = timezone.now()
    provider, _ = Provider.objects.get_or_create(slug=key, defaults={"name": key.title()})
    values = {
        "kind": "page",
        "adapter": "html",
        "url": f"https://{key}.example/gpus",
        "last_success_at": now - timedelta(hours=1),
    }
    source = Source.objects.create(provider=provider, key=key, **(values | changes))
    make_run(source)
    return source


def make_run(source: Source, **changes: Any) -> SyncRun:
    at = timezone.now() - timedelta(hours=1)
    source.fence = fence = source.runs.count() + 1
    source.save()
    values = {"outcome": "published", "started_at": at, "lease_until": at, "finished_at": at}
    return SyncRun.objects.create(source=source, fence=fence, **(values | changes))


def make_snapshot(source: Source, at: datetime | None = None) -> Snapshot:
    body = b"<html></html>"
    snapshot, _ = Snapshot.objects.get_or_create(
        source=source,
        url=source.url,
        sha256="0" * 64,
        defaults={"body": body, "byte_count": len(body), "fetched_at": at or timezone.now()},
    )
    return snapshot


def make_listing(source: Source, sku: str = "h100x8", **changes: Any) -> Listing:
    """An 8 × H100 machine with a declared link and a price, unless changed."""
    seen = timezone.now() - timedelta(hours=3)
    amount = changes.pop("amount", Decimal("19.92"))
    values: dict[str, Any] = {
        "title": f"8x H100 SXM {sku}",
        "gpu_model": "H100",
        "gpu_count": 8,
        "vram_bytes_per_gpu": 80 * 10**9,
        "form_factor": "SXM5",
        "link": "nvswitch",
        "region": "eu-north",
        "availability": "available",
        "vcpus": 192,
        "ram_bytes": 2048 * 10**9,
        "words": {"link": "NVSwitch fabric", "vram": "80GB"},
        "machine_hour_amount": amount,
        "machine_hour_currency": "USD" if amount else "",
        "first_seen": seen,
        "last_seen": seen,
        "seen_in": make_snapshot(source),
    }
    listing = Listing(source=source, provider=source.provider, sku=sku, **(values | changes))
    listing.configuration = configuration_of(listing)
    listing.save()
    if amount:
        make_price(listing, amount)
    return listing


def make_price(listing: Listing, amount: Decimal, **changes: Any) -> Price:
    values: dict[str, Any] = {
        "currency": "USD",
        "unit": "hour",
        "basis": "machine",
        "purchase": "on_demand",
        "machine_per_hour": amount,
        "snapshot": listing.seen_in,
        "first_seen": listing.first_seen,
    }
    return Price.objects.create(listing=listing, amount=amount, **(values | changes))


def set_aside(run: SyncRun, sku: str = "twice", **changes: Any) -> QuarantinedRow:
    values: dict[str, Any] = {
        "reason": "duplicate_key",
        "finding": {"code": "duplicate_key", "gaps": {"key": sku, "times": "2"}},
        "words": {"InstanceType": sku},
    }
    return QuarantinedRow.objects.create(run=run, sku=sku, **(values | changes))
