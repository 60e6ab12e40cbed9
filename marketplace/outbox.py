"""Messages that wait in the database until the broker takes them. They hold ids only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from django.db.models import F

from marketplace.models import Outbox

Send = Callable[[str, Sequence[int]], None]
"""Hands a task name and its ids to the broker. Raises whatever the broker raises."""

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
    for message in Outbox.objects.filter(published_at__isnull=True).order_by("id")[:limit]:
        try:
            send(message.task, message.arguments)
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


def _count_attempt(message: Outbox, error: Exception) -> None:
    # The text of a broker's error can hold its address with the password: only its kind is kept.
    Outbox.objects.filter(pk=message.pk).update(
        attempts=F("attempts") + 1, last_error=type(error).__name__
    )
