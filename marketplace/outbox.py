"""Messages that wait in the database until the broker takes them. They hold ids only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet

from marketplace.models import Outbox

Send = Callable[[str, Sequence[int], int], None]
"""Hands a task name, its ids and the number of its message to the broker. Raises whatever the
broker raises."""

LOST_AFTER = timedelta(minutes=15)
"""Longer than a message is invisible and its task may run: a broker that has not had it done by
then has lost it, say because it was started anew and empty."""

MOST_SENDINGS = 5

KEPT = timedelta(days=7)
"""How long a published message stays, to answer whether it was sent."""


class UnknownTask(LookupError):
    """A message for a task that this version does not have, say after a roll-back."""


def enqueue(task: str, *ids: int) -> Outbox:
    """Leave a message in the caller's transaction: it is sent if, and only if, that commits."""
    return Outbox.objects.create(task=task, arguments=list(ids))


def publish(send: Send, now: datetime, limit: int = 100) -> int:
    """Send what waits, oldest first; return how many were sent.

    A message is marked after the broker took it, so a crash in between sends it twice, never not
    at all. A broker that fails ends the round: the rest keeps its order and waits.
    """
    sent = 0
    for message in _due(now).order_by("id")[:limit]:
        try:
            send(message.task, message.arguments, message.pk)
        except UnknownTask as error:
            _count_attempt(message, error)
        except Exception as error:
            _count_attempt(message, error)
            break
        else:
            sent += Outbox.objects.filter(pk=message.pk).update(
                published_at=now, attempts=F("attempts") + 1, last_error=""
            )
    if sent:
        Outbox.objects.filter(published_at__lt=now - KEPT).delete()
    return sent


def _due(now: datetime) -> QuerySet[Outbox]:
    """What was never sent, and what was sent and is lost. Tasks are safe to run twice."""
    lost = Q(published_at__lt=now - LOST_AFTER, handled_at=None, attempts__lt=MOST_SENDINGS)
    return Outbox.objects.filter(Q(published_at__isnull=True) | lost)


def note_handled(message: int, now: datetime) -> None:
    Outbox.objects.filter(pk=message, handled_at=None).update(handled_at=now)


def _count_attempt(message: Outbox, error: Exception) -> None:
    # The text of a broker's error can hold its address with the password: only its kind is kept.
    Outbox.objects.filter(pk=message.pk).update(
        attempts=F("attempts") + 1, last_error=type(error).__name__
    )
