"""Advice on rows of a shortlist: joins each row to the machine that stands behind it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from evaluator.advice import Advice, advice_of
from evaluator.candidates import Candidate
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.shortlist import Shortlist
from marketplace.listings import own_facts
from marketplace.machines import own_machines
from marketplace.models import Listing
from marketplace.rankings import Viewer, judged_by

Advised = list[tuple[Candidate, Advice]]


def advised(
    workload: Workload,
    result: Shortlist,
    rows: Iterable[Candidate],
    now: datetime,
    viewer: Viewer = None,
) -> Advised:
    """For each row: what to rent, how to launch it, what it costs, when it ends, what to check."""
    held = list(rows)
    machines = _machines_behind(held, viewer)
    single = next((row for row in result.rows if row.rank == 0), None)
    return [
        (row, advice_of(workload, row, machines.get(row.offering.key), now, single)) for row in held
    ]


def rows_to_advise(result: Shortlist, best: Candidate | None) -> list[Candidate]:
    """The recommended row, and row 1 where that is another one."""
    first = next((row for row in result.rows if row.rank == 1), None)
    return [row for row in (best, first if first is not best else None) if row]


def _machines_behind(rows: Iterable[Candidate], viewer: Viewer) -> dict[str, Machine]:
    """By the key of the offering, as the viewer may know them. One that has gone is left out."""
    keys = {row.offering.key for row in rows}
    rented = own_machines(viewer, keys)
    listings = Listing.objects.filter(pk__in=keys).prefetch_related(own_facts())
    return {str(row.pk): judged_by(row, rented.get(row.pk))[0] for row in listings}
