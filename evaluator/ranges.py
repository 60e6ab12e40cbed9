"""A prediction is a range: low, typical, high, in that order.

What computes with numbers here also takes NumPy arrays of them: one formula for one plan and for
a thousand. Array results equal the scalar ones bit for bit, as long as sums keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

Number: TypeAlias = Any
"""A number, or a NumPy array of numbers."""
Thing = TypeVar("Thing")


class InvalidRange(ValueError):
    """A range whose ends are out of order."""


@dataclass(frozen=True, slots=True, init=False)
class Range:
    """Three values of one unit, which the name of whatever holds the range gives.

    Written out, as a list makes thousands of them: what dataclasses writes takes twice as long.
    Arrays are looked at once, where a budget of columns is whole: it takes long.
    """

    low: Number
    typical: Number
    high: Number

    def __init__(self, low: Number, typical: Number, high: Number) -> None:
        set_low(self, low)
        set_typical(self, typical)
        set_high(self, high)
        if isinstance(typical, np.ndarray) or isinstance(high, np.ndarray):
            return
        if not low <= typical <= high:
            raise InvalidRange(f"{low} <= {typical} <= {high} does not hold")

    @property
    def ordered(self) -> bool:
        """Whether low, typical and high are in this order in every element."""
        return bool(np.all((self.low <= self.typical) & (self.typical <= self.high)))

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.typical + other.typical, self.high + other.high)

    def scaled(self, factor: Number) -> Range:
        """Every value times a factor of at least 0."""
        return Range(self.low * factor, self.typical * factor, self.high * factor)

    def times(self, other: Range) -> Range:
        """End by end: the low of one times the low of the other."""
        return Range(self.low * other.low, self.typical * other.typical, self.high * other.high)


set_low, set_typical, set_high = (Range.__dict__[end].__set__ for end in Range.__slots__)


def exact(value: Number) -> Range:
    return Range(value, value, value)


def total(ranges: Iterable[Range]) -> Range:
    """End by end, in order: a sum of ranges would make one range for each."""
    parts = list(ranges)
    return Range(
        sum(part.low for part in parts),
        sum(part.typical for part in parts),
        sum(part.high for part in parts),
    )


def added(numbers: Iterable[Number]) -> Number:
    """Their sum in order; the first one is not added to 0, which takes as long in long columns."""
    return reduce(add, numbers)


def larger(one: Number, other: Number) -> Number:
    """The larger of two numbers, element by element."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.maximum(one, other)
    return one if one >= other else other


def smaller(one: Number, other: Number) -> Number:
    """The smaller of two numbers, element by element."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.minimum(one, other)
    return one if one <= other else other


def occurs(value: Number) -> bool:
    """Whether a value, or any of an array of them, is above zero."""
    return bool(value.any()) if isinstance(value, np.ndarray) else value > 0


@dataclass(frozen=True, slots=True, eq=False)
class Few(Generic[Thing]):
    """Distinct things, each of which many elements share, and what was read of them before."""

    things: tuple[Thing, ...]
    kept: dict[Hashable, Range] = field(default_factory=dict)

    def each(self, key: Hashable, read: Callable[[Thing], Range], which: Any) -> Range:
        """What is read of the thing of each element, by its number. One key reads one thing."""
        if key not in self.kept:
            found = [read(one) for one in self.things]
            ends = ([getattr(one, end) for one in found] for end in ("low", "typical", "high"))
            self.kept[key] = Range(*(np.array(end, dtype=float) for end in ends))
        held = self.kept[key]
        return Range(held.low[which], held.typical[which], held.high[which])


def choose(condition: Number, yes: Number, no: Number) -> Number:
    """`yes` where the condition holds, element by element."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, yes, no)
    return yes if condition else no


def pick(condition: Number, yes: Callable[[], Number], no: Callable[[], Number]) -> Number:
    """As `choose`, asking only for what some element takes."""
    if not isinstance(condition, np.ndarray):
        return yes() if condition else no()
    if condition.all() or not condition.any():
        return yes() if condition.any() else no()
    return np.where(condition, yes(), no())


def by_count(count: Number, read: Callable[[int], float]) -> Number:
    """What is read of a whole number; of an array of small ones, once for each that occurs."""
    if not isinstance(count, np.ndarray):
        return read(count)
    table = np.zeros(count.max(initial=0) + 1)
    for number in np.flatnonzero(np.bincount(count)).tolist():
        table[number] = read(number)
    return table[count]


def choose_range(condition: Number, yes: Range, no: Range) -> Range:
    """`yes` where the condition holds, end by end and element by element."""
    if not isinstance(condition, np.ndarray):
        return yes if condition else no
    if condition.all():
        return yes
    ends = zip((yes.low, yes.typical, yes.high), (no.low, no.typical, no.high), strict=True)
    return Range(*(np.where(condition, one, other) for one, other in ends))


def largest(one: Range, other: Range) -> Range:
    """The larger of two ranges, end by end."""
    return Range(
        larger(one.low, other.low),
        larger(one.typical, other.typical),
        larger(one.high, other.high),
    )
