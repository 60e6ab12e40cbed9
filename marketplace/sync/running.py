"""One attempt to bring a source up to date. Whatever goes wrong, the last good listings stay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import structlog
from django.db import transaction
from django.utils import timezone

from marketplace.catalog.base import Adapter, Batch, UnreadablePage
from marketplace.catalog.failures import FetchError, RobotsDisallow, RobotsUnreachable
from marketplace.catalog.registry import adapter_for
from marketplace.models import Source, SyncRun
from marketplace.models.catalog import Outcome, RobotsState
from marketplace.sync.claims import Superseded, claim, finish
from marketplace.sync.planning import Sighting, plan
from marketplace.sync.publishing import publish, publish_unchanged
from marketplace.sync.rows import cleaned_finding
from marketplace.sync.visits import Visit, keep, visit_file, visit_site, visit_stored

log = structlog.get_logger(__name__)

Collect = Callable[[Source, Adapter, datetime], Visit]


def sync_source(source_id: int, *, now: datetime | None = None) -> SyncRun | None:
    """Fetch, read and publish one source. None while another worker is at it.

    Safe to run twice: a second run of the same pages moves ages and nothing else.
    """
    return _run(source_id, visit_site, now)


def sync_file(source_id: int, path: Path, *, now: datetime | None = None) -> SyncRun | None:
    """The same road from the bytes on, with a file in place of the network."""
    return _run(source_id, _from_file(path), now)


def reparse(
    source_id: int, *, accept_losses: bool = False, now: datetime | None = None
) -> SyncRun | None:
    """Read again what the newest visit stored, without the network. None: nothing, or busy.

    `accept_losses` is a person's word that listings missing from the pages are really gone.
    """
    visited = SyncRun.objects.filter(source=source_id, snapshots__isnull=False)
    last = visited.order_by("-fence").first()
    return _run(source_id, _from_store(last, accept_losses), now) if last else None


def rehearse(
    source_id: int, path: Path | None = None, *, now: datetime | None = None
) -> SyncRun | None:
    """What a sync would write, with nothing written: the run returned is in no table.

    Raises FetchError or OSError when the pages cannot be had.
    """
    source, collect = Source.objects.get(pk=source_id), _from_file(path) if path else visit_site
    visit = collect(source, adapter_for(source.adapter, source.profile), now or timezone.now())
    with transaction.atomic():
        run = _run(source_id, lambda *_: visit, now)
        transaction.set_rollback(True)
    return run


def _from_file(path: Path) -> Collect:
    return lambda source, _, now: visit_file(source, path, now)


def _from_store(run: SyncRun, accept_losses: bool) -> Collect:
    return lambda *_: replace(visit_stored(run), losses_accepted=accept_losses)


def _run(source_id: int, collect: Collect, now: datetime | None) -> SyncRun | None:
    run = claim(source_id, now or timezone.now())
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
    except Exception as error:
        # A reader that breaks on one page must not stop the others. Its text may be page text.
        log.exception("sync_broke", source=source_id, run=run.pk)
        return finish(run, Outcome.FAILED, f"The sync broke: {type(error).__name__}.")


def _carry_out(run: SyncRun, collect: Collect) -> SyncRun:
    source = run.source
    adapter = adapter_for(source.adapter, source.profile)
    visit = _visit(source, adapter, collect, run.started_at)
    snapshots = keep(run, visit)
    if not visit.changed:
        return publish_unchanged(run, visit.seen_at)
    sighting = Sighting(_read(adapter, visit), snapshots, visit.seen_at, visit.losses_accepted)
    return publish(run, plan(source, sighting), sighting)


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


def _read(adapter: Adapter, visit: Visit) -> Batch:
    """The place where a child process with limits on time and memory can stand."""
    batch = adapter.read(visit.pages)
    return replace(batch, complete=batch.complete and visit.complete)


def _reason(failure: Exception) -> str:
    # A system error's text names paths of this machine; only its kind is for everyone's eyes.
    return str(failure) if isinstance(failure, FetchError) else type(failure).__name__
