"""Entries as listing rows: identity, columns, and what a column cannot hold."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from django.db.models import Field

from evaluator.findings import Code, Finding, finding
from evaluator.units import GB
from marketplace.catalog.base import Entry
from marketplace.models import Listing

Key = tuple[str, str, str, int]
"""Identity of a listing within its source: SKU, region, zone, GB per GPU (0 when unknown)."""

IDENTITY = ("sku", "region", "zone", "vram_key")

NUMBERS = (
    "gpu_count",
    "nodes",
    "vram_bytes_per_gpu",
    "vram_reported_bytes",
    "quantity",
    "vcpus",
    "ram_bytes",
    "local_storage_bytes",
)
TEXTS = ("title", "url", "gpu_model", "gpu_fraction", "form_factor", "inter_node")
CATALOG_COLUMNS = (*NUMBERS, *TEXTS, "link", "availability", "words", "findings")
"""All that a catalog says of a machine. A curator's corrections stand in a column of their own."""

LARGEST = {"PositiveIntegerField": 2**31 - 1, "PositiveBigIntegerField": 2**63 - 1}


def key_of(entry: Entry) -> Key:
    vram = (entry.vram_bytes_per_gpu or 0) // GB
    return (clean(entry.sku), clean(entry.region), clean(entry.zone), vram)


def key_of_row(listing: Listing) -> Key:
    return (listing.sku, listing.region, listing.zone, listing.vram_key)


def columns_of(entry: Entry) -> dict[str, Any]:
    """Column to value, for every column of CATALOG_COLUMNS."""
    columns: dict[str, Any] = {name: getattr(entry, name) for name in NUMBERS}
    columns |= {name: _clipped(getattr(entry, name), _length(name)) for name in TEXTS}
    columns["link"] = entry.link.value if entry.link else None
    columns["availability"] = entry.availability.value
    columns["words"] = {clean(name): clean(text) for name, text in sorted(entry.words.items())}
    columns["findings"] = [cleaned_finding(each) for each in entry.findings]
    return columns


def cleaned_finding(found: Finding) -> dict[str, Any]:
    stored = found.as_dict()
    return {**stored, "gaps": {name: clean(text) for name, text in stored["gaps"].items()}}


def clean(text: str) -> str:
    """Text without NUL and lone surrogates, which PostgreSQL refuses and SQLite would keep."""
    return text.replace("\x00", "").encode("utf-8", "ignore").decode("utf-8")


def misfit(entry: Entry) -> Finding | None:
    """Why no column can hold the entry, or None. A cut identity would name another machine."""
    return next(_misfits(entry), None)


def _misfits(entry: Entry) -> Iterator[Finding]:
    for name in ("sku", "region", "zone"):
        length, longest = len(clean(getattr(entry, name))), _length(name)
        if length > longest or (name == "sku" and length == 0):
            yield _outside(name, f"{length} characters", f"1 to {longest} characters")
    for name in NUMBERS:
        value, largest = getattr(entry, name), _largest(name)
        if value is not None and not 0 <= value <= largest:
            yield _outside(name, value, f"0 to {largest}")


def _outside(field: str, value: object, expected: str) -> Finding:
    return finding(Code.VALUE_OUT_OF_RANGE, field=field, value=value, expected=expected)


def _clipped(text: str | None, longest: int) -> str | None:
    if text is None:
        return None
    text = clean(text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _length(name: str) -> int:
    return _column(name).max_length or 0


def _largest(name: str) -> int:
    return LARGEST[_column(name).get_internal_type()]


@cache
def _column(name: str) -> Field[Any, Any]:
    return next(column for column in Listing._meta.fields if column.name == name)
