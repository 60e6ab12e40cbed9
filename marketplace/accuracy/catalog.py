"""How well catalog pages are read: every listing, warning and quarantine of saved pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.findings import Code
from marketplace.accuracy.catalog_cases import PageCase, UnreadableCase, case_files, read_case
from marketplace.accuracy.catalog_compare import (
    PAGE_CODES,
    Difference,
    compare_ids,
    compare_row,
    compare_warnings,
    fates,
)
from marketplace.accuracy.summary import Outcome, Summary, summarise
from marketplace.catalog.adapters.page import PageAdapter
from marketplace.catalog.base import Batch, Entry, UnreadablePage
from marketplace.catalog.dates import judge_age
from marketplace.catalog.reconcile import Reconciled, identified, reconcile

KIND = "catalog"


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of a case's pages."""

    batch: Batch
    reconciled: Reconciled
    codes: frozenset[Code]


def score(path: Path) -> Summary:
    """Judges every case of a file or folder. Raises OSError where it cannot be opened."""
    outcomes, unreadable = [], []
    for file in case_files(path):
        try:
            outcomes.append(judge(read_case(file)))
        except UnreadableCase as problem:
            unreadable.append(str(problem))
    return summarise(KIND, outcomes, (), unreadable)


def judge(case: PageCase) -> Outcome:
    """One case: within when no field differs. The reasons name field, expected and read."""
    differences = list(compare(case, read(case)))
    return Outcome(
        id=case.name,
        kind=KIND,
        within=not differences,
        predicted={one.where: one.read for one in differences},
        measured={one.where: one.expected for one in differences},
        why="; ".join(map(str, differences)),
        compared=False,
    )


def read(case: PageCase) -> Reading:
    """The pages through the adapter that every catalog page goes through."""
    adapter = PageAdapter()
    aged = judge_age(adapter.dated(case.pages), case.today)
    extra = [aged.code] if aged else []
    try:
        batch = adapter.read(case.pages)
    except UnreadablePage as failure:
        codes = frozenset({failure.finding.code, *extra}) & PAGE_CODES
        return Reading(Batch(complete=False), reconcile(case.known, None), codes)
    codes = frozenset({*(one.code for one in batch.findings), *extra}) & PAGE_CODES
    return Reading(batch, reconcile(case.known, batch), codes)


def compare(case: PageCase, reading: Reading) -> Iterator[Difference]:
    """Every difference between a reading and what its case expects."""
    expect = case.expect
    rows = {str(row["id"]): row for row in expect.get("listings", ())}
    entries = identified(reading.batch.entries, {*rows, *case.known})
    doubted = _quarantined_ids(reading.batch, rows, case)
    yield from _compare_rows(rows, entries, doubted)
    may_list = {name for name, row in rows.items() if "quarantined" in fates(row)}
    yield from compare_ids(
        "quarantined", (str(row["id"]) for row in expect.get("quarantined", ())), doubted,
        may_add={*case.may_quarantine, *may_list},
        may_lack=_may_be_listed(expect, entries),
    )  # fmt: skip
    wanted_gone = [_id(one) for one in expect.get("delisted", ())]
    yield from compare_ids(
        "delisted", wanted_gone, reading.reconciled.delisted, may_lack=case.may_stay
    )
    if "unchanged" in expect:
        kept = [_id(one) for one in expect["unchanged"]]
        yield from compare_ids(
            "unchanged", kept, reading.reconciled.unchanged, may_add=case.may_stay
        )
    status = reading.reconciled.status.value
    if "sync_status" in expect and status != expect["sync_status"]:
        yield Difference("sync_status", expect["sync_status"], status)
    yield from compare_warnings("page_warnings", expect.get("page_warnings", ()), reading.codes)


def _id(one: Any) -> str:
    return str(one["id"]) if isinstance(one, dict) else str(one)


def _quarantined_ids(batch: Batch, rows: Mapping[str, Any], case: PageCase) -> set[str]:
    """Ids as the case writes them: with the region where it does so."""
    written = {*rows, *case.known, *(_id(one) for one in case.expect.get("quarantined", ()))}
    found = set()
    for row in batch.quarantined:
        composed = f"{row.sku}@{row.region}"
        found.add(composed if composed in written else row.sku)
    return found


def _may_be_listed(expect: Mapping[str, Any], entries: Mapping[str, Entry]) -> set[str]:
    return {
        _id(row)
        for row in expect.get("quarantined", ())
        if isinstance(row, dict) and "listed" in fates(row) and _id(row) in entries
    }


def _compare_rows(
    rows: Mapping[str, Any], entries: Mapping[str, Entry], doubted: set[str]
) -> Iterator[Difference]:
    for name, row in rows.items():
        if name in entries:
            yield from compare_row(row, entries[name])
            continue
        fate = "quarantined" if name in doubted else "absent"
        if fate not in fates(row):
            yield Difference(name, "listed", fate)
    yield from (Difference(name, "absent", "listed") for name in entries if name not in rows)
