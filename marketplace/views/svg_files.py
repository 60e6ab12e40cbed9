"""A picture of a page as a file to keep: the same template, drawn on its own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.http import HttpResponse
from django.template.loader import render_to_string

from marketplace.drawing.standalone import standalone

SVG_KEY = "svg"
"""The key of an address, or of a button, that asks for a picture instead of the page."""


def svg_file(template: str, context: Mapping[str, Any], name: str) -> HttpResponse:
    drawn = standalone(render_to_string(template, dict(context)), _css())
    response = HttpResponse(drawn, content_type="image/svg+xml")
    response["Content-Disposition"] = f'attachment; filename="{name}.svg"'
    return response


@cache
def _css() -> str:
    return Path(str(finders.find("linkproof.css"))).read_text("utf-8")
