"""One commit that replaces what a source offers: listings, prices, quarantined rows, its age."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from marketplace import outbox
from marketplace.catalog.base import Quarantined
from marketplace.models import Listing, QuarantinedRow, Source, SyncRun
from marketplace.models.catalog import Outcome
from marketplace.sync.claims import finish, hold_fence
from marketplace.sync.derived import DERIVED_COLUMNS
from marketplace.sync.planning import Plan, Sighting
from marketplace.sync.prices import record
from marketplace.sync.rows import CATALOG_COLUMNS, IDENTITY, clean, cleaned_finding, key_of_row

ROWS_PER_STATEMENT = 500
DRIFT_SHOWN = 200
"""Listings named per kind of change in a run's report; its counts are always whole."""


def publish(run: SyncRun, plan: Plan, sighting: Sighting) -> SyncRun:
    """Write the plan in one commit. Raises Superseded when a newer run has the source."""
    with transaction.atomic():
        hold_fence(run)
        if plan.held:
            return _hold(run, plan, sighting)
        _write_listings(run, plan, sighting)
        added, closed = _write_prices(run, plan, sighting)
        _write_quarantined(run, plan.quarantined)
        _refresh_age(run, sighting.seen_at)
        counts = (
            run.counts | _counts(plan, sighting) | {"prices_added": added, "prices_closed": closed}
        )
        changed = _has_changes(counts)
        if changed:
            # Pages only read kept verdicts: without this, each view would judge the new machines.
            outbox.enqueue("evaluate_presets")
        return finish(
            run,
            Outcome.PUBLISHED if changed else Outcome.UNCHANGED,
            counts=counts,
            drift=_drift(plan),
            layout=sighting.columns,
            findings=[cleaned_finding(each) for each in sighting.batch.findings],
        )


def _hold(run: SyncRun, plan: Plan, sighting: Sighting) -> SyncRun:
    """Show what was read and not believed; listings, prices and ages stay."""
    _write_quarantined(run, plan.quarantined)
    return finish(
        run,
        Outcome.HELD,
        plan.held,
        counts=run.counts | _counts(plan, sighting) | _losses(plan),
        drift=_drift(plan),
        findings=[cleaned_finding(each) for each in sighting.batch.findings],
    )


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
        return finish(run, Outcome.UNCHANGED, counts=counts)


def _refresh_age(run: SyncRun, seen_at: datetime) -> None:
    """Forward only: an old file read today is no newer sight of the source."""
    older = Q(last_success_at__isnull=True) | Q(last_success_at__lt=seen_at)
    Source.objects.filter(older, pk=run.source_id).update(last_success_at=seen_at)


def _write_listings(run: SyncRun, plan: Plan, sighting: Sighting) -> None:
    new, changed = plan.rows("new"), plan.rows("changed")
    for row in plan.gone:
        row.gone_at = sighting.seen_at
    _upsert([*new, *changed])
    _touch(plan.rows("unchanged"), sighting)
    Listing.objects.filter(pk__in=[row.pk for row in plan.gone]).update(gone_at=sighting.seen_at)
    _write_history(run, new, update=False)
    _write_history(run, [*changed, *plan.gone], update=True)


def _upsert(rows: list[Listing]) -> None:
    """In key order, so that no two writers wait for each other in a circle."""
    rows.sort(key=key_of_row)
    for row in rows:
        row.pk = None  # the identity finds the row; a key given by us would collide with it
    Listing.objects.bulk_create(
        rows,
        batch_size=ROWS_PER_STATEMENT,
        update_conflicts=True,
        unique_fields=["source", *IDENTITY, "generation"],
        update_fields=[*CATALOG_COLUMNS, *DERIVED_COLUMNS, "seen_in", "last_seen", "gone_at"],
    )


def _touch(rows: Sequence[Listing], sighting: Sighting) -> None:
    by_snapshot: dict[int, list[int]] = {}
    for row in rows:
        by_snapshot.setdefault(row.seen_in_id, []).append(row.pk)
    for snapshot, keys in by_snapshot.items():
        for chunk in _chunks(keys):
            older = Listing.objects.filter(pk__in=chunk, last_seen__lte=sighting.seen_at)
            older.update(last_seen=sighting.seen_at, seen_in=snapshot)


def _write_history(run: SyncRun, rows: Sequence[Listing], *, update: bool) -> None:
    reason = f"sync run {run.fence}"
    Listing.history.bulk_history_create(
        rows, batch_size=ROWS_PER_STATEMENT, update=update, default_change_reason=reason
    )


def _write_prices(run: SyncRun, plan: Plan, sighting: Sighting) -> tuple[int, int]:
    prices = [price for draft in plan.drafts for price in draft.prices]
    for price in prices:
        price.listing_id, price.snapshot_id = price.listing.pk, price.listing.seen_in_id
    settled = {row.pk for row in plan.gone} | {draft.listing.pk for draft in plan.drafts}
    return record(run.source_id, prices, settled, sighting.seen_at)


def _write_quarantined(run: SyncRun, rows: Sequence[Quarantined]) -> None:
    QuarantinedRow.objects.bulk_create(
        [_quarantined_row(run, row) for row in rows], batch_size=ROWS_PER_STATEMENT
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
    changes = Counter(draft.change for draft in plan.drafts)
    reasons = Counter(row.reason.code.value for row in plan.quarantined)
    return {
        "complete": sighting.batch.complete,
        "listings": len(plan.drafts),
        **{change: changes[change] for change in ("new", "changed", "unchanged")},
        "gone": len(plan.gone),
        "quarantined": dict(sorted(reasons.items())),
        "left_out": dict(sorted(sighting.batch.left_out.items())),
    }


def _has_changes(counts: dict[str, Any]) -> bool:
    moved = ("new", "changed", "gone", "prices_added", "prices_closed")
    return any(counts[name] for name in moved)


def _drift(plan: Plan) -> dict[str, list[str]]:
    """Which listings are new, changed and gone, for people to read."""
    rows = {"new": plan.rows("new"), "changed": plan.rows("changed"), "gone": plan.gone}
    return {change: [_named(row) for row in found[:DRIFT_SHOWN]] for change, found in rows.items()}


def _named(listing: Listing) -> str:
    place = "/".join(filter(None, (listing.region, listing.zone)))
    return f"{listing.sku} ({place})" if place else listing.sku


def _chunks(keys: Sequence[int], size: int = 5000) -> Iterator[Sequence[int]]:
    for start in range(0, len(keys), size):
        yield keys[start : start + size]
