"""The first screen: which machine to rent for a preset, or for a workload that is pasted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.views.decorators.http import require_http_methods, require_safe

from evaluator.jobs import Workload
from evaluator.shortlist import Candidate, Shortlist
from evaluator.workload import workload_presets
from marketplace import evaluations, listings
from marketplace.forms import Demands, PastedDemands, PresetDemands, gpu_models
from marketplace.views.chips import Chip, chips_of, not_understood
from marketplace.views.pages import render_page

PAGE, RESULTS = "shortlist/shortlist.html", "shortlist/_results.html"
NOT_USABLE = 422
"""A field of the request cannot be used, so nothing was ranked."""


@login_not_required
@require_safe
def shortlist(request: HttpRequest) -> HttpResponse:
    """A preset's shortlist. Everything that shapes it stands in the address."""
    form = PresetDemands(request.GET, gpu_models())
    form.full_clean()
    slug = request.GET.get("workload") or next(iter(workload_presets()))
    shaped = {
        "chips": chips_of(request, form),
        "ignored": not_understood(request, form.fields),
        "workload_query": f"?{urlencode({'workload': slug})}",
    }
    return _answer(request, form, shaped)


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def pasted(request: HttpRequest) -> HttpResponse:
    """A pasted workload's shortlist: judged for this answer alone, the text is not kept."""
    if request.method != "POST":
        form = PastedDemands(None, gpu_models())
        form.initial = {"workload": _example(request.GET.get("workload", ""))}
        return render_page(request, PAGE, {"section": "shortlist", "form": form, "pasted": True})
    form = PastedDemands(_without_dropped(request.POST), gpu_models())
    form.full_clean()
    chips = [replace(chip, remove="") for chip in chips_of(request, form)]
    return _answer(request, form, {"chips": chips, "pasted": True})


def _answer(request: HttpRequest, form: Demands, context: Mapping[str, Any]) -> HttpResponse:
    page = {"section": "shortlist", "form": form, **context}
    if not form.is_valid():
        return render_page(request, PAGE, page, fragment=RESULTS, status=NOT_USABLE)
    own: Workload = form.cleaned_data["workload"]
    workload = replace(own, needs=form.needs_on_top_of(own.needs))
    result = evaluations.shortlist_for(
        workload, _offered(form), form.rows, keep=False, viewer=request.user
    )
    page |= {
        "workload": workload,
        "result": result,
        "best": best_of(result),
        "implied": implied(workload, result),
        "elsewhere": _offered_more_than_once(result),
    }
    return render_page(request, PAGE, page, fragment=RESULTS)


def _offered(form: Demands) -> Any:
    model = form.cleaned_data["gpu"]
    return listings.current().filter(gpu_model=model) if model else None


def _offered_more_than_once(result: Shortlist) -> set[str]:
    """Configurations among the shown that several listings describe, resellers' included."""
    shown = (*result.rows, *result.unranked, *result.near_misses)
    counts = listings.times_offered(one.offering.configuration for one in shown)
    return {configuration for configuration, times in counts.items() if times > 1}


def best_of(result: Shortlist) -> Candidate | None:
    """The answer: one GPU where one is enough, else the first candidate that serves.

    A price that can be compared comes first: without one nobody can say what the answer costs.
    """
    serving = [one for one in (*result.rows, *result.unranked) if one.status.serves]
    return min(serving, key=lambda one: not one.rate.ranked, default=None)


def implied(workload: Workload, result: Shortlist) -> list[Chip]:
    """What always applies, and what the workload file itself demands."""
    chips = [
        Chip(f"prices in {result.currency} only"),
        Chip("listings gone from their catalog are hidden"),
    ]
    purchases = "on-demand and spot prices" if workload.needs.spot else "on-demand prices"
    return [Chip(purchases), *chips]


def _without_dropped(posted: QueryDict) -> QueryDict:
    """A chip's button sends the whole form and the name of the demand to take away."""
    kept = posted.copy()
    dropped = kept.get("drop", "")
    if dropped in Demands.base_fields:
        kept.pop(dropped, None)
    return kept


def _example(slug: str) -> str:
    presets = workload_presets()
    document = presets.get(slug) or next(iter(presets.values()))
    return json.dumps(document, indent=2, default=dict)
