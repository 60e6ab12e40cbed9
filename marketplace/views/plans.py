"""Every plan of a workload on one machine: which is the narrowest that fits, and what it moves."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_not_required
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_http_methods

from evaluator.jobs import Workload
from evaluator.launch import launch_of
from evaluator.reports import evaluator_version
from evaluator.verdict import MachineVerdict, judge
from marketplace.forms import preset_names
from marketplace.views.asked import ENDS
from marketplace.views.chips import not_understood
from marketplace.views.drawings import drawing
from marketplace.views.kept import kept_a_minute
from marketplace.views.listing import chosen_plan
from marketplace.views.pages import render_page
from marketplace.views.plan_form import (
    Chosen,
    MachineForm,
    PastedPlansForm,
    PlansForm,
    chosen_machine,
)
from marketplace.views.plan_parts import (
    has_targets,
    ladder,
    narrowest,
    plan_context,
    time_context,
    why_narrowest,
)
from marketplace.views.shortlist import NOT_USABLE

PAGE, ANSWER, TOLD = "plans/plans.html", "plans/_answer.html", "plans/_told.html"
PARTS = {"sentence": "plans/_sentence.html", "answer": ANSWER}
KEPT_SECONDS = 600
PICTURES = {
    "diagram": ("plans/_diagram.svg", "plan"),
    "times": ("plans/_times.svg", "where-the-time-goes"),
}


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
@kept_a_minute
def plans(request: HttpRequest) -> HttpResponse:
    posted = request.method == "POST"
    asked = request.POST if posted else request.GET
    form: MachineForm = PastedPlansForm(asked) if posted else PlansForm(asked)
    page: dict[str, Any] = {
        "section": "plans",
        "form": form,
        "pasted": posted,
        "presets": preset_names(),
        "ignored": [] if posted else not_understood(request, [*form.fields, "picture"]),
    }
    if not form.is_valid():
        return render_page(request, PAGE, page, fragment=ANSWER, status=NOT_USABLE)
    page["here"] = _here(request, form)
    chosen = chosen_machine(form, request.user)
    if chosen is None:
        return render_page(request, PAGE, page, fragment=ANSWER)
    page |= {"workload": form.cleaned_data["workload"], "chosen": chosen}
    wanted = asked.get("picture", "")
    if wanted in PICTURES:
        template, file = PICTURES[wanted]
        return drawing(template, wanted, _judged(form, chosen).get(wanted), file)
    page["told"] = _told(page, form, chosen)
    return render_page(request, PAGE, page, fragment=TOLD)


def _told(page: Mapping[str, Any], form: MachineForm, chosen: Chosen) -> Mapping[str, str]:
    """Title and answer as text: they change only with what their key names."""

    def tell() -> dict[str, str]:
        judged = _judged(form, chosen)
        named = {one.plan.key for one in judged["verdict"].plans}
        asked = form.cleaned_data["plan"]
        other = [f"plan={asked}"] if asked and asked not in named else []
        whole = {**page, **judged, "ignored": [*page["ignored"], *other]}
        return {name: render_to_string(part, whole) for name, part in PARTS.items()}

    if page["pasted"] or page["ignored"]:
        return tell()
    named = (evaluator_version(), chosen.machine.fingerprint(), chosen.title, page["here"])
    asked = (form.cleaned_data["plan"], form.cleaned_data["fabric"])
    key = hashlib.sha256(repr((*named, *asked)).encode()).hexdigest()
    kept: Mapping[str, str] | None = cache.get_or_set(f"plans:{key}", tell, KEPT_SECONDS)
    return kept or tell()


def _here(request: HttpRequest, form: MachineForm) -> str:
    """The address of this question without its plan; a posted one has no address."""
    if isinstance(form, PastedPlansForm):
        return ""
    names = ("workload", *ENDS, "listing", "gpu", "count", "link")
    kept = {key: request.GET.get(key, "") for key in names}
    return f"?{urlencode({key: value for key, value in kept.items() if value})}"


def _judged(form: MachineForm, chosen: Chosen) -> dict[str, Any]:
    workload: Workload = form.cleaned_data["workload"]
    verdict = judge(workload, chosen.machine)
    shown = chosen_plan(verdict, form.cleaned_data["plan"])
    context = {
        "machine": chosen.machine,
        "verdict": verdict,
        "narrowest": narrowest(verdict),
        "why": why_narrowest(verdict),
        "targets": has_targets(workload),
        "rungs": ladder(workload, chosen.machine, verdict),
        "rejected": _rejected(verdict),
    }
    if shown is None:
        return context
    return {
        **context,
        **plan_context(workload, chosen.machine, shown),
        **time_context(workload, chosen.machine, verdict, shown),
        "launch": launch_of(
            workload, shown.plan, chosen.machine, unknown_fabric=bool(form.cleaned_data["fabric"])
        ),
    }


def _rejected(verdict: MachineVerdict) -> list[Any]:
    return [one for one in verdict.plans if not one.status.serves]
