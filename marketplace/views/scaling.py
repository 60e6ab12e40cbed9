"""What was run on a listing's machines, and what more of its GPUs would bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from evaluator.bills import Spent, spent_on
from evaluator.growth import Growth, GrowthRow
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.memory import budget, max_concurrent_sequences
from evaluator.outlook import job_on
from evaluator.scaling import Point
from evaluator.units import gib
from evaluator.workload import workload_presets
from marketplace import listings
from marketplace.drawing.loglog import LogLog, Measure, loglog
from marketplace.forms import preset_names
from marketplace.machines import machine_of
from marketplace.measured import compared, spreads
from marketplace.models import Listing
from marketplace.runs import looks_at, predicted_rate, runs_of, spread_of
from marketplace.seen_machines import contradicted_by, machines_seen
from marketplace.shelf import shelf
from marketplace.views.asked import asked_preset
from marketplace.views.chips import unknown_values
from marketplace.views.drawings import drawing
from marketplace.views.kept import kept_a_minute
from marketplace.views.pages import render_page
from marketplace.workbooks import Rented, growth_of

MOST_MACHINES = 4
"""Machines of one listing that a training curve reaches."""
PICTURES = {"strong": "strong-scaling", "weak": "weak-scaling"}


@login_not_required
@require_safe
@kept_a_minute
def scaling(request: HttpRequest, listing_id: int) -> HttpResponse:
    row = listings.detailed_or_404(listing_id)
    shelf().settle([row])
    asked = asked_preset(request)
    workload = asked.workload
    machine = machine_of(row)
    curves = _curves(workload, machine, row)
    wanted = request.GET.get("picture", "")
    if wanted in PICTURES:
        return drawing("scaling/_loglog.svg", "chart", curves[wanted], PICTURES[wanted])
    context = {
        "section": "evidence",
        "listing": row,
        "presets": preset_names(),
        "asked": asked,
        "ignored": [*unknown_values(request, workload=workload_presets()), *asked.refused],
        "workload": workload,
        "here": f"?{asked.query}",
        **_evidence(request, row, machine),
        **curves,
    }
    return render_page(request, "scaling/scaling.html", context, fragment="scaling/_curves.html")


def _evidence(request: HttpRequest, row: Listing, machine: Machine) -> dict[str, Any]:
    looks = looks_at(row, request.user)
    runs = runs_of(row, machine, looks)
    seen, total = machines_seen(request.user, looks)
    figures = compared(machine, looks, row.pk, request.user)
    against = [one for one in seen if one.contradicts]
    return {
        "figures": figures,
        "figure_spreads": spreads(figures),
        "judged": [one for one in figures if one.inside is not None],
        "inside": [one for one in figures if one.inside],
        "runs": runs,
        "machines": total,
        "against": against,
        "contradicted": contradicted_by(against),
        "spread": spread_of(runs),
        "predicted": predicted_rate(machine),
        "compared": [run for run in runs if run.inside is not None],
    }


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table of growth; `capacity` is what the memory of its GPUs then holds.

    `spent` are the hours of a job with an end by what they are for.
    """

    growth: GrowthRow
    capacity: str
    spent: Spent | None = None


def _curves(workload: Workload, machine: Machine, row: Listing) -> dict[str, Any]:
    table = _table(workload, machine, row)
    strong = [one.gain.point for one in table.rows]
    weak = [one.grown for one in table.rows if one.grown]
    return {
        "strong": _picture(strong, "strong", "Strong scaling, the same work on more GPUs"),
        "weak": _picture(weak, "weak", "Weak scaling, work that grows with the GPUs"),
        "rows": [_row(workload, machine, one) for one in table.rows],
        "serial": table.strong,
        "first": strong[0] if strong else None,
    }


def _row(workload: Workload, machine: Machine, one: GrowthRow) -> Row:
    point, ends = one.gain.point, one.step.hours is not None
    spent = spent_on(job_on(workload, point.plan, machine, point.rate)) if ends else None
    return Row(one, _capacity(workload, machine, point), spent)


def _table(workload: Workload, machine: Machine, row: Listing) -> Growth:
    """On parts of one machine; a training also on several whole ones."""
    if machine.fractional or not machine.gpu_count.value:
        return Growth((), None, None)
    most = MOST_MACHINES if workload.training else 1
    return growth_of(workload, machine, per_hour_of(row, machine.gpu_count.value), most)


def per_hour_of(row: Listing, gpus_per_machine: int) -> Rented:
    """What so many GPUs of a listing cost for an hour: it is rented in whole rentals."""
    return Rented(row.machine_hour_amount, gpus_per_machine * row.nodes)


def _picture(points: Sequence[Point], mark: str, title: str) -> LogLog | None:
    return loglog([Measure(one.gpus, one.rate, one.plan.label) for one in points], mark, title)


def _capacity(workload: Workload, machine: Machine, point: Point) -> str:
    """Requests that the caches hold at once; of a training, memory needed per GPU."""
    usable = machine.usable_bytes_per_gpu.value
    if workload.serving and usable is not None:
        held = max_concurrent_sequences(workload, point.plan, usable)
        return "unknown" if held is None else f"{held:,} requests"
    binding = budget(workload, point.plan).binding
    return f"{gib(binding.bytes.typical):.1f} GiB per GPU" if binding else "unknown"
