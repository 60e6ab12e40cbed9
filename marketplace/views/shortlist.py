"""The first screen: which machine to rent for a preset, or for a workload that is pasted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from evaluator.candidates import Candidate
from evaluator.shortlist import BEYOND_LIMIT
from evaluator.workload import workload_presets
from marketplace.advising import advised, rows_to_advise
from marketplace.fleets import OFFER_COLUMNS
from marketplace.forms import Demands, PastedDemands, PresetDemands, gpu_models
from marketplace.shelf import shelf
from marketplace.views.answers import Answer, Question
from marketplace.views.chips import Chip, changed, chips_of, not_understood
from marketplace.views.columns import Drawn
from marketplace.views.drawings import drawing
from marketplace.views.kept import kept_a_minute
from marketplace.views.pages import render_page
from marketplace.views.ranked import RANK

PAGE, RESULTS = "shortlist/shortlist.html", "shortlist/_results.html"
SCATTER = "_cost_scatter.svg"
NOT_USABLE = 422
"""A field of the request cannot be used, so nothing was ranked."""

PLACE = ("after", "picture")
UNRANKED_SHOWN = 20

CARRIED = ("workload", "tokens", "deadline")
"""What of an address shapes the judging of one machine, for the page that compares some."""

BY_WORKLOAD = ("time", "cost")
"""Columns whose names follow the workload: an answer of htmx renames their fields."""

NUMERIC = frozenset({"memory", "time", "cost", "speed", "hourly", "gpus"})
ELSEWHERE = "they stand on other pages"


@login_not_required
@require_safe
@kept_a_minute
def shortlist(request: HttpRequest) -> HttpResponse:
    """A preset's shortlist. Everything that shapes it stands in the address."""
    form = PresetDemands(request.GET, gpu_models())
    question = Question(form, request.GET)
    slug = request.GET.get("workload") or next(iter(workload_presets()))
    chips = _chips(request, question)
    known = [*form.fields, *question.columns.fields, *PLACE, *question.understood]
    shaped = {
        "chips": chips,
        "ignored": not_understood(request, known),
        "slug": slug,
        "workload_query": f"?{urlencode({'workload': slug})}",
    }
    return _answer(request, question, shaped)


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def pasted(request: HttpRequest) -> HttpResponse:
    """A pasted workload's shortlist: judged for this answer alone, the text is not kept."""
    if request.method != "POST":
        form = PastedDemands(None, gpu_models())
        form.initial = {"workload": _example(request.GET.get("workload", ""))}
        return render_page(request, PAGE, {"section": "shortlist", "form": form, "pasted": True})
    data = _without_dropped(request.POST)
    question = Question(PastedDemands(data, gpu_models()), data)
    chips = [replace(chip, remove="") for chip in _chips(request, question)]
    return _answer(request, question, {"chips": chips, "pasted": True})


def _answer(request: HttpRequest, question: Question, context: Mapping[str, Any]) -> HttpResponse:
    page = {"section": "shortlist", **context, **_shape(request, question)}
    found = question.answer(request.user)
    if found is None:
        return render_page(request, PAGE, page, fragment=RESULTS, status=NOT_USABLE)
    page |= answer_context(found)
    if (request.POST or request.GET).get("picture") == "scatter":
        return drawing(SCATTER, "scatter", found.scatter, "cost-against-time")
    now = timezone.now()
    rows = rows_to_advise(found.ranked.leading, found.best)
    page["advised"] = advised(found.workload, found.result, rows, now, found.machines(rows))
    page |= {
        "next": changed(request, {"after": found.ranked.next_key}),
        "first": changed(request, {}),
        "job": found.workload if page.get("pasted") else None,
        "scatter_address": changed(request, {"picture": "scatter"}),
        "carried": [(name, request.GET[name]) for name in CARRIED if request.GET.get(name)],
    }
    return render_page(request, PAGE, page, fragment=RESULTS)


def _shape(request: HttpRequest, question: Question) -> dict[str, Any]:
    """The form, the columns, and where each column's head leads."""
    return {
        "form": question.form,
        "columns": question.columns,
        "drawn": [_head(request, question, one.key, one.head) for one in question.drawn],
        "named_by_workload": [one for one in question.columns.columns if one.key in BY_WORKLOAD],
        "shown": Drawn.of(question.columns.shown),
        "rank_head": _head(request, question, RANK, "#"),
        "orders": _orders(question),
        "of_ranked_rows": ", ".join(_of_ranked_rows(question).values()),
    }


def _orders(question: Question) -> list[tuple[str, str, bool]]:
    """Every order by its word in the address: a narrow screen has no heads to press."""
    named = [("", "Rank"), *((one.key, one.label) for one in question.columns.columns)]
    ways = [
        (f"{sign}{key or (sign and RANK)}", f"{label}{', turned round' if sign else ''}")
        for key, label in named
        for sign in ("", "-")
    ]
    asked = f"{'-' if question.backwards else ''}{question.sort}"
    return [(word, label, word == ("" if asked == RANK else asked)) for word, label in ways]


def _head(request: HttpRequest, question: Question, key: str, title: str) -> dict[str, str | None]:
    """A second click on the column that sorts turns its order round."""
    active = question.sort == key
    word = f"-{key}" if active and not question.backwards else key
    return {
        "key": key,
        "title": title,
        "filter": question.columns.typed.get(key),
        "word": word,
        "href": changed(request, {"sort": "" if word == RANK else word}),
        "turn": ("descending" if question.backwards else "ascending") if active else "",
    }


def answer_context(found: Answer) -> dict[str, Any]:
    """What the results, the title and the picture are made of."""
    result, hidden = found.result, hidden_because(found)
    return {
        "workload": found.workload,
        "result": result,
        "ranked": found.ranked,
        "axes": found.axes,
        "best": found.best,
        "filtered": found.filtered,
        "scatter": found.scatter,
        "shown_count": result.total - sum(hidden.values()),
        "hidden": hidden,
        "numeric": NUMERIC,
        "near_misses": result.near_misses,
        "unranked": result.unranked[:UNRANKED_SHOWN],
        "unranked_more": max(0, result.unranked_total - UNRANKED_SHOWN),
        "implied": implied(found),
        "elsewhere": _offered_more_than_once(found),
    }


def hidden_because(found: Answer) -> dict[str, int]:
    """Every listing that no part of this page shows, under the first reason that holds."""
    ranked, shown = found.ranked, {one.offering.key for one in _shown(found)}
    counts = Counter(found.result.hidden)
    others = found.result.total - len(shown) - counts.total()
    counts[BEYOND_LIMIT if ranked.first_page else ELSEWHERE] += others
    return {reason: count for reason, count in counts.items() if count}


def _shown(found: Answer) -> tuple[Candidate, ...]:
    result = found.result
    return (*found.ranked.shown, *result.unranked[:UNRANKED_SHOWN], *result.near_misses)


def _offered_more_than_once(found: Answer) -> set[str]:
    """Configurations among the shown that several listings describe, resellers' included."""
    counts = shelf().times_offered(one.offering.configuration for one in _shown(found))
    return {configuration for configuration, times in counts.items() if times > 1}


def implied(found: Answer) -> list[Chip]:
    """What always applies, and what the workload file itself demands."""
    spot, currency = found.workload.needs.spot, found.result.currency
    return [
        Chip("on-demand and spot prices" if spot else "on-demand prices"),
        Chip(f"only prices in {currency} are compared"),
        Chip("listings gone from their catalog are hidden"),
        Chip(f"listings not seen for {settings.HIDDEN_HOURS} hours are hidden"),
        *_own_demands(found),
    ]


def _own_demands(found: Answer) -> list[Chip]:
    """Needs of the workload file that no field of the form replaced."""
    needs, asked = found.workload.needs, found.demands
    own = {
        "regions": ", ".join(needs.regions),
        "max_price": needs.max_price_per_hour,
        "min_grade": needs.min_grade and needs.min_grade.word,
    }
    return [
        Chip(f"{DEMANDS[name]}, from the workload file: {value}")
        for name, value in own.items()
        if value and not asked.get(name)
    ]


def _chips(request: HttpRequest, question: Question) -> list[Chip]:
    """Every filter, and of what it is one where that is not all that the page shows."""
    only = dict.fromkeys(_of_ranked_rows(question), RANKED_ONLY)
    if question.workload and question.workload.training is None:
        only |= dict.fromkeys(("tokens", "deadline"), TRAINING_ONLY)
    chips = chips_of(request, question.form) + chips_of(request, question.columns)
    return [
        replace(chip, words=f"{chip.words}, {only[chip.key]}") if chip.key in only else chip
        for chip in chips
    ]


def _of_ranked_rows(question: Question) -> dict[str, str]:
    """Filters over columns of verdicts by their names. Near misses and rows without a comparable
    price stay below whatever these ask: a near miss is what such a filter would always hide."""
    filters = question.columns.filters.keys() - OFFER_COLUMNS
    return {one.key: one.label for one in question.columns.columns if one.key in filters}


RANKED_ONLY = "of ranked rows"
TRAINING_ONLY = "of training alone"

DEMANDS = {
    name: str(field.label)
    for name, field in Demands.base_fields.items()
    if name in ("regions", "max_price", "min_grade")
}


def _without_dropped(posted: QueryDict) -> QueryDict:
    """A chip's button sends the whole form and the name of the demand to take away."""
    kept = posted.copy()
    dropped = kept.get("drop", "")
    if dropped not in ("workload", "csrfmiddlewaretoken"):
        kept.pop(dropped, None)
    return kept


def _example(slug: str) -> str:
    presets = workload_presets()
    document = presets.get(slug) or next(iter(presets.values()))
    return json.dumps(document, indent=2, default=dict)
