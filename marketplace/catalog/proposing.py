"""A profile that a page suggests by itself, for a curator to look at and change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from evaluator.prices import Basis
from marketplace.catalog.adapters.page import PageAdapter
from marketplace.catalog.base import Batch, Entry, Page, UnreadablePage
from marketplace.catalog.cards import find_cards
from marketplace.catalog.document import Element, read_document
from marketplace.catalog.lines import read_lines
from marketplace.catalog.profile import NO_PROFILE, Profile
from marketplace.catalog.tables import read_tables

Value = TypeVar("Value")


def propose_profile(pages: Sequence[Page]) -> Profile:
    """Where the rows are, what all prices share, how many there are, and the structure.

    A selector is proposed only where reading by it gives the same listings. Raises UnreadablePage
    when the pages hold none.
    """
    read = PageAdapter().read(pages)
    rows = next((rows for rows in _selectors(pages[0]) if _reads_the_same(rows, pages, read)), "")
    quotes = [quote for entry in read.entries for quote in entry.quotes]
    guided = PageAdapter(replace(NO_PROFILE, rows=rows)).read(pages)
    return Profile(
        rows=rows,
        basis=_shared_basis(read.entries),
        currency=_shared(quote.currency for quote in quotes),
        unit=_shared(quote.unit for quote in quotes),
        expected_count=len(guided.entries) + len(guided.quarantined),
        required=_always_known(read.entries),
        fingerprint=guided.fingerprint,
    )


def _selectors(page: Page) -> Iterable[str]:
    """Candidates, the narrowest first: of all tables with listings, or of all cards."""
    root = read_document(page.body, page.content_type).root
    tables = [table.element for table in read_tables(root)]
    if tables:
        return dict.fromkeys(_of_kind(tables))
    cards = find_cards(read_lines([root]))
    return dict.fromkeys(_of_kind([root for card in cards for root in card.roots]))


def _of_kind(elements: Sequence[Element]) -> Iterable[str]:
    """What the elements have in common: an id, a class, the parent's class, else the tag."""
    for tag, _ in Counter(one.tag for one in elements).most_common(1):
        same = [one for one in elements if one.tag == tag]
        if len(same) == 1 and _is_word(same[0].get("id") or ""):
            yield f"{tag}#{same[0].get('id')}"
        classes = Counter(name for one in same for name in _classes(one))
        shared = [name for name, times in classes.items() if times == len(same)]
        yield from (f"{tag}.{name}" for name in shared)
        above = {name for one in same[:1] for name in _classes(one.getparent())}
        yield from (f".{name} > {tag}" for name in sorted(above))
        yield tag


def _classes(element: Element | None) -> list[str]:
    names = (element.get("class") or "").split() if element is not None else []
    return [name for name in dict.fromkeys(names) if _is_word(name)]


def _is_word(name: str) -> bool:
    """A name that a selector can hold; generated names with digits change at every build."""
    return name.replace("-", "").replace("_", "").isalpha() and name.isascii() and len(name) < 60


def _reads_the_same(rows: str, pages: Sequence[Page], read: Batch) -> bool:
    try:
        guided = PageAdapter(replace(NO_PROFILE, rows=rows)).read(pages)
    except UnreadablePage:
        return False
    return _identities(guided) == _identities(read)


def _identities(batch: Batch) -> list[tuple[object, ...]]:
    prices = [
        (one.sku, one.region, one.gpu_model, one.gpu_count, one.vram_bytes_per_gpu,
         [quote.amount for quote in one.quotes])
        for one in batch.entries
    ]  # fmt: skip
    return sorted([*prices, *((one.sku, one.region) for one in batch.quarantined)], key=repr)


def _shared(values: Iterable[Value | None]) -> Value | None:
    """What all say alike, None where one differs or is silent."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _shared_basis(entries: Iterable[Entry]) -> Basis:
    """Machines of one GPU say nothing: there both bases are the same."""
    several = (entry for entry in entries if (entry.gpu_count or 0) > 1)
    return _shared(quote.basis for entry in several for quote in entry.quotes) or Basis.UNKNOWN


def _always_known(entries: Sequence[Entry]) -> tuple[str, ...]:
    names = ("gpu_model", "gpu_count", "vram_bytes_per_gpu", "region", "quotes")
    return tuple(
        name for name in names if entries and all(getattr(entry, name) for entry in entries)
    )
