"""What the tests of visits share: two hours of one day, and a visit at one of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from marketplace import sync
from marketplace.models import Listing, Price, Source, SyncRun
from tests.marketplace.site import Site, page

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
TOMORROW = NOON + timedelta(days=1)


def synced(source: Source, at: datetime = NOON) -> SyncRun:
    run = sync.sync_source(source.pk, now=at)
    assert run is not None
    return run


def serve(site: Site, text: str) -> None:
    site.answers["/list"] = page(text, "text/plain")


def listing(sku: str) -> Listing:
    return Listing.objects.get(sku=sku)


def published() -> list[Any]:
    """All that people see of a catalog: any write to it shows."""
    return [*Listing.objects.order_by("pk").values(), *Price.objects.order_by("pk").values()]
