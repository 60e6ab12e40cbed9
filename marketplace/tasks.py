"""Doors from Celery to the functions that do the work. Each is safe to run twice."""

from __future__ import annotations

from collections.abc import Sequence

from celery.signals import task_postrun
from django.utils import timezone

from marketplace import evaluations, outbox, sync
from marketplace.celery import app


@app.task(name="sync_source")
def sync_source(source_id: int) -> None:
    sync.sync_source(source_id)


@app.task(name="visit_source")
def visit_source(source_id: int) -> None:
    """From the schedule: once in each slot, however often it is asked for."""
    sync.sync_source(source_id, scheduled=True)


@app.task(name="reparse_source")
def reparse_source(source_id: int) -> None:
    sync.reparse(source_id)


@app.task(name="accept_held")
def accept_held(source_id: int) -> None:
    sync.reparse(source_id, accept=True)


@app.task(name="reject_held")
def reject_held(source_id: int) -> None:
    sync.reject(source_id)


@app.task(name="evaluate_workload")
def evaluate_workload(evaluation_id: int) -> None:
    evaluations.evaluate(evaluation_id)


@app.task(name="evaluate_presets")
def evaluate_presets() -> None:
    evaluations.request_presets()


@app.task(name="publish_outbox", expires=60)
def publish_outbox() -> None:
    outbox.publish(send, timezone.now())


def send(name: str, ids: Sequence[int], message: int) -> None:
    """To the broker, or straight to the function where no broker is set."""
    if name not in app.tasks:
        raise outbox.UnknownTask(name)
    app.tasks[name].apply_async(args=tuple(ids), task_id=f"{MESSAGE}{message}")


MESSAGE = "outbox-"
"""Begins the name of a task that came out of the outbox; the number of its message follows."""


@task_postrun.connect
def note_handled(task_id: str, **_: object) -> None:
    """A message whose worker died is not handled: it is delivered again, or sent again."""
    number = task_id.removeprefix(MESSAGE)
    if number != task_id and number.isdecimal():
        outbox.note_handled(int(number), timezone.now())
