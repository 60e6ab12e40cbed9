"""What is said of a request that no page can read."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views import defaults

from marketplace.forms import PASTE_LIMIT

TOO_LARGE = 413


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A form of megabytes is told its size, and how much can be read; the rest is not explained."""
    if not isinstance(exception, RequestDataTooBig):
        return defaults.bad_request(request, exception)
    read, most = int(request.META.get("CONTENT_LENGTH") or 0), settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    words = (
        f"The form: read {read:,} bytes, expected at most {most:,}, and {PASTE_LIMIT:,} in a text."
    )
    return HttpResponse(render_to_string("400.html", {"words": words}), status=TOO_LARGE)
