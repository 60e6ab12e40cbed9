"""Every plan of a workload on one machine: which is the narrowest that fits, and what it moves."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from evaluator.jobs import Workload
from evaluator.launch import launch_of
from evaluator.verdict import MachineVerdict, judge
from marketplace.forms import preset_names
from marketplace.views.chips import not_understood
from marketplace.views.drawings import drawing
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

PAGE, ANSWER = "plans/plans.html", "plans/_answer.html"
PICTURES = {
    "diagram": ("plans/_diagram.svg", "plan"),
    "times": ("plans/_times.svg", "where-the-time-goes"),
}


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
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
    chosen = chosen_machine(form, request.user)
    page |= _judged(form, chosen) if chosen else {}
    wanted = asked.get("picture", "")
    if wanted in PICTURES:
        template, file = PICTURES[wanted]
        return drawing(template, wanted, page.get(wanted), file)
    page["here"] = _here(request, form)
    return render_page(request, PAGE, page, fragment=ANSWER)


def _here(request: HttpRequest, form: MachineForm) -> str:
    """The address of this question without its plan; a posted one has no address."""
    if isinstance(form, PastedPlansForm):
        return ""
    kept = {
        key: request.GET.get(key, "") for key in ("workload", "listing", "gpu", "count", "link")
    }
    return f"?{urlencode({key: value for key, value in kept.items() if value})}"


def _judged(form: MachineForm, chosen: Chosen) -> dict[str, Any]:
    workload: Workload = form.cleaned_data["workload"]
    verdict = judge(workload, chosen.machine)
    shown = chosen_plan(verdict, form.cleaned_data["plan"])
    context = {
        "workload": workload,
        "chosen": chosen,
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
