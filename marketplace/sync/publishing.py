"""One commit that replaces what a source offers: listings, prices, quarantined rows, its age."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from marketplace import outbox
from marketplace.catalog.base import Quarantined
from marketplace.catalog.dates import judge_age
from marketplace.models import Listing, QuarantinedRow, Source, SyncRun
from marketplace.models.catalog import Outcome
from marketplace.page_dates import last_day, noted
from marketplace.sync.claims import finish, hold_fence
from marketplace.sync.drafts import LISTINGS, Packed, named
from marketplace.sync.history import record_versions
from marketplace.sync.planning import Plan, Sighting
from marketplace.sync.prices import Moved, end_prices, record
from marketplace.sync.rows import clean, cleaned_finding
from marketplace.sync.standing import Line

ROWS_PER_STATEMENT = 500
DRIFT_SHOWN = 200
"""Listings named per kind of change in a run's report; its counts are always whole."""


def publish(run: SyncRun, plan: Plan, sighting: Sighting) -> SyncRun:
    """Write the plan in one commit. Raises Superseded when a newer run has the source."""
    with transaction.atomic():
        hold_fence(run)
        _write_quarantined(run, plan)
        if plan.held:
            return _hold(run, plan, sighting)
        drift, prices = _write_drafts(run, plan, sighting)
        _write_gone(run, plan.gone, sighting.seen_at)
        _refresh_age(run, sighting.seen_at)
        counts = run.counts | _counts(plan, sighting) | prices
        changed = _has_changes(counts)
        if changed:
            # Pages only read kept verdicts: without this, each view would judge the new machines.
            outbox.enqueue("evaluate_presets")
        return finish(
            run,
            Outcome.PUBLISHED if changed else Outcome.UNCHANGED,
            counts=counts,
            drift=drift.as_json(plan.gone),
            layout=plan.sketch.columns,
            findings=_findings(plan, sighting),
        )


def _hold(run: SyncRun, plan: Plan, sighting: Sighting) -> SyncRun:
    """Show what was read and not believed; listings, prices and ages stay."""
    drift = Drift()
    for drafts in plan.sketch.drafts:
        drift.note(dict(enumerate(drafts)), frozenset())
    return finish(
        run,
        Outcome.HELD,
        plan.held,
        counts=run.counts | _counts(plan, sighting) | _losses(plan),
        drift=drift.as_json(plan.gone),
        findings=_findings(plan, sighting),
    )


def _findings(plan: Plan, sighting: Sighting) -> list[dict[str, Any]]:
    """What the pages say besides their rows. Old news is news of its listings still: they stay."""
    aged = judge_age(plan.sketch.dated, sighting.seen_at.date())
    return [cleaned_finding(each) for each in (*plan.sketch.findings, *filter(None, [aged]))]


def _losses(plan: Plan) -> dict[str, str]:
    return {"losses": plan.losses} if plan.losses else {}


def publish_unchanged(run: SyncRun, seen_at: datetime) -> SyncRun:
    """Every page is the one that was published last: only ages move."""
    with transaction.atomic():
        hold_fence(run)
        current = Listing.objects.filter(source=run.source_id, gone_at__isnull=True)
        # What the last good run did not see on these pages is not on them now either.
        seen = current.filter(last_seen=F("source__last_success_at"))
        count = current.filter(pk__in=seen.values("pk")).update(last_seen=seen_at)
        _refresh_age(run, seen_at)
        counts = run.counts | {"listings": count, "unchanged": count}
        dated = last_day(run.source_id)
        aged = judge_age(dated, seen_at.date())
        return finish(
            run,
            Outcome.UNCHANGED,
            counts=counts | noted(dated),
            findings=[cleaned_finding(aged)] if aged else [],
        )


def _refresh_age(run: SyncRun, seen_at: datetime) -> None:
    """Forward only: an old file read today is no newer sight of the source."""
    older = Q(last_success_at__isnull=True) | Q(last_success_at__lt=seen_at)
    Source.objects.filter(older, pk=run.source_id).update(last_success_at=seen_at)


def _write_drafts(run: SyncRun, plan: Plan, sighting: Sighting) -> tuple[Drift, dict[str, int]]:
    """Chunk by chunk, so that no more than one is held: what moved, and counts of prices."""
    drift, prices = Drift(), Counter[str](prices_added=0, prices_closed=0, repriced=0)
    for drafts in plan.sketch.drafts:
        written = _write_listings(run, drafts, sighting)
        moved = _write_prices(written, sighting)
        new = {key for key, draft in written.items() if draft.change == "new"}
        repriced = frozenset(moved.listings - new)
        prices.update(prices_added=moved.added, prices_closed=moved.closed, repriced=len(repriced))
        drift.note(written, repriced)
    _touch_skipped(plan.sketch.skipped, sighting)
    return drift, dict(prices)


def _write_listings(
    run: SyncRun, drafts: Sequence[Packed], sighting: Sighting
) -> dict[int, Packed]:
    """The drafts by the keys of their rows."""
    moved = [draft for draft in drafts if draft.change != "unchanged"]
    written = _upsert(moved)
    unchanged = {draft.key: draft for draft in drafts if draft.change == "unchanged" and draft.key}
    _touch(unchanged, sighting)
    for change, kind in (("new", "+"), ("changed", "~")):
        keys = [key for key, draft in written.items() if draft.change == change]
        record_versions(keys, kind, _reason(run))
    return written | unchanged


def _reason(run: SyncRun) -> str:
    return f"sync run {run.fence}"


def _write_gone(run: SyncRun, gone: Sequence[Line], at: datetime) -> None:
    """Their prices ended with them."""
    for keys in _chunks([line.pk for line in gone]):
        Listing.objects.filter(pk__in=keys).update(gone_at=at)
        end_prices(keys, at)
        record_versions(keys, "~", _reason(run))


def _upsert(drafts: Sequence[Packed]) -> dict[int, Packed]:
    """In the order of their names, so that no two writers wait for each other in a circle."""
    ordered = sorted(drafts, key=lambda draft: draft.name)
    by_name = {draft.name: draft for draft in ordered}
    found = LISTINGS.write([draft.values for draft in ordered])
    return {key: by_name[tuple(name)] for key, *name in found}


def _touch(drafts: Mapping[int, Packed], sighting: Sighting) -> None:
    """Rows that say the same as before: seen once more, and known by their newest digest."""
    by_snapshot: dict[int, list[int]] = {}
    for key, draft in drafts.items():
        by_snapshot.setdefault(draft.snapshot, []).append(key)
    for snapshot, keys in by_snapshot.items():
        _see_again(keys, snapshot, sighting.seen_at)
    marked = [
        Listing(pk=key, row_digest=draft.mark[0], row_hint=draft.mark[1])
        for key, draft in drafts.items()
        if draft.mark[0]
    ]
    Listing.objects.bulk_update(marked, ["row_digest", "row_hint"], batch_size=ROWS_PER_STATEMENT)


def _touch_skipped(lines: Sequence[Line], sighting: Sighting) -> None:
    """A row that was not read again stands on the pages all the same."""
    _see_again([line.pk for line in lines], sighting.snapshots[0].pk, sighting.seen_at)


def _see_again(keys: Sequence[int], snapshot: int, at: datetime) -> None:
    for chunk in _chunks(keys):
        older = Listing.objects.filter(pk__in=chunk, last_seen__lte=at)
        older.update(last_seen=at, seen_in=snapshot)


def _write_prices(drafts: Mapping[int, Packed], sighting: Sighting) -> Moved:
    rates = {key: draft.rates for key, draft in drafts.items()}
    snapshots = {key: draft.snapshot for key, draft in drafts.items()}
    return record(rates, snapshots, sighting.seen_at)


def _write_quarantined(run: SyncRun, plan: Plan) -> None:
    decided = plan.sketch.decisions.carry_over
    QuarantinedRow.objects.bulk_create(
        [decided(_quarantined_row(run, row)) for row in plan.quarantined],
        batch_size=ROWS_PER_STATEMENT,
    )


def _quarantined_row(run: SyncRun, row: Quarantined) -> QuarantinedRow:
    return QuarantinedRow(
        run=run,
        sku=clean(row.sku)[:200],
        region=clean(row.region)[:120],
        zone=clean(row.zone)[:120],
        reason=row.reason.code.value,
        finding=cleaned_finding(row.reason),
        words={clean(name): clean(text) for name, text in row.words.items()},
    )


def _counts(plan: Plan, sighting: Sighting) -> dict[str, Any]:
    changes = plan.sketch.changes
    reasons = Counter(row.reason.code.value for row in plan.quarantined)
    return {
        "complete": sighting.complete,
        "listings": changes.total(),
        **{change: changes[change] for change in ("new", "changed", "unchanged")},
        "skipped": len(plan.sketch.skipped),
        "gone": len(plan.gone),
        "quarantined": dict(sorted(reasons.items())),
        "left_out": dict(sorted(plan.sketch.left_out.items())),
        **noted(plan.sketch.dated),
    }


def _has_changes(counts: dict[str, Any]) -> bool:
    moved = ("new", "changed", "gone", "prices_added", "prices_closed")
    return any(counts[name] for name in moved)


class Drift:
    """Which listings are new, changed, repriced and gone, for people to read; the first of each.

    A listing whose price moved is among the changed ones as well.
    """

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {"new": [], "changed": [], "repriced": []}

    def note(self, drafts: Mapping[int, Packed], repriced: frozenset[int]) -> None:
        for key, draft in drafts.items():
            if draft.change != "unchanged":
                self._names[draft.change].append(str(draft))
            if key in repriced:
                self._names["repriced"].append(str(draft))
        for names in self._names.values():
            del names[DRIFT_SHOWN:]

    def as_json(self, gone: Sequence[Line]) -> dict[str, list[str]]:
        told = [named(line.sku, line.region, line.zone) for line in gone[:DRIFT_SHOWN]]
        return {**self._names, "gone": told}


def _chunks(keys: Sequence[int], size: int = 5000) -> Iterator[Sequence[int]]:
    for start in range(0, len(keys), size):
        yield keys[start : start + size]
