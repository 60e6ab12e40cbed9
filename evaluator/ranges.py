"""A prediction is a range: low, typical, high, in that order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class InvalidRange(ValueError):
    """A range whose ends are out of order."""


@dataclass(frozen=True, slots=True)
class Range:
    """Three values of one unit, which the name of whatever holds the range gives."""

    low: float
    typical: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.typical <= self.high:
            raise InvalidRange(f"{self.low} <= {self.typical} <= {self.high} does not hold")

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.typical + other.typical, self.high + other.high)

    def scaled(self, factor: float) -> Range:
        """Every value times a factor of at least 0."""
        return Range(self.low * factor, self.typical * factor, self.high * factor)


def exact(value: float) -> Range:
    return Range(value, value, value)


def total(ranges: Iterable[Range]) -> Range:
    return sum(ranges, exact(0))
