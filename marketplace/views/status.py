"""How the sources stand, and which rows of a run were not believed."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.views.decorators.http import require_safe

from evaluator.findings import Finding, recall
from marketplace.models import QuarantinedRow, SyncRun
from marketplace.standings import IN_TROUBLE, standings, summed
from marketplace.views.pages import render_page
from marketplace.views.paging import whole_number

ROWS_PER_PAGE = 200


@login_not_required
@require_safe
def status(request: HttpRequest) -> HttpResponse:
    found = standings(timezone.now())
    context = {
        "section": "status",
        "standings": [standing for standing in found if standing.in_use],
        "unused": [standing for standing in found if not standing.in_use],
        "quarantined": summed(standing.quarantined for standing in found),
        "left_out": summed(standing.left_out for standing in found),
        "listings": sum(standing.listings for standing in found),
        "bands": {
            "fresh": settings.FRESH_HOURS,
            "ageing": settings.AGEING_HOURS,
            "hidden": settings.HIDDEN_HOURS,
        },
        "in_trouble": [one for one in found if one.state in IN_TROUBLE or one.aged],
    }
    return render_page(request, "status/status.html", context, fragment="status/_sources.html")


@login_not_required
@require_safe
def quarantine(request: HttpRequest, run_id: int) -> HttpResponse:
    """Rows of one run that were set aside, by key, from the one after `after`."""
    run = get_object_or_404(SyncRun.objects.select_related("source__provider"), pk=run_id)
    rows = run.quarantined.order_by("pk")
    reason = request.GET.get("reason", "").replace("\0", "")  # PostgreSQL refuses to compare it
    if reason:
        rows = rows.filter(reason=reason)
    after = whole_number(request.GET.get("after", ""))
    page = list(rows.filter(pk__gt=after)[: ROWS_PER_PAGE + 1])
    context = {
        "section": "status",
        "run": run,
        "reason": reason,
        "total": rows.count(),
        "rows": [_told(row) for row in page[:ROWS_PER_PAGE]],
        "next_after": page[ROWS_PER_PAGE - 1].pk if len(page) > ROWS_PER_PAGE else None,
    }
    return render_page(request, "status/quarantine.html", context)


def _told(row: QuarantinedRow) -> tuple[QuarantinedRow, Finding]:
    return row, recall(row.finding)
