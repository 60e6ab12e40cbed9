"""Advice on a row of a shortlist: joins the row to the machine that stands behind it."""

from __future__ import annotations

from datetime import datetime

from evaluator.advice import Advice, advice_of
from evaluator.candidates import Candidate
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.shortlist import Shortlist
from marketplace.evaluations import Viewer, judged_by
from marketplace.listings import own_facts
from marketplace.machines import own_machines
from marketplace.models import Listing


def advice_for(
    workload: Workload,
    candidate: Candidate,
    result: Shortlist,
    now: datetime,
    viewer: Viewer = None,
) -> Advice:
    """What to rent, how to launch it, what it costs, when it ends, what to check first."""
    single = next((row for row in result.rows if row.rank == 0), None)
    return advice_of(workload, candidate, _machine_behind(candidate, viewer), now, single)


def _machine_behind(candidate: Candidate, viewer: Viewer) -> Machine | None:
    """As the viewer may know it; None where the listing has gone meanwhile."""
    rows = Listing.objects.filter(pk=candidate.offering.key).prefetch_related(own_facts())
    row = rows.first()
    if row is None:
        return None
    return judged_by(row, own_machines(viewer, [row.pk]).get(row.pk))[0]
