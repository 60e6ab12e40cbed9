"""A picture of a page as a file of its own, with the colours that it has on paper."""

from __future__ import annotations

import re
from functools import cache

from django.contrib.staticfiles import finders
from django.http import Http404, HttpResponse
from django.template.loader import render_to_string

NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'
NAMED_COLOUR = re.compile(r"(--[\w-]+):\s*([^;]+);")
USED_COLOUR = re.compile(r"var\((--[\w-]+)\)")
PICTURES = re.compile(r"/\* --- pictures.*?(?=/\* --- after pictures)", re.DOTALL)
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def drawing(template: str, name: str, picture: object, file: str) -> HttpResponse:
    """The SVG that `template` draws of the `picture` called `name`, to be saved as a file.

    Raises Http404 where there is nothing to draw.
    """
    if picture is None:
        raise Http404
    markup = NOT_IN_XML.sub("�", render_to_string(template, {name: picture})).strip()
    head, tag, rest = markup.replace("<svg", f"<svg {NAMESPACE}", 1).partition(">")
    return HttpResponse(
        f"{head}{tag}<style>{_rules()}</style>{rest}",
        content_type="image/svg+xml; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{file}.svg"'},
    )


@cache
def _rules() -> str:
    """The rules for pictures of the style sheet. Drawing programs know no custom properties."""
    sheet = _sheet()
    colours = dict(NAMED_COLOUR.findall(sheet.partition("@media")[0]))
    rules = "".join(PICTURES.findall(sheet))
    plain = USED_COLOUR.sub(lambda used: colours[used[1]], rules)
    return f"svg{{font-family:sans-serif;background:{colours['--card']}}}{plain}"


def _sheet() -> str:
    path = finders.find("linkproof.css")
    with open(str(path), encoding="utf-8") as file:
        return file.read()
