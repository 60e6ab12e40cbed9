"""The columns of a page or a feed: a value must never move under another name unseen."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence

from evaluator.gpus import read_label
from marketplace.catalog.base import Page
from marketplace.catalog.document import read_document

Columns = tuple[str, ...]

LONGEST_NAME = 80
FIRST_LINE = 64 * 1024


def columns_of(pages: Sequence[Page]) -> tuple[Columns, ...]:
    """Every row of column heads, once: of each table of a page, or of a CSV file.

    Keys of JSON are no columns: a value stands beside its own key wherever that moves.
    """
    found = {columns for page in pages for columns in _columns(page) if len(columns) > 1}
    return tuple(sorted(found))


def moved(
    before: Sequence[Columns], now: Sequence[Columns], known: frozenset[Columns]
) -> Columns | None:
    """Heads that nobody has seen, in the place of heads that were there before; or None.

    Heads that are only added or only gone move no value: losses of listings show by themselves.
    """
    if set(before) <= set(now):
        return None
    return next((columns for columns in now if columns not in known), None)


def _columns(page: Page) -> Iterator[Columns]:
    start = page.body[:64].lstrip()
    if start.startswith(b"<"):
        yield from _of_tables(page)
    elif start[:1] not in (b"{", b"["):
        yield _of_csv(page.body)


def _of_csv(body: bytes) -> Columns:
    line = body[:FIRST_LINE].split(b"\n", 1)[0].decode("utf-8-sig", "replace").strip("\r\0")
    return _named(next(csv.reader([line]), [])) if "," in line else ()


def _of_tables(page: Page) -> Iterator[Columns]:
    for table in read_document(page.body, page.content_type).root.iter("table"):
        first = next(iter(table.iter("tr")), None)
        if first is not None:
            heads = _named("".join(cell.itertext()) for cell in first.iter("th"))
            if not any(_names_a_machine(head) for head in heads):
                yield heads


def _named(cells: Iterable[str]) -> Columns:
    return tuple(" ".join(cell.split()).lower()[:LONGEST_NAME] for cell in cells)


def _names_a_machine(head: str) -> bool:
    """A table that lies on its side has machines for heads: they come and go."""
    return read_label(head).model is not None
