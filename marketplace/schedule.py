"""When each source is due: one periodic task per source, and one that empties the outbox."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta

from django.db import transaction
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from marketplace.models import Source

OUTBOX_SECONDS = 3

KNOCKS = 6
"""Times that a source is knocked at in each of its intervals. The first one in a slot visits it,
the others find the slot taken: so a slot whose worker died is done again within its interval, and
after a standstill each source catches up once."""


EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""Slots are counted from here, so that two schedulers with one clock name the same slot."""


def slot_of(source: Source, now: datetime) -> datetime:
    """Start of the interval that `now` lies in. Each source has its own offset within it, by its
    key, so that sources of one interval do not all start together."""
    every = timedelta(minutes=source.interval_minutes)
    offset = int.from_bytes(hashlib.sha256(source.key.encode()).digest()[:8], "big")
    start = EPOCH + timedelta(seconds=offset % int(every.total_seconds()))
    return start + (now - start) // every * every


def keep_in_step(source: Source) -> PeriodicTask:
    """Make or mend the periodic task of one source; one that is off is kept, disabled."""
    seconds = max(30, source.interval_minutes * 60 // KNOCKS)
    every, _ = IntervalSchedule.objects.get_or_create(
        every=seconds, period=IntervalSchedule.SECONDS
    )
    return _put(
        _name(source.pk),
        task="visit_source",
        description=source.key,
        interval=every,
        args=json.dumps([source.pk]),
        enabled=source.enabled and bool(source.url),
        # The next knock does what a late one would have done.
        expire_seconds=seconds,
    )


def forget(source_id: int) -> None:
    PeriodicTask.objects.filter(name=_name(source_id)).delete()


def keep_outbox_poller() -> PeriodicTask:
    every, _ = IntervalSchedule.objects.get_or_create(
        every=OUTBOX_SECONDS, period=IntervalSchedule.SECONDS
    )
    return _put("publish outbox", task="publish_outbox", interval=every, args="[]", enabled=True)


def keep_schedule() -> None:
    """Bring the whole schedule in step with the sources."""
    with transaction.atomic():
        keep_outbox_poller()
        for source in Source.objects.order_by("key"):
            keep_in_step(source)


def _name(source_id: int) -> str:
    """By key of the row, so that a renamed source keeps its place."""
    return f"sync source {source_id}"


def _put(name: str, **wanted: object) -> PeriodicTask:
    """Saved only where something differs: beat reloads its schedule at every save."""
    task, created = PeriodicTask.objects.get_or_create(name=name, defaults=wanted)
    if not created and any(getattr(task, key) != value for key, value in wanted.items()):
        for key, value in wanted.items():
            setattr(task, key, value)
        task.save()
    return task
