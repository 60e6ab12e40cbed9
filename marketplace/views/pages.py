"""One way to answer a page request: the whole page, or the fragment that htmx asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django_htmx.middleware import HtmxDetails

from marketplace import standings


def wants_fragment(request: HttpRequest) -> bool:
    """A boosted or history-restoring request replaces the whole page, so it gets all of it."""
    htmx: HtmxDetails = request.htmx  # type: ignore[attr-defined]  # set by its middleware
    return bool(htmx) and not (htmx.boosted or htmx.history_restore_request)


def render_page(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    fragment: str = "",
    status: int = 200,
) -> HttpResponse:
    """The template with the status strip; or `fragment` alone, with the same context."""
    if fragment and wants_fragment(request):
        response = render(request, fragment, {**context, "fragment": True}, status=status)
    else:
        full = {**context, "strip": standings.strip(timezone.now())}
        response = render(request, template, full, status=status)
    patch_vary_headers(response, ["HX-Request", "HX-Boosted", "HX-History-Restore-Request"])
    return response
