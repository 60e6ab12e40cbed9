"""Verdicts as shapes: plain numbers that a template draws. Knows neither Django nor rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from evaluator.budgets import Fit, MemoryBudget, RankBudget
from evaluator.ranges import Range
from evaluator.units import GIB

BAR_WIDTH = 100.0
"""The fit bar's own units; the page decides how wide it is drawn."""

MEMORY_WIDTH = 480.0
ROW_HEIGHT, ROW_GAP, TOP, BOTTOM = 34.0, 26.0, 40.0, 30.0
HEADROOM = 1.06
TONES = 6
TICK_STEPS_GIB = (1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
MOST_TICKS = 6
MOST_ROWS = 4


@dataclass(frozen=True, slots=True)
class FitBar:
    """Need against what may be used, both on one axis. Positions are in units of BAR_WIDTH."""

    typical: float
    low: float
    high: float
    limit: float
    word: str
    text: str


@dataclass(frozen=True, slots=True)
class Segment:
    """One component of a budget. `tone` counts from 1; the name in `name` is what tells it."""

    name: str
    x: float
    width: float
    tone: int
    typical: float


@dataclass(frozen=True, slots=True)
class Row:
    """The GPUs of one rank class: a stacked bar of typical values and a whisker low to high."""

    rank: str
    y: float
    segments: tuple[Segment, ...]
    needed: Range
    low: float
    high: float

    @property
    def label_y(self) -> float:
        return self.y - 7

    @property
    def middle(self) -> float:
        return self.y + ROW_HEIGHT / 2


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line at a number of bytes, with its words."""

    x: float
    words: str

    @property
    def anchor(self) -> str:
        """Words near an edge grow inwards, or they would be cut off."""
        if self.x < MEMORY_WIDTH * 0.2:
            return "start"
        return "end" if self.x > MEMORY_WIDTH * 0.8 else "middle"


@dataclass(frozen=True, slots=True)
class MemoryPicture:
    """Stacked bars per rank class against the usable line. `description` states the finding."""

    height: float
    rows: tuple[Row, ...]
    ticks: tuple[Mark, ...]
    limit: Mark | None
    left_out: int
    description: str
    width: float = MEMORY_WIDTH

    @property
    def base(self) -> float:
        """Where the axis stands."""
        return self.height - BOTTOM + 8

    @property
    def caption_y(self) -> float:
        return self.height - 6


def fit_bar(fit: Fit) -> FitBar | None:
    """None where the need or the usable memory is unknown: nothing can be drawn to scale."""
    if fit.needed is None or not fit.allowed_bytes:
        return None
    scale = BAR_WIDTH / (HEADROOM * max(fit.needed.high, fit.allowed_bytes))
    room = f"{_gib(fit.needed.typical)} needed of {_gib(fit.allowed_bytes)} usable"
    return FitBar(
        typical=fit.needed.typical * scale,
        low=fit.needed.low * scale,
        high=fit.needed.high * scale,
        limit=fit.allowed_bytes * scale,
        word=fit.word.value,
        text=f"{room}: {_plain(fit.word)}.",
    )


def memory_picture(memory: MemoryBudget, fit: Fit) -> MemoryPicture | None:
    """The rank classes that need most, largest first. None without a budget to draw."""
    ranked = sorted(memory.ranks, key=lambda rank: rank.bytes.typical, reverse=True)
    if not ranked:
        return None
    shown = ranked[:MOST_ROWS]
    largest = max(fit.allowed_bytes or 1, *(rank.bytes.high for rank in shown))
    scale = MEMORY_WIDTH / (HEADROOM * largest)
    return MemoryPicture(
        height=TOP + len(shown) * ROW_HEIGHT + (len(shown) - 1) * ROW_GAP + BOTTOM,
        rows=tuple(_row(rank, place, scale) for place, rank in enumerate(shown)),
        ticks=_ticks(largest, scale),
        limit=_limit(fit, scale),
        left_out=len(ranked) - len(shown),
        description=_sentence(shown[0], fit),
    )


def _row(rank: RankBudget, place: int, scale: float) -> Row:
    needed = rank.bytes
    return Row(
        rank=rank.rank,
        y=TOP + place * (ROW_HEIGHT + ROW_GAP),
        segments=_segments(rank, scale),
        needed=needed,
        low=needed.low * scale,
        high=needed.high * scale,
    )


def _segments(rank: RankBudget, scale: float) -> tuple[Segment, ...]:
    drawn: list[Segment] = []
    x = 0.0
    for place, component in enumerate(rank.components):
        width = component.bytes.typical * scale
        drawn.append(Segment(component.name, x, width, place % TONES + 1, component.bytes.typical))
        x += width
    return tuple(drawn)


def _limit(fit: Fit, scale: float) -> Mark | None:
    if not fit.allowed_bytes:
        return None
    return Mark(fit.allowed_bytes * scale, f"usable {_gib(fit.allowed_bytes)}")


def _ticks(largest: float, scale: float) -> tuple[Mark, ...]:
    span = largest / GIB
    step = next((s for s in TICK_STEPS_GIB if span / s <= MOST_TICKS), TICK_STEPS_GIB[-1])
    places = range(0, min(int(span), step * MOST_TICKS) + 1, step)
    return tuple(Mark(place * GIB * scale, f"{place}") for place in places)


def _sentence(rank: RankBudget, fit: Fit) -> str:
    need = rank.bytes
    parts = ", ".join(f"{_plain(c.name)} {_gib(c.bytes.typical)}" for c in rank.components)
    usable = f"{_gib(fit.allowed_bytes)} usable" if fit.allowed_bytes else "usable memory unknown"
    return (
        f"{rank.rank}: {_gib(need.typical)} needed per GPU "
        f"({_gib(need.low)} to {_gib(need.high)}), {usable}: "
        f"{_plain(fit.word)}. {parts}."
    )


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _gib(byte_count: float) -> str:
    return f"{byte_count / GIB:,.1f} GiB"


SCATTER_SIDE = 300.0
SCATTER_LEFT, SCATTER_TOP, SCATTER_BELOW, SCATTER_RIGHT = 52.0, 26.0, 42.0, 24.0
"""Room for words around the square: figures on the left and below, the name of each axis."""
QUARTER_OFF = 1.25
MOST_FIGURES = 6
"""On each axis: more of them would touch each other."""


@dataclass(frozen=True, slots=True)
class Decade:
    """A power of ten on both axes: `at` from the left edge and from the bottom of the square."""

    at: float
    words: str

    @property
    def from_top(self) -> float:
        return SCATTER_SIDE - self.at


@dataclass(frozen=True, slots=True)
class ScatterPicture:
    """Predicted over measured on logarithmic axes of one length. Points are (x, y), lines
    (x1, y1, x2, y2), inside a square; y grows downwards."""

    points: tuple[tuple[float, float], ...]
    bands: tuple[tuple[float, float, float, float], ...]
    decades: tuple[Decade, ...]
    description: str
    side: float = SCATTER_SIDE
    left: float = SCATTER_LEFT
    top: float = SCATTER_TOP

    @property
    def width(self) -> float:
        return self.left + self.side + SCATTER_RIGHT

    @property
    def height(self) -> float:
        return self.top + self.side + SCATTER_BELOW


def scatter_picture(pairs: Sequence[tuple[float, float]]) -> ScatterPicture | None:
    """Of (measured, predicted) bytes. None without a pair above 0, which a logarithm asks for."""
    shown = [(measured, guess) for measured, guess in pairs if measured > 0 and guess > 0]
    if not shown:
        return None
    first = floor(log10(min(min(pair) for pair in shown) / GIB))
    last = max(first + 1, ceil(log10(max(max(pair) for pair in shown) / GIB)))
    unit = SCATTER_SIDE / (last - first)
    return ScatterPicture(
        points=tuple(
            ((log10(measured / GIB) - first) * unit, (last - log10(guess / GIB)) * unit)
            for measured, guess in shown
        ),
        bands=_bands(log10(QUARTER_OFF) * unit),
        decades=_decades(first, last, unit),
        description=_near(shown),
    )


def _decades(first: int, last: int, unit: float) -> tuple[Decade, ...]:
    step = ceil((last - first + 1) / MOST_FIGURES)
    return tuple(
        Decade((power - first) * unit, "" if (power - last) % step else _power(power))
        for power in range(first, last + 1)
    )


def _bands(off: float) -> tuple[tuple[float, float, float, float], ...]:
    """A quarter above and below the line of equality, cut at the edges."""
    above = (0.0, SCATTER_SIDE - off, SCATTER_SIDE - off, 0.0)
    below = (off, SCATTER_SIDE, SCATTER_SIDE, off)
    return (above, below)


def _power(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10**power:.{-power}f}"


def _near(pairs: Sequence[tuple[float, float]]) -> str:
    near = sum(1 / QUARTER_OFF <= guess / measured <= QUARTER_OFF for measured, guess in pairs)
    return f"{near} of {len(pairs)} predictions are within a quarter of the measured value."
