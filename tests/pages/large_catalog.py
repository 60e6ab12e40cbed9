"""A catalog of any size, made in bulk: many listings of few configurations, as resellers do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from itertools import islice, product

from django.utils import timezone

from evaluator.gpus import specs
from marketplace.machines import configuration_of
from marketplace.models import Listing, Price, Snapshot, Source
from tests.pages.catalog import make_snapshot, make_source

COUNTS = (1, 2, 4, 8)
LINKS = (None, "nvswitch", "pcie_p2p")
REGIONS = ("eu-north", "eu-west", "us-east", "us-west", "ap-south")
SOURCES = 5
BATCH = 2000


def fill(listings: int, configurations: int, name: str = "bulk") -> None:
    """Sources of that name, listings, and one price in force for each."""
    snapshots = [make_snapshot(make_source(f"{name}-{at}")) for at in range(SOURCES)]
    distinct = _distinct(_shapes(snapshots[0]))
    shapes = list(islice(distinct, configurations))
    rows = (_listing(at, shapes[at % len(shapes)], snapshots) for at in range(listings))
    while batch := list(islice(rows, BATCH)):
        Listing.objects.bulk_create(batch)
        Price.objects.bulk_create([_price(row) for row in batch])


def visit_again(name: str = "bulk", every: int = 50) -> None:
    """As a sync of the first source leaves it that finds a part of the whole catalog changed: their
    prices are higher, and all that the source lists was seen now.
    """
    source, now = Source.objects.get(key=f"{name}-0"), timezone.now()
    rows = Listing.objects.filter(source=source)
    changed = list(rows.order_by("pk")[: Listing.objects.count() // every])
    for at in range(0, len(changed), BATCH):
        part = changed[at : at + BATCH]
        for row in part:
            row.machine_hour_amount = (row.machine_hour_amount or 0) + Decimal("0.01")
        Listing.objects.bulk_update(part, ["machine_hour_amount"], batch_size=500)
        standing = Price.objects.filter(listing__in=[row.pk for row in part], superseded_at=None)
        standing.update(superseded_at=now)
        Price.objects.bulk_create([_price(row) for row in part])
    rows.update(last_seen=now)
    source.save()


def _distinct(rows: Iterator[Listing]) -> Iterator[Listing]:
    """To the evaluator a lone GPU has no link, so some shapes are one configuration."""
    seen: set[str] = set()
    for row in rows:
        if row.configuration not in seen:
            seen.add(row.configuration)
            yield row


def _shapes(snapshot: Snapshot) -> Iterator[Listing]:
    """One listing for each configuration, its fingerprint worked out once."""
    models = [spec for spec in specs() if spec.usable_bytes]
    hosts = [(vcpus, ram) for vcpus in (16, 32, 64, 96, 128, 192) for ram in (128, 512, 2048)]
    for (vcpus, ram), link, count, spec in product(hosts, LINKS, COUNTS, models):
        row = Listing(
            gpu_model=spec.model,
            gpu_count=count,
            vram_bytes_per_gpu=spec.usable_bytes,
            link=link if count > 1 else None,
            vcpus=vcpus,
            ram_bytes=ram * 10**9,
            seen_in=snapshot,
            last_seen=timezone.now(),
            source=snapshot.source,
        )
        row.configuration = configuration_of(row)
        yield row


def _listing(at: int, shape: Listing, snapshots: list[Snapshot]) -> Listing:
    snapshot = snapshots[at % SOURCES]
    source: Source = snapshot.source
    seen = timezone.now() - timedelta(minutes=at % 300)
    return Listing(
        source=source,
        provider_id=source.provider_id,
        sku=f"machine-{at}",
        title=f"{shape.gpu_count}x {shape.gpu_model} {at}",
        region=REGIONS[at % len(REGIONS)],
        gpu_model=shape.gpu_model,
        gpu_count=shape.gpu_count,
        vram_bytes_per_gpu=shape.vram_bytes_per_gpu,
        link=shape.link,
        vcpus=shape.vcpus,
        ram_bytes=shape.ram_bytes,
        availability="available",
        configuration=shape.configuration,
        machine_hour_amount=_amount(at, shape),
        machine_hour_currency="USD",
        seen_in=snapshot,
        first_seen=seen,
        last_seen=seen,
    )


def _amount(at: int, shape: Listing) -> Decimal:
    return Decimal((at * 7919) % 997 + 50) * (shape.gpu_count or 1) / 100


def _price(row: Listing) -> Price:
    return Price(
        listing=row,
        amount=row.machine_hour_amount,
        currency="USD",
        unit="hour",
        basis="machine",
        purchase="on_demand",
        machine_per_hour=row.machine_hour_amount,
        snapshot=row.seen_in,
        first_seen=row.first_seen,
    )
