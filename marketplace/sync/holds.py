"""Reasons to keep what stands, though pages were read: for people to read, and to overrule."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from marketplace.catalog.layouts import Columns, moved, renamed
from marketplace.models import Snapshot, Source, SyncRun
from marketplace.models.catalog import Outcome

AGREEING_APART = timedelta(minutes=30)
"""Two visits that agree on a loss are two looks at the site only when this much time lies between
them."""

LAYOUTS_REMEMBERED = 200
GOOD = (Outcome.PUBLISHED.value, Outcome.UNCHANGED.value)


def layout_hold(source: Source, columns: Sequence[Columns]) -> str:
    """Columns or fields that nobody has seen in place of known ones; "" when there are none.

    A layout that was published once stays known, so two that take turns are both recognised.
    """
    good = source.runs.filter(outcome__in=GOOD).exclude(layout=[]).order_by("-fence")
    layouts = list(good.values_list("layout", flat=True)[:LAYOUTS_REMEMBERED])
    if not layouts:
        return ""
    known = frozenset(tuple(one) for layout in layouts for one in layout)
    before = [tuple(one) for one in layouts[0]]
    if strange := moved(before, columns, known):
        return f"The columns changed; now they are: {', '.join(strange)}."
    other = renamed(before, columns, known)
    return f"The fields changed: {other}." if other else ""


def rejected_hold(source: Source, snapshots: Sequence[Snapshot]) -> str:
    """Bodies that a curator refused stay refused; "" when these are others."""
    rejected = source.runs.exclude(rejected_at=None).order_by("-fence")[:LAYOUTS_REMEMBERED]
    wanted = {snapshot.pk for snapshot in snapshots}
    for run in rejected.prefetch_related("snapshots"):
        if {snapshot.pk for snapshot in run.snapshots.all()} == wanted:
            return f"A curator rejected these pages on {run.rejected_at:%Y-%m-%d}."
    return ""


def digest_of(absent: Iterable[object]) -> str:
    """Equal for the same losses."""
    return hashlib.sha256(repr(sorted(map(repr, absent))).encode()).hexdigest()


def is_confirmed(source: Source, losses: str, now: datetime) -> bool:
    """Whether the visit before was held for the very same losses, and long enough ago."""
    visited = source.runs.exclude(outcome=Outcome.RUNNING.value).order_by("-fence")
    last: SyncRun | None = visited.first()
    return (
        last is not None
        and last.outcome == Outcome.HELD.value
        and last.rejected_at is None
        and last.counts.get("losses") == losses
        and now - last.started_at >= AGREEING_APART
    )


def too_few_prices(known: int, lost: int) -> str:
    """A catalog does not take down half of its prices at once; a renamed key does."""
    if known and lost * 2 >= known and lost > 1:
        return f"{lost} of {known} listings lost their price."
    return ""
