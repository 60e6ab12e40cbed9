"""Rows whose bytes were read before are not read again, and nothing else is different for it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evaluator.units import GB
from marketplace import readers, sync
from marketplace.catalog.adapters.skypilot import SkyPilotAdapter
from marketplace.catalog.base import Known, Page
from marketplace.catalog.parts import ROWS, digest_of, read_parts
from marketplace.machines import configuration_of
from marketplace.models import GpuAlias, Listing, Price, Provider, Source, SyncRun
from marketplace.sync.derived import configuration
from marketplace.sync.upserts import Table

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HEAD = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,Region"
EACH = {"H100": 81559, "L40S": 46068, "A100": 81920}


def row(sku: str, price: str, name: str = "H100", count: int = 8, **changes: object) -> str:
    each = EACH.get(name, 24576) * int(str(changes.get("times", 1)))
    info = f"{{'Gpus': [{{'Name': '{name}', 'MemoryInfo': {{'SizeInMiB': {each}}}}}]}}"
    return f'{sku},{name},{count},64,512,"{info}",{price},{changes.get("region", "eu")}'


FIVE = [row(f"m{number}", f"{20 + number}.00") for number in range(5)]


@pytest.fixture
def source(db: None) -> Source:
    provider = Provider.objects.create(slug="acme", name="Acme")
    return Source.objects.create(provider=provider, key="acme", kind="feed", adapter="skypilot")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "vms.csv"


def synced(source: Source, file: Path, rows: Iterable[str], hours: int = 0) -> SyncRun:
    at = NOON + timedelta(hours=hours)
    file.write_text("\n".join([HEAD, *rows]) + "\n")
    os.utime(file, (at.timestamp(), at.timestamp()))
    run = sync.sync_file(source.pk, file, now=at)
    assert run is not None
    return run


def numbers(run: SyncRun) -> tuple[int, ...]:
    names = ("new", "changed", "unchanged", "skipped", "gone")
    return tuple(run.counts[name] for name in names)


def moved(rows: Sequence[str], number: int, *change: str) -> list[str]:
    return [one.replace(*change) if at == number else one for at, one in enumerate(rows)]


def test_only_the_row_that_differs_is_read_and_written(source: Source, file: Path) -> None:
    synced(source, file, FIVE)
    versions = Listing.history.count()
    run = synced(source, file, moved(FIVE, 2, "22.00", "23.50"), hours=1)
    assert (run.outcome, numbers(run)) == ("published", (0, 1, 4, 4, 0))
    assert (run.counts["prices_added"], run.counts["repriced"]) == (1, 1)
    assert run.drift == {"new": [], "changed": ["m2 (eu)"], "repriced": ["m2 (eu)"], "gone": []}
    assert Listing.history.count() == versions + 1


def test_a_row_that_was_skipped_was_seen(source: Source, file: Path) -> None:
    synced(source, file, FIVE)
    run = synced(source, file, moved(FIVE, 0, "20.00", "20.50"), hours=3)
    assert set(Listing.objects.values_list("last_seen", flat=True)) == {NOON + timedelta(hours=3)}
    assert {one.seen_in for one in Listing.objects.all()} == {run.snapshots.get()}
    assert not Listing.objects.exclude(gone_at=None).exists()


def test_a_feed_of_which_nothing_differs_is_unchanged(source: Source, file: Path) -> None:
    synced(source, file, FIVE)
    run = synced(source, file, [*FIVE, ""], hours=1)
    assert (run.outcome, numbers(run)) == ("unchanged", (0, 0, 5, 5, 0))
    assert Price.objects.count() == 5


def test_rows_that_vanish_beside_skipped_ones_are_gone_or_held(source: Source, file: Path) -> None:
    synced(source, file, FIVE)
    assert numbers(synced(source, file, FIVE[:3], hours=1)) == (0, 0, 3, 3, 2)
    assert Price.objects.filter(superseded_at=None).count() == 3
    held = synced(source, file, FIVE[:1], hours=2)
    assert (held.outcome, held.reason) == ("held", "2 of 3 listings are missing.")
    assert set(Listing.objects.filter(gone_at=None).values_list("last_seen", flat=True)) == {
        NOON + timedelta(hours=1)
    }
    back = synced(source, file, FIVE, hours=3)
    assert numbers(back) == (0, 2, 3, 3, 0)


def test_prices_lost_are_counted_beside_the_skipped_ones(source: Source, file: Path) -> None:
    synced(source, file, FIVE)
    without = [one.replace(f",{20 + at}.00,", ",,") for at, one in enumerate(FIVE)]
    few = synced(source, file, [*without[:2], *FIVE[2:]], hours=1)
    assert few.outcome == "published"
    many = synced(source, file, [*without[:4], FIVE[4]], hours=2)
    assert (many.outcome, many.reason) == ("held", "2 of 3 listings lost their price.")


def test_a_rival_of_a_row_that_could_be_skipped_is_seen(source: Source, file: Path) -> None:
    synced(source, file, FIVE)
    run = synced(source, file, [*FIVE, row("m0", "99.00")], hours=1)
    assert (run.counts["quarantined"], run.counts["skipped"]) == ({"duplicate_key": 2}, 4)
    assert Listing.objects.get(sku="m0").gone_at is None


def test_a_row_printed_twice_is_not_skipped(source: Source, file: Path) -> None:
    synced(source, file, FIVE)
    run = synced(source, file, [*FIVE, FIVE[0]], hours=1)
    assert (run.counts["skipped"], run.counts["quarantined"]) == (4, {"duplicate_key": 2})


def test_a_price_that_was_not_believed_is_read_again_each_time(source: Source, file: Path) -> None:
    synced(source, file, FIVE)
    jumped = moved(FIVE, 0, "20.00", "900.00")
    for hours in (1, 2):
        run = synced(source, file, [*jumped, *([""] * hours)], hours=hours)
        assert (run.counts["skipped"], run.counts["quarantined"]) == (4, {"price_jumped": 1})
    assert numbers(synced(source, file, FIVE, hours=3)) == (0, 0, 5, 5, 0)


def test_a_new_alias_reads_every_row_again(source: Source, file: Path) -> None:
    rows = [*FIVE, row("z", "9.00", name="Zephyr 9")]
    synced(source, file, rows)
    GpuAlias.objects.create(spelling="Zephyr 9", model="L4")
    run = synced(source, file, [*rows, ""], hours=1)
    # A known card has a size of its own, which belongs to the identity.
    assert numbers(run) == (1, 0, 5, 0, 1)
    assert Listing.objects.get(sku="z", gone_at=None).gpu_model == "L4"
    assert numbers(synced(source, file, rows, hours=2))[3] == 6


def test_other_code_reads_every_row_again(
    source: Source, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced(source, file, FIVE)
    monkeypatch.setattr(readers, "code_version", lambda: "another")
    assert numbers(synced(source, file, [*FIVE, ""], hours=1)) == (0, 0, 5, 0, 0)
    assert numbers(synced(source, file, FIVE, hours=2)) == (0, 0, 5, 5, 0)


def test_the_version_of_the_code_is_of_its_bytes() -> None:
    assert readers.code_version() == readers.code_version()
    assert len(readers.code_version()) == 64


def test_a_locked_row_is_worked_out_each_time_so_that_its_lock_can_end(
    source: Source, file: Path
) -> None:
    synced(source, file, FIVE)
    listing = Listing.objects.get(sku="m0")
    plain = listing.configuration
    listing.corrections = {"gpu_count": {"value": 4, "grade": "declared", "until": "2026-11-30"}}
    sync.refresh(listing, "corrections")
    assert Listing.objects.get(sku="m0").configuration != plain
    listing.corrections["gpu_count"]["until"] = "2020-01-01"
    Listing.objects.filter(pk=listing.pk).update(corrections=listing.corrections)
    assert numbers(synced(source, file, [*FIVE, ""], hours=1))[3] == 4
    assert Listing.objects.get(sku="m0").configuration == plain


def test_accepting_reads_every_row(source: Source, file: Path) -> None:
    synced(source, file, FIVE)
    synced(source, file, FIVE[:1], hours=1)
    run = sync.reparse(source.pk, accept=True, now=NOON + timedelta(hours=2))
    assert run is not None
    assert numbers(run) == (0, 0, 1, 0, 4)


AMBIGUOUS = row("a", "12.00", name="A100", count=2, times=1)


def test_a_file_that_writes_memory_otherwise_now_is_read_anew(source: Source, file: Path) -> None:
    """2 x A100 with 80 GiB is 80 each or 40 each: the rows without doubt decide."""
    synced(source, file, [*FIVE, AMBIGUOUS])
    assert Listing.objects.get(sku="a").vram_bytes_per_gpu == 80 * GB
    totals = [row(f"m{number}", f"{20 + number}.00", times=8) for number in range(5)]
    run = synced(source, file, [*totals, AMBIGUOUS], hours=1)
    assert run.counts["skipped"] == 0
    current = Listing.objects.get(sku="a", gone_at=None)
    assert current.vram_bytes_per_gpu == 40 * GB


def test_rows_that_were_skipped_still_vote_on_how_the_file_writes(
    source: Source, file: Path
) -> None:
    synced(source, file, FIVE)
    synced(source, file, [*FIVE, AMBIGUOUS], hours=1)
    assert Listing.objects.get(sku="a").vram_bytes_per_gpu == 80 * GB


def test_any_change_of_a_cell_or_of_the_head_is_another_row() -> None:
    head, cells = ["a", "b"], ["1", "2"]
    digests = {
        digest_of("", head, cells),
        digest_of("x", head, cells),
        digest_of("", ["b", "a"], cells),
        digest_of("", head, ["2", "1"]),
        digest_of("", head, ["1", "2 "]),
        digest_of("", head, ["12", ""]),
        digest_of("", ["a", "b", "1"], ["2"]),
        digest_of("", head, ["1\x1f2", ""]),
    }
    assert len(digests) == 8


def test_a_long_feed_comes_in_parts() -> None:
    rows = [row(f"m{number}", "20.00") for number in range(2 * ROWS + 7)]
    page = Page("http://shop.example/vms.csv", "\n".join([HEAD, *rows]).encode())
    sizes = [len(part.entries) for part in read_parts(SkyPilotAdapter(), [page], Known())]
    assert sizes == [ROWS, ROWS, 7]


def test_hardware_that_is_worked_out_once_is_the_same_as_worked_out_alone(
    source: Source, file: Path
) -> None:
    kinds = [
        row("one", "1.00", name="L40S", count=1),
        row("share", "0.50", name="L40S", count=0.5),
        row("odd", "1.00", name="Zephyr 9", count=2),
        row("ambiguous", "12.00", name="A100", count=2),
    ]
    synced(source, file, [*FIVE, *kinds])
    listings = list(Listing.objects.all())
    assert len(listings) >= 7
    for listing in listings:
        assert configuration(listing, plain=True) == configuration_of(listing)


def test_a_table_without_rows_writes_nothing(db: None) -> None:
    assert Table(Listing, ("sku",), ("sku",), ("sku",)).write([]) == []
