"""One listing: what is known about it, what is not, and what a workload could do with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from evaluator.candidates import candidate_of
from evaluator.economics import terms_of
from evaluator.findings import recall
from evaluator.first_step import first_step
from evaluator.host import count
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.offers import Offering
from evaluator.verdict import MachineVerdict, PlanVerdict
from evaluator.workload import workload_presets
from marketplace import listings, pictures
from marketplace.drawing.price_history import Observation, price_history
from marketplace.evidence import visible_to
from marketplace.forms import preset_names
from marketplace.locks import PRICE, lock_in
from marketplace.machines import machine_of
from marketplace.models import Listing
from marketplace.own_looks import own_looks
from marketplace.page_dates import old_news
from marketplace.prepared import Prepared
from marketplace.shelf import shelf
from marketplace.views.asked import asked_preset
from marketplace.views.attributes import attributes_of, other_words
from marketplace.views.checklist import Checklist, checklist_of
from marketplace.views.chips import changed, unknown_values
from marketplace.views.drawings import drawing
from marketplace.views.kept import kept_a_minute
from marketplace.views.links import links_context
from marketplace.views.pages import render_page
from marketplace.workbooks import judge_machine, name_of, workbook_of

PRICES_SHOWN = 100
SIMILAR_SHOWN = 6
SIMILAR_COLUMNS = (
    *("title", "sku", "region", "configuration", "link", "machine_hour_amount"),
    *("machine_hour_currency", "availability", "last_seen", "provider__name"),
)
DRAWN = {
    "history": ("_price_history.svg", "history"),
    "memory": ("_memory.svg", "picture"),
    "links": ("_links.svg", "links"),
}
"""Pictures that can be saved: their template, and their name in it."""


@dataclass(frozen=True, slots=True)
class Rental:
    """What a test hour costs is worked out of these, for the rows of the plans."""

    machine_hour_amount: Decimal | None
    machine_hour_currency: str
    nodes: int


@login_not_required
@require_safe
@kept_a_minute
def listing(request: HttpRequest, listing_id: int) -> HttpResponse:
    row = listings.detailed_or_404(listing_id)
    asked = asked_preset(request)
    workload = asked.workload
    shelf().settle([row])
    held = visible_to(request.user, row)
    own = own_looks(held, request.user)
    machine = machine_of(row, own.rented, seen=own.facts) if own else machine_of(row)
    verdict = judge_machine(workload, machine)
    plan = chosen_plan(verdict, request.GET.get("plan", ""))
    group = [listings.offering_of(row)]
    context = {
        "section": "listings",
        "listing": row,
        "rental": Rental(row.machine_hour_amount, row.machine_hour_currency, row.nodes),
        "attributes": attributes_of(row, machine),
        "other_words": other_words(row),
        "findings": [
            *(recall(stored) for stored in row.findings),
            *old_news(row.source_id, timezone.now().date()),
        ],
        "presets": preset_names(),
        "asked": asked,
        "ignored": [
            *unknown_values(
                request,
                workload=workload_presets(),
                plan={one.plan.key for one in verdict.plans},
            ),
            *asked.refused,
        ],
        "workload": workload,
        "verdict": verdict,
        "judged": f"{name_of(workload)} on {verdict.configuration}",
        **_prices(row),
        **_offer(group, workload, verdict),
        "checklist": _checklist(group, workload, verdict, machine, plan),
        **_history(row),
        **_similar(row),
        **_plans(verdict),
        **_memory(workload, plan),
        **links_context(row, held, machine, own, plan),
    }
    wanted = request.GET.get("picture", "")
    if drawn := DRAWN.get(wanted):
        template, name = drawn
        context["picture"] = pictures.memory_picture(context["memory"], plan.fit) if plan else None
        return drawing(template, name, context[name], f"listing-{row.pk}-{name}")
    if wanted in (of_others := {f"links-{one.rented.pk}": one.links for one in context["others"]}):
        return drawing("_links.svg", "links", of_others[wanted], f"listing-{row.pk}-{wanted}")
    context["picture_addresses"] = {key: changed(request, {"picture": key}) for key in DRAWN}
    context["matrix_address"] = changed(request, {"picture": "links-"})
    return render_page(request, "listings/listing.html", context, fragment="listings/_plans.html")


def _similar(row: Listing) -> dict[str, Any]:
    """Other current listings with as many of the same GPU, cheapest first. Found in memory."""
    if not (row.gpu_model and row.gpu_count):
        return {"similar": [], "similar_total": 0}
    held = shelf()
    keys = [key for key in held.alike(row.gpu_model, row.gpu_count) if key != row.pk]
    shown = keys[:SIMILAR_SHOWN]
    rows = {other.pk: other for other in _SIMILAR.rows(*shown)} if shown else {}
    held.settle(rows.values())
    return {
        "similar": [rows[key] for key in shown if key in rows],
        "similar_total": len(keys),
    }


def _others(*keys: int) -> QuerySet[Listing]:
    rows = Listing.objects.select_related("provider").only(*SIMILAR_COLUMNS)
    return rows.filter(pk__in=keys).order_by()


_SIMILAR = Prepared(_others)


def chosen_plan(verdict: MachineVerdict, key: str) -> PlanVerdict | None:
    """The plan that an address names, else the narrowest that serves, else the nearest miss."""
    named = next((plan for plan in verdict.plans if plan.plan.key == key), None)
    return named or verdict.best or verdict.nearest


def _offer(
    group: Sequence[Offering], workload: Workload, verdict: MachineVerdict
) -> dict[str, Any]:
    """The status and the checklist with what the offer itself adds: its rate, and whether it can
    be had. A machine that is sold out is ready for nothing.
    """
    plan = verdict.best or verdict.nearest
    if plan is None:
        return {"status": verdict.status, "host": (), "counts": count(())}
    offer = candidate_of(group, verdict, plan, terms_of(workload))
    return {"status": offer.status, "host": offer.host, "counts": count(offer.host)}


def _checklist(
    group: Sequence[Offering],
    workload: Workload,
    verdict: MachineVerdict,
    machine: Machine,
    plan: PlanVerdict | None,
) -> Checklist | None:
    """Of the plan that is shown: another plan asks other things of the same host."""
    if plan is None:
        return None
    candidate = candidate_of(group, verdict, plan, terms_of(workload))
    start = first_step(workload, machine, workbook_of(workload).weights_bytes)
    return checklist_of(candidate, machine, start)


def _plans(verdict: MachineVerdict) -> dict[str, Any]:
    return {
        "serving": [plan for plan in verdict.plans if plan.status.serves],
        "rejected": [plan for plan in verdict.plans if not plan.status.serves],
    }


def _memory(workload: Workload, plan: PlanVerdict | None) -> dict[str, Any]:
    if plan is None:
        return {"plan": None, "memory": None}
    book = workbook_of(workload)
    return {
        "plan": plan,
        "memory": book.budget(plan.plan),
        "capacity": book.capacity(plan.plan, plan.usable_bytes),
    }


def _history(row: Listing) -> dict[str, Any]:
    """The chart of all prices that come to a machine-hour, and the same as rows."""
    observed = [
        Observation(
            amount=price.machine_per_hour,
            currency=price.currency,
            name=", ".join(filter(None, (price.purchase.replace("_", " "), price.term))),
            since=price.first_seen,
            until=price.superseded_at,
        )
        for price in row.prices.all()
        if price.machine_per_hour is not None
    ]
    rows = sorted(observed, key=lambda one: one.since, reverse=True)
    return {"history": price_history(observed, timezone.now()), "observed": rows[:PRICES_SHOWN]}


def _prices(row: Listing) -> dict[str, Any]:
    found = list(row.prices.all())
    return {
        "price_lock": lock_in(row.corrections, PRICE),
        "current": [price for price in found if price.superseded_at is None],
        "past": [price for price in found if price.superseded_at is not None][:PRICES_SHOWN],
    }
