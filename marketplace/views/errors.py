"""What is said of a request that no page can answer, beside the state of the catalog."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from marketplace import standings
from marketplace.forms import PASTE_LIMIT

TOO_LARGE = 413


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A form of megabytes is told its size, and how much can be read; the rest is not explained."""
    if not isinstance(exception, RequestDataTooBig):
        return _told(request, "400.html", 400)
    read, most = int(request.META.get("CONTENT_LENGTH") or 0), settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    words = (
        f"The form: read {read:,} bytes, expected at most {most:,}, and {PASTE_LIMIT:,} in a text."
    )
    return _told(request, "400.html", TOO_LARGE, words=words)


def not_open(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _told(request, "403.html", 403)


def form_too_old(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _told(request, "403_csrf.html", 403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _told(request, "404.html", 404)


def broken(request: HttpRequest) -> HttpResponse:
    return _told(request, "500.html", 500)


def _told(request: HttpRequest, template: str, status: int, **context: Any) -> HttpResponse:
    return render(request, template, {**context, "strip": _strip()}, status=status)


def _strip() -> standings.Strip | None:
    """None where the database is what failed: the page then says what it can without it."""
    try:
        return standings.strip(timezone.now())
    except DatabaseError:
        return None
