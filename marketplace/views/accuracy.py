"""Predicted against measured, misses included: the newest result that was kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.utils.text import slugify
from django.views.decorators.http import require_safe

from evaluator.units import GB, GIB
from marketplace.models import AccuracyReport
from marketplace.pictures import ScatterPicture, scatter_picture
from marketplace.views.drawings import drawing
from marketplace.views.pages import render_page

UNIT_BYTES = {"bytes": 1, "GB": GB, "GiB": GIB}
"""Units that one picture can show together; tokens stand in the table only."""


@login_not_required
@require_safe
def accuracy(request: HttpRequest) -> HttpResponse:
    reports = [_told(report) for report in AccuracyReport.objects.all()]
    wanted = request.GET.get("picture")
    if wanted is not None:
        named = (report["picture"] for report in reports if report["kind"] == wanted)
        file = f"predicted-against-measured-{slugify(wanted)}"
        return drawing("accuracy/_scatter.svg", "picture", next(named, None), file)
    context = {"section": "accuracy", "reports": reports}
    return render_page(request, "accuracy/accuracy.html", context)


def _told(report: AccuracyReport) -> Mapping[str, Any]:
    """One kind of cases for the template."""
    summary = report.summary
    outcomes = summary["outcomes"]
    missed = [one for one in outcomes if not one["within"]]
    return {
        "kind": report.kind,
        "kept_at": report.kept_at,
        "version": report.evaluator_version,
        "cases": summary["cases"],
        "within": summary["within_tolerance"],
        "not_judged": sum(summary["not_judged"].values()),
        "kinds": summary["by_kind"].items(),
        "missed": missed,
        "outcomes": outcomes,
        "picture": _picture(outcomes),
    }


def _picture(outcomes: Iterable[Mapping[str, Any]]) -> ScatterPicture | None:
    points = [
        (one["measured"] * UNIT_BYTES[one["unit"]], one["predicted"] * UNIT_BYTES[one["unit"]])
        for one in outcomes
        if one["unit"] in UNIT_BYTES and one["compared"] and one["counted"]
    ]
    return scatter_picture(points)
