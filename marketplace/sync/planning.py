"""What one sync will write: each listing as new, changed or unchanged, and those that are gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from evaluator.findings import Code, Finding, finding
from marketplace.catalog.base import Batch, Entry, Quarantined
from marketplace.catalog.reconcile import losses
from marketplace.listings import own_facts
from marketplace.models import Listing, Price, Snapshot, Source
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
    """What was read, from which stored bodies, and when those were seen at the source."""

    batch: Batch
    snapshots: tuple[Snapshot, ...]
    seen_at: datetime
    losses_accepted: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """A listing row as it will stand, with its prices. `change`: new, changed or unchanged."""

    listing: Listing
    prices: list[Price]
    change: str


@dataclass(frozen=True, slots=True)
class Plan:
    """All that one commit will write, in key order.

    `held` is the reason, for people to read, why the listings are kept as they stand instead.
    """

    drafts: list[Draft]
    gone: list[Listing]
    quarantined: list[Quarantined]
    held: str = ""

    def rows(self, change: str) -> list[Listing]:
        return [draft.listing for draft in self.drafts if draft.change == change]


def plan(source: Source, sighting: Sighting) -> Plan:
    """Compare what was read with what the source offered. Writes nothing."""
    believed, misfits = _split(sighting.batch.entries)
    doubted = [*sighting.batch.quarantined, *misfits]
    prior = {key_of_row(row): row for row in source.listings.prefetch_related(own_facts())}
    gone, held = _losses(prior, believed, doubted, sighting)
    drafts = [
        _draft(prior.get(key), source, entry, sighting) for key, entry in sorted(believed.items())
    ]
    return Plan(drafts, gone, doubted, held)


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
) -> tuple[list[Listing], str]:
    """Current listings that are gone, and the reason to hold everything, if there is one."""
    if not believed:
        return [], "No listing could be read."
    known = [key for key, row in sorted(prior.items()) if row.gone_at is None]
    in_doubt = {(clean(row.sku), clean(row.region), clean(row.zone)) for row in doubted}
    places = {key[:3] for key in believed}
    # A name that stands for other hardware now is no loss: the old listing makes way for it.
    replaced = [key for key in known if key not in believed and key[:3] in places]
    absent, too_many = losses(known, lambda key: key[:3] in places or key[:3] in in_doubt)
    if not sighting.batch.complete:
        return [], ""
    if too_many and not sighting.losses_accepted:
        return [], f"{len(absent)} of {len(known)} listings are missing."
    return [prior[key] for key in sorted([*absent, *replaced])], ""


def _draft(prior: Listing | None, source: Source, entry: Entry, sighting: Sighting) -> Draft:
    listing = prior or _new_listing(source, entry, sighting)
    before = _state(listing)
    for name, value in columns_of(entry).items():
        setattr(listing, name, value)
    listing.gone_at, listing.seen_in = None, sighting.snapshots[entry.page]
    listing.last_seen = max(listing.last_seen, sighting.seen_at)
    count = rental_gpus(listing)
    prices = [price_of(quote, listing, count) for quote in storable(entry.quotes)]
    derive(listing, prices)
    change = "unchanged" if before == _state(listing) else "changed"
    return Draft(listing, prices, change if prior else "new")


def _new_listing(source: Source, entry: Entry, sighting: Sighting) -> Listing:
    return Listing(
        source=source,
        provider_id=source.provider_id,
        first_seen=sighting.seen_at,
        last_seen=sighting.seen_at,
        **dict(zip(IDENTITY, key_of(entry), strict=True)),
    )


def _state(listing: Listing) -> dict[str, Any]:
    return {name: getattr(listing, name) for name in COMPARED}
