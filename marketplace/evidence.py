"""A paste becomes evidence: read, shown, kept on one machine, reviewed, expired."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.db import IntegrityError, transaction
from django.db.models import Prefetch, Q, QuerySet
from django.utils import timezone

from evaluator.connections import to_plain
from evaluator.evidence import Problem, UnreadableEvidence, read_evidence, scrub
from evaluator.evidence.engine_runs import Measured, engine_runs
from evaluator.facts import Grade, RanBy
from evaluator.findings import Code, Finding, finding
from evaluator.links import words_of
from evaluator.machine import LinkClass
from evaluator.sightings import Seen, Sighting, mismatches, sight
from marketplace.machines import machine_of
from marketplace.models import (
    Evidence,
    EvidenceReview,
    Fact,
    Listing,
    MeasuredFigure,
    RentedMachine,
)
from marketplace.models.evidence import COUNTING, HAS_EVIDENCE, Change, EvidenceState

Viewer = User | AnonymousUser

LIFETIME = timedelta(days=30)
"""Hosts are updated about monthly; a kernel change alone has turned peer access off."""
LARGEST_PASTE = 1_000_000


ENGINE_RUN = "speed of a run"


class NotKept(ValueError):
    """Why evidence was not stored, in words for its uploader."""


class NotReviewed(ValueError):
    """Why a decision cannot be taken from the state that the evidence is in."""


@dataclass(frozen=True, slots=True)
class Preview:
    """A paste before it is stored: its cleaned text, what it shows, and why it may not match.

    `sighting` is None where nothing in the text may be believed; `problems` then says why.
    """

    text: str
    removed: tuple[tuple[str, int], ...]
    sighting: Sighting | None
    problems: tuple[Problem, ...] = ()
    mismatch: tuple[str, ...] = ()
    figures: tuple[Measured, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        words = "; ".join(self.mismatch)
        return (finding(Code.EVIDENCE_MISMATCH, words=words),) if self.mismatch else ()

    @property
    def storable(self) -> bool:
        held = self.sighting is not None and (self.sighting.facts or self.mismatch)
        return bool(held or self.figures)


def preview(listing: Listing, text: str) -> Preview:
    """Cleans a paste and reads the cleaned text: what was taken out can support no fact.

    Raises NotKept for a text that is too long to be read.
    """
    if len(text) > LARGEST_PASTE:
        raise NotKept(f"The text has {len(text):,} characters; {LARGEST_PASTE:,} can be read.")
    cleaned = scrub(text.replace("\r\n", "\n"))
    figures = engine_runs(cleaned.text)
    try:
        seen = sight(read_evidence(cleaned.text))
    except UnreadableEvidence as error:
        if not figures:
            return Preview(cleaned.text, cleaned.removed, None, error.problems)
        return Preview(cleaned.text, cleaned.removed, sight(()), figures=figures)
    machine = machine_of(listing)
    against = mismatches(seen, machine.gpu_count.value, machine.gpu_model.value)
    problems = tuple(problem for reading in seen.readings for problem in reading.problems)
    return Preview(cleaned.text, cleaned.removed, seen, problems, against, figures)


@dataclass(frozen=True, slots=True)
class Origin:
    """Who brought a paste, who ran the commands, and on which of the uploader's machines.

    Without a machine a new one is opened under the listing.
    """

    uploader: User | None
    ran_by: RanBy
    machine: RentedMachine | None = None
    ran_at: datetime | None = None
    image: str = ""
    ran: Ran | None = None


@dataclass(frozen=True, slots=True)
class Ran:
    """What ran while speeds were measured: a workload's slug and the key of a plan."""

    workload: str
    plan: str


@transaction.atomic
def keep(listing: Listing, shown: Preview, origin: Origin) -> Evidence:
    """Stores what was previewed. Earlier facts stay, whatever the new text is like."""
    if shown.sighting is None or not shown.storable:
        raise NotKept("The text holds no fact that could be stored.")
    if shown.figures and origin.ran is None:
        raise NotKept("Name the workload and the plan that ran: without them a speed says nothing.")
    machine = origin.machine or RentedMachine.objects.create(
        listing=listing, opened_by=origin.uploader
    )
    evidence = _row(listing, machine, shown, shown.sighting, origin)
    try:
        with transaction.atomic():
            evidence.save()
    except IntegrityError as error:
        raise NotKept("This text is already kept for this machine.") from error
    if not shown.mismatch:
        _expire_older(evidence)
        Fact.objects.bulk_create(_facts(evidence, shown.sighting.facts))
        MeasuredFigure.objects.bulk_create(_figures(evidence, shown.figures, origin.ran))
    return evidence


def _figures(
    evidence: Evidence, figures: Iterable[Measured], ran: Ran | None
) -> Iterator[MeasuredFigure]:
    if ran is None:
        return
    for one in figures:
        yield MeasuredFigure(
            evidence=evidence,
            workload=ran.workload,
            plan=ran.plan,
            metric=one.metric,
            value=one.value,
        )


def _row(
    listing: Listing, machine: RentedMachine, shown: Preview, seen: Sighting, origin: Origin
) -> Evidence:
    ran_at = origin.ran_at or timezone.now()
    return Evidence(
        listing=listing,
        machine=machine,
        kind=", ".join([*seen.formats, *([ENGINE_RUN] if shown.figures else [])])[:200],
        cleaned_text=shown.text,
        sha256=hashlib.sha256(shown.text.encode()).hexdigest(),
        ran_by=origin.ran_by.value,
        uploaded_by=origin.uploader,
        mismatch="; ".join(shown.mismatch)[:500],
        driver=seen.driver[:60],
        image=origin.image[:200],
        ran_at=ran_at,
        expires_at=ran_at + LIFETIME,
    )


def _facts(evidence: Evidence, facts: Iterable[Seen]) -> Iterator[Fact]:
    for seen in facts:
        yield Fact(
            listing_id=evidence.listing_id,
            evidence=evidence,
            name=seen.name,
            value=_plain(seen),
            grade=int(seen.grade),
            source=f"{evidence.kind} on {evidence.machine}"[:300],
            ran_by=evidence.ran_by,
            as_of=evidence.ran_at or evidence.uploaded_at,
            expires_at=evidence.expires_at,
            caveat=seen.caveat,
        )


def _plain(seen: Seen) -> Any:
    return to_plain(seen.value)


CHANGES = ((Change.DRIVER, "driver"), (Change.IMAGE, "image"))
"""Changes that a paste shows, and the column that shows them."""


def _expire_older(evidence: Evidence) -> None:
    """Another driver or image than before makes earlier looks at the machine old.

    They end at the moment of the paste that shows it, so that it can be told which one did.
    """
    others = evidence.machine.evidence.exclude(pk=evidence.pk).filter(state__in=COUNTING)
    for change, column in CHANGES:
        value = getattr(evidence, column)
        if value:
            changed = others.exclude(**{column: ""}).exclude(**{column: value})
            standing = changed.filter(ran_at__lte=evidence.ran_at, expired_by="")
            _end(standing, change, evidence.uploaded_at)


def _revive(evidence: Evidence) -> None:
    """What a paste made old counts again once the paste does not, unless another says so too."""
    machine = evidence.machine
    ended = machine.evidence.filter(
        expired_by__in=[change.value for change, _ in CHANGES], expires_at=evidence.uploaded_at
    )
    for row in ended:
        row.expires_at, row.expired_by = (row.ran_at or row.uploaded_at) + LIFETIME, ""
        row.save(update_fields=["expires_at", "expired_by"])
        row.facts.update(expires_at=row.expires_at)
    for other in machine.evidence.filter(state__in=COUNTING, mismatch="").order_by("ran_at"):
        _expire_older(other)


def expire(evidence: Iterable[Evidence], change: Change) -> None:
    """From now on the facts of these count as declared, with their date.

    Who says so by hand is believed for good, also of what a paste has made old before.
    """
    _end(evidence, change, timezone.now())


def _end(evidence: Iterable[Evidence], change: Change, at: datetime) -> None:
    keys = [
        row.pk
        for row in evidence
        if row.expired_by or row.expires_at is None or row.expires_at > at
    ]
    Evidence.objects.filter(pk__in=keys).update(expires_at=at, expired_by=change.value)
    Fact.objects.filter(evidence__in=keys).update(expires_at=at)


# --- review

MOVES = {
    EvidenceState.ACCEPTED: (EvidenceState.PENDING, EvidenceState.REJECTED),
    EvidenceState.REJECTED: (EvidenceState.PENDING,),
    EvidenceState.WITHDRAWN: (EvidenceState.PENDING, EvidenceState.ACCEPTED),
}
"""Each decision, and the states that it can be taken from. Withdrawn evidence stays withdrawn."""


def review(evidence_id: int, after: EvidenceState, by: Any, reason: str = "") -> None:
    """Moves evidence and keeps the decision. Raises NotReviewed where it cannot be moved."""
    if after is not EvidenceState.ACCEPTED and not reason:
        raise NotReviewed(f"A reason is needed to call evidence {after}.")
    with transaction.atomic():
        row = Evidence.objects.select_for_update().get(pk=evidence_id)
        if row.mismatch and after is EvidenceState.ACCEPTED:
            raise NotReviewed(f"It does not match its listing: {row.mismatch}.")
        moved = Evidence.objects.filter(pk=evidence_id, state__in=MOVES[after]).update(state=after)
        if not moved:
            raise NotReviewed(f"It is {row.state}, so it cannot become {after}.")
        EvidenceReview.objects.create(
            evidence=row, before=row.state, after=after, reason=reason, reviewed_by=by
        )
        if after not in COUNTING:
            _revive(row)


# --- what a listing shows


def visible_to(viewer: Viewer, listing: Listing) -> list[Evidence]:
    """The viewer's own evidence of a listing and what a curator accepted, newest first."""
    if not getattr(listing, HAS_EVIDENCE, True):
        return []
    rows = listing.evidence.filter(_visible(viewer)).select_related("machine")
    facts = Fact.objects.order_by("name", "-grade", "-as_of")
    reviews = EvidenceReview.objects.order_by("reviewed_at", "pk")
    return list(rows.prefetch_related(Prefetch("facts", facts), Prefetch("reviews", reviews)))


def _visible(viewer: Viewer) -> Q:
    accepted = Q(state=EvidenceState.ACCEPTED)
    return accepted | Q(uploaded_by=viewer) if viewer.is_authenticated else accepted


def evidence_visible_to(viewer: Viewer) -> QuerySet[Evidence]:
    """What a viewer may see of all listings, newest run first."""
    rows = Evidence.objects.filter(_visible(viewer)).order_by("-ran_at", "-pk")
    return rows.select_related("machine", "listing__provider", "listing__source")


def seen_elsewhere(listing: Listing, rows: Iterable[Evidence] | None = None) -> tuple[Finding, ...]:
    """How many machines of a listing were seen, and with which links. It raises no grade.

    `rows` are what a page has read of the listing's evidence already, all that is accepted in it.
    """
    read = listing.evidence.all() if rows is None else rows
    accepted = [one for one in read if one.state == EvidenceState.ACCEPTED and not one.mismatch]
    seen = {one.machine_id for one in accepted}
    if not seen:
        return ()
    links = _links_seen(listing)
    words = "; ".join(f"{words} on {count}" for words, count in Counter(links.values()).items())
    found = finding(
        Code.MEASURED_ELSEWHERE, measured=len(links), seen=len(seen), words=words or "no link"
    )
    return (found,)


def _links_seen(listing: Listing) -> dict[int, str]:
    """The link of each machine whose accepted evidence shows one: the newest, and who ran it. What
    has expired measures nothing any more.
    """
    facts = Fact.objects.filter(
        Q(expires_at=None) | Q(expires_at__gt=timezone.now()),
        listing=listing,
        name="link",
        grade__gte=Grade.MEASURED,
        evidence__state=EvidenceState.ACCEPTED,
        evidence__mismatch="",
    )
    rows = facts.order_by("as_of").values_list("evidence__machine", "value", "ran_by")
    return {machine: f"{words_of(LinkClass(link))} ({by})" for machine, link, by in rows}
