"""Whether the encoding of a body is beyond doubt. A wrong guess publishes mangled names."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from marketplace.catalog.base import Page

_META = re.compile(rb"<meta[^>]{1,200}?charset\s{0,9}=\s{0,9}[\"']?([\w.:-]{1,40})", re.I)
_HEADER = re.compile(r"charset\s{0,9}=\s{0,9}\"?([\w.:-]{1,40})", re.I)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def doubt_about(page: Page) -> str:
    """Why the text of a body is not certain, for people to read; "" when it is.

    Plain ASCII reads the same in every encoding of the web, so it is never in doubt.
    """
    if page.body.isascii() and b"\0" not in page.body[:1024]:
        return ""
    names = list(dict.fromkeys(_stated(page)))
    texts = [_decoded(page.body, name) for name in names]
    for name, text in zip(names, texts, strict=True):
        if text is None:
            return f"The body is not valid in the encoding that it names, {name}."
    if len(set(texts)) > 1:
        return f"The body names several encodings that read differently: {', '.join(names)}."
    return ""


def _stated(page: Page) -> Iterator[str]:
    """Names given by a byte order mark, the header and the page's own meta element."""
    yield from (name for mark, name in _MARKS if page.body.startswith(mark))
    header = _HEADER.search(page.content_type)
    if header:
        yield header[1].lower()
    meta = _META.search(page.body[:2048])
    if meta:
        yield meta[1].decode("ascii", "replace").lower()


def _decoded(body: bytes, name: str) -> str | None:
    """None where the bytes are not valid in it, or nobody knows the name."""
    try:
        return codecs.decode(body, name).removeprefix("\ufeff")
    except (LookupError, UnicodeError, TypeError, ValueError):
        return None
