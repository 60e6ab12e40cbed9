"""One attempt to bring a source up to date. Whatever goes wrong, the last good listings stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import structlog
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from marketplace.catalog.base import NOTHING_READ, Adapter, UnreadablePage
from marketplace.catalog.failures import FetchError, RobotsDisallow, RobotsUnreachable
from marketplace.models import Snapshot, Source, SyncRun
from marketplace.models.catalog import Outcome, RobotsState
from marketplace.readers import reader_of, salt_of
from marketplace.sync.claims import Superseded, claim, finish
from marketplace.sync.planning import Sighting, plan
from marketplace.sync.publishing import publish, publish_unchanged
from marketplace.sync.reading import ReaderBroke, ReaderDied, parts_apart
from marketplace.sync.rows import cleaned_finding
from marketplace.sync.sketch import Sketch
from marketplace.sync.standing import Standing
from marketplace.sync.visits import (
    Visit,
    keep,
    keep_instead,
    visit_file,
    visit_site,
    visit_stored,
)

log = structlog.get_logger(__name__)

ATTEMPTS = 3
"""Readings that pages may end, by a crash or a limit, before nobody tries again."""


class DeadlyPages(Exception):
    """Pages that ended their reader too often."""


Collect = Callable[[Source, Adapter, datetime], Visit]


def sync_source(
    source_id: int, *, scheduled: bool = False, now: datetime | None = None
) -> SyncRun | None:
    """Fetch, read and publish one source. None while another worker is at it.

    Safe to run twice: a second run of the same pages moves ages and nothing else. A scheduled one
    is also None when its slot had its run.
    """
    return _run(source_id, visit_site, now, scheduled=scheduled)


def sync_file(source_id: int, path: Path, *, now: datetime | None = None) -> SyncRun | None:
    """The same road from the bytes on, with a file in place of the network."""
    return _run(source_id, _from_file(path), now)


def reparse(source_id: int, *, accept: bool = False, now: datetime | None = None) -> SyncRun | None:
    """Read again what the newest visit stored, without the network. None: nothing, or busy.

    `accept` is a person's word that what held the pages back is right after all.
    """
    last = _last_visit(source_id)
    if last is None:
        return None
    last.snapshots.update(attempts=0)
    return _run(source_id, _from_store(last, accept), now)


def reject(source_id: int, *, now: datetime | None = None) -> SyncRun | None:
    """Note a person's word that the held pages are wrong: these bodies are not asked about again.

    None where the newest visit was not held.
    """
    last = _last_visit(source_id)
    if last is None or last.outcome != Outcome.HELD:
        return None
    SyncRun.objects.filter(pk=last.pk).update(rejected_at=now or timezone.now())
    last.refresh_from_db()
    return last


def _last_visit(source_id: int) -> SyncRun | None:
    visited = SyncRun.objects.filter(source=source_id, snapshots__isnull=False)
    return visited.order_by("-fence").first()


def rehearse(
    source_id: int, path: Path | None = None, *, now: datetime | None = None
) -> SyncRun | None:
    """What a sync would write, with nothing written: the run returned is in no table.

    Raises FetchError or OSError when the pages cannot be had.
    """
    source, collect = Source.objects.get(pk=source_id), _from_file(path) if path else visit_site
    return _rehearse(source_id, collect(source, reader_of(source), now or timezone.now()), now)


def rehearse_stored(source_id: int, *, now: datetime | None = None) -> SyncRun | None:
    """The same with the pages of the newest visit, as `reparse` would read them."""
    last = _last_visit(source_id)
    return _rehearse(source_id, visit_stored(last), now) if last else None


def _rehearse(source_id: int, visit: Visit, now: datetime | None) -> SyncRun | None:
    with transaction.atomic():
        run = _run(source_id, lambda *_: visit, now)
        transaction.set_rollback(True)
    return run


def _from_file(path: Path) -> Collect:
    return lambda source, _, now: visit_file(source, path, now)


def _from_store(run: SyncRun, accept: bool) -> Collect:
    return lambda *_: replace(visit_stored(run), accepted=accept)


def _run(
    source_id: int, collect: Collect, now: datetime | None, *, scheduled: bool = False
) -> SyncRun | None:
    run = claim(source_id, now or timezone.now(), scheduled=scheduled)
    if run is None:
        return None
    try:
        return _carry_out(run, collect)
    except Superseded as late:
        return finish(run, Outcome.ABANDONED, str(late))
    except UnreadablePage as nothing:
        found = [cleaned_finding(nothing.finding)]
        return finish(run, Outcome.FAILED, str(nothing), findings=found)
    except (FetchError, OSError) as failure:
        return finish(run, Outcome.FAILED, _reason(failure))
    except (ReaderDied, DeadlyPages) as ended:
        return finish(run, Outcome.FAILED, str(ended))
    except ReaderBroke as broken:
        return finish(run, Outcome.FAILED, f"The sync broke: {broken}.")
    except Exception as error:
        # What breaks on one source must not stop the others. Its text may be page text.
        log.exception("sync_broke", source=source_id, run=run.pk)
        return finish(run, Outcome.FAILED, f"The sync broke: {type(error).__name__}.")


def _carry_out(run: SyncRun, collect: Collect) -> SyncRun:
    source = run.source
    visit = _visit(source, reader_of(source), collect, run.started_at)
    snapshots = keep(run, visit)
    if not visit.changed:
        return publish_unchanged(run, visit.seen_at)
    with closing(_read(source, visit, snapshots)) as sketch:
        if not (visit.asked_site and sketch.overlaps):
            return _conclude(run, visit, sketch)
    again = _visit(source, reader_of(source), collect, run.started_at)
    moving = "The catalog changed between its pages." if _differ(visit, again) else ""
    with closing(_read(source, again, keep_instead(run, again))) as sketch:
        return _conclude(run, again, sketch, moving if sketch.overlaps else "")


def _conclude(run: SyncRun, visit: Visit, sketch: Sketch, moving: str = "") -> SyncRun:
    sighting = Sighting(
        snapshots=tuple(sketch.snapshots),
        seen_at=visit.seen_at,
        complete=sketch.complete and visit.complete,
        doubt=_doubt(visit, sketch) or moving,
        accepted=visit.accepted,
    )
    return publish(run, plan(run.source, sketch, sighting), sighting)


def _doubt(visit: Visit, sketch: Sketch) -> str:
    if not visit.complete:
        return "The list of pages was not read to its end."
    return visit.older or sketch.doubt or (sketch.hold.sentence if sketch.hold else "")


def _differ(one: Visit, other: Visit) -> bool:
    """A site that repeats a row on every page is no site that changes meanwhile."""
    return [page.body for page in one.pages] != [page.body for page in other.pages]


def _visit(source: Source, adapter: Adapter, collect: Collect, now: datetime) -> Visit:
    """The pages, with the state of robots.txt noted whichever way it went."""
    try:
        visit = collect(source, adapter, now)
    except RobotsDisallow:
        _note_robots(source, RobotsState.DISALLOWED)
        raise
    except RobotsUnreachable:
        _note_robots(source, RobotsState.UNREACHABLE)
        raise
    if visit.asked_site:
        _note_robots(source, RobotsState.ALLOWED)
    return visit


def _note_robots(source: Source, state: RobotsState) -> None:
    Source.objects.filter(pk=source.pk).exclude(robots=state).update(robots=state.value)


def _read(source: Source, visit: Visit, snapshots: Sequence[Snapshot]) -> Sketch:
    """The pages beside what stands. A person's word is heard on rows that nobody reads again too,
    so nothing is skipped where it was given."""
    standing = Standing(source)
    sketch = Sketch(source, snapshots, visit.seen_at, visit.accepted, standing)
    known = NOTHING_READ if visit.accepted else standing.known(salt_of(source))
    try:
        with _counted(snapshots):
            for reading in parts_apart(reader_of(source), visit.pages, known):
                sketch.take(reading)
    except BaseException:
        sketch.close()
        raise
    return sketch


@contextmanager
def _counted(snapshots: Sequence[Snapshot]) -> Iterator[None]:
    """Counted before it begins: whatever ends this process too is noticed at the next attempt."""
    rows = Snapshot.objects.filter(pk__in=[one.pk for one in snapshots])
    if rows.filter(attempts__gte=ATTEMPTS).exists():
        raise DeadlyPages(
            f"These pages ended their reader {ATTEMPTS} times; they wait for a person to read them"
            " again."
        )
    rows.update(attempts=F("attempts") + 1)
    try:
        yield
    except ReaderDied:
        raise
    except Exception:
        rows.update(attempts=0)
        raise
    rows.update(attempts=0)


def _reason(failure: Exception) -> str:
    # A system error's text names paths of this machine; only its kind is for everyone's eyes.
    return str(failure) if isinstance(failure, FetchError) else type(failure).__name__
