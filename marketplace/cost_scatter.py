"""Cost against time, one mark for each candidate: plain numbers that a template draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from evaluator.pareto import unbeaten
from evaluator.ranges import Range

WIDTH, HEIGHT = 560.0, 330.0
LEFT, RIGHT, TOP, BOTTOM = 92.0, 24.0, 30.0, 50.0
HEADROOM = 1.15
MOST_TICKS = 6
STEPS = ((1, 2, 5), (1, 3), (1,))


@dataclass(frozen=True, slots=True)
class Spot:
    """One candidate. `time` and `cost` are in the units that the axes name; all above 0."""

    label: str
    name: str
    grade: str
    time: Range
    cost: Range


@dataclass(frozen=True, slots=True)
class Point:
    """A mark at the typical values; whiskers reach from low to high. `y` grows downwards."""

    spot: Spot
    x: float
    y: float
    left: float
    right: float
    top: float
    bottom: float
    best: bool

    @property
    def label_x(self) -> float:
        return self.x + 6

    @property
    def label_y(self) -> float:
        """Below the mark: the line comes from the left or from above."""
        return self.y + 20


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    words: str


@dataclass(frozen=True, slots=True)
class CostScatter:
    """Logarithmic axes. `line` joins the points than which no other one of the picture is both
    cheaper and faster.
    """

    points: tuple[Point, ...]
    line: str
    times: tuple[Tick, ...]
    costs: tuple[Tick, ...]
    time_unit: str
    cost_unit: str
    description: str
    width: float = WIDTH
    height: float = HEIGHT

    left, right = LEFT, WIDTH - RIGHT
    top, base = TOP, HEIGHT - BOTTOM
    ticks_y, unit_y = HEIGHT - BOTTOM + 18, HEIGHT - 8


def cost_scatter(spots: Iterable[Spot], time_unit: str, cost_unit: str) -> CostScatter | None:
    """None without a candidate that has both a time and a cost."""
    shown = [one for one in spots if one.time.low > 0 and one.cost.low > 0]
    if not shown:
        return None
    x = _Axis.of([one.time for one in shown], LEFT, WIDTH - RIGHT)
    y = _Axis.of([one.cost for one in shown], HEIGHT - BOTTOM, TOP)
    best = frontier(shown)
    points = tuple(_point(one, x, y, one in best) for one in shown)
    return CostScatter(
        points=points,
        line=_line([point for spot in best for point in points if point.spot is spot]),
        times=x.ticks(),
        costs=y.ticks(),
        time_unit=time_unit,
        cost_unit=cost_unit,
        description=_sentence(shown, best, time_unit, cost_unit),
    )


def frontier(spots: Sequence[Spot]) -> list[Spot]:
    """Fastest first: those that no other beats in typical time and typical cost."""
    return sorted(unbeaten(spots, _typical), key=_typical)


def _typical(spot: Spot) -> tuple[float, float]:
    return (spot.time.typical, spot.cost.typical)


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float
    start: float
    end: float

    @classmethod
    def of(cls, ranges: Sequence[Range], start: float, end: float) -> _Axis:
        low = min(one.low for one in ranges) / HEADROOM
        return cls(low, max(one.high for one in ranges) * HEADROOM, start, end)

    def place(self, value: float) -> float:
        share = log10(value / self.low) / log10(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> tuple[Tick, ...]:
        """Round numbers, as many as can be read."""
        rows = (self._round(steps) for steps in STEPS)
        row = next((row for row in rows if len(row) <= MOST_TICKS), self._round(STEPS[-1]))
        thinned = row[:: ceil(len(row) / MOST_TICKS)] if row else [self.low, self.high]
        return tuple(Tick(self.place(value), figure(value)) for value in thinned)

    def _round(self, steps: Sequence[int]) -> list[float]:
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        values = (step * 10.0**power for power in powers for step in steps)
        return [value for value in values if self.low <= value <= self.high]


def _point(spot: Spot, x: _Axis, y: _Axis, best: bool) -> Point:
    return Point(
        spot=spot,
        x=x.place(spot.time.typical),
        y=y.place(spot.cost.typical),
        left=x.place(spot.time.low),
        right=x.place(spot.time.high),
        top=y.place(spot.cost.high),
        bottom=y.place(spot.cost.low),
        best=best,
    )


def _line(points: Sequence[Point]) -> str:
    """Steps, not slopes: between two candidates there is nothing to rent."""
    if len(points) < 2:
        return ""
    first, *rest = points
    steps = "".join(f"H{point.x:.1f}V{point.y:.1f}" for point in rest)
    return f"M{first.x:.1f} {first.y:.1f}{steps}"


def figure(value: float) -> str:
    """Three digits, without a power of ten and without zeros that end it."""
    text = _three_digits(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _three_digits(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    rounded = float(f"{value:.3g}")
    return f"{rounded:.{max(0, 2 - floor(log10(rounded)))}f}"


def span(values: Range) -> str:
    """ "3.00–5.20" with three digits at both ends, or "3" where both read the same."""
    low, high = figure(values.low), figure(values.high)
    return low if low == high else f"{_three_digits(values.low)}–{_three_digits(values.high)}"


def _sentence(spots: Sequence[Spot], best: Sequence[Spot], time_unit: str, cost_unit: str) -> str:
    fastest = min(spots, key=_typical)
    cheapest = min(spots, key=lambda one: _typical(one)[::-1])
    both = f"{span(cheapest.cost)} {cost_unit} and {span(cheapest.time)} {time_unit}"
    if cheapest is fastest:
        title = f"is both the cheapest and the fastest of the {len(spots)} shown"
        return f"{_named(cheapest)} {title}: {both}."
    names = ", ".join(one.label for one in best)
    quick = f"{span(fastest.cost)} {cost_unit} and {span(fastest.time)} {time_unit}"
    return (
        f"Cheapest of the {len(spots)} shown: {_named(cheapest)}, {both}. "
        f"Fastest: {_named(fastest)}, {quick}. "
        f"None of them is both cheaper and faster than {names}, by typical values."
    )


def _named(spot: Spot) -> str:
    return f"{spot.label} {spot.name}"
