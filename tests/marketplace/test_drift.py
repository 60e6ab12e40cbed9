"""Two stored versions of one feed after one another: the report names what really changed."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from marketplace import sources, sync
from marketplace.catalog.registry import definitions_for_folder
from marketplace.models import Listing, Price, Source, SyncRun

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
pytestmark = [pytest.mark.shared, pytest.mark.django_db]


def rows(file: Path) -> dict[tuple[str, str], dict[str, str]]:
    """GPU rows of a file by type and place, as they stand there."""
    with file.open(encoding="utf-8-sig", newline="") as text:
        return {
            (row["InstanceType"], row["Region"]): row
            for row in csv.DictReader(text)
            if row["AcceleratorName"]
        }


def one_after_another(older: Path, newer: Path) -> tuple[Source, SyncRun]:
    """The newer file read after the older one, accepted by a person where it was held."""
    (definition,) = definitions_for_folder("skypilot", newer)
    source = sources.keep_source(definition)
    sync.sync_file(source.pk, older, now=NOON)
    run = sync.sync_file(source.pk, newer, now=NOON + timedelta(days=1))
    assert run is not None
    if run.outcome == "held":
        run = sync.reparse(source.pk, accept=True, now=NOON + timedelta(days=2))
    assert run is not None
    return source, run


def versions(shared: Path, provider: str) -> tuple[Path, Path]:
    """The named older version and the one without a name."""
    folder = shared / "data" / "skypilot"
    (older,) = folder.glob(f"{provider}.*.csv")
    return older, folder / f"{provider}.csv"


def names(keys: set[tuple[str, str]]) -> set[str]:
    return {f"{sku} ({region})" for sku, region in keys}


@pytest.mark.parametrize("provider", ["verda", "lium"])
def test_the_report_names_rows_that_are_new_gone_and_changed(shared: Path, provider: str) -> None:
    older, newer = versions(shared, provider)
    before, after = rows(older), rows(newer)
    _, run = one_after_another(older, newer)
    assert set(run.drift["new"]) >= names(set(after) - set(before))
    assert set(run.drift["gone"]) >= names(set(before) - set(after))
    both = set(before) & set(after)
    other = {key for key in both if before[key]["Price"] != after[key]["Price"]}
    moved = set(run.drift["changed"]) | set(run.drift["new"])
    quarantined = {f"{row.sku} ({row.region})" for row in run.quarantined.all()}
    assert names(other) <= moved | quarantined
    repriced = set(run.drift["repriced"])
    assert names(other) - set(run.drift["new"]) - quarantined <= repriced
    spot = {key for key in both if before[key]["SpotPrice"] != after[key]["SpotPrice"]}
    assert repriced <= names(other | spot)


@pytest.mark.parametrize("provider", ["verda", "lium"])
def test_counts_add_up_to_the_rows_of_the_newer_file(shared: Path, provider: str) -> None:
    older, newer = versions(shared, provider)
    source, run = one_after_another(older, newer)
    counts = run.counts
    kept = counts["new"] + counts["changed"] + counts["unchanged"]
    assert kept == counts["listings"]
    assert kept + sum(counts["quarantined"].values()) == len(rows(newer))
    assert Listing.objects.filter(source=source, gone_at=None).count() == kept


def test_a_repriced_type_keeps_both_prices_with_their_times(shared: Path) -> None:
    older, newer = versions(shared, "lium")
    before, after = rows(older), rows(newer)
    source, _ = one_after_another(older, newer)
    sku, region = next(
        key
        for key in before.keys() & after.keys()
        if before[key]["Price"] != after[key]["Price"]
        and Listing.objects.filter(source=source, sku=key[0], region=key[1], gone_at=None).exists()
    )
    prices = Price.objects.filter(
        listing__source=source, listing__sku=sku, listing__region=region, purchase="on_demand"
    )
    now = prices.get(superseded_at=None)
    assert now.amount == Decimal(after[sku, region]["Price"])
    assert Decimal(before[sku, region]["Price"]) in {
        price.amount for price in prices.exclude(superseded_at=None)
    }
