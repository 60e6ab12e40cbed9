"""A fact is a value with a grade, a source, the one who ran it, and dates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class InvalidFact(ValueError):
    """A fact whose value and grade contradict each other."""


class Grade(IntEnum):
    """How well something is known. The order is the meaning: a higher grade outweighs a lower."""

    UNKNOWN = 0
    DECLARED = 1
    MEASURED = 2
    BENCHMARKED = 3

    @property
    def word(self) -> str:
        return self.name.lower()

    @classmethod
    def from_word(cls, word: str) -> Grade:
        return cls[word.upper()]


class RanBy(StrEnum):
    """Who produced the value. A provider's own run weighs less than a renter's."""

    CATALOG = "catalog"
    CURATOR = "curator"
    PROVIDER = "provider"
    RENTER = "renter"
    THIRD_PARTY = "third-party"
    REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """`value` is None exactly when `grade` is UNKNOWN: unknown is never 0, "no" or a default."""

    value: T | None
    grade: Grade
    source: str = ""
    ran_by: RanBy | None = None
    as_of: datetime | None = None
    expires: datetime | None = None
    caveat: str = ""

    def __post_init__(self) -> None:
        if (self.value is None) != (self.grade is Grade.UNKNOWN):
            raise InvalidFact(f"value {self.value!r} cannot have the grade {self.grade.word}")

    @property
    def known(self) -> bool:
        return self.grade is not Grade.UNKNOWN

    def at_least(self, grade: Grade) -> bool:
        return self.grade >= grade

    @property
    def identity(self) -> tuple[T | None, int]:
        """What a verdict depends on. Dates and sources stay out, or no two machines would group."""
        return (self.value, int(self.grade))


UNKNOWN: Fact[Any] = Fact(None, Grade.UNKNOWN)


def declared(
    value: T | None, source: str = "", *, as_of: datetime | None = None, caveat: str = ""
) -> Fact[T]:
    """A provider's word. None gives an unknown fact."""
    if value is None:
        return UNKNOWN
    return Fact(value, Grade.DECLARED, source, RanBy.CATALOG, as_of, caveat=caveat)


def strongest(facts: Iterable[Fact[T]]) -> Fact[T]:
    """The fact to judge by: highest grade, then newest. Unknown when there is none."""
    known = [fact for fact in facts if fact.known]
    return max(known, key=_weight, default=UNKNOWN)


def _weight(fact: Fact[Any]) -> tuple[int, float]:
    return (int(fact.grade), fact.as_of.timestamp() if fact.as_of else float("-inf"))
