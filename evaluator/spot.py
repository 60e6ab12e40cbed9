"""Spot capacity: what is lost each time it is taken away, with checkpoints at Young's interval."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.calibration import figure
from evaluator.first_step import seconds_for
from evaluator.ranges import Range
from evaluator.spending import Reclaimed
from evaluator.units import SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True)
class Reclaims:
    """Hours lost to reclaims; None where nobody says how often, or where the job never ends."""

    lost: Range | None
    words: str


def reclaims_of(
    work: Range, reclaim_hours: float | None, saved: Range | None, restart_s: Range, machines: int
) -> Reclaims:
    """What reclaims add to `work` hours. One machine that is taken away stops all of them.

    `reclaim_hours` is how long one machine stays on average, `saved` the bytes of a checkpoint,
    `restart_s` the seconds until a new machine computes again.
    """
    if reclaim_hours is None:
        return Reclaims(None, "nobody states how long spot capacity stays (costs.reclaim_hours)")
    if saved is None:
        return Reclaims(None, "the size of a checkpoint is not known (checkpoint_bytes)")
    stops = reclaimed(reclaim_hours * SECONDS_PER_HOUR / machines, saved, restart_s)
    if stops[-1].overhead >= 1:
        return Reclaims(None, "capacity is taken away faster than the job is saved and restarted")
    pairs = zip((work.low, work.typical, work.high), stops, strict=True)
    lost = Range(*(hours * (one.price_factor - 1) for hours, one in pairs))
    minutes = stops[1].interval_s / 60
    words = f"a checkpoint every {minutes:.0f} minutes, reclaimed every {reclaim_hours:g} h"
    return Reclaims(lost, words)


def reclaimed(between_s: float, saved: Range, restart_s: Range) -> tuple[Reclaimed, ...]:
    """Three cases from quick to slow saving and restarting; seconds and bytes."""
    saving = [
        seconds_for(size, figure("rent.save")) for size in (saved.low, saved.typical, saved.high)
    ]
    times = (saving[0].low, saving[1].typical, saving[2].high)
    restarts = (restart_s.low, restart_s.typical, restart_s.high)
    return tuple(
        Reclaimed(between_s, saving_s=one, restart_s=other)
        for one, other in zip(times, restarts, strict=True)
    )
