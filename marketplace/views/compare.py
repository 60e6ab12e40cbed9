"""Two to four candidates side by side, what differs first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from evaluator.candidates import Candidate, candidate_of, with_findings, with_outlook
from evaluator.economics import terms_of
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.plans import Plan
from evaluator.verdict import MachineVerdict, PlanVerdict
from evaluator.workload import workload_presets
from marketplace import listings
from marketplace.forms import Demands, PastedDemands, PresetDemands, gpu_models
from marketplace.machines import machine_of
from marketplace.models import Listing
from marketplace.rankings import Viewer
from marketplace.rented import facts_by_machine, own_machines
from marketplace.seen import SHOWN
from marketplace.templatetags.present import (
    cost_on,
    derived_money,
    gib_number,
    gib_span,
    rate,
    spanned,
)
from marketplace.views.axes import Axes, axes_of
from marketplace.views.chips import carried, without
from marketplace.views.kept import kept_a_minute
from marketplace.views.pages import render_page
from marketplace.views.paging import whole_number
from marketplace.workbooks import judge_machine

FEWEST, MOST = 2, 4
UNKNOWN = "unknown"
NOT_USABLE = 422


@dataclass(frozen=True, slots=True)
class Compared:
    """One side. `machine` is the viewer's own where one was seen under the listing. `query` names
    the workload in addresses; a pasted one has none.
    """

    listing: Listing
    machine: Machine
    candidate: Candidate
    query: str = ""
    without: str = ""

    @property
    def address(self) -> str:
        return f"{self.listing.get_absolute_url()}{self.query}"

    def opened(self, part: str) -> str:
        """Where this part is worked out: on the page of the listing, or under its plan."""
        if part in OF_LISTING:
            return f"{self.address}#{part}"
        if not self.query:
            return ""
        plan = urlencode({"listing": self.listing.pk, "plan": self.candidate.plan.plan.key})
        return f"{reverse('plans')}{self.query}&{plan}#{part}"


@dataclass(frozen=True, slots=True)
class Line:
    """One point, told of every side. `opens` is where on a page it is worked out."""

    label: str
    sides: tuple[tuple[Compared, str], ...]
    opens: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(text for _, text in self.sides)

    @property
    def _nothing(self) -> tuple[str, ...]:
        """That a link is not known has its reasons."""
        return () if self.opens == LINKS else NOTHING

    @property
    def cells(self) -> tuple[tuple[str, str], ...]:
        """What is said of each side, and the address of where it comes from."""
        return tuple(
            (text, side.opened(self.opens) if self.opens and text not in self._nothing else "")
            for side, text in self.sides
        )

    @property
    def open(self) -> bool:
        """Whether nothing is known on any side."""
        return set(self.texts) == {UNKNOWN}

    @property
    def differs(self) -> bool:
        return len(set(self.texts)) > 1


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
@kept_a_minute
def compare(request: HttpRequest) -> HttpResponse:
    data = request.POST or request.GET
    kind = PastedDemands if request.method == "POST" else PresetDemands
    form: Demands = kind(data, gpu_models())
    if not form.is_valid():
        return _refused(request, "The workload cannot be read, so nothing was compared.")
    workload = form.demanded(form.cleaned_data["workload"])
    query = "" if request.POST else _query(request)
    found = _sides(workload, _picked(data.getlist("pick")), request.user)
    sides = [replace(one, query=query) for one in found]
    if not FEWEST <= len(sides) <= MOST:
        return _refused(
            request, f"Tick {FEWEST} to {MOST} candidates; {len(sides)} can be compared."
        )
    lines = lines_of(sides, axes_of(workload, terms_of(workload).currency))
    context = {
        "section": "shortlist",
        "workload": workload,
        "back": "" if request.POST else without(request, "pick").partition("?")[2],
        "sides": _with_ways_out(request, sides),
        "differing": [line for line in lines if line.differs],
        "equal": [line for line in lines if not line.differs and not line.open],
        "open": [line for line in lines if not line.differs and line.open],
    }
    return render_page(request, "shortlist/compare.html", context)


def _query(request: HttpRequest) -> str:
    usual = {"workload": next(iter(workload_presets()))}
    return f"?{urlencode(usual | dict(carried(request.GET)))}"


def _with_ways_out(request: HttpRequest, sides: Sequence[Compared]) -> list[Compared]:
    """Each with the address that compares the others, where enough are left and one can be."""
    if request.POST or len(sides) <= FEWEST:
        return list(sides)
    kept = [f"{one.listing.pk}:{one.candidate.plan.plan.key}" for one in sides]
    return [
        replace(one, without=_comparing(request, [*kept[:at], *kept[at + 1 :]]))
        for at, one in enumerate(sides)
    ]


def _comparing(request: HttpRequest, picks: Sequence[str]) -> str:
    query = request.GET.copy()
    query.setlist("pick", list(picks))
    return f"{request.path}?{query.urlencode()}"


def _refused(request: HttpRequest, words: str) -> HttpResponse:
    context = {"section": "shortlist", "refusal": words}
    return render_page(request, "shortlist/compare.html", context, status=NOT_USABLE)


def _picked(picks: Sequence[str]) -> dict[tuple[int, str], None]:
    """Listing and plan of each tick "12:tp8", once each, in order."""
    parts = (pick.partition(":") for pick in picks[: 2 * MOST])
    return {(whole_number(key), plan): None for key, _, plan in parts}


def _sides(
    workload: Workload, picked: Mapping[tuple[int, str], None], viewer: Viewer
) -> Iterator[Compared]:
    keys = [key for key, _ in picked]
    rows = {row.pk: row for row in listings.detailed().filter(pk__in=keys)}
    rented = own_machines(viewer, keys)
    facts = facts_by_machine(rented.values())
    offered = {int(one.key): one for one in listings.offerings(Listing.objects.filter(pk__in=keys))}
    for key, plan_key in picked:
        if (row := rows.get(key)) is None:
            continue
        machine = machine_of(row, seen=facts[rented[key].pk] if key in rented else ())
        verdict = judge_machine(workload, machine)
        plan = _plan(verdict, plan_key)
        if plan is not None:
            found = candidate_of([offered[key]], verdict, plan, terms_of(workload))
            if found.status.serves:
                found = with_outlook(found, workload, machine)
            yield Compared(row, machine, with_findings(found, timezone.now()))


def _plan(verdict: MachineVerdict, key: str) -> PlanVerdict | None:
    named = next((one for one in verdict.plans if one.plan.key == key), None)
    return named or verdict.best or verdict.nearest


def lines_of(sides: Sequence[Compared], axes: Axes) -> list[Line]:
    """First what decides, then the machine attribute by attribute."""
    deciding = [
        Line(
            label, tuple((side, text(side.candidate, axes)) for side in sides), OPENS.get(label, "")
        )
        for label, text in DECIDING.items()
    ]
    known = [
        Line(label, tuple((side, _attribute(side.machine, name, show)) for side in sides), KNOWN)
        for name, label, show, _ in SHOWN
    ]
    return [*deciding, *known]


def _attribute(machine: Machine, name: str, show: Callable[[Any], str]) -> str:
    fact = getattr(machine, name)
    return f"{show(fact.value)} ({fact.grade.word})" if fact.known else "unknown"


def _memory(one: Candidate, axes: Axes) -> str:
    fit = one.plan.fit
    if fit.needed is None:
        return "unknown"
    return f"{gib_number(fit.needed.typical)} of {gib_number(fit.allowed_bytes)} GiB"


def _time(one: Candidate, axes: Axes) -> str:
    time = axes.time_of(one)
    return f"{spanned(time)} {axes.time_unit}" if time else "not timed"


def _cost(one: Candidate, axes: Axes) -> str:
    cost = cost_on(one, axes)
    return f"{cost} {axes.cost_unit}" if cost else "unknown"


def _hourly(one: Candidate) -> str:
    if one.cost_per_hour is None:
        return "not derivable"
    currency = one.rate.quote.currency if one.rate.quote else ""
    return derived_money(one.cost_per_hour, currency)


def _gpus(plan: Plan) -> str:
    return f"{plan.gpus} on {plan.nodes} machines" if plan.nodes > 1 else str(plan.gpus)


KNOWN, PRICES, LINKS = "attributes-title", "prices-title", "rates"
OF_LISTING = (KNOWN, PRICES)
NOTHING = ("unknown", "not timed", "not derivable", "no price published")
"""Words that nothing derives."""

OPENS = {
    "Plan": "plan",
    "Link it needs": LINKS,
    "Weakest evidence": KNOWN,
    "Availability": KNOWN,
    "Memory per GPU": "budget",
    "Memory, low to high": "budget",
    "Time": "times-from",
    "Cost": "times-from",
    "Price as published": PRICES,
    "Per hour, all machines": PRICES,
}

DECIDING: Mapping[str, Callable[[Candidate, Axes], str]] = {
    "Status": lambda one, _: one.status.value,
    "Plan": lambda one, _: one.plan.plan.label,
    "GPUs of the plan": lambda one, _: _gpus(one.plan.plan),
    "Memory per GPU": _memory,
    "Memory, low to high": lambda one, _: gib_span(one.plan.fit.needed) or "unknown",
    "Link it needs": lambda one, _: one.plan.link.word.value.replace("_", " "),
    "Time": _time,
    "Cost": _cost,
    "Price as published": lambda one, _: rate(one.rate.quote),  # type: ignore[arg-type]
    "Per hour, all machines": lambda one, _: _hourly(one),
    "Availability": lambda one, _: one.offering.availability.value.replace("_", " "),
    "Weakest evidence": lambda one, _: f"{one.plan.weakest.fact}, {one.plan.weakest.grade.word}",
    "Warnings": lambda one, _: " ".join(found.sentence for found in one.warnings) or "none",
}
