from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from marketplace.models import Listing, Price, Snapshot, Source, SyncRun

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def snapshot(source: Source) -> Snapshot:
    return Snapshot.objects.create(
        source=source, url=source.url, body=b"x", byte_count=1, sha256="a" * 64, fetched_at=NOON
    )


@pytest.fixture
def listing(source: Source, snapshot: Snapshot) -> Listing:
    return make_listing(source, snapshot)


def make_listing(source: Source, snapshot: Snapshot, **columns: Any) -> Listing:
    return Listing.objects.create(
        **{
            "source": source,
            "provider": source.provider,
            "sku": "a",
            "seen_in": snapshot,
            "first_seen": NOON,
            "last_seen": NOON,
            **columns,
        }
    )


def make_price(listing: Listing, **columns: Any) -> Price:
    return Price.objects.create(
        **{
            "listing": listing,
            "amount": Decimal(2),
            "unit": "hour",
            "basis": "machine",
            "purchase": "on_demand",
            "snapshot": listing.seen_in,
            "first_seen": NOON,
            **columns,
        }
    )


def refused(make: Callable[[], object]) -> bool:
    try:
        with transaction.atomic():
            make()
    except IntegrityError:
        return True
    return False


@pytest.mark.parametrize(
    "columns",
    [
        {"gpu_count": 0},
        {"vcpus": 0},
        {"ram_bytes": 0},
        {"vram_bytes_per_gpu": 0},
        {"availability": "perhaps"},
    ],
)
def test_the_database_itself_refuses_a_guess(
    source: Source, snapshot: Snapshot, columns: dict[str, Any]
) -> None:
    assert refused(lambda: make_listing(source, snapshot, **columns))


@pytest.mark.parametrize(
    "columns",
    [
        {"amount": Decimal(0)},
        {"amount": Decimal(-1)},
        {"machine_per_hour": Decimal(0)},
        {"basis": "rack"},
        {"unit": "decade"},
        {"purchase": "borrowed"},
    ],
)
def test_no_price_is_zero_negative_or_of_an_unknown_kind(
    listing: Listing, columns: dict[str, Any]
) -> None:
    assert refused(lambda: make_price(listing, **columns))


def test_a_listing_has_one_row_per_identity(source: Source, listing: Listing) -> None:
    assert refused(lambda: make_listing(source, listing.seen_in))
    assert not refused(lambda: make_listing(source, listing.seen_in, zone="b"))
    assert not refused(lambda: make_listing(source, listing.seen_in, vram_key=80))


def test_a_price_stands_once_until_it_is_superseded(listing: Listing) -> None:
    price = make_price(listing)
    assert refused(lambda: make_price(listing))
    assert not refused(lambda: make_price(listing, unit="month"))
    Price.objects.filter(pk=price.pk).update(superseded_at=NOON)
    assert not refused(lambda: make_price(listing))


def test_a_source_has_one_running_run(source: Source) -> None:
    def run(fence: int, outcome: str) -> SyncRun:
        lease = NOON + timedelta(minutes=5)
        return SyncRun.objects.create(
            source=source, fence=fence, outcome=outcome, started_at=NOON, lease_until=lease
        )

    run(1, "running")
    assert refused(lambda: run(2, "running"))
    assert refused(lambda: run(1, "failed"))
    assert not refused(lambda: run(3, "failed"))


def test_equal_bytes_of_one_address_are_stored_once(snapshot: Snapshot) -> None:
    snapshot.pk = None
    assert refused(lambda: snapshot.save(force_insert=True))


@pytest.mark.parametrize("url", ["ftp://shop.example/", "file:///etc/passwd", "javascript:1"])
def test_a_source_speaks_http(source: Source, url: str) -> None:
    source.url = url
    with pytest.raises(ValidationError):
        source.full_clean()


def test_a_change_of_a_listing_is_remembered(listing: Listing) -> None:
    listing.title = "another"
    listing.save()
    assert [row.title for row in listing.history.all()] == ["another", ""]
