"""Who may work on a source: a run with a lease, and a fencing number that a late one fails."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from datetime import datetime, timedelta
from os import getpid
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone

from marketplace.models import Source, SyncRun
from marketplace.models.catalog import Outcome
from marketplace.schedule import slot_of
from marketplace.sync.rows import clean

LEASE = timedelta(minutes=6)
"""Longer than a task may run (CELERY_TASK_TIME_LIMIT), so only a dead worker loses its lease."""


class Superseded(Exception):
    """A newer run has claimed the source: this one may no longer publish."""


def claim(source_id: int, now: datetime, *, scheduled: bool = False) -> SyncRun | None:
    """A new run of the source, or None while another one holds its lease.

    A run whose lease has passed is marked abandoned and taken over. A scheduled one is claimed
    with its slot: None where that had its run, whoever asks a second time.
    """
    try:
        with transaction.atomic():
            return _claim(Source.objects.get(pk=source_id), now, scheduled)
    except IntegrityError:
        # Another worker's run was committed between our look and our insert.
        return None


def _claim(source: Source, now: datetime, scheduled: bool) -> SyncRun | None:
    running = source.runs.filter(outcome=Outcome.RUNNING)
    if running.filter(lease_until__gt=now).exists():
        return None
    slot = slot_of(source, now) if scheduled else None
    if slot and not _is_due(source, slot, now):
        return None
    moved = Source.objects.filter(pk=source.pk, fence=source.fence).update(fence=F("fence") + 1)
    if moved != 1:
        return None
    running.update(
        outcome=Outcome.ABANDONED, finished_at=now, reason="Its lease ran out before it ended."
    )
    return SyncRun.objects.create(
        source_id=source.pk,
        fence=source.fence + 1,
        worker=f"{socket.gethostname()}:{getpid()}"[:120],
        started_at=now,
        lease_until=now + LEASE,
        slot=slot,
    )


def _is_due(source: Source, slot: datetime, now: datetime) -> bool:
    """No run of this slot ended yet, and none so lately that only an edited interval makes it due.

    One that still says running is dead: the caller has looked at its lease.
    """
    dead = (Outcome.ABANDONED, Outcome.RUNNING)
    ended = source.runs.filter(slot__isnull=False).exclude(outcome__in=dead)
    recent = now - timedelta(minutes=source.interval_minutes) / 2
    return not ended.filter(Q(slot=slot) | Q(started_at__gt=recent, started_at__lte=now)).exists()


def hold_fence(run: SyncRun) -> None:
    """Raises Superseded unless the run is the newest; else no other can claim before we commit."""
    held = Source.objects.filter(pk=run.source_id, fence=run.fence).update(fence=run.fence)
    if held != 1:
        raise Superseded(f"run {run.fence} was overtaken")


def finish(run: SyncRun, outcome: Outcome, reason: str = "", **columns: Any) -> SyncRun:
    """Write how a run ended. A run that was marked abandoned meanwhile keeps that mark."""
    values: Mapping[str, Any] = {
        "outcome": outcome.value,
        "reason": clean(reason)[:500],
        "finished_at": timezone.now(),
        **columns,
    }
    SyncRun.objects.filter(pk=run.pk, outcome=Outcome.RUNNING).update(**values)
    run.refresh_from_db()
    return run
