"""Runs workloads over listings and keeps the verdicts by workload, configuration and version."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.db.models import Min, Q, QuerySet
from django.utils import timezone

from evaluator.findings import Code, Finding, finding
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.offers import Offering
from evaluator.reports import (
    UnreadableReport,
    condense,
    evaluator_version,
    from_report,
    to_report,
)
from evaluator.shortlist import Shortlist, shortlist
from evaluator.verdict import MachineVerdict, Status, judge_briefly
from evaluator.workbook import Workbook
from evaluator.workload import parse_workload, workload_presets
from marketplace import models, outbox
from marketplace.expressions import Node
from marketplace.fleets import Offered, offered_now
from marketplace.listings import current, offerings, own_facts
from marketplace.machines import (
    configuration_of,
    is_own,
    machine_of,
    own_machines,
    rented_under,
)
from marketplace.models import Evaluation, Listing, RentedMachine, Verdict
from marketplace.models.evaluation import EvaluationState
from marketplace.own_offers import Own, seen_by, with_own
from marketplace.shelf import shelf
from marketplace.workbooks import judge_machine

OLD = timedelta(days=7)
"""How long verdicts of another version stay, in case that version is still running somewhere."""
UNSEEN = f"their source has not been seen for {settings.HIDDEN_HOURS} hours"
FILTERED_OUT = "a filter excludes them"
CHUNK = 50
"""Configurations judged and stored at once: what a cancelled or killed job may lose."""


def shortlist_for(
    workload: Workload,
    listings: QuerySet[Listing] | None = None,
    limit: int = 20,
    *,
    keep: bool = True,
    viewer: Viewer = None,
    weigh: bool = False,
) -> Shortlist:
    """Ranks the listings (default: all current ones). `weigh` asks for the front of all of them.

    Listings under which the viewer rented a machine are judged by what was seen on that one.

    With `keep` False nothing is written, as for a page that someone reads: listings that are still
    without a configuration wait for the next sync or evaluation.
    """
    wanted = current() if listings is None else listings
    if keep:
        name_configurations(wanted)
    else:
        wanted = wanted.exclude(configuration="")
    now, everything = timezone.now(), Offered.of(*_read(wanted, _own(wanted, viewer)))
    return ranked_of(workload, everything, Asking(limit=limit, weigh=weigh), now)


@dataclass(frozen=True, slots=True)
class Asking:
    """How much of a ranking is wanted: of which offers, from which rank on, and whether with what
    no other of all ranked ones beats."""

    filters: Mapping[str, Node] = field(default_factory=dict)
    model: str = ""
    limit: int = 20
    skip: int = 0
    weigh: bool = False


def _unseen_since(now: datetime) -> datetime:
    """A listing that was last seen before this is not ranked."""
    return now - timedelta(hours=settings.HIDDEN_HOURS)


def offered_to(viewer: Viewer) -> Offered:
    """All current offers as one viewer may judge them; the same for all who rented nothing."""
    named = current().exclude(configuration="")
    shared = offered_now(lambda: _read(named, {}))
    own = _own(named.filter(pk__in=rented_under(viewer)), viewer)
    return seen_by(shared, own) if own else shared


def ranked_of(workload: Workload, offered: Offered, asking: Asking, now: datetime) -> Shortlist:
    """The offers that pass, ranked. All others are counted with the reason."""
    minute = now.replace(second=0, microsecond=0)
    key = (repr(workload), repr(asking), minute)
    return offered.answer_to(key, lambda: _ranked(workload, offered, asking, now))


def _ranked(workload: Workload, offered: Offered, asking: Asking, now: datetime) -> Shortlist:
    recent = offered.seen_after(_unseen_since(now))
    passing = offered.where(asking.filters, now)
    if asking.model:
        passing = passing & offered.with_model(asking.model)
    ranked = shortlist(
        workload,
        offered.fleet,
        asking.limit,
        now,
        among=recent & passing,
        judged=offered.judged_for(workload),
        skip=asking.skip,
        weigh=asking.weigh,
    )
    unseen, out = int((passing & ~recent).sum()), int((~passing).sum())
    hidden = {**ranked.hidden, UNSEEN: unseen, FILTERED_OUT: out}
    return replace(
        ranked,
        total=ranked.total + unseen + out,
        hidden={reason: count for reason, count in hidden.items() if count},
    )


def _read(listings: QuerySet[Listing], own: Own) -> tuple[list[Offering], dict[str, Machine]]:
    """Offerings, and the machine of every configuration among them."""
    offered = [with_own(offering, own) for offering in offerings(listings)]
    private = {machine.fingerprint(): machine for machine, _ in own.values()}
    shared = {offering.configuration for offering in offered} - private.keys()
    machines = {one.configuration: machine_of(one) for one in _one_listing_each(shared)}
    return offered, machines | private


Viewer = User | AnonymousUser | None


def _own(listings: QuerySet[Listing], viewer: Viewer) -> Own:
    """By the key of the listing: the viewer's machine, and the note that it is the viewer's."""
    rented = own_machines(viewer, listings.order_by().values("pk"))
    rows = Listing.objects.filter(pk__in=rented).prefetch_related(own_facts()) if rented else ()
    return {str(row.pk): judged_by(row, rented[row.pk]) for row in rows}


def judged_by(
    listing: Listing, rented: RentedMachine | None
) -> tuple[Machine, tuple[Finding, ...]]:
    """The machine to judge, and a note where evidence that no curator accepted has a part in it."""
    machine = machine_of(listing, rented)
    if rented is None or not is_own(rented):
        return machine, ()
    return machine, (finding(Code.OWN_EVIDENCE, machine=rented),)


def name_configurations(listings: QuerySet[Listing]) -> int:
    """Fingerprints listings whose fingerprint is missing or may no longer hold; counts changes.

    A fact that expires lowers its grade without any write. And another version of the evaluator
    may tell machines apart that the one before took for the same.
    """
    changed = []
    for listing in _doubtful(listings).prefetch_related(own_facts()).iterator(chunk_size=500):
        fresh = configuration_of(listing)
        if fresh != listing.configuration:
            listing.configuration = fresh
            changed.append(listing)
    Listing.objects.bulk_update(changed, ["configuration"], batch_size=500)
    return len(changed)


def _doubtful(listings: QuerySet[Listing]) -> QuerySet[Listing]:
    if not Verdict.objects.filter(evaluator_version=evaluator_version()).exists():
        return listings
    expired = models.Fact.objects.filter(expires_at__lte=timezone.now()).values("listing")
    return listings.filter(Q(configuration="") | Q(pk__in=expired))


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
            for listing in _one_listing_each(chunk)
        }


def _one_listing_each(configurations: Iterable[str]) -> QuerySet[Listing]:
    """Any listing of a configuration stands for all: the evaluator treats them alike."""
    firsts = (
        Listing.objects.filter(configuration__in=configurations)
        .order_by()
        .values("configuration")
        .annotate(first=Min("pk"))
        .values_list("first", flat=True)
    )
    return Listing.objects.filter(pk__in=list(firsts)).prefetch_related(own_facts())


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
