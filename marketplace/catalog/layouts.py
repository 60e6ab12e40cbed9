"""The columns of a page or a feed: a value must never move under another name unseen.

Heads of tables and files are kept row by row. Labels of cards and keys of JSON are kept one by
one, since there a value stands beside its own name wherever that moves: only a name that takes
the place of another one is doubtful.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from evaluator.gpus import read_label
from marketplace.catalog.base import Page
from marketplace.catalog.document import read_document

Columns = tuple[str, ...]

FIELD, COMMON = "a field", "most rows' field"
MOST_FIELDS = 200
DEEPEST = 6

LONGEST_NAME = 80
FIRST_LINE = 64 * 1024


def columns_of(pages: Sequence[Page]) -> tuple[Columns, ...]:
    """Every row of column heads, once: of each table of a page, or of a CSV file; the keys of an
    answer in JSON."""
    found = {columns for page in pages for columns in _columns(page) if len(columns) > 1}
    return tuple(sorted(found))


def fields_of(rows: Iterable[Iterable[str]]) -> tuple[Columns, ...]:
    """The names that rows carry, and which of them most rows carry."""
    counts: Counter[str] = Counter()
    total = 0
    for names in rows:
        counts.update({name[:LONGEST_NAME] for name in names})
        total += 1
    known = [name for name, _ in counts.most_common(MOST_FIELDS)]
    common = [name for name in known if counts[name] * 2 > total]
    return tuple(sorted([*((FIELD, name) for name in known), *((COMMON, name) for name in common)]))


def renamed(before: Iterable[Columns], now: Iterable[Columns], known: frozenset[Columns]) -> str:
    """Names that most rows carried and none does, where others took their place; "" if none did.

    A name that is only new or only gone moves no value.
    """
    now = frozenset(now)
    here, ever = _named_by(FIELD, now), _named_by(FIELD, known)
    gone = _named_by(COMMON, before) - here
    fresh = _named_by(COMMON, now) - ever
    if not (gone and fresh):
        return ""
    return f"{', '.join(sorted(gone)[:5])} gone, {', '.join(sorted(fresh)[:5])} new"


def _named_by(kind: str, columns: Iterable[Columns]) -> set[str]:
    return {one[1] for one in columns if one[0] == kind}


def is_field(columns: Columns) -> bool:
    return columns[0] in (FIELD, COMMON)


def moved(
    before: Sequence[Columns], now: Sequence[Columns], known: frozenset[Columns]
) -> Columns | None:
    """Heads that nobody has seen, in the place of heads that were there before; or None.

    Heads that are only added or only gone move no value: losses of listings show by themselves.
    """
    heads = [columns for columns in now if not is_field(columns)]
    if {columns for columns in before if not is_field(columns)} <= set(heads):
        return None
    return next((columns for columns in heads if columns not in known), None)


def _columns(page: Page) -> Iterator[Columns]:
    start = page.body[:64].lstrip()
    if start.startswith(b"<"):
        yield from _of_tables(page)
    elif start[:1] in (b"{", b"["):
        yield from fields_of(map(_keys, _objects(_json(page.body))))
    else:
        yield _of_csv(page.body)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None


def _objects(data: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Objects that stand side by side, in a list or under ids; those of the outermost such list."""
    values = list(data.values()) if isinstance(data, dict) else data
    if not isinstance(values, list) or depth > DEEPEST:
        return
    alike = [one for one in values if isinstance(one, dict)]
    if len(alike) > 1 and len(alike) == len(values):
        yield from alike
        return
    for value in values:
        yield from _objects(value, depth + 1)


def _keys(item: dict[str, Any], path: str = "", depth: int = 0) -> Iterator[str]:
    """Paths of keys. Ids that serve as keys are no names, so digits count as one."""
    for key, value in item.items():
        name = re.sub(r"\d+", "#", f"{path}{key}")
        yield name
        if isinstance(value, dict) and depth < DEEPEST:
            yield from _keys(value, f"{name}.", depth + 1)


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
