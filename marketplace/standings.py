"""How each source stands: what its last run came to, and how old its last success is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, F, FilteredRelation, Q, QuerySet

from evaluator.findings import Finding
from marketplace.catalog.dates import judge_age
from marketplace.models import Listing, QuarantinedRow, Source, SyncRun
from marketplace.models.catalog import Outcome
from marketplace.page_dates import day_of
from marketplace.prepared import Prepared
from marketplace.readers import missing_key
from marketplace.schedule import slot_of

STATES = ("fresh", "ageing", "stale", "hidden", "held", "failed", "never", "off")
IN_TROUBLE = ("stale", "hidden", "held", "failed", "never")


@dataclass(frozen=True, slots=True)
class Strip:
    """What every page says about the catalog behind it."""

    sources: int
    samples: int
    states: tuple[tuple[str, int], ...]
    last_success: datetime | None


@dataclass(frozen=True, slots=True)
class Standing:
    """One source with its state word, its newest run, and what its listings came to.

    `aged` says that its pages date themselves long ago, however fresh the run.
    """

    source: Source
    state: str
    run: SyncRun | None
    listings: int
    quarantined: tuple[tuple[str, int], ...]
    left_out: tuple[tuple[str, int], ...]
    next_due: datetime | None
    aged: Finding | None = None

    @property
    def missing_key(self) -> str:
        """The environment variable without which the source stays off."""
        return missing_key(self.source.adapter)

    @property
    def in_use(self) -> bool:
        """Switched on, or read at least once: its listings may be among those that are ranked."""
        return self.source.enabled or self.run is not None


def newest_runs() -> dict[int, SyncRun]:
    """The newest run of each source by the source's key: the one with its latest fence."""
    runs = SyncRun.objects.filter(fence=F("source__fence")).defer("findings")
    return {run.source_id: run for run in runs}


@dataclass(frozen=True, slots=True)
class Told:
    """What the strip asks of a source: how its newest run ended is None where there was none."""

    enabled: bool
    adapter: str
    bundled: bool
    last_success_at: datetime | None
    outcome: str | None


def state_of(source: Source | Told, outcome: str | None, now: datetime) -> str:
    """One of STATES, by how the newest run ended. A failure is said even while the last good
    listings are young.

    A source whose interface needs a key stays off until the key is set.
    """
    if not source.enabled or missing_key(source.adapter):
        return "off"
    if outcome in (Outcome.FAILED, Outcome.ABANDONED):
        return "failed"
    if outcome == Outcome.HELD:
        return "held"
    if source.last_success_at is None:
        return "never"
    return band_of(now - source.last_success_at)


def band_of(age: timedelta) -> str:
    """fresh, ageing, stale, or hidden: too old to be ranked. Limits stand in the settings."""
    limits = (
        (settings.FRESH_HOURS, "fresh"),
        (settings.AGEING_HOURS, "ageing"),
        (settings.HIDDEN_HOURS, "stale"),
    )
    bands = (band for hours, band in limits if age < timedelta(hours=hours))
    return next(bands, "hidden")


def strip(now: datetime) -> Strip:
    """One query, however many listings there are."""
    found = [Told(*row) for row in _TOLD.rows()]
    states = Counter(state_of(source, source.outcome, now) for source in found)
    successes = [source.last_success_at for source in found if source.last_success_at]
    samples = sum(source.bundled and source.enabled for source in found)
    ordered = tuple((state, states[state]) for state in STATES if states[state])
    return Strip(len(found), samples, ordered, max(successes, default=None))


def _told() -> QuerySet[Source, tuple[Any, ...]]:
    newest = FilteredRelation("runs", condition=Q(runs__fence=F("fence")))
    rows = Source.objects.order_by().annotate(newest=newest)
    return rows.values_list("enabled", "adapter", "bundled", "last_success_at", "newest__outcome")


_TOLD = Prepared(_told)


def standings(now: datetime) -> list[Standing]:
    """Every source as the status page shows it, in four queries."""
    runs, listings = newest_runs(), _listings_by_source()
    quarantined = _quarantined_by_run([run.pk for run in runs.values()])
    found = []
    for source in Source.objects.select_related("provider"):
        run = runs.get(source.pk)
        found.append(
            Standing(
                source=source,
                state=state_of(source, run.outcome if run else None, now),
                run=run,
                listings=listings.get(source.pk, 0),
                quarantined=quarantined.get(run.pk, ()) if run else (),
                left_out=_left_out(run),
                next_due=next_due(source, run.started_at if run else None, now),
                aged=judge_age(day_of(run.counts), now.date()) if run else None,
            )
        )
    return found


def summed(parts: Iterable[tuple[tuple[str, int], ...]]) -> list[tuple[str, int]]:
    """Counts by reason over several sources."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(dict(part))
    return sorted(total.items())


def _listings_by_source() -> dict[int, int]:
    rows = Listing.objects.filter(gone_at=None).order_by().values_list("source")
    return dict(rows.annotate(Count("pk")))


def _quarantined_by_run(runs: list[int]) -> dict[int, tuple[tuple[str, int], ...]]:
    rows = QuarantinedRow.objects.filter(run__in=runs).order_by("reason")
    counted: dict[int, tuple[tuple[str, int], ...]] = {}
    for run, reason, count in rows.values_list("run", "reason").annotate(Count("pk")):
        counted[run] = (*counted.get(run, ()), (reason, count))
    return counted


def _left_out(run: SyncRun | None) -> tuple[tuple[str, int], ...]:
    counts = run.counts.get("left_out", {}) if run else {}
    return tuple(sorted(counts.items())) if isinstance(counts, dict) else ()


def next_due(source: Source, last: datetime | None, now: datetime) -> datetime | None:
    """Start of the slot that has no visit yet: the present one, or the next; None where none is
    planned. `last` is when the newest run started."""
    if last is None or not source.enabled or not source.url:
        return None
    slot = slot_of(source, now)
    return slot if last < slot else slot + timedelta(minutes=source.interval_minutes)
