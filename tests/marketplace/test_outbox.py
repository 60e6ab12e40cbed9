from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction

from marketplace import outbox, tasks
from marketplace.models import Outbox
from tests.marketplace.installation import Installation

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Broker:
    """Takes messages, or fails as it is told."""

    def __init__(self, *failures: Exception | None) -> None:
        self.failures = list(failures)
        self.taken: list[tuple[str, list[int]]] = []

    def __call__(self, task: str, ids: Sequence[int], message: int) -> None:
        failure = self.failures.pop(0) if self.failures else None
        if failure:
            raise failure
        self.taken.append((task, list(ids)))


@pytest.mark.django_db
def test_waiting_messages_are_sent_in_order_and_once() -> None:
    for number in (1, 2, 3):
        outbox.enqueue("sync_source", number)
    broker = Broker()
    assert outbox.publish(broker, NOON) == 3
    assert outbox.publish(broker, NOON) == 0
    assert broker.taken == [("sync_source", [1]), ("sync_source", [2]), ("sync_source", [3])]


@pytest.mark.django_db
def test_a_message_of_a_transaction_that_failed_is_never_sent() -> None:
    with transaction.atomic():
        outbox.enqueue("sync_source", 1)
        transaction.set_rollback(True)
    assert outbox.publish(Broker(), NOON) == 0


@pytest.mark.django_db
def test_a_dead_broker_loses_nothing_and_keeps_the_order() -> None:
    for number in (1, 2):
        outbox.enqueue("sync_source", number)
    broker = Broker(ConnectionError("redis://:password@host"))
    assert outbox.publish(broker, NOON) == 0
    waiting = Outbox.objects.order_by("id").first()
    assert waiting is not None
    assert (waiting.attempts, waiting.last_error) == (1, "ConnectionError")
    assert outbox.publish(broker, NOON) == 2
    assert [ids for _, ids in broker.taken] == [[1], [2]]


@pytest.mark.django_db
def test_an_unknown_task_is_seen_and_holds_nobody_back() -> None:
    outbox.enqueue("task_of_tomorrow", 1)
    outbox.enqueue("sync_source", 2)
    broker = Broker(outbox.UnknownTask("task_of_tomorrow"))
    assert outbox.publish(broker, NOON) == 1
    left = Outbox.objects.get(published_at=None)
    assert (left.task, left.last_error) == ("task_of_tomorrow", "UnknownTask")


@pytest.mark.django_db
def test_a_message_that_no_worker_handled_is_sent_again_and_a_handled_one_is_not() -> None:
    outbox.enqueue("sync_source", 1)
    done = outbox.enqueue("sync_source", 2)
    broker = Broker()
    outbox.publish(broker, NOON)
    outbox.note_handled(done.pk, NOON)
    assert outbox.publish(broker, NOON + outbox.LOST_AFTER) == 0
    assert outbox.publish(broker, NOON + outbox.LOST_AFTER * 1.1) == 1
    assert [ids for _, ids in broker.taken] == [[1], [2], [1]]


@pytest.mark.django_db
def test_a_message_that_ends_each_worker_is_not_sent_for_ever() -> None:
    outbox.enqueue("sync_source", 1)
    broker = Broker()
    for number in range(9):
        outbox.publish(broker, NOON + number * outbox.LOST_AFTER * 1.1)
    assert len(broker.taken) == outbox.MOST_SENDINGS


@pytest.mark.django_db
def test_published_messages_are_forgotten_after_a_week() -> None:
    done = outbox.enqueue("sync_source", 1)
    outbox.publish(Broker(), NOON)
    outbox.note_handled(done.pk, NOON)
    outbox.enqueue("sync_source", 2)
    outbox.publish(Broker(), NOON + timedelta(days=8))
    assert [row.arguments for row in Outbox.objects.all()] == [[2]]


def test_every_task_goes_by_its_short_name() -> None:
    names = {name for name in tasks.app.tasks if not name.startswith("celery.")}
    assert names == {
        "sync_source",
        "visit_source",
        "reparse_source",
        "accept_held",
        "reject_held",
        "evaluate_presets",
        "evaluate_workload",
        "publish_outbox",
    }


@pytest.mark.fault("F48")
def test_a_task_that_does_not_exist_is_refused() -> None:
    with pytest.raises(outbox.UnknownTask):
        tasks.send("task_of_tomorrow", [1], 1)


@pytest.fixture
def frozen_broker() -> Iterator[str]:
    """Accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"


PUBLISH = """
import time
from django.utils import timezone
from marketplace import outbox, tasks
from marketplace.models import Outbox
outbox.enqueue("sync_source", 1)
outbox.enqueue("sync_source", 2)
started = time.monotonic()
sent = outbox.publish(tasks.send, timezone.now())
show(sent=sent, attempts=[row.attempts for row in Outbox.objects.order_by("id")],
     seconds=time.monotonic() - started)
"""


@pytest.mark.fault("F51")
def test_a_frozen_broker_costs_seconds_and_no_message(
    embedded: Installation, frozen_broker: str
) -> None:
    said = embedded.having(REDIS_URL=frozen_broker).python(PUBLISH)
    assert (said["sent"], said["attempts"]) == (0, [1, 0])
    assert said["seconds"] < 30


@pytest.mark.fault("F50")
def test_an_absent_broker_costs_a_moment_and_no_message(embedded: Installation) -> None:
    said = embedded.having(REDIS_URL="redis://127.0.0.1:1/0").python(PUBLISH)
    assert (said["sent"], said["attempts"]) == (0, [1, 0])
    assert said["seconds"] < 15


def test_no_test_talks_to_a_broker_by_accident() -> None:
    assert "REDIS_URL" in os.environ or tasks.app.conf.task_always_eager
