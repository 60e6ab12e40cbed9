"""Runs workloads over listings and keeps the verdicts by workload, configuration and version."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from evaluator.jobs import Workload
from evaluator.reports import (
    UnreadableReport,
    condense,
    evaluator_version,
    from_report,
    to_report,
)
from evaluator.verdict import MachineVerdict, Status, judge_briefly
from evaluator.workbook import Workbook
from evaluator.workload import parse_workload, workload_presets
from marketplace import models, outbox
from marketplace.listings import current
from marketplace.machines import machine_of
from marketplace.models import Evaluation, Listing, RentedMachine, Verdict
from marketplace.models.evaluation import EvaluationState
from marketplace.rankings import name_configurations, one_listing_each
from marketplace.shelf import shelf
from marketplace.workbooks import judge_machine

OLD = timedelta(days=7)
"""How long verdicts of another version stay, in case that version is still running somewhere."""
CHUNK = 50
"""Configurations judged and stored at once: what a cancelled or killed job may lose."""


def judge_listing(
    workload: Workload, listing: Listing, rented: RentedMachine | None = None
) -> MachineVerdict:
    """All plans on one listing, judged now, for the page that shows them."""
    return judge_machine(workload, machine_of(listing, rented))


def _kept(workload: Workload, configurations: set[str]) -> dict[str, MachineVerdict]:
    """Verdicts of this version that can still be read. One of another shape is judged again."""
    rows = _kept_rows(workload).values_list("configuration", "report")
    found: dict[str, MachineVerdict] = {}
    for configuration, report in rows.iterator(chunk_size=500):
        if configuration in configurations:
            try:
                found[configuration] = from_report(report)
            except UnreadableReport:
                continue
    return found


def results_of(workload: Workload) -> list[tuple[str, int]]:
    """How many current configurations have each status, of those judged so far, best first."""
    departed = shelf().departed
    rows = _kept_rows(workload).order_by().values_list("configuration", "status")
    counts = Counter(status for configuration, status in rows if configuration not in departed)
    return [(status.value, counts[status.value]) for status in Status if status.value in counts]


def _kept_rows(workload: Workload) -> QuerySet[Verdict]:
    return Verdict.objects.filter(
        workload_fingerprint=workload.fingerprint(), evaluator_version=evaluator_version()
    )


def _judged(
    workload: Workload, configurations: Sequence[str]
) -> Iterator[dict[str, MachineVerdict]]:
    """Judges chunk by chunk; the workbook is shared by all chunks."""
    workbook = Workbook(workload)
    for start in range(0, len(configurations), CHUNK):
        chunk = configurations[start : start + CHUNK]
        yield {
            listing.configuration: condense(judge_briefly(workbook, machine_of(listing)))
            for listing in one_listing_each(chunk)
        }


def _store(workload: Workload, verdicts: Mapping[str, MachineVerdict]) -> None:
    """Writes verdicts; a row that another worker wrote meanwhile is replaced by an equal one."""
    fingerprint = workload.fingerprint()
    rows = [
        Verdict(
            workload_fingerprint=fingerprint,
            configuration=configuration,
            evaluator_version=evaluator_version(),
            status=verdict.status.value,
            report=to_report(verdict),
        )
        for configuration, verdict in sorted(verdicts.items())
    ]
    Verdict.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["workload_fingerprint", "configuration", "evaluator_version"],
        update_fields=["status", "report"],
    )


# --- workloads as rows


def keep_workload(
    document: Mapping[str, Any], owner: User | None = None, preset_slug: str = ""
) -> models.Workload:
    """The row of a workload document; the same document of the same owner gives the same row.

    Raises InvalidWorkload, naming field, value read and value expected.
    """
    workload = parse_workload(document)
    plain = json.loads(json.dumps(document, sort_keys=True, default=dict))
    row, _ = models.Workload.objects.update_or_create(
        slug=preset_slug or _slug(plain, owner),
        defaults={
            "name": workload.name[:200],
            "owner": owner,
            "preset": bool(preset_slug),
            "document": plain,
            "fingerprint": workload.fingerprint(),
        },
    )
    return row


def _slug(document: Mapping[str, Any], owner: User | None) -> str:
    text = f"{owner.pk if owner else ''}:{json.dumps(document, sort_keys=True)}"
    return f"w-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def keep_presets() -> list[models.Workload]:
    """Rows of all presets, made or refreshed."""
    return [
        keep_workload(document, preset_slug=slug) for slug, document in workload_presets().items()
    ]


# --- evaluations as jobs


def request_evaluation(workload: models.Workload) -> Evaluation:
    """A queued evaluation with an outbox message beside it, in one transaction."""
    with transaction.atomic():
        evaluation = Evaluation.objects.create(
            workload=workload, evaluator_version=evaluator_version()
        )
        outbox.enqueue("evaluate_workload", evaluation.pk)
    return evaluation


def request_presets() -> list[Evaluation]:
    """An evaluation of each preset that none waits for yet: one that waits will see all rows."""
    queued = Evaluation.objects.filter(state=EvaluationState.QUEUED)
    waiting = set(queued.values_list("workload", flat=True))
    return [request_evaluation(one) for one in keep_presets() if one.pk not in waiting]


def evaluate(evaluation_id: int) -> None:
    """Judges every current configuration, chunk by chunk. Safe to run twice.

    A second run, or one after a crash, finds the kept verdicts and goes on from there.
    """
    evaluation = Evaluation.objects.select_related("workload").get(pk=evaluation_id)
    if not _move(evaluation, OPEN, EvaluationState.RUNNING):
        return
    try:
        finished = _run(evaluation)
    except Exception as error:
        _move(
            evaluation, OPEN, EvaluationState.FAILED, error=f"{type(error).__name__}: {error}"[:500]
        )
        raise
    if finished:
        _move(evaluation, OPEN, EvaluationState.DONE)


OPEN = (EvaluationState.QUEUED, EvaluationState.RUNNING)


def _run(evaluation: Evaluation) -> bool:
    """False where it was cancelled between two chunks."""
    _forget_old_verdicts()
    workload = parse_workload(evaluation.workload.document)
    name_configurations(current())
    wanted = set(current().order_by().values_list("configuration", flat=True).distinct())
    kept = _kept(workload, wanted)
    total, done = len(wanted), len(kept)
    if not _progress(evaluation, total, done):
        return False
    for chunk in _judged(workload, sorted(wanted - kept.keys())):
        _store(workload, chunk)
        done += len(chunk)
        if not _progress(evaluation, total, done):
            return False
    return True


def _forget_old_verdicts() -> None:
    others = Verdict.objects.exclude(evaluator_version=evaluator_version())
    others.filter(created_at__lt=timezone.now() - OLD).delete()


def _progress(evaluation: Evaluation, total: int, done: int) -> bool:
    """Writes the progress of a run that still runs; False says that it was cancelled."""
    running = Evaluation.objects.filter(pk=evaluation.pk, state=EvaluationState.RUNNING)
    return running.update(configurations_total=total, configurations_done=done) == 1


def _move(
    evaluation: Evaluation,
    before: Sequence[EvaluationState],
    after: EvaluationState,
    **columns: Any,
) -> bool:
    """Changes the state only from one of `before`, so that two workers cannot both end a job."""
    if after not in OPEN:
        columns["finished_at"] = timezone.now()
    rows = Evaluation.objects.filter(pk=evaluation.pk, state__in=before)
    return rows.update(state=after, **columns) == 1


def cancel(evaluation_id: int) -> bool:
    """Stops an evaluation before its next chunk. False if it had ended already."""
    evaluation = Evaluation(pk=evaluation_id)
    return _move(evaluation, OPEN, EvaluationState.CANCELLED)
