"""What a batch means for the listings known before. Pure: no database, no clock.

Absence delists only when the pages were proved whole and fewer than half of the known listings
are gone (catalog.md, section 1, rule 6).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from evaluator.findings import Code
from marketplace.catalog.base import Batch, Entry

Id = TypeVar("Id")


class SyncStatus(StrEnum):
    """`partial`: some rows or pages were lost, the others stand. `failed`: nothing was read."""

    OK = "ok"
    PARTIAL = "partial"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Ids of each fate. `unchanged` are known listings that keep their values and their age.

    `held` says that too much was gone to believe it.
    """

    upserts: Mapping[str, Entry]
    delisted: tuple[str, ...]
    unchanged: tuple[str, ...]
    status: SyncStatus
    held: bool = False


_LOSSES = frozenset({Code.MALFORMED_STRUCTURED_DATA, Code.PAGE_TRUNCATED, Code.COUNT_MISMATCH})


def reconcile(known: Iterable[str], batch: Batch | None) -> Reconciled:
    """`known` are the ids listed before, `batch` None when no page could be read.

    An id is the SKU, or "sku@region" where the known ids or several regions of one SKU say so.
    """
    before = tuple(dict.fromkeys(known))
    if batch is None:
        return Reconciled({}, (), before, SyncStatus.FAILED)
    upserts = identified(batch.entries, before)
    doubted = {one for row in batch.quarantined for one in (row.sku, f"{row.sku}@{row.region}")}
    absent, held = losses(before, lambda one: one in upserts or one in doubted)
    gone = absent if batch.complete and not held else []
    unchanged = tuple(one for one in before if one not in upserts and one not in gone)
    return Reconciled(upserts, tuple(gone), unchanged, _status(batch, held), held)


def losses(known: Collection[Id], is_there: Callable[[Id], bool]) -> tuple[list[Id], bool]:
    """Those of the known that are absent, and whether they are too many to be believed gone."""
    absent = [one for one in known if not is_there(one)]
    return absent, bool(absent) and len(absent) * 2 >= len(known)


def identified(entries: Iterable[Entry], known: Iterable[str]) -> dict[str, Entry]:
    """Entries by id. The region belongs to it where one SKU stands in several regions."""
    entries, known = list(entries), set(known)
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry.sku] = counts.get(entry.sku, 0) + 1
    return {_id_of(entry, known, counts[entry.sku] > 1): entry for entry in entries}


def _id_of(entry: Entry, known: set[str], several: bool) -> str:
    composed = f"{entry.sku}@{entry.region}" if entry.region else entry.sku
    if composed in known:
        return composed
    return composed if several and entry.sku not in known else entry.sku


def _status(batch: Batch, held: bool) -> SyncStatus:
    lost = batch.quarantined or held or any(one.code in _LOSSES for one in batch.findings)
    return SyncStatus.PARTIAL if lost or not batch.complete else SyncStatus.OK
