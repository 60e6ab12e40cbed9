"""Pages that many strangers ask for are made once a minute, and anew when the catalog changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from threading import Lock
from time import time
from typing import Any, TypeAlias

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from evaluator.reports import evaluator_version
from marketplace.versions import catalog_version, one_version

View: TypeAlias = Callable[..., HttpResponse]

MOST_PAGES = 200
"""Kept by each process; the one asked for longest ago goes first."""

SECONDS = 60
"""How far an age on a page may lag behind."""

HEADERS = ("HX-Request", "HX-Boosted", "HX-History-Restore-Request")
OWN = (settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME, "messages")

TOKEN_MADE = "CSRF_COOKIE"  # noqa: S105  a key of the request, no secret
"""Where Django puts the token of a form that a page holds: such a page is one visitor's own."""

_lock = Lock()
_pages: OrderedDict[Any, tuple[int, bytes, dict[str, str]]] = OrderedDict()


def kept_a_minute(view: View) -> View:
    """Answers whoever brings no cookie of ours; all others are answered by the view itself."""

    @wraps(view)
    def answer(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        with one_version():
            if request.method != "GET" or any(name in request.COOKIES for name in OWN):
                return view(request, *arguments, **named)
            return _kept_or_made(request, lambda: view(request, *arguments, **named))

    return answer


def _kept_or_made(request: HttpRequest, make: Callable[[], HttpResponse]) -> HttpResponse:
    key = _key(request)
    kept = _kept(key)
    if kept is not None:
        return kept
    response = make()
    if TOKEN_MADE not in request.META:
        _keep(key, response)
    return response


def _key(request: HttpRequest) -> tuple[Any, ...]:
    asked = tuple(request.headers.get(name, "") for name in HEADERS)
    minute, version = int(time() // SECONDS), (catalog_version(), evaluator_version())
    return (request.get_host(), request.get_full_path(), asked, minute, version)


def _kept(key: tuple[Any, ...]) -> HttpResponse | None:
    with _lock:
        if key not in _pages:
            return None
        _pages.move_to_end(key)
        status, content, headers = _pages[key]
    return HttpResponse(content, status=status, headers=headers)


def _keep(key: tuple[Any, ...], response: HttpResponse) -> None:
    if response.streaming or response.cookies or response.status_code not in (200, 404, 422):
        return
    with _lock:
        _pages[key] = (response.status_code, response.content, dict(response.headers))
        while len(_pages) > MOST_PAGES:
            _pages.popitem(last=False)


def forget_pages() -> None:
    with _lock:
        _pages.clear()
