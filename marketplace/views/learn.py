"""What a newcomer has to know, in one screen, and the words of the field."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from marketplace.forms import preset_names
from marketplace.glossary import TERMS, named
from marketplace.views.drawings import drawing
from marketplace.views.pages import render_page


@login_not_required
@require_safe
def learn(request: HttpRequest) -> HttpResponse:
    if request.GET.get("picture") == "pool":
        return drawing("_pool.svg", "pool", "always the same", "vram-is-not-pooled")
    return render_page(request, "learn/learn.html", {"section": "learn", "presets": preset_names()})


@login_not_required
@require_safe
def glossary(request: HttpRequest) -> HttpResponse:
    terms = sorted(TERMS, key=lambda term: term.name.lower())
    rows = [(term, [named(name) for name in term.see]) for term in terms]
    return render_page(request, "learn/glossary.html", {"section": "learn", "rows": rows})
