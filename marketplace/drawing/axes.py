"""Ticks and labels along an axis: round steps, and words that do not lie on each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil, floor, log10

MOST_TICKS = 6
TIERS = 3
"""Rows of words above a picture before a word is left to the table."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis in the picture's units, with its words."""

    at: float
    words: str


def round_step(span: float, most: int = MOST_TICKS) -> float:
    """The smallest of 1, 2, 5 × 10^n that divides a span into at most `most` parts."""
    if span <= 0:
        return 1.0
    unit = 10.0 ** floor(log10(span / most))
    return next(unit * step for step in (1, 2, 5, 10) if span / (unit * step) <= most)


def ticks(largest: float, scale: float) -> tuple[Tick, ...]:
    """Round values from 0 to `largest`, `scale` units of the picture each."""
    step = round_step(largest)
    return tuple(Tick(n * step * scale, f"{n * step:,g}") for n in range(int(largest / step) + 1))


def powers(low: float, high: float, base: int = 10) -> list[float]:
    """Powers of `base` from the one at or below `low` to the one at or above `high`."""
    first, last = floor(_log(low, base) + 1e-9), ceil(_log(high, base) - 1e-9)
    return [float(base) ** n for n in range(first, max(last, first + 1) + 1)]


def _log(value: float, base: int) -> float:
    return log10(value) / log10(base)


def tiers(places: Iterable[float], width: float) -> Iterator[int | None]:
    """For each place from left to right the first row where a word of `width` is free; or None."""
    ends = [float("-inf")] * TIERS
    for place in places:
        free = next((row for row, end in enumerate(ends) if place - width / 2 >= end), None)
        if free is not None:
            ends[free] = place + width / 2
        yield free
