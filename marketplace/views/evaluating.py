"""Long evaluations: asked for, watched while they run, and stopped."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HTMX_STOP_POLLING

from evaluator.fields import InvalidWorkload
from evaluator.workload import parse_workload
from marketplace import evaluations
from marketplace.forms import PASTE_LIMIT, as_workload, read_json
from marketplace.models import Evaluation
from marketplace.views.pages import render_page, wants_fragment

MOST_OPEN = 3
"""Evaluations of one person that wait or run at once."""
PAGE, FRAGMENT = "evaluations/evaluation.html", "evaluations/_progress.html"


@require_POST
def ask(request: HttpRequest) -> HttpResponse:
    """Queues one evaluation of a workload; one that waits or runs already is shown instead."""
    text = request.POST.get("workload", "")[: PASTE_LIMIT + 1]
    try:
        kept = evaluations.keep_workload(as_workload(read_json(text)), _person(request))
    except (InvalidWorkload, ValidationError) as error:
        told = error.messages[0] if isinstance(error, ValidationError) else str(error)
        messages.error(request, f"Nothing was queued. {told}")
        return redirect("workload")
    open_ones = Evaluation.objects.filter(state__in=evaluations.OPEN)
    same = open_ones.filter(workload=kept).first()
    if same is None and open_ones.filter(workload__owner=kept.owner).count() >= MOST_OPEN:
        messages.error(request, f"{MOST_OPEN} of your evaluations are open; cancel one first.")
        same = open_ones.filter(workload__owner=kept.owner).first()
    return redirect("evaluation", (same or evaluations.request_evaluation(kept)).pk)


def _person(request: HttpRequest) -> Any:
    """Strangers are sent to the login before they come here."""
    return request.user


def _own(request: HttpRequest, evaluation_id: int) -> Evaluation:
    """One's own evaluation, or anybody's for a curator. Others learn not even that it exists."""
    rows = Evaluation.objects.select_related("workload")
    if not request.user.has_perm("marketplace.view_evaluation"):
        rows = rows.filter(workload__owner=_person(request))
    return get_object_or_404(rows, pk=evaluation_id)


@require_safe
def evaluation(request: HttpRequest, evaluation_id: int) -> HttpResponse:
    row = _own(request, evaluation_id)
    is_open = row.state in evaluations.OPEN
    context = {
        "section": "workload",
        "evaluation": row,
        "open": is_open,
        "document": json.dumps(row.workload.document, indent=2),
        "results": _results(row),
    }
    asked_again = wants_fragment(request) and not is_open
    status = HTMX_STOP_POLLING if asked_again else 200
    return render_page(request, PAGE, context, fragment=FRAGMENT, status=status)


def _results(row: Evaluation) -> list[tuple[str, int]]:
    """None of a workload that this version does not read: the evaluation says so as its error."""
    try:
        workload = parse_workload(row.workload.document)
    except InvalidWorkload:
        return []
    return evaluations.results_of(workload)


@require_POST
def cancel(request: HttpRequest, evaluation_id: int) -> HttpResponse:
    row = _own(request, evaluation_id)
    if not evaluations.cancel(row.pk):
        messages.info(request, "It had ended already.")
    return redirect("evaluation", row.pk)
