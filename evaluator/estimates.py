"""A range from a model with uncertain constants, and the constant that makes it widest.

Each constant is moved to its low and to its high end alone; the moves are taken as independent,
so their logarithms add in quadrature. The model must be positive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, hypot, log, sqrt
from typing import Any

import numpy as np

from evaluator.ranges import Number, Range, occurs


@dataclass(slots=True)
class Setting:
    """Every constant at its typical value, one of them at an end. Remembers what was asked."""

    moved: str = ""
    end: str = "typical"
    asked: dict[str, None] = field(default_factory=dict)

    def take(self, name: str, values: Range) -> float:
        """The value of a constant in this setting. `name` is shown to people."""
        if occurs(values.high - values.low):
            self.asked[name] = None
        end = self.end if name == self.moved else "typical"
        return getattr(values, end)  # type: ignore[no-any-return]


class Typical(Setting):
    """Every constant at its typical value, remembering nothing: the quickest answer there is."""

    def take(self, name: str, values: Range) -> Any:
        return values.typical


@dataclass(frozen=True, slots=True)
class Result:
    """What a model gives in one setting: the wanted figure and the seconds that make it up."""

    value: float
    terms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A predicted figure. `terms` are typical seconds by name, the longest first.

    `widest` is the assumption that moves the figure most, by the factor `widest_factor`.
    `conditional` is True where a link that is not known decides: then the range is a span.
    """

    value: Range
    unit: str
    terms: tuple[tuple[str, float], ...] = ()
    widest: str = ""
    widest_factor: float = 1.0
    conditional: bool = False

    @property
    def dominating(self) -> str:
        """The longest term and its share, such as "all-reduce over PCIe: 84 % of the step"."""
        whole = sum(seconds for _, seconds in self.terms)
        if not whole:
            return ""
        name, seconds = self.terms[0]
        return f"{name}: {seconds / whole:.0%} of the time"


FIRST_ROOM = 12
"""Constants that a model is expected to ask for; one that asks for more is run again with room."""


class NoRoom(LookupError):
    """A model asks for more constants than there are rows for."""


class Settings(Setting):
    """All settings at once, one row each: typical first, then the two ends of every constant.

    What a model makes of them are columns of shape (rows, elements).
    """

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    @property
    def rows(self) -> int:
        return 1 + 2 * self.room

    def take(self, name: str, values: Range) -> Any:
        """A column in which the two rows of this constant hold its ends."""
        if not np.any(values.low < values.high):
            return values.typical
        at = list(self.asked).index(name) if name in self.asked else len(self.asked)
        if at == self.room:
            raise NoRoom(name)
        self.asked[name] = None
        found = np.array(_in_rows(values.typical, self.rows))
        for row, end in ((1 + 2 * at, values.low), (2 + 2 * at, values.high)):
            found[row] = _in_rows(end, self.rows)[row] if np.ndim(end) == 2 else end
        return found


def _in_rows(values: Number, rows: int) -> Any:
    """The values in every row: a number, one for each element, or already in rows."""
    held = np.asarray(values, dtype=float)
    width = held.shape[-1] if held.ndim else 1
    return np.broadcast_to(held, (rows, width))


@dataclass(frozen=True, slots=True)
class EstimateColumns:
    """Estimates of many elements: ranges of columns, typical seconds by term, and for each element
    the number in `names` of the constant that moves its figure most, -1 for none.
    """

    value: Range
    terms: Mapping[str, Any]
    names: tuple[str, ...]
    widest: Any
    factor: Any

    def one(self, at: int, unit: str) -> Estimate:
        value = Range(*(float(end[at]) for end in _ends(self.value)))
        terms = {name: float(column[at]) for name, column in self.terms.items()}
        shown = sorted(((n, s) for n, s in terms.items() if s > 0), key=lambda term: -term[1])
        widest = self.names[self.widest[at]] if self.widest[at] >= 0 else ""
        return Estimate(value, unit, tuple(shown), widest, float(self.factor[at]))


def _ends(value: Range) -> tuple[Any, Any, Any]:
    return (value.low, value.typical, value.high)


Model = Callable[[Setting], Result]
Models = Callable[[Setting], Mapping[str, Result]]
"""A model that gives several figures at once, by name."""


def estimate(model: Model, unit: str) -> Estimate:
    """The range of a model's figure over all constants that it asks for."""
    return estimates(lambda setting: {unit: model(setting)}, {unit: unit})[unit]


def estimates(model: Models, units: Mapping[str, str]) -> dict[str, Estimate]:
    """The ranges of all figures of a model; `units` names the figures and their units."""
    base = Setting()
    typical = model(base)
    moved = {
        name: [model(Setting(name, "low")), model(Setting(name, "high"))] for name in base.asked
    }
    return {
        figure: _estimate(typical[figure], _values(moved, figure), unit)
        for figure, unit in units.items()
    }


def _values(moved: Mapping[str, list[Mapping[str, Result]]], figure: str) -> dict[str, list[float]]:
    return {name: [end[figure].value for end in ends] for name, ends in moved.items()}


def _estimate(typical: Result, moved: Mapping[str, list[float]], unit: str) -> Estimate:
    down = up = 0.0
    widest, factor = "", 1.0
    for name, ends in moved.items():
        low, high = min(*ends, typical.value), max(*ends, typical.value)
        down = hypot(down, log(typical.value / low))
        up = hypot(up, log(high / typical.value))
        if high / low > factor:
            widest, factor = name, high / low
    spent = (term for term in typical.terms.items() if term[1] > 0)
    shown = sorted(spent, key=lambda term: -term[1])
    span = Range(typical.value * exp(-down), typical.value, typical.value * exp(up))
    return Estimate(span, unit, tuple(shown), widest, factor)


def estimate_columns(model: Models, figures: Sequence[str], count: int) -> list[EstimateColumns]:
    """As `estimates`, for a model of `count` elements at once."""
    room = FIRST_ROOM
    while True:
        setting = Settings(room)
        try:
            found = model(setting)
        except NoRoom:
            room *= 2
        else:
            return [_columns(found[name], setting, count) for name in figures]


def _columns(found: Result, setting: Settings, count: int) -> EstimateColumns:
    values = np.broadcast_to(_in_rows(found.value, setting.rows), (setting.rows, count))
    typical, names = values[0], tuple(setting.asked)
    lows, highs = values[1 : 1 + 2 * len(names) : 2], values[2 : 2 + 2 * len(names) : 2]
    low = np.minimum(np.minimum(lows, highs), typical)
    high = np.maximum(np.maximum(lows, highs), typical)
    down, up = (_quadrature(np.log(part)) for part in (typical / low, high / typical))
    factors = np.vstack([np.ones((1, count)), high / low])
    widest = factors.argmax(axis=0)
    terms = {name: np.broadcast_to(_in_rows(part, 1)[0], count) for name, part in _typical(found)}
    return EstimateColumns(
        value=Range(typical * np.exp(-down), typical, typical * np.exp(up)),
        terms=terms,
        names=names,
        widest=widest - 1,
        factor=factors[widest, np.arange(count)],
    )


def _typical(found: Result) -> Iterator[tuple[str, Number]]:
    """Terms of the first row."""
    for name, part in found.terms.items():
        rows: Any = part
        yield name, rows[0] if np.ndim(rows) == 2 else rows


def _quadrature(moves: Any) -> Any:
    total = np.zeros(moves.shape[-1])
    for move in moves:
        total = np.hypot(total, move)
    return total


def hull(estimates: list[Estimate], widest: str) -> Estimate:
    """One span over several possible worlds, the one to be feared first: its terms are shown.

    The typical value is the middle of the typical ones, as factors: no world is taken for true.
    """
    first = estimates[0]
    typical = [one.value.typical for one in estimates]
    span = Range(
        min(one.value.low for one in estimates),
        sqrt(min(typical) * max(typical)),
        max(one.value.high for one in estimates),
    )
    return Estimate(span, first.unit, first.terms, widest, span.high / span.low, conditional=True)
