"""Records that speak of one machine: visible, structured and embedded ones brought together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from marketplace.catalog.pages import PageReading
from marketplace.catalog.records import Record, slug_of

Group = list[Record]


def group_records(reading: PageReading) -> list[Group]:
    """One list for each machine of a page, the record that visitors see first.

    Embedded state is what a script will show: beside visible records it only adds to them, since
    it may hold rows that the page does not offer.
    """
    groups: list[Group] = [[record] for record in reading.visible]
    _add(groups, reading.structured, keep_others=True)
    _add(groups, reading.state, keep_others=not reading.visible)
    return groups


def _add(groups: list[Group], records: Iterable[Record], *, keep_others: bool) -> None:
    by_key: dict[str, Group] = {}
    for group in groups:
        for key in _keys(group[0]):
            by_key.setdefault(key, group)
    fresh: list[Group] = []
    for record in records:
        match = next((by_key[key] for key in _keys(record) if key in by_key), None)
        if match is not None and not _other_region(match[0], record):
            match.append(record)
        elif keep_others:
            fresh.append([record])
    groups.extend(fresh)


def _keys(record: Record) -> list[str]:
    """The provider's id, the address of its page, and the title where nothing else is given."""
    keys = [f"sku:{record.sku.lower()}"] if record.sku else []
    if record.url:
        keys.append(f"url:{record.url.rstrip('/').lower()}")
    if record.title and record.sku in ("", slug_of(record.title)):
        keys.append(f"title:{slug_of(record.title)}")
    return keys


def _other_region(one: Record, other: Record) -> bool:
    return bool(one.region and other.region and one.region != other.region)


def told_apart(records: Sequence[Record]) -> list[Record]:
    """Rows without an id of their own that share a title get their differing words as id."""
    seen: dict[tuple[str, str], int] = {}
    for record in records:
        seen[(record.sku, record.region)] = seen.get((record.sku, record.region), 0) + 1
    return [
        replace(record, sku=_longer(record)) if _needs_more(record, seen) else record
        for record in records
    ]


def _needs_more(record: Record, seen: dict[tuple[str, str], int]) -> bool:
    return seen[(record.sku, record.region)] > 1 and record.sku == slug_of(record.title)


def _longer(record: Record) -> str:
    """Title and hardware words, never the price or the position: both change between syncs."""
    words = [
        cell.text
        for cell in record.cells
        if cell.attribute is None or cell.attribute.value in _STABLE
    ]
    hardware = [text for text in words if not any(sign in text for sign in "$€£₹")]
    return slug_of(" ".join([record.title, *hardware]))


_STABLE = (
    "gpu",
    "gpu_count",
    "vram",
    "vcpu",
    "ram",
    "disk",
    "memory",
    "region",
    "zone",
    "link",
    "cpu_model",
)
