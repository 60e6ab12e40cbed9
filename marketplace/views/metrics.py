"""The state of the catalog for machines: JSON, and text for Prometheus. As public as /status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from marketplace.models import Outbox
from marketplace.standings import STATES, Standing, standings

TEXT = "text/plain; version=0.0.4; charset=utf-8"


@login_not_required
@require_safe
@never_cache
def status_json(request: HttpRequest) -> JsonResponse:
    """Every source with its state, ages, counts and the reason of its newest run."""
    now = timezone.now()
    told = [_told(standing, now) for standing in standings(now)]
    return JsonResponse({"at": now, "outbox_waiting": _waiting(), "sources": told})


@login_not_required
@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """One gauge a line, labelled by source."""
    now = timezone.now()
    lines = _lines(standings(now), now)
    return HttpResponse("\n".join(lines) + "\n", content_type=TEXT)


def _told(standing: Standing, now: datetime) -> dict[str, Any]:
    source, run = standing.source, standing.run
    return {
        "source": source.key,
        "provider": source.provider.name,
        "state": standing.state,
        "robots": source.robots,
        "last_success": source.last_success_at,
        "age_seconds": _age(standing, now),
        "listings": standing.listings,
        "set_aside": dict(standing.quarantined),
        "left_out": dict(standing.left_out),
        "next_due": standing.next_due,
        "run": {"outcome": run.outcome, "reason": run.reason, "at": run.started_at}
        if run
        else None,
    }


def _age(standing: Standing, now: datetime) -> float | None:
    seen = standing.source.last_success_at
    return round((now - seen).total_seconds(), 1) if seen else None


def _lines(found: Sequence[Standing], now: datetime) -> Iterator[str]:
    yield "# HELP linkproof_source_state 1 for the state that a source is in."
    yield "# TYPE linkproof_source_state gauge"
    for one in found:
        for state in STATES:
            labels = f'source="{one.source.key}",state="{state}"'
            yield f"linkproof_source_state{{{labels}}} {int(one.state == state)}"
    yield "# HELP linkproof_source_age_seconds Since the last success; absent when there was none."
    yield "# TYPE linkproof_source_age_seconds gauge"
    for one in found:
        age = _age(one, now)
        if age is not None:
            yield f'linkproof_source_age_seconds{{source="{one.source.key}"}} {age}'
    yield "# HELP linkproof_source_listings Listings that a source offers now."
    yield "# TYPE linkproof_source_listings gauge"
    yield from (
        f'linkproof_source_listings{{source="{one.source.key}"}} {one.listings}' for one in found
    )
    yield "# HELP linkproof_source_set_aside Rows that the newest run did not believe."
    yield "# TYPE linkproof_source_set_aside gauge"
    for one in found:
        for reason, count in one.quarantined:
            labels = f'source="{one.source.key}",reason="{reason}"'
            yield f"linkproof_source_set_aside{{{labels}}} {count}"
    yield "# HELP linkproof_outbox_waiting Messages that the broker has not taken yet."
    yield "# TYPE linkproof_outbox_waiting gauge"
    yield f"linkproof_outbox_waiting {_waiting()}"


def _waiting() -> int:
    return Outbox.objects.filter(published_at=None).count()
