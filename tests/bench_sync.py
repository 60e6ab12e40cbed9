"""What a sync of long lists costs beside its parse and a bare upsert of the same rows.

The process that measures is forked anew for each figure, so that its peak of memory is its own.
Ratios are of processor time, which neighbours disturb less; rows a second are of the clock.
The bare upsert writes listings alone; a sync writes their prices and history as well.
"""

from __future__ import annotations

import csv
import io
import os
import resource
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from django.db import connections

from marketplace import sync
from marketplace.catalog.base import Page
from marketplace.catalog.registry import adapter_for
from marketplace.models import Listing, Provider, Source
from marketplace.sync.drafts import NAME, RENEWED
from tests.scratch import scratch_database
from tests.turns import worked

FEED_ROWS, PAGE_CARDS = 100_000, 10_000
CARDS = (
    ("H100", 80, 81559),
    ("A100-80GB", 80, 81920),
    ("L40S", 48, 46068),
    ("H200", 141, 143771),
    ("RTX4090", 24, 24564),
    ("A6000", 48, 49140),
    ("L4", 24, 23034),
    ("B200", 180, 183359),
)
HEAD = (
    *("InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "GpuInfo"),
    *("Price", "SpotPrice", "Region"),
)
PLACES = 250


def feed(rows: int, differs: Callable[[int], bool] = lambda _: False) -> bytes:
    """A price file of so many rows; those that differ cost a cent more."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEAD)
    writer.writerows(_row(number, differs(number)) for number in range(rows))
    return out.getvalue().encode()


def _row(number: int, differs: bool) -> tuple[object, ...]:
    kind, place = divmod(number, PLACES)
    name, gigabytes, mebibytes = CARDS[kind % len(CARDS)]
    count, cores = (1, 2, 4, 8)[kind // 8 % 4], (8, 16, 24, 32, 48)[kind // 32 % 5]
    price = gigabytes * count / 50 + number % 97 / 100 + (0.01 if differs else 0)
    gpu = {"Name": name, "Count": count, "MemoryInfo": {"SizeInMiB": mebibytes}}
    info = repr({"Gpus": [gpu], "TotalGpuMemoryInMiB": mebibytes * count})
    sku = f"{name.lower()}-{count}x-{cores}c-{kind}"
    host = (cores * count, cores * count * 8)
    return (sku, name, count, *host, info, f"{price:.2f}", f"{price / 2:.3f}", f"region-{place}")


def cards(count: int) -> bytes:
    """A page of so many cards."""
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>GPU servers</title></head>"
        "<body><h1>GPU servers</h1><p>Prices per machine and hour, in USD.</p><div class=grid>"
        f"{''.join(map(_card, range(count)))}</div></body></html>"
    ).encode()


def _card(number: int) -> str:
    name, gigabytes, _ = CARDS[number % len(CARDS)]
    gpus = (1, 2, 4, 8)[number // 8 % 4]
    price = gigabytes * gpus / 50 + number % 97 / 100
    return (
        f'<article class="card" data-sku="m-{number}"><h3>{gpus}× NVIDIA {name} {gigabytes} GB</h3>'
        f"<ul><li>{8 * gpus} vCPU</li><li>{64 * gpus} GB RAM</li><li>{2 * gpus} TB NVMe</li></ul>"
        f'<p class="region">Region: eu-{number % 40}</p><p class="price">${price:.2f} / hour</p>'
        '<span class="badge">In stock</span></article>'
    )


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one piece of work: seconds on the clock, seconds of the processor with those of its child,
    and the most memory of either."""

    seconds: float
    worked: float
    peak_bytes: int


def alone(work: Callable[[], object]) -> Cost:
    """What `work` costs in a process of its own."""
    connections.close_all()
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            start, before = perf_counter(), worked()
            work()
            seconds = perf_counter() - start
            peak = max(
                resource.getrusage(who).ru_maxrss
                for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
            )
            os.write(sink, f"{seconds} {worked() - before} {peak * 1024}".encode())
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(sink)
    with os.fdopen(source) as answer:
        said = answer.read().split()
    os.waitpid(child, 0)
    if not said:
        raise RuntimeError("the measured work broke off")
    return Cost(float(said[0]), float(said[1]), int(said[2]))


def bench_sync(rows: int = FEED_ROWS, page_cards: int = PAGE_CARDS) -> None:
    """On a database of its own, as the tests have it."""
    with TemporaryDirectory() as folder, scratch_database(Path(folder) / "bench.sqlite3"):
        _bench_feed(rows, Path(folder) / "vms.csv")
        _bench_page(page_cards, Path(folder) / "gpus.html")


def _bench_feed(rows: int, file: Path) -> None:
    source = _source("skypilot")
    floor = _floor(source, feed(rows), rows, file, "text/csv")
    _tell("  nothing differs", _synced(source, file), rows, floor)
    file.write_bytes(feed(rows, lambda number: number % 50 == 0))
    few = _synced(source, file)
    _tell("  2 % differ", few, rows, floor)
    file.write_bytes(feed(rows, lambda number: number % 50 != 0))
    every = _synced(source, file)
    _tell("  all differ", every, rows, floor)
    print(f"  2 % cost {few.worked / every.worked:.3f} of what all do")


def _bench_page(count: int, file: Path) -> None:
    _floor(_source("page"), cards(count), count, file, "text/html")


def _floor(source: Source, body: bytes, rows: int, file: Path, kind: str) -> float:
    """Processor seconds of a bare parse and a bare upsert, printed beside the first sync."""
    file.write_bytes(body)
    page, adapter = Page("https://bench.example/list", body, kind), adapter_for(source.adapter)
    parse = alone(lambda: adapter.read([page]))
    first = _synced(source, file)
    upsert = alone(lambda: _upsert(source))
    floor = parse.worked + upsert.worked
    print(f"{rows} rows of a {source.adapter} source, {len(body) / 1e6:.0f} MB")
    _tell("  a bare parse", parse, rows, floor)
    _tell("  a bare bulk_create(update_conflicts=True)", upsert, rows, floor)
    _tell("  first sync", first, rows, floor)
    return floor


def _upsert(source: Source) -> None:
    rows = list(Listing.objects.filter(source=source))
    for row in rows:
        row.pk = None
    Listing.objects.bulk_create(
        rows,
        batch_size=500,
        update_conflicts=True,
        unique_fields=list(NAME),
        update_fields=list(RENEWED),
    )


def _source(adapter: str) -> Source:
    provider, _ = Provider.objects.get_or_create(slug="bench", defaults={"name": "Bench"})
    kind = "page" if adapter == "page" else "feed"
    return Source.objects.create(
        provider=provider, key=f"bench-{adapter}", kind=kind, adapter=adapter
    )


def _synced(source: Source, file: Path) -> Cost:
    def work() -> None:
        run = sync.sync_file(source.pk, file)
        if run is None or run.outcome not in ("published", "unchanged"):
            raise RuntimeError(f"the sync ended as {run and (run.outcome, run.reason)}")

    os.utime(file)
    return alone(work)


def _tell(name: str, cost: Cost, rows: int, floor: float) -> None:
    print(
        f"{name:<44} {cost.seconds * 1000:>10.1f} ms {cost.worked / floor:>8.2f} x parse, upsert"
        f" {rows / cost.seconds:>8.0f} rows/s {cost.peak_bytes / 1e6:>6.0f} MB at most"
    )


if __name__ == "__main__":
    bench_sync()
