"""Text that would turn what stands around it is shown as text that does not."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

MARKS = re.compile(rb"\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]")
"""Embeddings, overrides and isolates in UTF-8. Names in Hebrew or Arabic need none of them."""
FOR_EYES = ("text/", "image/svg+xml", "application/json")
"""Pages, and the pictures and tables that are taken away from them."""


def upright(
    answer: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: no answer lets a scraped name reverse a price or a sentence beside it."""

    def checked(request: HttpRequest) -> HttpResponseBase:
        response = answer(request)
        plain = not response.streaming and response.get("Content-Type", "").startswith(FOR_EYES)
        if plain and MARKS.search(response.content):  # type: ignore[attr-defined]
            response.content = MARKS.sub("�".encode(), response.content)  # type: ignore[attr-defined]
        return response

    return checked
