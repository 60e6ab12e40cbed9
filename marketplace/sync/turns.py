"""Courtesy towards a site, shared by all workers: one request at a time, and rest after trouble."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from random import uniform

from django.db.models import F, Q
from django.utils import timezone

from marketplace.catalog.failures import (
    BadStatus,
    Blocked,
    Challenged,
    FetchError,
    Resting,
    RobotsUnreachable,
    TooSlow,
)
from marketplace.catalog.retries import LONGEST_REST, is_passing, rest_asked
from marketplace.models import Host

IN_FLIGHT = timedelta(seconds=65)
"""Longer than one fetch may take: a worker that dies during one blocks the site no longer."""

PATIENCE = 90.0
"""Seconds to wait for a turn, before the visit is left for its next slot."""

FIRST_REST = timedelta(minutes=5)
FIRST_REST_WHEN_BLOCKED = timedelta(hours=1)


def check_rest(name: str, now: datetime) -> None:
    """Raises Resting while the site is to be left alone."""
    host = Host.objects.filter(name=name, rest_until__gt=now).first()
    if host and host.rest_until:
        until = host.rest_until.strftime("%Y-%m-%d %H:%M UTC")
        raise Resting(f"{name} is left alone until {until}: {host.reason}")


@contextmanager
def turn(name: str, pause_seconds: float, patience: float = PATIENCE) -> Iterator[None]:
    """Waits until nobody else asks this site, and keeps the pause after its own request.

    Raises Resting when no turn comes within `patience` seconds.
    """
    mine = _take(name, time.monotonic() + patience)
    try:
        yield
    finally:
        after = timezone.now() + timedelta(seconds=pause_seconds)
        Host.objects.filter(name=name, next_at=mine).update(next_at=after)


def _take(name: str, ends: float) -> datetime:
    Host.objects.get_or_create(name=name)
    while True:
        now = timezone.now()
        free = Q(next_at__isnull=True) | Q(next_at__lte=now)
        if Host.objects.filter(free, name=name).update(next_at=now + IN_FLIGHT):
            return now + IN_FLIGHT
        if time.monotonic() > ends:
            raise Resting(f"{name} is being asked by another visit")
        time.sleep(0.1)


def note_success(name: str) -> None:
    troubled = Host.objects.filter(name=name).exclude(failures=0, rest_until=None)
    troubled.update(failures=0, rest_until=None, reason="")


def note_failure(name: str, error: FetchError, now: datetime) -> None:
    """Leave the site alone for as long as it asked, or longer after each failure in a row.

    What is wrong with one address, such as 404, is no reason to leave its site alone.
    """
    host, _ = Host.objects.get_or_create(name=name)
    seconds = _rest(error, host.failures, now)
    if seconds is None:
        return
    until = now + timedelta(seconds=seconds)
    later = Q(rest_until__isnull=True) | Q(rest_until__lt=until)
    Host.objects.filter(pk=host.pk).update(failures=F("failures") + 1)
    Host.objects.filter(later, pk=host.pk).update(rest_until=until, reason=str(error)[:300])


def _rest(error: FetchError, failures: int, now: datetime) -> float | None:
    if isinstance(error, BadStatus):
        asked = rest_asked(error.retry_after, now)
        if asked is not None:
            return asked
    if isinstance(error, (Blocked, Challenged)):
        return _longer(FIRST_REST_WHEN_BLOCKED, failures)
    if is_passing(error) or isinstance(error, (RobotsUnreachable, TooSlow)):
        return _longer(FIRST_REST, failures)
    return None


def _longer(first: timedelta, failures: int) -> float:
    """Doubled with each failure, at most a day, and jittered so that sources do not return as
    one."""
    whole: float = min(first.total_seconds() * 2 ** min(failures, 12), LONGEST_REST)
    return whole * uniform(0.8, 1.0)  # noqa: S311  no secret is drawn
