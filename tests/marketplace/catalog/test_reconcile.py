"""What a batch means for the listings known before."""

from __future__ import annotations

import pytest

from evaluator.findings import Code, finding
from marketplace.catalog.base import Batch, Entry, Quarantined
from marketplace.catalog.reconcile import SyncStatus, identified, reconcile

KNOWN = ("a", "b", "c", "d")


def batch_of(*skus: str, complete: bool = True, doubted: tuple[str, ...] = ()) -> Batch:
    reason = finding(Code.VRAM_IMPOSSIBLE, words="600 GB", gpu_model="H100")
    return Batch(
        entries=tuple(Entry(sku) for sku in skus),
        quarantined=tuple(Quarantined(sku, reason) for sku in doubted),
        complete=complete,
    )


def test_a_listing_that_is_gone_from_a_whole_page_is_delisted() -> None:
    result = reconcile(KNOWN, batch_of("a", "b", "c"))
    assert (result.delisted, result.unchanged, result.status) == (("d",), (), SyncStatus.OK)


def test_nothing_is_delisted_by_a_page_that_was_not_proved_whole() -> None:
    result = reconcile(KNOWN, batch_of("a", "b", "c", complete=False))
    assert (result.delisted, result.unchanged, result.status) == ((), ("d",), SyncStatus.PARTIAL)


@pytest.mark.parametrize("left", [("a", "b"), ("a",)])
def test_half_a_catalog_does_not_vanish_in_one_run(left: tuple[str, ...]) -> None:
    result = reconcile(KNOWN, batch_of(*left))
    assert (result.delisted, result.held, result.status) == ((), True, SyncStatus.PARTIAL)


def test_a_failed_reading_changes_nothing() -> None:
    result = reconcile(KNOWN, None)
    assert (result.upserts, result.delisted, result.unchanged) == ({}, (), KNOWN)
    assert result.status is SyncStatus.FAILED


def test_a_doubted_row_is_still_there() -> None:
    result = reconcile(KNOWN, batch_of("a", "b", "c", doubted=("d",)))
    assert (result.delisted, result.unchanged, result.status) == ((), ("d",), SyncStatus.PARTIAL)


def test_a_new_listing_is_added() -> None:
    assert set(reconcile(KNOWN, batch_of(*KNOWN, "e")).upserts) == {*KNOWN, "e"}


def test_the_region_belongs_to_the_id_where_one_sku_stands_in_several() -> None:
    entries = [Entry("x", "eu"), Entry("x", "us"), Entry("y", "eu")]
    assert set(identified(entries, ())) == {"x@eu", "x@us", "y"}


def test_a_known_composed_id_stays_composed() -> None:
    assert set(identified([Entry("x", "eu")], ["x@eu"])) == {"x@eu"}
