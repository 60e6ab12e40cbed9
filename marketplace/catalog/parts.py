"""Batches in parts: a long list is never held whole, and parts come to one batch again."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from evaluator.findings import Code, Finding, finding
from marketplace.catalog.base import (
    Adapter,
    Batch,
    Entry,
    Known,
    Page,
    Quarantined,
    RowAdapter,
)

ROWS = 1000
"""Of one part: few enough to be held by the thousand, enough that statements are few."""

DIGEST_BYTES = 16

Identity = tuple[str, str, str, int | None]


def read_parts(adapter: Adapter, pages: Sequence[Page], known: Known) -> Iterator[Batch]:
    """What pages hold, in parts of some thousand rows. Raises UnreadablePage."""
    if isinstance(adapter, RowAdapter):
        yield from adapter.parts(pages, known)
        return
    batch = without_rivals(adapter.read(pages))
    yield from (Batch(part) for part in _cut(batch.entries))
    yield replace(batch, entries=())


def joined(parts: Iterable[Batch]) -> Batch:
    """All parts as one batch."""
    entries: list[Entry] = []
    quarantined: list[Quarantined] = []
    skipped: list[str] = []
    left_out: Counter[str] = Counter()
    findings: list[Finding] = []
    last, complete = Batch(), True
    for part in parts:
        entries += part.entries
        quarantined += part.quarantined
        skipped += part.skipped
        left_out.update(part.left_out)
        findings += part.findings
        last, complete = part, complete and part.complete
    return replace(
        last,
        entries=tuple(entries),
        quarantined=tuple(quarantined),
        skipped=tuple(skipped),
        left_out=dict(left_out),
        findings=tuple(findings),
        complete=complete,
    )


def _cut(entries: Sequence[Entry]) -> Iterator[tuple[Entry, ...]]:
    for start in range(0, len(entries), ROWS):
        yield tuple(entries[start : start + ROWS])


def digest_of(salt: str, header: Sequence[str], cells: Sequence[str]) -> str:
    """Equal for equal rows under one header. A cell holds no unit separator, or it is doubled."""
    text = "\x1f".join(
        [salt, *header, "\x1e", *(cell.replace("\x1f", "\x1f\x1f") for cell in cells)]
    )
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=DIGEST_BYTES).hexdigest()


def without_rivals(batch: Batch) -> Batch:
    """A row that is repeated stands once; of two that claim one identity and differ, none does."""
    found: dict[Identity, list[Entry]] = {}
    for entry in batch.entries:
        found.setdefault(identity_of(entry), []).append(entry)
    if len(found) == len(batch.entries):
        return batch
    claims = {key: _different(rivals) for key, rivals in found.items()}
    return replace(
        batch,
        entries=tuple(only[0] for only in claims.values() if len(only) == 1),
        quarantined=(*batch.quarantined, *_disbelieved(claims.values())),
        findings=(*batch.findings, *_repeated(found)),
    )


def identity_of(entry: Entry) -> Identity:
    return (entry.sku, entry.region, entry.zone, entry.vram_bytes_per_gpu)


def _different(rivals: Sequence[Entry]) -> list[Entry]:
    kept: list[Entry] = []
    for entry in rivals:
        if not any(replace(one, page=entry.page) == entry for one in kept):
            kept.append(entry)
    return kept


def _disbelieved(claims: Iterable[Sequence[Entry]]) -> Iterator[Quarantined]:
    for rivals in claims:
        if len(rivals) > 1:
            reason = finding(Code.DUPLICATE_KEY, key=_name(rivals[0]), times=len(rivals))
            yield from (set_aside(entry, reason) for entry in rivals)


def _repeated(found: dict[Identity, list[Entry]]) -> Iterator[Finding]:
    """Rows that several pages of one list show."""
    for rivals in found.values():
        if len({entry.page for entry in rivals}) > 1:
            yield finding(Code.DUPLICATE_LISTING, key=_name(rivals[0]))


def set_aside(entry: Entry, reason: Finding) -> Quarantined:
    return Quarantined(entry.sku, reason, entry.region, entry.zone, entry.words)


def _name(entry: Entry) -> str:
    return "/".join((entry.sku, entry.region, entry.zone))
