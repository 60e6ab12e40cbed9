"""Machines that somebody looked at, as one viewer may see them: what it showed, against what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from django.db.models import Prefetch, prefetch_related_objects
from django.utils import timezone

from evaluator.facts import Grade, strongest
from evaluator.links import words_of
from evaluator.machine import Conflict, LinkClass, Machine
from evaluator.sightings import Seen
from marketplace.evidence import Viewer, evidence_visible_to
from marketplace.link_matrix import LinkMatrix, picture_of
from marketplace.machines import fact_of, machine_of
from marketplace.models import Evidence, Fact, Listing, RentedMachine
from marketplace.models.evidence import COUNTING, EvidenceState
from marketplace.rented import facts_by_machine, in_order
from marketplace.seen import SeenLine, seen_lines

MOST_SHOWN = 100
"""Machines on one page."""
MOST_PICTURES = 4
"""Machines of one listing that are drawn; the timeline names all of them."""

ACCEPTED = (EvidenceState.ACCEPTED.value,)
"""What strangers to a machine may see of it: pending evidence is its uploader's alone."""


@dataclass(frozen=True, slots=True)
class SeenMachine:
    """One machine of a listing. It names neither the uploader nor the one who opened it."""

    rented: RentedMachine
    listing: Listing
    own: bool
    newest: Evidence
    looks: int
    link: LinkClass | None
    grade: Grade
    conflicts: tuple[Conflict, ...]

    @property
    def declared(self) -> str:
        return words_of(LinkClass(self.listing.link)) if self.listing.link else "nothing"

    @property
    def shown(self) -> str:
        return words_of(self.link) if self.link else "no link of the whole machine"

    @property
    def pending(self) -> bool:
        return self.newest.state == EvidenceState.PENDING

    @property
    def contradicts(self) -> bool:
        return bool(self.conflicts or self.newest.mismatch)

    @property
    def within(self) -> bool:
        """Whether its evidence disagrees with itself alone, and with nothing that is declared."""
        words = (word for one in self.conflicts for word in (one.judged_by, one.outweighed))
        declared = any(word.startswith(Grade.DECLARED.word) for word in words)
        return bool(self.conflicts) and not declared and not self.newest.mismatch


def contradicted_by(machines: Sequence[SeenMachine]) -> str:
    """What the evidence of some machines contradicts, for a sentence about them."""
    within = {one.within for one in machines}
    itself = "itself" if len(machines) == 1 else "themselves"
    if within == {True}:
        return itself
    return "the catalog" if within == {False} else f"the catalog or {itself}"


def machines_seen(
    viewer: Viewer, rows: Iterable[Evidence] | None = None
) -> tuple[list[SeenMachine], int]:
    """The machines that a viewer may know of, contradictions first, and how many there are.

    `rows` are looks that the viewer may see, newest first; without them all that there are.
    """
    looks: dict[int, list[Evidence]] = {}
    for row in evidence_visible_to(viewer).defer("cleaned_text") if rows is None else rows:
        looks.setdefault(row.machine_id, []).append(row)
    shown = list(looks.values())[:MOST_SHOWN]
    newest = [rows[0] for rows in shown]
    prefetch_related_objects(newest, Prefetch("listing__facts", Fact.objects.filter(evidence=None)))
    facts = facts_by_machine(row.machine for row in newest)
    found = [_seen(rows, viewer, facts[rows[0].machine_id]) for rows in shown]
    return sorted(found, key=lambda one: not one.contradicts), len(looks)


def _seen(rows: Sequence[Evidence], viewer: Viewer, facts: Sequence[Any]) -> SeenMachine:
    """`rows` are the looks at one machine, newest first, `facts` what all of them showed."""
    newest = rows[0]
    own = viewer.is_authenticated and newest.machine.opened_by_id == viewer.pk
    states = COUNTING if own else ACCEPTED
    machine = machine_of(newest.listing, seen=[fact for fact in facts if fact.state in states])
    seen = machine.link if machine.link.at_least(Grade.MEASURED) else None
    return SeenMachine(
        rented=newest.machine,
        listing=newest.listing,
        own=own,
        newest=newest,
        looks=len(rows),
        link=seen.value if seen else None,
        grade=seen.grade if seen else Grade.UNKNOWN,
        conflicts=machine.conflicts,
    )


@dataclass(frozen=True, slots=True)
class AcceptedMachine:
    """What accepted evidence shows of one machine, for those who did not rent it."""

    rented: RentedMachine
    looks: tuple[Evidence, ...]
    links: LinkMatrix | None
    lines: tuple[SeenLine, ...]


def accepted_machines(
    listing: Listing, visible: Iterable[Evidence], judged_by: RentedMachine | None
) -> list[AcceptedMachine]:
    """Accepted machines other than the viewer's own, newest first. They set no grade. `visible` is
    evidence of the listing, read with its machines and facts."""
    own = judged_by.pk if judged_by else None
    rows = [
        row
        for row in visible
        if row.state == EvidenceState.ACCEPTED and not row.mismatch and row.machine_id != own
    ]
    by_machine = sorted(rows, key=lambda row: row.machine_id, reverse=True)
    groups = [tuple(looks) for _, looks in groupby(by_machine, lambda row: row.machine_id)]
    return [_accepted(listing, looks) for looks in groups[:MOST_PICTURES]]


@dataclass(frozen=True, slots=True)
class Look:
    """One paste in the timeline of a listing, with what it showed in a line each."""

    row: Evidence
    lines: tuple[SeenLine, ...]

    @property
    def expired(self) -> bool:
        return self.row.expires_at is not None and self.row.expires_at <= timezone.now()


def timeline(rows: Iterable[Evidence]) -> list[Look]:
    """Pastes with their facts as they count today: what has expired is declared."""
    now = timezone.now()
    return [Look(row, tuple(_lines(row, now))) for row in rows]


def _lines(row: Evidence, now: datetime) -> list[SeenLine]:
    facts = (fact_of(fact, now) for fact in row.facts.all())
    named = zip((fact.name for fact in row.facts.all()), facts, strict=True)
    return seen_lines(
        Seen(name, fact.value, fact.grade) for name, fact in named if name != "topology"
    )


def _accepted(listing: Listing, looks: tuple[Evidence, ...]) -> AcceptedMachine:
    rented = looks[0].machine
    declared = LinkClass(listing.link) if listing.link else None
    own = (look for look in looks if look.uploaded_by_id == rented.opened_by_id)
    facts = in_order(fact for look in own for fact in look.facts.all())
    machine = machine_of(listing, seen=facts)
    return AcceptedMachine(
        rented=rented,
        looks=looks,
        links=picture_of(machine.topology.value, declared),
        lines=tuple(seen_lines(_facts(facts, machine))),
    )


def _facts(facts: Sequence[Fact], machine: Machine) -> Iterable[Seen]:
    """The strongest accepted fact of each attribute; all looks at the pairs as one picture."""
    now = timezone.now()
    for name, rows in groupby(facts, lambda row: row.name):
        best = machine.topology if name == "topology" else strongest(fact_of(r, now) for r in rows)
        if best.known:
            yield Seen(name, best.value, best.grade, best.caveat)
