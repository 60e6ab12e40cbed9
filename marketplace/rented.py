"""Machines that somebody rented, and the facts of the evidence that stands for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import F, Q, QuerySet

from marketplace.models import Evidence, Fact, RentedMachine
from marketplace.models.evidence import COUNTING, EvidenceState


def counting_facts(rented: RentedMachine, states: Sequence[str] = COUNTING) -> QuerySet[Fact]:
    """Facts of the evidence that stands for one machine."""
    rows = Fact.objects.filter(
        evidence__machine=rented,
        evidence__uploaded_by=rented.opened_by_id,
        evidence__state__in=states,
        evidence__mismatch="",
    )
    return rows.order_by("name", "-grade", "-as_of")


def own_machines(viewer: User | AnonymousUser | None, listings: Any) -> dict[int, RentedMachine]:
    """The machine that a viewer rented last under each listing, where evidence of it stands.

    `listings` is a query of listings or their keys. Nobody sees another one's machine here.
    """
    if viewer is None or not viewer.is_authenticated:
        return {}
    rows = RentedMachine.objects.filter(
        listing__in=listings,
        evidence__uploaded_by=viewer,
        evidence__state__in=COUNTING,
        evidence__mismatch="",
    )
    return {row.listing_id: row for row in rows.distinct().order_by("opened_at", "pk")}


def rented_under(viewer: User | AnonymousUser | None) -> list[int]:
    """Keys of the listings under which a viewer brought anything at all."""
    if viewer is None or not viewer.is_authenticated:
        return []
    rows = Evidence.objects.filter(uploaded_by=viewer).order_by()
    return list(rows.values_list("listing", flat=True).distinct())


def facts_by_machine(rented: Iterable[RentedMachine]) -> dict[int, list[Fact]]:
    """As `counting_facts` of each machine by its key, in one query. Each fact knows the `state` of
    its evidence."""
    found: dict[int, list[Fact]] = {one.pk: [] for one in rented}
    of_its_renter = Q(evidence__uploaded_by=F("evidence__machine__opened_by"))
    of_nobody = Q(evidence__uploaded_by=None, evidence__machine__opened_by=None)
    rows = Fact.objects.filter(
        of_its_renter | of_nobody,
        evidence__machine__in=found,
        evidence__state__in=COUNTING,
        evidence__mismatch="",
    ).annotate(machine=F("evidence__machine"), state=F("evidence__state"))
    for row in in_order(rows):
        found[row.machine].append(row)
    return found


def in_order(facts: Iterable[Fact]) -> list[Any]:
    """By name, the strongest first and the newest of equals first."""
    by_age = sorted(facts, key=lambda one: one.as_of, reverse=True)
    return sorted(by_age, key=lambda one: (one.name, -one.grade))


def pending_among(rented: Iterable[RentedMachine]) -> set[int]:
    """Keys of the machines that are known by evidence that no curator has accepted."""
    rows = Evidence.objects.filter(
        machine__in=[one.pk for one in rented],
        uploaded_by=F("machine__opened_by"),
        state=EvidenceState.PENDING,
        mismatch="",
    )
    return set(rows.order_by().values_list("machine", flat=True))
