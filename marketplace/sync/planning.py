"""What one sync will write: each listing as new, changed or unchanged, and those that are gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from evaluator.findings import Code, Finding, finding
from marketplace.catalog.base import Batch, Entry, Quarantined
from marketplace.catalog.layouts import Columns
from marketplace.catalog.reconcile import losses
from marketplace.listings import own_facts
from marketplace.models import Listing, Price, Snapshot, Source
from marketplace.sync import holds, jumps
from marketplace.sync.derived import DERIVED_COLUMNS, derive, rental_gpus
from marketplace.sync.prices import price_of, storable
from marketplace.sync.rows import (
    CATALOG_COLUMNS,
    IDENTITY,
    Key,
    clean,
    columns_of,
    key_of,
    key_of_row,
    misfit,
)

COMPARED = (*CATALOG_COLUMNS, *DERIVED_COLUMNS, "gone_at")


@dataclass(frozen=True, slots=True)
class Sighting:
    """What was read, from which stored bodies, and when those were seen at the source.

    `doubt` is the reason not to publish any of it, if there is one; `accepted` a person's word
    that what looks wrong is right.
    """

    batch: Batch
    snapshots: tuple[Snapshot, ...]
    seen_at: datetime
    columns: tuple[Columns, ...] = ()
    doubt: str = ""
    accepted: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """A listing row as it will stand, with its prices. `change`: new, changed or unchanged.

    `before` is its price for an hour until now.
    """

    listing: Listing
    prices: list[Price]
    change: str
    before: jumps.Amount = (None, "")


@dataclass(frozen=True, slots=True)
class Plan:
    """All that one commit will write, in key order.

    `held` is the reason, for people to read, why the listings are kept as they stand instead;
    `losses` the digest of what is missing, if that is the reason.
    """

    drafts: list[Draft]
    gone: list[Listing]
    quarantined: list[Quarantined]
    held: str = ""
    losses: str = ""

    def rows(self, change: str) -> list[Listing]:
        return [draft.listing for draft in self.drafts if draft.change == change]


def plan(source: Source, sighting: Sighting) -> Plan:
    """Compare what was read with what the source offered. Writes nothing."""
    believed, misfits = _split(sighting.batch.entries)
    doubted = [*sighting.batch.quarantined, *misfits]
    rows = source.listings.order_by("generation").prefetch_related(own_facts())
    prior = {key_of_row(row): row for row in rows}
    gone, missing = _losses(prior, believed, doubted, sighting)
    reused = [key for key in believed if key in prior and is_reused(prior[key], believed[key])]
    gone += [row for key in reused if (row := prior[key]).gone_at is None]
    drafts = [
        _draft(prior.get(key), source, entry, sighting) for key, entry in sorted(believed.items())
    ]
    drafts, unlikely = _without_jumps(source, drafts, sighting)
    held, losses_seen = _hold(source, sighting, drafts, missing)
    return Plan(drafts, gone, [*doubted, *unlikely], held, losses_seen)


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


def _hold(
    source: Source, sighting: Sighting, drafts: list[Draft], missing: list[Key]
) -> tuple[str, str]:
    """The reason to keep everything as it stands, and the digest of losses that are the reason."""
    nothing = "" if drafts else "No listing could be read."
    if sighting.accepted:
        return nothing, ""
    refused = holds.rejected_hold(source, sighting.snapshots)
    reason = (
        refused
        or sighting.doubt
        or holds.layout_hold(source, sighting.columns)
        or nothing
        or _lost_prices(drafts)
    )
    if reason or not missing:
        return reason, ""
    losses_seen = holds.digest_of(missing)
    if holds.is_confirmed(source, losses_seen, sighting.seen_at):
        return "", ""
    known = source.listings.filter(gone_at=None).count()
    return f"{len(missing)} of {known} listings are missing.", losses_seen


def _lost_prices(drafts: list[Draft]) -> str:
    priced = [draft for draft in drafts if draft.before[0] is not None]
    return holds.too_few_prices(len(priced), sum(not draft.prices for draft in priced))


def _without_jumps(
    source: Source, drafts: list[Draft], sighting: Sighting
) -> tuple[list[Draft], list[Quarantined]]:
    """Rows whose price is believed, and those whose price is not. A person's word admits all."""
    if sighting.accepted:
        return drafts, []
    terms = jumps.standing_terms(source)
    others = jumps.asked_elsewhere(source, (draft.listing.gpu_model for draft in drafts))
    kept, unlikely = [], []
    for draft in drafts:
        row = draft.listing
        found = jumps.jump(row, draft.prices, draft.before, terms.get(row.pk, frozenset()), others)
        if found:
            unlikely.append(Quarantined(row.sku, found, row.region, row.zone, row.words))
        else:
            kept.append(draft)
    return kept, unlikely


def overlaps(batch: Batch) -> bool:
    """Whether the pages of one list show a row twice, or another number of rows than they say:
    the list moved while it was read, or shows some rows on every page."""
    pages: dict[Key, set[int]] = {}
    for entry in batch.entries:
        pages.setdefault(key_of(entry), set()).add(entry.page)
    codes = {found.code for found in batch.findings}
    several = any(entry.page for entry in batch.entries)
    twice = any(len(found) > 1 for found in pages.values())
    return twice or (several and bool(codes & {Code.COUNT_MISMATCH, Code.DUPLICATE_LISTING}))


def _split(entries: Iterable[Entry]) -> tuple[dict[Key, Entry], list[Quarantined]]:
    """Entries by identity, and those that no row can hold. Of two that claim one identity and
    differ, neither is believed."""
    found: dict[Key, list[Entry]] = {}
    quarantined: list[Quarantined] = []
    for entry in entries:
        if reason := misfit(entry):
            quarantined.append(_set_aside(entry, reason))
            continue
        rivals = found.setdefault(key_of(entry), [])
        if not any(replace(rival, page=entry.page) == entry for rival in rivals):
            rivals.append(entry)
    for key, rivals in found.items():
        if len(rivals) > 1:
            reason = finding(Code.DUPLICATE_KEY, key="/".join(key[:3]), times=len(rivals))
            quarantined.extend(_set_aside(entry, reason) for entry in rivals)
    return {key: only[0] for key, only in found.items() if len(only) == 1}, quarantined


def _set_aside(entry: Entry, reason: Finding) -> Quarantined:
    return Quarantined(entry.sku, reason, entry.region, entry.zone, entry.words)


def _losses(
    prior: Mapping[Key, Listing],
    believed: Mapping[Key, Entry],
    doubted: Iterable[Quarantined],
    sighting: Sighting,
) -> tuple[list[Listing], list[Key]]:
    """Current listings that are gone, and those of them that are too many to be believed gone."""
    if not believed or not sighting.batch.complete:
        return [], []
    known = [key for key, row in sorted(prior.items()) if row.gone_at is None]
    in_doubt = {(clean(row.sku), clean(row.region), clean(row.zone)) for row in doubted}
    places = {key[:3] for key in believed}
    # A name that stands for other hardware now is no loss: the old listing makes way for it.
    replaced = [key for key in known if key not in believed and key[:3] in places]
    absent, too_many = losses(known, lambda key: key[:3] in places or key[:3] in in_doubt)
    return [prior[key] for key in sorted([*absent, *replaced])], absent if too_many else []


def _draft(prior: Listing | None, source: Source, entry: Entry, sighting: Sighting) -> Draft:
    if prior and is_reused(prior, entry):
        listing = _new_listing(source, entry, sighting, prior.generation + 1)
        prior = None
    else:
        listing = prior or _new_listing(source, entry, sighting)
    before, amount = _state(listing), (listing.machine_hour_amount, listing.machine_hour_currency)
    for name, value in columns_of(entry).items():
        setattr(listing, name, value)
    listing.gone_at, listing.seen_in = None, sighting.snapshots[entry.page]
    listing.last_seen = max(listing.last_seen, sighting.seen_at)
    count = rental_gpus(listing)
    prices = [price_of(quote, listing, count) for quote in storable(entry.quotes)]
    derive(listing, prices)
    change = "unchanged" if before == _state(listing) else "changed"
    return Draft(listing, prices, change if prior else "new", amount)


def _new_listing(source: Source, entry: Entry, sighting: Sighting, generation: int = 0) -> Listing:
    return Listing(
        source=source,
        provider_id=source.provider_id,
        generation=generation,
        first_seen=sighting.seen_at,
        last_seen=sighting.seen_at,
        **dict(zip(IDENTITY, key_of(entry), strict=True)),
    )


def _state(listing: Listing) -> dict[str, Any]:
    return {name: getattr(listing, name) for name in COMPARED}
