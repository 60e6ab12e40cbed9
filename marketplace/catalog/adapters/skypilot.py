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
from dataclasses import dataclass, field, replace
from io import BytesIO, TextIOWrapper

from evaluator.findings import Code, finding
from marketplace.catalog.adapters.skypilot_entries import entry_of
from marketplace.catalog.adapters.skypilot_memory import Custom, Tally
from marketplace.catalog.adapters.skypilot_rows import (
    LONGEST_TEXT,
    RefusedRow,
    Row,
    draft,
    is_cpu_only,
    words_of,
)
from marketplace.catalog.base import (
    NOTHING_READ,
    Batch,
    Entry,
    Known,
    Mark,
    Page,
    Quarantined,
    UnreadablePage,
)
from marketplace.catalog.parts import ROWS, digest_of, identity_of, joined, set_aside
from marketplace.catalog.reading.names import Aliases

COLUMNS = ("InstanceType", "AcceleratorName", "AcceleratorCount", "GpuInfo", "Price", "Region")
"""Without these a file is not read: a shifted header would put prices into the wrong column."""

REPLACED = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class SkyPilotAdapter:
    """A `RowAdapter`. A file is one page; it names no next one. `aliases` are a curator's."""

    aliases: Aliases = field(default_factory=dict)

    def next_page(self, page: Page) -> str | None:
        return None

    def read(self, pages: Sequence[Page]) -> Batch:
        """All rows of the files. Raises UnreadablePage for another layout or no rows at all."""
        return joined(self.parts(pages, NOTHING_READ))

    def parts(self, pages: Sequence[Page], known: Known) -> Iterator[Batch]:
        """Twice through the files: what all rows say together, then each row in its light."""
        look = _look_over(pages, known, self.aliases)
        if not look.rows:
            raise UnreadablePage(finding(Code.LAYOUT_CHANGED), "Rows: read 0, expected some.")
        yield from _Reading(known, self.aliases, look).parts(pages)


def has_listings(header: Iterable[str]) -> bool:
    """Whether a file with this header is a price file."""
    return set(COLUMNS) <= {name.strip() for name in header}


# --- lines and rows of a file


@dataclass(frozen=True, slots=True)
class _Line:
    """One line that is not blank. `row` is None where it is torn, `cells` where it is no CSV."""

    header: Sequence[str]
    cells: Sequence[str] | None
    row: Row | None

    def digest(self, salt: str) -> str:
        return digest_of(salt, self.header, self.cells or ())

    @property
    def place(self) -> int:
        """Of the name under which it stands. Two of one number are looked at together."""
        row = self.row or {}
        names = ("InstanceType", "Region", "AvailabilityZone")
        return hash(tuple(row.get(name, "").strip() for name in names))


def _lines_of(pages: Sequence[Page]) -> Iterator[_Line]:
    """Raises UnreadablePage for a file of another layout."""
    for page in pages:
        lines = _cells_of(page.body)
        header = [name.strip() for name in next(lines, None) or ()]
        if not has_listings(header):
            read, expected = ", ".join(header)[:200], ", ".join(COLUMNS)
            detail = f"Columns: read {read or 'none'}; expected {expected}."
            raise UnreadablePage(finding(Code.LAYOUT_CHANGED), detail)
        for cells in lines:
            whole = cells is not None and len(cells) == len(header)
            row = dict(zip(header, cells or (), strict=True)) if whole else None
            yield _Line(header, cells, row)


def _cells_of(body: bytes) -> Iterator[list[str] | None]:
    """Rows that are not blank; None for one that is no CSV."""
    reader = csv.reader(_text_of(body), strict=True)
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


def _text_of(body: bytes) -> Iterator[str]:
    """Line by line. NUL is no text: PostgreSQL refuses it inside the words that are kept."""
    for line in TextIOWrapper(BytesIO(body), "utf-8-sig", errors="replace", newline=""):
        yield line.replace("\0", REPLACED)


# --- the whole file


@dataclass(slots=True)
class _Look:
    """What all rows say together: how memory is written, and which names stand several times."""

    tally: Tally = field(default_factory=Tally)
    places: Counter[int] = field(default_factory=Counter)
    rows: int = 0
    replaced: int = 0


def _look_over(pages: Sequence[Page], known: Known, aliases: Aliases) -> _Look:
    look = _Look()
    for line in _lines_of(pages):
        look.rows += 1
        look.replaced += sum(cell.count(REPLACED) for cell in line.cells or ())
        if line.row is not None:
            look.places[line.place] += 1
            _count(line, known, aliases, look.tally)
    return look


def _count(line: _Line, known: Known, aliases: Aliases, tally: Tally) -> None:
    row = line.row or {}
    hint = known.hints.get(line.digest(known.salt)) if known.hints else None
    if hint is not None:
        tally.count_hint(hint, row["AcceleratorName"].strip())
        return
    try:
        if not is_cpu_only(row):
            tally.count(draft(row, aliases))
    except RefusedRow:
        return


@dataclass(slots=True)
class _Reading:
    """Row by row, in the light of the whole file."""

    known: Known
    aliases: Aliases
    look: _Look
    entries: list[Entry] = field(default_factory=list)
    rivals: list[Entry] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    cpu_only: int = 0
    whole: bool = True

    def parts(self, pages: Sequence[Page]) -> Iterator[Batch]:
        custom = self.look.tally.custom()
        for line in _lines_of(pages):
            self._take(line, custom)
            if len(self.entries) + len(self.skipped) >= ROWS:
                yield self._part()
        unique, repeated = _split_repeated(self.rivals)
        self.entries += unique
        self.quarantined += repeated
        yield self._last()

    def _part(self) -> Batch:
        part = Batch(tuple(self.entries), tuple(self.quarantined), skipped=tuple(self.skipped))
        self.entries, self.quarantined, self.skipped = [], [], []
        return part

    def _last(self) -> Batch:
        replaced = self.look.replaced
        return replace(
            self._part(),
            left_out={"no GPU named": self.cpu_only} if self.cpu_only else {},
            findings=(finding(Code.ENCODING_REPLACED, count=replaced),) if replaced else (),
            complete=self.whole,
        )

    def _take(self, line: _Line, custom: Custom) -> None:
        if line.row is None:
            self.whole = False
            self.quarantined.append(_cut_row(len(line.header), line.cells))
            return
        digest, alone = line.digest(self.known.salt), self.look.places[line.place] == 1
        if alone and self._is_known(digest, line.row, custom):
            self.skipped.append(digest)
            return
        try:
            self._read(line.row, digest, custom, self.entries if alone else self.rivals)
        except RefusedRow as refused:
            self.quarantined.append(_quarantined(line.row, refused))

    def _is_known(self, digest: str, row: Row, custom: Custom) -> bool:
        """Read before, when the whole file said the same about it."""
        hint = self.known.hints.get(digest)
        return hint is not None and custom.still_says(hint, row["AcceleratorName"].strip())

    def _read(self, row: Row, digest: str, custom: Custom, into: list[Entry]) -> None:
        if is_cpu_only(row):
            self.cpu_only += 1
            return
        item = draft(row, self.aliases)
        mark = Mark(digest, custom.hint(item))
        into.append(replace(entry_of(item, custom), mark=mark))


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


def _split_repeated(rows: Sequence[Entry]) -> tuple[list[Entry], list[Quarantined]]:
    """Rows whose key stands once, and all rows of a key that stands more often.

    Two prices under one key cannot be told apart, so neither is shown.
    """
    times = Counter(map(identity_of, rows))
    unique = [entry for entry in rows if times[identity_of(entry)] == 1]
    repeated = [
        _repeated(one, times[identity_of(one)]) for one in rows if times[identity_of(one)] > 1
    ]
    return unique, repeated


def _repeated(entry: Entry, times: int) -> Quarantined:
    key = " / ".join(filter(None, (entry.sku, entry.region, entry.zone)))
    return set_aside(entry, finding(Code.DUPLICATE_KEY, key=key, times=times))
