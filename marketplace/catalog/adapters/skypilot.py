"""The public SkyPilot catalog: one CSV file per provider, one instance type and place per row.

The feed's README calls Price the price of the resource, which is the whole instance; the SkyPilot
tool shows it as US dollars per hour. No file names a currency, so both hold for every provider,
one that bills in euros included: the amount is the feed's, not the provider's own rate. Nor does
a file say which prices are bids or floors. Its memory column means four things and its GPU field
has three notations (catalog.md, section 2); both are decided by the rows, never by the provider.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO

from evaluator.findings import Code, finding
from marketplace.catalog.adapters.skypilot_entries import entry_of
from marketplace.catalog.adapters.skypilot_memory import custom_of
from marketplace.catalog.adapters.skypilot_rows import (
    LONGEST_TEXT,
    Draft,
    RefusedRow,
    Row,
    draft,
    is_cpu_only,
    words_of,
)
from marketplace.catalog.base import Batch, Entry, Page, Quarantined, UnreadablePage
from marketplace.catalog.reading.names import Aliases

COLUMNS = ("InstanceType", "AcceleratorName", "AcceleratorCount", "GpuInfo", "Price", "Region")
"""Without these a file is not read: a shifted header would put prices into the wrong column."""

REPLACED = "\N{REPLACEMENT CHARACTER}"


@dataclass(slots=True)
class _Reading:
    """What has been read so far."""

    aliases: Aliases = field(default_factory=dict)
    drafts: list[Draft] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    cpu_only: int = 0
    rows: int = 0
    whole: bool = True


@dataclass(frozen=True, slots=True)
class SkyPilotAdapter:
    """An `Adapter`. A file is one page; it names no next one. `aliases` are a curator's."""

    aliases: Aliases = field(default_factory=dict)

    def next_page(self, page: Page) -> str | None:
        return None

    def read(self, pages: Sequence[Page]) -> Batch:
        """All rows of the files. Raises UnreadablePage for another layout or no rows at all."""
        texts = [_text(page.body) for page in pages]
        reading = _Reading(self.aliases)
        for text in texts:
            _read_file(text, reading)
        if not reading.rows:
            raise UnreadablePage(finding(Code.LAYOUT_CHANGED), "Rows: read 0, expected some.")
        return _batch(reading, replaced=sum(text.count(REPLACED) for text in texts))


def has_listings(header: Iterable[str]) -> bool:
    """Whether a file with this header is a price file."""
    return set(COLUMNS) <= {name.strip() for name in header}


def _text(body: bytes) -> str:
    """NUL is no text: PostgreSQL refuses it inside the words that are kept."""
    return body.decode("utf-8-sig", errors="replace").replace("\0", REPLACED)


def _read_file(text: str, reading: _Reading) -> None:
    lines = _lines(text)
    header = [name.strip() for name in next(lines, None) or ()]
    if not has_listings(header):
        read, expected = ", ".join(header)[:200], ", ".join(COLUMNS)
        raise UnreadablePage(
            finding(Code.LAYOUT_CHANGED), f"Columns: read {read or 'none'}; expected {expected}."
        )
    for cells in lines:
        _take(header, cells, reading)


def _lines(text: str) -> Iterator[list[str] | None]:
    """Rows that are not blank; None for one that is no CSV."""
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield None
            continue
        if any(cell.strip() for cell in cells):
            yield cells


def _take(header: Sequence[str], cells: Sequence[str] | None, reading: _Reading) -> None:
    reading.rows += 1
    if cells is None or len(cells) != len(header):
        reading.whole = False
        reading.quarantined.append(_cut_row(len(header), cells))
        return
    row = dict(zip(header, cells, strict=True))
    try:
        if is_cpu_only(row):
            reading.cpu_only += 1
        else:
            reading.drafts.append(draft(row, reading.aliases))
    except RefusedRow as refused:
        reading.quarantined.append(_quarantined(row, refused))


def _cut_row(expected: int, cells: Sequence[str] | None) -> Quarantined:
    read = "a broken quotation" if cells is None else len(cells)
    reason = finding(Code.ROW_UNREADABLE, field="columns", value=read, expected=expected)
    return Quarantined(sku=cells[0][: LONGEST_TEXT["InstanceType"]] if cells else "", reason=reason)


def _quarantined(row: Row, refused: RefusedRow) -> Quarantined:
    return Quarantined(
        sku=row["InstanceType"][: LONGEST_TEXT["InstanceType"]],
        reason=refused.reason,
        region=row["Region"][: LONGEST_TEXT["Region"]],
        zone=row.get("AvailabilityZone", "")[: LONGEST_TEXT["AvailabilityZone"]],
        words=words_of(row),
    )


def _batch(reading: _Reading, replaced: int) -> Batch:
    entries = _entries(reading)
    unique, repeated = _split_repeated(entries)
    left_out = {"no GPU named": reading.cpu_only} if reading.cpu_only else {}
    return Batch(
        entries=tuple(unique),
        quarantined=(*reading.quarantined, *repeated),
        left_out=left_out,
        findings=(finding(Code.ENCODING_REPLACED, count=replaced),) if replaced else (),
        complete=reading.whole,
    )


def _entries(reading: _Reading) -> list[Entry]:
    custom = custom_of(reading.drafts)
    entries = []
    for item in reading.drafts:
        try:
            entries.append(entry_of(item, custom))
        except RefusedRow as refused:
            reading.quarantined.append(_quarantined(item.row, refused))
    return entries


_Key = tuple[str, str, str, int | None]


def _key(entry: Entry) -> _Key:
    return (entry.sku, entry.region, entry.zone, entry.vram_bytes_per_gpu)


def _split_repeated(entries: Iterable[Entry]) -> tuple[list[Entry], list[Quarantined]]:
    """Rows whose key stands once, and all rows of a key that stands more often.

    Two prices under one key cannot be told apart, so neither is shown.
    """
    rows = list(entries)
    times = Counter(map(_key, rows))
    unique = [entry for entry in rows if times[_key(entry)] == 1]
    repeated = [_repeated(entry, times[_key(entry)]) for entry in rows if times[_key(entry)] > 1]
    return unique, repeated


def _repeated(entry: Entry, times: int) -> Quarantined:
    key = " / ".join(filter(None, (entry.sku, entry.region, entry.zone)))
    reason = finding(Code.DUPLICATE_KEY, key=key, times=times)
    return Quarantined(entry.sku, reason, entry.region, entry.zone, entry.words)
