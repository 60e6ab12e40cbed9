"""Pages as they are read, part by part: each row beside what its source offered until now.

Nothing is written to a table. What the whole of it means is decided when all was seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from evaluator.findings import Code, Finding, finding
from marketplace.catalog.base import Batch, Entry, Quarantined
from marketplace.catalog.layouts import Columns
from marketplace.catalog.parts import set_aside
from marketplace.models import Listing, Snapshot, Source
from marketplace.sync.decisions import Decisions
from marketplace.sync.derived import DERIVED_COLUMNS, derive, rental_gpus
from marketplace.sync.drafts import Draft, Packed, packed
from marketplace.sync.jumps import Doubts
from marketplace.sync.prices import rate_of, storable
from marketplace.sync.reading import Reading
from marketplace.sync.rows import (
    CATALOG_COLUMNS,
    IDENTITY,
    Key,
    clean,
    columns_of,
    key_of,
    misfit,
)
from marketplace.sync.spool import Spool
from marketplace.sync.standing import Line, Standing

COMPARED = (*CATALOG_COLUMNS, *DERIVED_COLUMNS, "gone_at")


@dataclass(slots=True)
class Sketch:
    """All of one reading. `whole` is what pages say besides their rows, `replaced` the listings
    that make way for other hardware of the same name."""

    source: Source
    snapshots: Sequence[Snapshot]
    seen_at: datetime
    accepted: bool
    standing: Standing
    drafts: Spool[list[Packed]] = field(default_factory=Spool)
    skipped: list[Line] = field(default_factory=list)
    believed: set[Key] = field(default_factory=set)
    replaced: list[Key] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    unlikely: list[Quarantined] = field(default_factory=list)
    changes: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    columns: tuple[Columns, ...] = ()
    doubt: str = ""
    complete: bool = True
    hold: Finding | None = None
    dated: date | None = None
    several_pages: bool = False
    priced: int = 0
    lost_prices: int = 0
    doubts: Doubts = field(init=False)
    decisions: Decisions = field(init=False)

    def __post_init__(self) -> None:
        self.doubts, self.decisions = Doubts(self.source), Decisions(self.source)

    def take(self, reading: Reading) -> None:
        """One more part of the pages."""
        self.columns += (*reading.columns, *reading.batch.fields)
        self.doubt = self.doubt or reading.doubt
        self._take_whole(reading.batch)
        self._skip(self.standing.skipped(reading.batch.skipped))
        self._take_entries(reading.batch.entries)

    def close(self) -> None:
        self.drafts.close()

    @property
    def overlaps(self) -> bool:
        """Whether the pages of one list show a row twice, or another number of rows than they say:
        the list moved while it was read, or shows some rows on every page."""
        codes = {found.code for found in self.findings}
        return self.several_pages and bool(codes & {Code.COUNT_MISMATCH, Code.DUPLICATE_LISTING})

    def _take_whole(self, batch: Batch) -> None:
        self.quarantined += batch.quarantined
        self.left_out.update(batch.left_out)
        self.findings += batch.findings
        self.complete = self.complete and batch.complete
        self.hold = self.hold or batch.hold
        self.dated = max(filter(None, (self.dated, batch.dated)), default=None)

    def _skip(self, lines: Sequence[Line]) -> None:
        self.skipped += lines
        self.believed.update(line.key for line in lines)
        self.changes["unchanged"] += len(lines)
        self.priced += sum(line.priced for line in lines)

    def _take_entries(self, entries: Sequence[Entry]) -> None:
        self.several_pages = self.several_pages or any(entry.page for entry in entries)
        fit = self._fit(entries)
        prior = self.standing.rows(fit)
        reused = [key for key, row in prior.items() if is_reused(row, fit[key])]
        self.replaced += [key for key in reused if prior[key].gone_at is None]
        drafts = [self._draft(key, prior.get(key), entry) for key, entry in sorted(fit.items())]
        likely = list(self._likely(drafts))
        if likely:
            self.drafts.put([packed(draft) for draft in likely])
        self.changes.update(draft.change for draft in likely)

    def _fit(self, entries: Iterable[Entry]) -> dict[Key, Entry]:
        """Entries by identity. One that no row can hold or whose identity is taken is set aside."""
        fit: dict[Key, Entry] = {}
        for entry in entries:
            key = key_of(entry)
            reason = misfit(entry)
            if key in self.believed:
                reason = finding(Code.DUPLICATE_KEY, key="/".join(key[:3]), times=2)
            if reason:
                self.quarantined.append(set_aside(entry, reason))
                continue
            fit[key] = entry
            self.believed.add(key)
        return fit

    def _likely(self, drafts: list[Draft]) -> Iterator[Draft]:
        """Those whose price is believed. A person's word admits all, or one row."""
        self._count_prices(drafts)
        self.doubts.look_up([draft.listing for draft in drafts])
        for draft in drafts:
            row = draft.listing
            found = self.doubts.of(row, draft.rates, draft.before)
            if found is None or self.accepted or self.decisions.admit(row, found):
                yield draft
            else:
                self.unlikely.append(Quarantined(row.sku, found, row.region, row.zone, row.words))

    def _count_prices(self, drafts: Iterable[Draft]) -> None:
        priced = [draft for draft in drafts if draft.before[0] is not None]
        self.priced += len(priced)
        self.lost_prices += sum(not draft.rates for draft in priced)

    def _draft(self, key: Key, prior: Listing | None, entry: Entry) -> Draft:
        generation = prior.generation + 1 if prior and is_reused(prior, entry) else 0
        if generation:
            prior = None
        listing = prior or self._new_listing(entry, generation)
        before = _state(listing)
        amount = (listing.machine_hour_amount, listing.machine_hour_currency)
        for name, value in columns_of(entry).items():
            setattr(listing, name, value)
        listing.row_digest, listing.row_hint = entry.mark.digest, entry.mark.hint
        listing.gone_at, listing.seen_in_id = None, self.snapshots[entry.page].pk
        listing.last_seen = max(listing.last_seen, self.seen_at)
        count = rental_gpus(listing)
        rates = [rate_of(quote, count) for quote in storable(entry.quotes)]
        derive(listing, rates, plain=prior is None or self.standing.is_plain(key))
        change = "unchanged" if before == _state(listing) else "changed"
        return Draft(listing, rates, change if prior else "new", amount)

    def _new_listing(self, entry: Entry, generation: int) -> Listing:
        return Listing(
            source_id=self.source.pk,
            provider_id=self.source.provider_id,
            generation=generation,
            first_seen=self.seen_at,
            last_seen=self.seen_at,
            **dict(zip(IDENTITY, key_of(entry), strict=True)),
        )


def _state(listing: Listing) -> Mapping[str, Any]:
    return {name: getattr(listing, name) for name in COMPARED}


def is_reused(row: Listing, entry: Entry) -> bool:
    """Whether a provider gave the name of one machine to another one.

    Evidence and history of the old one say nothing of the new one. A longer name of the same card
    is the same hardware, better described.
    """
    counts = (row.gpu_count, entry.gpu_count)
    models = (row.gpu_model or "", clean(entry.gpu_model or "")[:80])
    other_count = None not in counts and counts[0] != counts[1]
    other_model = all(models) and not _extend_each_other(*models)
    return other_count or other_model


def _extend_each_other(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)
