"""Arms that take turns: each round in another order, each figure a ratio within its round.

A ratio says how many times as long the other took as ours.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median, quantiles
from time import perf_counter, process_time

Arm = Callable[[], object]
ENOUGH_FOR_TENTHS = 10
"""Rounds from which the tenth and ninetieth in a hundred mean something."""


@dataclass(frozen=True)
class Spent:
    """Seconds of one arm by round: on the wall, and of the processor, which no neighbour moves."""

    wall: list[float]
    processor: list[float]


def rounds(arms: Mapping[str, Arm], times: int) -> dict[str, Spent]:
    """The order within a round is shuffled."""
    by, found = random.Random(2), {name: Spent([], []) for name in arms}
    for _ in range(times):
        for name in by.sample(list(arms), len(arms)):
            wall, processor = perf_counter(), worked()
            arms[name]()
            found[name].wall.append(perf_counter() - wall)
            found[name].processor.append(worked() - processor)
    return found


def worked() -> float:
    """Seconds of the processor: of this process and of its children that ended."""
    ended = getrusage(RUSAGE_CHILDREN)
    return process_time() + ended.ru_utime + ended.ru_stime


def tell(name: str, ours: Spent, theirs: Spent, against: str, scale: float = 1) -> None:
    print(
        f"  {name:<36} {_ratio(ours.wall, theirs.wall, scale)} ms on the wall,"
        f" {_ratio(ours.processor, theirs.processor, scale)} ms of the processor, against {against}"
    )


def _ratio(ours: list[float], theirs: list[float], scale: float) -> str:
    ratios = [other * scale / own for own, other in zip(ours, theirs, strict=True)]
    low, high = _spread(ratios)
    spread = f"{median(ratios):,.1f} x ({low:,.1f} to {high:,.1f})"
    return f"{spread}: {median(ours) * 1000:,.1f} and {median(theirs) * scale * 1000:,.1f}"


def _spread(ratios: list[float]) -> tuple[float, float]:
    """The tenth and ninetieth in a hundred, or of a few rounds the least and the most."""
    if len(ratios) < ENOUGH_FOR_TENTHS:
        return min(ratios), max(ratios)
    low, *_, high = quantiles(ratios, n=10)
    return low, high
