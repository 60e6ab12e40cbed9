"""Which page follows, and whether all pages of a list were read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import parse_qsl, urldefrag, urlencode, urljoin, urlsplit

from marketplace.catalog.base import Page
from marketplace.catalog.document import Document
from marketplace.catalog.identity import is_safe

_REFUSED = frozenset({"sponsored", "external", "ugc"})


def next_address(document: Document, page: Page) -> str | None:
    """The absolute address of rel=next on the page's own host, None when there is none.

    The page's address resolves it: a `<base>` may point to another host. Without such a link, a
    cursor in the page's own data leads on.
    """
    for relation in (*_links(document), *_cursors(document, page.url)):
        address = _resolve(page.url, relation)
        if address and urlsplit(address).netloc == urlsplit(page.url).netloc:
            return address
    return None


_CURSORS = {
    "nextcursor": "cursor", "next_cursor": "cursor", "nextpagetoken": "pageToken",
    "next_page_token": "page_token", "endcursor": "after",
}  # fmt: skip
"""A key of embedded data, and the parameter of the address that takes its value."""
_ADDRESSES = frozenset({"nextpageurl", "next_page_url", "nexturl", "next_url", "nextlink"})
_DEPTH = 6


def _cursors(document: Document, url: str) -> Iterator[str]:
    for kind, text in document.scripts:
        if kind in ("application/json", "text/json"):
            try:
                yield from following_of(json.loads(text), url)
            except (ValueError, RecursionError):
                continue


def following_of(data: Any, url: str, depth: int = 0) -> Iterator[str]:
    """Addresses that JSON names as the next part of its list. `hasNextPage: false` ends it."""
    if not isinstance(data, dict) or depth > _DEPTH:
        return
    named = {str(key).lower(): value for key, value in data.items()}
    if False in (named.get("hasnextpage"), named.get("has_next_page"), named.get("has_more")):
        return
    for key, value in named.items():
        if isinstance(value, dict):
            yield from following_of(value, url, depth + 1)
        elif isinstance(value, str) and 0 < len(value) <= 500:
            if key in _ADDRESSES:
                yield value
            elif key in _CURSORS:
                yield _with_parameter(url, _CURSORS[key], value)


def _with_parameter(url: str, name: str, value: str) -> str:
    parts = urlsplit(url)
    others = [(key, one) for key, one in parse_qsl(parts.query) if key != name]
    return parts._replace(query=urlencode([*others, (name, value)])).geturl()


def _links(document: Document) -> Iterator[str]:
    for element in document.next_links:
        tokens = {token.lower() for token in (element[0] or "").split()}
        if "next" in tokens and not tokens & _REFUSED and element[1]:
            yield element[1]


def _resolve(base: str, reference: str) -> str | None:
    if not is_safe(reference.strip()):
        return None
    try:
        return urldefrag(urljoin(base, reference.strip())).url
    except ValueError:
        return None


def same_address(one: str, other: str) -> bool:
    """Whether two addresses name one page; "?page=1" is the first page itself."""
    return _plain(one) == _plain(other)


def _plain(address: str) -> str:
    bare = urldefrag(address).url
    first = re.sub(r"([?&])(?:page|p|seite)=1(&|$)", r"\1", bare)
    return first.rstrip("?&/").lower()


def loops_back(pages: Sequence[Page], following: str | None) -> bool:
    """Whether the last page leads to one that was read."""
    return following is not None and any(same_address(page.url, following) for page in pages)
