"""What was run on a listing's machines, and what more of its GPUs would bring."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.memory import budget, max_concurrent_sequences
from evaluator.scaling import Fits, Gain, Point, fit_serial, gains, strong_curve, weak_curve
from evaluator.units import gib
from marketplace import listings
from marketplace.drawing.loglog import LogLog, Measure, loglog
from marketplace.forms import preset_names
from marketplace.machines import machine_of
from marketplace.models import Listing
from marketplace.runs import looks_at, predicted_rate, runs_of, spread_of
from marketplace.seen_machines import machines_seen
from marketplace.views.drawings import drawing
from marketplace.views.listing import chosen_preset
from marketplace.views.pages import render_page

MOST_MACHINES = 8
"""Machines of one listing that a training curve reaches."""
PICTURES = {"strong": "strong-scaling", "weak": "weak-scaling"}


@login_not_required
@require_safe
def scaling(request: HttpRequest, listing_id: int) -> HttpResponse:
    row = get_object_or_404(listings.detailed(), pk=listing_id)
    slug, workload = chosen_preset(request.GET.get("workload", ""))
    machine = machine_of(row)
    curves = _curves(workload, machine)
    wanted = request.GET.get("picture", "")
    if wanted in PICTURES:
        return drawing("scaling/_loglog.svg", "chart", curves[wanted], PICTURES[wanted])
    context = {
        "section": "evidence",
        "listing": row,
        "presets": preset_names(),
        "slug": slug,
        "workload": workload,
        "here": f"?{urlencode({'workload': slug})}",
        **_evidence(request, row, machine),
        **curves,
    }
    return render_page(request, "scaling/scaling.html", context, fragment="scaling/_curves.html")


def _evidence(request: HttpRequest, row: Listing, machine: Machine) -> dict[str, Any]:
    looks = looks_at(row, request.user)
    runs = runs_of(row, machine, looks)
    seen, total = machines_seen(request.user, looks)
    return {
        "runs": runs,
        "machines": total,
        "against": [one for one in seen if one.contradicts],
        "spread": spread_of(runs),
        "predicted": predicted_rate(machine),
        "compared": [run for run in runs if run.inside is not None],
    }


@dataclass(frozen=True, slots=True)
class Step:
    """One row of the table: a gain of speed, and beside it what the memory then holds."""

    gain: Gain
    capacity: str


def _curves(workload: Workload, machine: Machine) -> dict[str, Any]:
    strong = [*_points(strong_curve, workload, machine)]
    weak = [*_points(weak_curve, workload, machine)]
    return {
        "strong": _picture(strong, "strong", "Strong scaling, the same work on more GPUs"),
        "weak": _picture(weak, "weak", "Weak scaling, work that grows with the GPUs"),
        "steps": _steps(workload, machine, strong),
        "weak_steps": _steps(workload, machine, weak),
        "serial": _serial(strong),
        "first": strong[0] if strong else None,
    }


def _points(curve: Any, workload: Workload, machine: Machine) -> Iterable[Point]:
    """On parts of one machine; a training also on several whole ones."""
    count = machine.gpu_count.value or 0
    if machine.fractional or not count:
        return
    yield from curve(workload, machine, gpu_counts(count))
    several = [n for n in (2, 4, MOST_MACHINES) if n % machine.nodes == 0 and count > 1]
    if workload.training and several:
        yield from curve(workload, machine, [count], several)


def gpu_counts(most: int) -> list[int]:
    """1, 2, 4 and so on, and the whole machine."""
    return sorted({2**n for n in range(most.bit_length()) if 2**n <= most} | {most})


def _picture(points: Sequence[Point], mark: str, title: str) -> LogLog | None:
    return loglog([Measure(one.gpus, one.rate, one.plan.label) for one in points], mark, title)


def _steps(workload: Workload, machine: Machine, points: Sequence[Point]) -> list[Step]:
    return [Step(gain, _capacity(workload, machine, gain.point)) for gain in gains(points)]


def _capacity(workload: Workload, machine: Machine, point: Point) -> str:
    """Requests that the caches hold at once; of a training, memory needed per GPU."""
    usable = machine.usable_bytes_per_gpu.value
    if workload.serving and usable is not None:
        held = max_concurrent_sequences(workload, point.plan, usable)
        return "unknown" if held is None else f"{held:,} requests"
    binding = budget(workload, point.plan).binding
    return f"{gib(binding.bytes.typical):.1f} GiB per GPU" if binding else "unknown"


def _serial(points: Sequence[Point]) -> Fits | None:
    return fit_serial([(one.gpus, one.rate.typical) for one in points])
