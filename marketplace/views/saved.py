"""Answers that somebody kept: as they stood, what changed since, and read-only for others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import unescape
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evaluator.candidates import Candidate
from evaluator.reports import evaluator_version
from evaluator.workload import workload_presets
from marketplace.forms import PastedDemands, PresetDemands, as_workload, gpu_models, read_json
from marketplace.frozen import changes, freeze
from marketplace.models import SavedShortlist
from marketplace.models.saved import new_token
from marketplace.views.answers import Answer, Question
from marketplace.views.chips import carried, kept_chips
from marketplace.views.pages import render_page
from marketplace.views.shortlist import implied

MOST_SAVED = 200
"""Of one person, so that nobody fills the database."""

LONGEST_ADDRESS = 4000
SENTENCE = "shortlist/_sentence.html"
NOT_OF_THE_ANSWER = ("csrfmiddlewaretoken", "workload", "picture", "pick", "address", "drop")


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def saved(request: HttpRequest) -> HttpResponse:
    """The list of the viewer's own answers; a POST keeps one more."""
    if not request.user.is_authenticated:
        return redirect_to_login(_asked_on(request))
    own = SavedShortlist.objects.filter(owner=request.user)
    if request.method == "POST":
        return _keep(request)
    context = {"section": "saved", "saved": own.defer("rows", "document")[:MOST_SAVED]}
    return render_page(request, "saved/saved.html", context)


def _asked_on(request: HttpRequest) -> str:
    """Where to go on after signing in: at the answer, if a session ended before it was saved."""
    if "address" not in request.POST:
        return request.get_full_path()
    return f"{reverse('shortlist')}?{request.POST['address'][:LONGEST_ADDRESS]}"


def _keep(request: HttpRequest) -> HttpResponse:
    question, data = _question(request)
    found = question.answer(request.user)
    if found is None:
        messages.error(request, "A field could not be used, so nothing was saved.")
        return redirect("shortlist")
    if SavedShortlist.objects.filter(owner=request.user).count() >= MOST_SAVED:  # type: ignore[misc]
        messages.error(request, f"You keep {MOST_SAVED} answers already. Delete one first.")
        return redirect("saved")
    kept = SavedShortlist.objects.create(
        owner=request.user,  # type: ignore[misc]
        name=found.workload.name[:200],
        document=_document(data),
        demands=_demands(data).urlencode(),
        sentence=sentence_of(question, found),
        rows=[freeze(one) for one in found.ranked.shown],
        listings_total=found.result.total,
        evaluator_version=evaluator_version(),
    )
    messages.success(request, "Saved as it stands now. Only you can see it.")
    return redirect(kept)


def _question(request: HttpRequest) -> tuple[Question, QueryDict]:
    """What was asked on the page from which it is saved: by its address, or by a pasted text."""
    if "address" in request.POST:
        data = QueryDict(request.POST["address"][:LONGEST_ADDRESS])
        return Question(PresetDemands(data, gpu_models()), data), data
    return Question(PastedDemands(request.POST, gpu_models()), request.POST), request.POST


def _document(data: QueryDict) -> Any:
    """The workload file that a preset's name or a pasted text stands for."""
    text, presets = data.get("workload", ""), workload_presets()
    if text and text not in presets:
        return as_workload(read_json(text))
    return _preset(text or next(iter(presets)))


def _preset(slug: str) -> Any:
    return json.loads(json.dumps(workload_presets()[slug], default=dict))


def _demands(data: QueryDict) -> QueryDict:
    kept = data.copy()
    for name in NOT_OF_THE_ANSWER:
        kept.pop(name, None)
    return kept


def sentence_of(question: Question, found: Answer) -> str:
    """The first sentence of the page, as text."""
    context = {
        "form": question.form,
        "workload": found.workload,
        "best": found.best,
        "filtered": found.filtered,
        "result": found.result,
        "axes": found.axes,
    }
    return " ".join(unescape(render_to_string(SENTENCE, context)).split())


@require_safe
def one(request: HttpRequest, saved_id: int) -> HttpResponse:
    """One of the viewer's own: what was kept, and what is different now."""
    kept = get_object_or_404(SavedShortlist, pk=saved_id, owner=request.user)
    return _show(request, kept, own=True)


@login_not_required
@require_safe
def shared(request: HttpRequest, token: str) -> HttpResponse:
    """What whoever knows the token may read. It judges by what everybody may see."""
    kept = get_object_or_404(SavedShortlist, token=token)
    response = _show(request, kept, own=False)
    response["X-Robots-Tag"] = "noindex"
    response["Referrer-Policy"] = "no-referrer"
    return response


def _show(request: HttpRequest, kept: SavedShortlist, *, own: bool) -> HttpResponse:
    data = QueryDict(kept.demands, mutable=True)
    data["workload"] = json.dumps(kept.document)
    question = Question(PastedDemands(data, gpu_models()), data)
    found = question.answer(request.user if own else None)
    context: dict[str, Any] = {"section": "saved", "kept": kept, "own": own}
    context |= _again(kept, data)
    if found is not None:
        ranked = question.rows_on(found, {row["key"] for row in kept.rows})
        context |= _today(question, found, kept, ranked)
    if own and kept.token:
        context["share_address"] = request.build_absolute_uri(f"/shared/{kept.token}/")
    return render_page(request, "saved/one.html", context)


def _today(
    question: Question, found: Answer, kept: SavedShortlist, ranked: Sequence[Candidate]
) -> dict[str, Any]:
    """`ranked` are the rows of today on the listings that were kept."""
    result = found.result
    asked = [*kept_chips(question.form), *kept_chips(question.columns), *implied(found)]
    everything = [freeze(one) for one in (*ranked, *result.unranked, *result.near_misses)]
    shown = [freeze(one) for one in found.ranked.shown]
    found_changes = changes(kept.rows, everything, shown)
    return {
        "changes": [one for one in found_changes if not one.moved_only],
        "moved": [one for one in found_changes if one.moved_only],
        "sentence_now": sentence_of(question, found),
        "now": found,
        "workload": found.workload,
        "form": question.form,
        "implied": asked,
    }


def _again(kept: SavedShortlist, data: QueryDict) -> dict[str, Any]:
    """How the same is asked today: by an address where a preset was asked about, else by a form."""
    slug = next((slug for slug in workload_presets() if _preset(slug) == kept.document), "")
    if not slug:
        return {"asked_again": [(name, one) for name, all_of in data.lists() for one in all_of]}
    again = f"?{urlencode({'workload': slug})}&{kept.demands}".removesuffix("&")
    query = f"?{urlencode(carried({**data.dict(), 'workload': slug}))}"
    return {"workload_query": query, "again": again}


@require_POST
def change(request: HttpRequest, saved_id: int) -> HttpResponse:
    """Share, stop sharing, or delete one of the viewer's own."""
    kept = get_object_or_404(SavedShortlist, pk=saved_id, owner=request.user)
    wish = request.POST.get("wish", "")
    if wish not in ("share", "hide", "delete"):
        raise Http404
    if wish == "delete":
        kept.delete()
        messages.success(request, "Deleted.")
        return redirect("saved")
    kept.token = new_token() if wish == "share" else None
    kept.save(update_fields=["token"])
    return redirect(kept)
