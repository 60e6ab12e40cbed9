"""Which page follows, and whether all pages of a list were read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import urldefrag, urljoin, urlsplit

from marketplace.catalog.base import Page
from marketplace.catalog.document import Document
from marketplace.catalog.identity import is_safe

_REFUSED = frozenset({"sponsored", "external", "ugc"})


def next_address(document: Document, page: Page) -> str | None:
    """The absolute address of rel=next on the page's own host, None when there is none.

    The page's address resolves it: a `<base>` may point to another host.
    """
    for relation in _links(document):
        address = _resolve(page.url, relation)
        if address and urlsplit(address).netloc == urlsplit(page.url).netloc:
            return address
    return None


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
