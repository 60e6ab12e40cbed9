"""A range from a model with uncertain constants, and the constant that makes it widest.

Each constant is moved to its low and to its high end alone; the moves are taken as independent,
so their logarithms add in quadrature. The model must be positive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import exp, hypot, log, sqrt

from evaluator.ranges import Range


@dataclass(slots=True)
class Setting:
    """Every constant at its typical value, one of them at an end. Remembers what was asked."""

    moved: str = ""
    end: str = "typical"
    asked: dict[str, None] = field(default_factory=dict)

    def take(self, name: str, values: Range) -> float:
        """The value of a constant in this setting. `name` is shown to people."""
        if values.low < values.high:
            self.asked[name] = None
        return float(getattr(values, self.end)) if name == self.moved else values.typical


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
    shown = sorted(typical.terms.items(), key=lambda term: -term[1])
    span = Range(typical.value * exp(-down), typical.value, typical.value * exp(up))
    return Estimate(span, unit, tuple(shown), widest, factor)


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
