"""Records of a page where a profile says they are, and the structure that a page shows."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from evaluator.findings import Code, Finding, finding
from marketplace.catalog.base import Entry
from marketplace.catalog.cards import Card
from marketplace.catalog.cells import read_card
from marketplace.catalog.document import Document, Element
from marketplace.catalog.identity import is_safe, sku_in, url_in
from marketplace.catalog.layouts import Columns, fields_of
from marketplace.catalog.lines import language_of, text_of
from marketplace.catalog.profile import Profile
from marketplace.catalog.reading.labels import Attribute, plain_label
from marketplace.catalog.records import Cell, Origin, Record, slug_of
from marketplace.catalog.selectors import select
from marketplace.catalog.state import record_of_object
from marketplace.catalog.tables import read_tables
from marketplace.catalog.text import clean

MOST_ROWS = 200_000


def read_rows(document: Document, profile: Profile) -> list[Record]:
    """The records that the profile names; none where the page has nothing there."""
    if profile.path:
        return [
            record
            for data in documents_of(document.scripts)
            for record in read_objects(items_at(data, profile.path), profile)
        ]
    elements = select(document.root, profile.rows)[:MOST_ROWS]
    roots = frozenset(elements)
    return [record for each in elements for record in _of_element(each, roots, profile)]


def _of_element(element: Element, roots: frozenset[Element], profile: Profile) -> Iterator[Record]:
    """A table is read row by row with its header; an element without named fields as a card."""
    if profile.fields:
        yield _mapped(element, profile)
    elif element.tag == "table":
        yield from (record for table in read_tables(element) for record in table.records)
    else:
        yield read_card(Card((element,)), roots)


def _mapped(element: Element, profile: Profile) -> Record:
    cells = tuple(
        Cell(text, name, Attribute(name))
        for name, selector in profile.fields.items()
        if (text := _text_at(element, selector))
    )
    record = _named(cells, language_of(element), url_in(element), Origin.VISIBLE)
    return replace(record, sku=_sku(cells) or sku_in(element, record))


def _text_at(element: Element, selector: str) -> str:
    """ ".price" is a text, "a@href" an attribute, "@data-id" one of the row itself."""
    where, _, attribute = selector.partition("@")
    found = select(element, where) if where.strip() else [element]
    texts = (clean(one.get(attribute) or "") if attribute else text_of(one) for one in found)
    return next(filter(None, texts), "")


def _named(cells: tuple[Cell, ...], language: str, url: str, origin: Origin) -> Record:
    by_name = {cell.attribute: cell.text for cell in cells}
    title = by_name.get(Attribute.TITLE) or by_name.get(Attribute.GPU, "")
    stated = by_name.get(Attribute.URL, "")
    link = stated if stated and is_safe(stated) else url
    return Record(title=title, cells=cells, language=language, url=link, origin=origin)


def _sku(cells: tuple[Cell, ...]) -> str:
    return next((cell.text[:200] for cell in cells if cell.attribute is Attribute.SKU), "")


# --- JSON


def documents_of(scripts: Iterable[tuple[str, str]]) -> Iterator[Any]:
    """Every JSON block of a page. A broken one is no document."""
    for kind, text in scripts:
        if kind.endswith("json"):
            try:
                yield json.loads(text)
            except (ValueError, RecursionError):
                continue


def items_at(data: Any, path: str) -> list[dict[str, Any]]:
    """The objects of the list, or of the mapping by id, that the keys lead to; "" is the top."""
    for key in filter(None, path.split(".")):
        if isinstance(data, list) and key.isdecimal() and int(key) < len(data):
            data = data[int(key)]
        elif isinstance(data, dict):
            data = data.get(key)
        else:
            return []
    if isinstance(data, dict):
        data = [{"id": key, **one} for key, one in data.items() if isinstance(one, dict)]
    return [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []


def read_objects(items: Sequence[dict[str, Any]], profile: Profile) -> list[Record]:
    """JSON objects or CSV rows as records: by the profile's fields, else by their own keys."""
    if not profile.fields:
        return [record_of_object(item) for item in items[:MOST_ROWS]]
    return [_of_object(item, profile) for item in items[:MOST_ROWS]]


def _of_object(item: dict[str, Any], profile: Profile) -> Record:
    """The label stays the source's own key, so that "ram_mb" gives its unit."""
    cells = tuple(
        Cell(text, plain_label(key.rpartition(".")[2]), Attribute(name))
        for name, key in profile.fields.items()
        if (text := _value_at(item, key))
    )
    record = _named(cells, "en", "", Origin.STATE)
    return replace(record, sku=_sku(cells) or slug_of(record.title))


def _value_at(item: Any, key: str) -> str:
    """A flat key first: a CSV column may hold a dot."""
    if isinstance(item, dict) and key in item:
        found = item[key]
    else:
        found = item
        for name in key.split("."):
            found = found.get(name) if isinstance(found, dict) else None
    if found is None or isinstance(found, (dict, list)):
        return ""
    return clean(str(found).lower() if isinstance(found, bool) else str(found))


# --- meaning and structure


def relabelled(records: Iterable[Record], profile: Profile) -> Iterator[Record]:
    """The curator's word on a label outweighs our own reading of it."""
    if not profile.labels:
        yield from records
        return
    for record in records:
        cells = tuple(
            replace(cell, attribute=profile.labels.get(cell.label.lower().strip(), cell.attribute))
            for cell in record.cells
        )
        yield replace(record, cells=cells)


def fingerprint_of(records: Sequence[Record]) -> str:
    """Which labels and attributes most records carry, as 16 hex digits. Values, order and number
    of the rows do not matter: a new machine is no new layout."""
    traits = Counter(
        trait for record in records for trait in {_trait(cell) for cell in record.cells}
    )
    common = sorted(trait for trait, times in traits.items() if times * 2 > len(records))
    words = json.dumps([sorted({one.origin.value for one in records}), common])
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def names_of(records: Sequence[Record]) -> tuple[Columns, ...]:
    """The labels with a meaning that records carry: where one takes the place of another, values
    may have moved."""
    return fields_of(
        {_trait(cell) for cell in record.cells if cell.label and cell.attribute}
        for record in records
    )


_SIGNS = tuple(
    (name, re.compile(words, re.I))
    for name, words in (
        ("money", r"[$€£₹¥]|\b(?:usd|eur|gbp|chf|aed|inr)\b"),
        ("size", r"\d\s?[gtm]i?b\b"),
        ("cores", r"\d\s?(?:v?cpus?|cores|threads)\b"),
        ("link", r"nvlink|nvswitch|infiniband|pcie"),
    )
)


def _trait(cell: Cell) -> str:
    """A label with its meaning; of a text without label, what kind of thing it speaks of."""
    if not cell.label:
        kinds = (name for name, pattern in _SIGNS if pattern.search(cell.text[:200]))
        return f"text {' '.join(kinds)}"
    label = re.sub(r"\d+", "#", cell.label.lower().strip())
    return f"{label}={cell.attribute.value if cell.attribute else 'text'}"


def hold_of(
    profile: Profile, entries: Sequence[Entry], rows: int, fingerprint: str
) -> Finding | None:
    """Why the pages are not what the profile was made for, or None."""
    expected = profile.expected_count
    if expected and rows * 2 < expected:
        return finding(Code.COUNT_MISMATCH, stated=expected, found=rows)
    for name in profile.required:
        known = sum(bool(getattr(entry, name)) for entry in entries)
        if known * 2 < len(entries):
            words = f"{name} is stated by {known} of {len(entries)} listings"
            return finding(Code.STRUCTURE_CHANGED, words=words)
    if profile.fingerprint and profile.fingerprint != fingerprint:
        words = f"fingerprint {fingerprint} in place of {profile.fingerprint}"
        return finding(Code.STRUCTURE_CHANGED, words=words)
    return None
