"""Which addresses are pages of ours, so that a walk can tell which of them it missed."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import urlsplit

from django.urls import Resolver404, URLPattern, get_resolver, resolve

TO_MACHINES = {"healthz", "readyz", "metrics", "status_json"}
DEEDS = {"ask_evaluation", "cancel_evaluation", "changed", "confirm", "logout", "saved_change"}
DEEDS |= {"take_back"}
"""They only take a form, and answer by leading elsewhere."""
CLOSED = {"login"}
"""Not shown to who is signed in."""


def own_pages() -> set[str]:
    """The names of all addresses under which a page of ours stands."""
    routes = {one.name for one in get_resolver().url_patterns if isinstance(one, URLPattern)}
    return {str(name) for name in routes} - TO_MACHINES - DEEDS - CLOSED


def names_of(pages: Iterable[str]) -> set[str]:
    found = set()
    for address in pages:
        with suppress(Resolver404):
            found.add(resolve(urlsplit(address).path).view_name)
    return found
