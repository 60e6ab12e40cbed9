"""The memory of a workload while it is being shaped: which cards hold it, and which do not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from evaluator.gpus import GpuSpec, specs, specs_of
from evaluator.jobs import Workload
from evaluator.machine import worst_usable_bytes
from evaluator.memory import MemoryBudget, budget, fit
from evaluator.plans import Plan
from marketplace.drawing.memory_bars import NARROW, CardSize, memory_bars
from marketplace.forms import gpu_models, preset_names
from marketplace.views.chips import changed, not_understood
from marketplace.views.drawings import drawing
from marketplace.views.kept import kept_a_minute
from marketplace.views.pages import render_page
from marketplace.views.shortlist import NOT_USABLE
from marketplace.views.workload_form import PastedForm, WorkloadForm, preset_like, start_of

PAGE, ANSWER, PICTURE = "workload/workload.html", "workload/_answer.html", "workload/_bars.svg"


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
@kept_a_minute
def workload(request: HttpRequest) -> HttpResponse:
    """A model's memory from the address, or from a posted text that is not kept."""
    form = _form(request)
    pasted = isinstance(form, PastedForm)
    page: dict[str, Any] = {
        "section": "workload",
        "form": form,
        "pasted": pasted,
        "blank": pasted and request.method != "POST",
        "presets": preset_names(),
    }
    if page["blank"]:
        return render_page(request, PAGE, page)
    if not form.is_valid():
        return render_page(request, PAGE, page, fragment=ANSWER, status=NOT_USABLE)
    page |= _answer(form)
    page["ignored"] = (
        [] if pasted else not_understood(request, [*form.fields, "workload", "picture"])
    )
    asked = request.POST if pasted else request.GET
    if asked.get("picture") == "memory":
        return drawing(PICTURE, "bars", page["bars"], "memory-per-gpu")
    page["svg"] = "" if pasted else changed(request, {"picture": "memory"})
    return render_page(request, PAGE, page, fragment=ANSWER)


def _form(request: HttpRequest) -> WorkloadForm:
    """Without scripts the tabs are links, so the way in stands in the address: `paste`."""
    if request.method == "POST":
        return PastedForm(request.POST.dict())
    if "paste" in request.GET:
        return PastedForm({**start_of(""), "model": ""})
    start = start_of(request.GET.get("workload", ""))
    if request.GET.get("task", start["task"]) != start["task"]:
        start = {"model": start["model"], "task": request.GET["task"]}
    return WorkloadForm({**start, **request.GET.dict()})


def _answer(form: WorkloadForm) -> dict[str, Any]:
    asked: Workload = form.cleaned_data["workload"]
    plan: Plan = form.cleaned_data["plan"]
    memory = budget(asked, plan)
    cards = card_sizes(memory)
    larger, batch = _doubled(asked)
    twice = budget(larger, plan)
    return {
        "workload": asked,
        "plan_asked": plan,
        "memory": memory,
        "cards": cards,
        "smallest": next((card for card in cards if card.word in ("fits", "tight")), None),
        "bars": memory_bars(memory, twice, cards, batch),
        "narrow": memory_bars(memory, twice, cards, batch, NARROW),
        "batch": batch,
        "like": preset_like(asked),
        "document": json.dumps(form.document(form.cleaned_data), indent=2, default=dict),
    }


def card_sizes(memory: MemoryBudget) -> list[CardSize]:
    """Memory sizes of the models that catalogs offer now, of all known ones where none is
    offered; smallest first, each judged by what the smallest card of that size reports."""
    sizes: dict[int, list[GpuSpec]] = {}
    for spec in _offered():
        sizes.setdefault(spec.label_gb, []).append(spec)
    found = (_size(f"{label} GB", cards, memory) for label, cards in sizes.items())
    return sorted((one for one in found if one), key=lambda one: one.reported_bytes)


def _offered() -> list[GpuSpec]:
    named = [spec for name, _ in gpu_models() for spec in specs_of(name)]
    return named or list(specs())


def _size(label: str, cards: list[GpuSpec], memory: MemoryBudget) -> CardSize | None:
    known = [(one, size) for one in cards if (size := worst_usable_bytes((one,)))]
    if not known:
        return None
    least = min(size for _, size in known)
    names = tuple(dict.fromkeys(one.model for one, _ in known))
    return CardSize(label, least, names, fit(memory, least).word.value)


def _doubled(asked: Workload) -> tuple[Workload, str]:
    """The workload with twice the batch, and what that is in words."""
    if asked.serving:
        users = asked.serving.concurrency * 2
        job = replace(asked.serving, concurrency=users)
        return replace(asked, serving=job), f"{users:,} requests at once"
    if asked.training is None:
        return asked, ""
    batch = asked.training.micro_batch * 2
    training = replace(asked.training, micro_batch=batch)
    return replace(asked, training=training), f"a micro-batch of {batch:,}"
