"""Advice on rows of a shortlist: joins each row to the machine that stands behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from evaluator.advice import Advice, advice_of
from evaluator.candidates import Candidate
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.shortlist import Shortlist
from marketplace.listings import own_facts
from marketplace.machines import machine_of
from marketplace.models import Listing

Advised = list[tuple[Candidate, Advice]]


def advised(
    workload: Workload,
    result: Shortlist,
    rows: Iterable[Candidate],
    now: datetime,
    machines: Mapping[str, Machine] | None = None,
) -> Advised:
    """For each row: what to rent, how to launch it, what it costs, when it ends, what to check.

    `machines` are those behind the rows, by the key of the offering, where they are at hand.
    """
    held = list(rows)
    machines = _machines_behind(held) if machines is None else machines
    single = next((row for row in result.rows if row.rank == 0), None)
    return [
        (row, advice_of(workload, row, machines.get(row.offering.key), now, single)) for row in held
    ]


def rows_to_advise(leading: Iterable[Candidate], best: Candidate | None) -> list[Candidate]:
    """The recommended row, and the first one behind row 0 where that is another one."""
    first = next((row for row in leading if row.rank), None)
    return [row for row in (best, first if first is not best else None) if row]


def _machines_behind(rows: Iterable[Candidate]) -> dict[str, Machine]:
    """One that has gone is left out."""
    keys = {row.offering.key for row in rows}
    listings = Listing.objects.filter(pk__in=keys).prefetch_related(own_facts())
    return {str(row.pk): machine_of(row) for row in listings}
