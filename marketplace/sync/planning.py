"""What one sync will write, once all of the pages was seen: or the reason to keep what stands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from marketplace.catalog.base import Quarantined
from marketplace.catalog.reconcile import losses
from marketplace.models import Snapshot, Source
from marketplace.sync import holds
from marketplace.sync.rows import Key, clean
from marketplace.sync.sketch import Sketch
from marketplace.sync.standing import Line


@dataclass(frozen=True, slots=True)
class Sighting:
    """From which stored bodies it was read, and when those were seen at the source.

    `complete` says that an absent listing is really gone, `doubt` is the reason not to publish any
    of it, if there is one; `accepted` a person's word that what looks wrong is right.
    """

    snapshots: tuple[Snapshot, ...]
    seen_at: datetime
    complete: bool = True
    doubt: str = ""
    accepted: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """All that one commit will write: the drafts of the sketch, and the listings that are gone.

    `held` is the reason, for people to read, why the listings are kept as they stand instead;
    `losses` the digest of what is missing, if that is the reason.
    """

    sketch: Sketch
    gone: list[Line]
    quarantined: list[Quarantined]
    held: str = ""
    losses: str = ""


def plan(source: Source, sketch: Sketch, sighting: Sighting) -> Plan:
    """Compare what was read with what the source offered. Writes nothing."""
    gone, missing = _losses(sketch, sighting)
    gone += [sketch.standing.lines[key] for key in sketch.replaced]
    held, losses_seen = _hold(source, sketch, sighting, missing)
    return Plan(sketch, gone, [*sketch.quarantined, *sketch.unlikely], held, losses_seen)


def _hold(
    source: Source, sketch: Sketch, sighting: Sighting, missing: list[Key]
) -> tuple[str, str]:
    """The reason to keep everything as it stands, and the digest of losses that are the reason."""
    nothing = "" if sketch.changes.total() else "No listing could be read."
    if sighting.accepted:
        return nothing, ""
    refused = holds.rejected_hold(source, sighting.snapshots)
    reason = (
        refused
        or sighting.doubt
        or holds.layout_hold(source, sketch.columns)
        or nothing
        or holds.too_few_prices(sketch.priced, sketch.lost_prices)
    )
    if reason or not missing:
        return reason, ""
    losses_seen = holds.digest_of(missing)
    if holds.is_confirmed(source, losses_seen, sighting.seen_at):
        return "", ""
    known = sum(line.current for line in sketch.standing.lines.values())
    return f"{len(missing)} of {known} listings are missing.", losses_seen


def _losses(sketch: Sketch, sighting: Sighting) -> tuple[list[Line], list[Key]]:
    """Current listings that are gone, and those of them that are too many to be believed gone."""
    believed, lines = sketch.believed, sketch.standing.lines
    if not believed or not sighting.complete:
        return [], []
    known = [key for key, line in sorted(lines.items()) if line.current]
    in_doubt = _places(sketch.quarantined)
    places = {key[:3] for key in believed}
    # A name that stands for other hardware now is no loss: the old listing makes way for it.
    replaced = [key for key in known if key not in believed and key[:3] in places]
    absent, too_many = losses(known, lambda key: key[:3] in places or key[:3] in in_doubt)
    return [lines[key] for key in sorted([*absent, *replaced])], absent if too_many else []


def _places(rows: Iterable[Quarantined]) -> set[tuple[str, str, str]]:
    return {(clean(row.sku), clean(row.region), clean(row.zone)) for row in rows}
