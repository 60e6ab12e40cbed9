"""What a body really is, whatever its header calls it. Decided on its first bytes."""

from __future__ import annotations

import re

from marketplace.catalog.base import Page
from marketplace.catalog.failures import Challenged, WrongKind

_SIGNS: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"RIFF", "a picture or a sound"),
    (b"PK\x03\x04", "an archive"),
    (b"\x1f\x8b", "an archive"),
    (b"7z\xbc\xaf", "an archive"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90", "a program"),
)
_TITLE = re.compile(rb"<title[^>]{0,200}>([^<]{0,300})", re.I)
_CHALLENGE = re.compile(
    rb"just a moment|checking your browser|verify(?:ing)? (?:that )?you are|captcha|attention"
    rb" required|access denied|are you a (?:ro)?bot|unusual traffic|security check|ddos protection"
    rb"|human verification|request unsuccessful",
    re.I,
)
_HEAD_BYTES = 4096


def check_kind(page: Page) -> None:
    """Raises WrongKind for a body that is no text, or JSON that calls itself HTML; Challenged for
    a page that asks whether we are human."""
    start = page.body[:_HEAD_BYTES].lstrip()
    for sign, name in _SIGNS:
        if start.startswith(sign):
            raise WrongKind(f"the body is {name}, expected a page or a feed")
    if "html" in page.content_type.lower() and start[:1] in (b"{", b"["):
        raise WrongKind("the body is JSON, and its header calls it HTML")
    title = _TITLE.search(start)
    if title and _CHALLENGE.search(title[1]):
        raise Challenged("the site asks whether we are human instead of showing its catalog")
