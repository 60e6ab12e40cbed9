"""A scaling curve on two logarithmic axes with the line that no curve need follow: the ideal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

from evaluator.ranges import Range
from marketplace.drawing.axes import Tick, powers

WIDTH, HEIGHT = 460.0, 330.0
LEFT, RIGHT, TOP, BOTTOM = 84.0, 26.0, 16.0, 46.0
MOST_MARKS = 9


@dataclass(frozen=True, slots=True)
class Measure:
    """A rate on so many GPUs, with words for the table and the point's title."""

    gpus: int
    rate: Range
    words: str


@dataclass(frozen=True, slots=True)
class Dot:
    x: float
    y: float
    low: float
    high: float
    title: str


@dataclass(frozen=True, slots=True)
class LogLog:
    """`ideal` and `curve` are paths, y grows downwards. `mark` tells two of one page apart."""

    dots: tuple[Dot, ...]
    curve: str
    ideal: str
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    mark: str
    title: str
    finding: str
    description: str
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    top: float = TOP
    base: float = HEIGHT - BOTTOM

    @property
    def numbers_y(self) -> float:
        return self.base + 18

    @property
    def caption_y(self) -> float:
        return self.base + 38


def loglog(points: Sequence[Measure], mark: str, title: str) -> LogLog | None:
    """Rates by the number of GPUs. None for fewer than two points: nothing scales yet."""
    if len(points) < 2:
        return None
    ordered = sorted(points, key=lambda point: point.gpus)
    first, last = ordered[0], ordered[-1]
    ideal = first.rate.typical * last.gpus / first.gpus
    lowest = min(point.rate.low for point in ordered)
    highest = max(ideal, *(point.rate.high for point in ordered))
    x = _Axis(first.gpus, last.gpus, LEFT + 12, WIDTH - RIGHT - 12)
    rates = powers(lowest, highest, 2)
    y = _Axis(rates[0], rates[-1], HEIGHT - BOTTOM, TOP)
    dots = tuple(_dot(point, x, y) for point in ordered)
    start, end = (x.at(first.gpus), y.at(first.rate.typical)), (x.at(last.gpus), y.at(ideal))
    return LogLog(
        dots=dots,
        curve="M" + "L".join(f"{dot.x:.1f} {dot.y:.1f}" for dot in dots),
        ideal=f"M{start[0]:.1f} {start[1]:.1f}L{end[0]:.1f} {end[1]:.1f}",
        across=tuple(Tick(x.at(point.gpus), f"{point.gpus}") for point in ordered),
        up=tuple(Tick(y.at(rate), f"{rate:,.0f}") for rate in _thinned(rates)),
        mark=mark,
        title=title,
        finding=_finding(first, last),
        description=f"{title}: {_finding(first, last)} {_ends(first, last)}",
    )


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = log2(value / self.low) / log2(self.high / self.low)
        return self.start + share * (self.end - self.start)


def _dot(point: Measure, x: _Axis, y: _Axis) -> Dot:
    rate = point.rate
    return Dot(x.at(point.gpus), y.at(rate.typical), y.at(rate.low), y.at(rate.high), point.words)


def _thinned(values: Sequence[float]) -> Sequence[float]:
    every = -(-len(values) // MOST_MARKS)
    return values[::every]


def _finding(first: Measure, last: Measure) -> str:
    """By the low ends, as efficiencies are in the table beside it."""
    more, times = last.gpus / first.gpus, last.rate.low / first.rate.low
    return (
        f"{more:.3g} times the GPUs bring {times:.2g} times the rate, {times / more:.0%} of ideal."
    )


def _ends(first: Measure, last: Measure) -> str:
    ends = (f"{_rate(one.rate)} tokens/s on {one.gpus}" for one in (first, last))
    return f"By the low ends: from {' to '.join(ends)}."


def _rate(rate: Range) -> str:
    return f"{rate.low:,.0f}–{rate.high:,.0f}"
