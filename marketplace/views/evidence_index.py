"""Every machine that somebody looked at, as far as the viewer may know of it."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from marketplace.seen_machines import contradicted_by, machines_seen
from marketplace.views.pages import render_page


@login_not_required
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    found, total = machines_seen(request.user)
    against = [one for one in found if one.contradicts]
    context = {
        "section": "evidence",
        "against": against,
        "contradicted": contradicted_by(against),
        "others": [one for one in found if not one.contradicts],
        "shown": len(found),
        "total": total,
        "listings": len({one.listing.pk for one in found}),
    }
    return render_page(request, "evidence/index.html", context)
