"""Spot capacity: what is lost each time it is taken away, with checkpoints at Young's interval."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.calibration import figure
from evaluator.first_step import seconds_for
from evaluator.ranges import Range
from evaluator.spending import Reclaimed, stay_needed_s
from evaluator.units import SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True)
class Reclaims:
    """Hours lost to reclaims; None where nobody says how often, or where the job never ends."""

    lost: Range | None
    words: str


LONGEST_INTERVAL = 0.5
"""Share of the mean stay beyond which Young's interval, meant for shorter ones, says nothing."""


def reclaims_of(
    work: Range,
    reclaim_hours: float | None,
    saved: Range | None,
    restart_s: Range,
    machines: int,
    price_share: float | None = None,
) -> Reclaims:
    """What reclaims add to `work` hours. One machine that is taken away stops all of them.

    `reclaim_hours` is how long one machine stays on average, `saved` the bytes of a checkpoint,
    `restart_s` the seconds until a new machine computes again, `price_share` the spot price against
    the firm one, where there is one.
    """
    if saved is None:
        return Reclaims(None, "the size of a checkpoint is not known (checkpoint_bytes)")
    if reclaim_hours is None:
        return Reclaims(None, UNSTATED + _pays_from(saved, restart_s, machines, price_share))
    stops = reclaimed(reclaim_hours * SECONDS_PER_HOUR / machines, saved, restart_s)
    slowest = stops[-1]
    if slowest.overhead >= 1 or slowest.interval_s > LONGEST_INTERVAL * slowest.between_s:
        return Reclaims(None, "capacity is taken away faster than the job is saved and restarted")
    pairs = zip((work.low, work.typical, work.high), stops, strict=True)
    lost = Range(*(hours * (one.price_factor - 1) for hours, one in pairs))
    minutes = stops[1].interval_s / 60
    words = f"a checkpoint every {minutes:.0f} minutes, reclaimed every {reclaim_hours:g} h"
    return Reclaims(lost, words)


UNSTATED = "nobody states how long spot capacity stays (costs.reclaim_hours)"


def _pays_from(saved: Range, restart_s: Range, machines: int, price_share: float | None) -> str:
    """How long a machine has to stay on average for spot capacity to be the cheaper way."""
    if price_share is None:
        return ""
    if price_share >= 1:
        return "; it costs no less than what is not taken away"
    saving = seconds_for(saved.typical, figure("rent.save")).typical
    stay = stay_needed_s(saving, restart_s.typical, price_share) * machines / SECONDS_PER_HOUR
    return f"; it pays off where a machine stays {stay:.2g} hours or longer on average"


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
