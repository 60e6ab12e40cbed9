"""A column of texts, many of which are the same, and how checks pass over columns."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from marketplace.expressions import Check

MOST_LOOKED = 32
"""Searches through one column of texts that are kept while its texts stay as they are."""

Column: TypeAlias = NDArray[Any]


class Told:
    """What is met in a column that is read part by part, and the number of each row's."""

    def __init__(self) -> None:
        self._numbers = defaultdict[Any, int]()
        self._numbers.default_factory = self._numbers.__len__
        self._parts = [np.array([], dtype=np.int64)]

    def add(self, values: Iterable[Any]) -> None:
        self._parts.append(np.fromiter(map(self._numbers.__getitem__, values), dtype=np.int64))

    @property
    def met(self) -> tuple[Any, ...]:
        return tuple(self._numbers)

    @property
    def number(self) -> Column:
        return np.concatenate(self._parts)


@dataclass(frozen=True, slots=True)
class Words:
    """A column of texts: the distinct ones, the same without case, and which each row has.

    Number -1 is unknown.
    """

    names: tuple[str, ...]
    folded: tuple[str, ...]
    number: Column
    _looked: OrderedDict[tuple[bool, Any], Column] = field(default_factory=OrderedDict)
    _places: list[Column] = field(default_factory=list)

    @classmethod
    def of(cls, texts: Iterable[str | None]) -> Words:
        told = Told()
        told.add(texts)
        return cls.told(told)

    @classmethod
    def told(cls, told: Told) -> Words:
        """Neither None nor an empty text is a name."""
        named = np.array([bool(text) for text in told.met], dtype=bool)
        number = np.where(named, np.cumsum(named) - 1, -1)[told.number]
        names = tuple(filter(None, told.met))
        return cls(names, tuple(map(str.casefold, names)), number)

    def joined(self, rows: Column, other: Words, order: Column) -> Words:
        """Some of these rows, then all of the other column, put in an order."""
        numbers = dict(zip(self.names, range(len(self.names)), strict=True))
        theirs = [numbers.setdefault(name, len(numbers)) for name in other.names]
        number = np.append(self.number[rows], np.array([*theirs, -1])[other.number])[order]
        new = tuple(numbers)[len(self.names) :]
        if not new:
            return replace(self, number=number)
        return Words(self.names + new, self.folded + tuple(map(str.casefold, new)), number)

    def passing(self, check: Check) -> Column:
        unknown = self.number < 0
        if check.value is None:
            return np.asarray(unknown if check.op == "unknown" else ~unknown)
        wanted = self._named(check.op in ("has", "lacks"), check.value)[self.number]
        return np.asarray(~unknown & (wanted if check.op in ("has", "is") else ~wanted))

    def _named(self, part: bool, text: Any) -> Column:
        """Which distinct texts hold this one, or are it; the last place stands for unknown."""
        found = self._looked.get((part, text))
        if found is None:
            those = [text in name if part else text == name for name in self.folded]
            found = self._looked[part, text] = np.array([*those, False], dtype=bool)
            while len(self._looked) > MOST_LOOKED:
                self._looked.popitem(last=False)
        return found

    def ranks(self) -> Column:
        """The place of each row's text among all, in order; NaN where it is unknown."""
        if not self._places:
            order = sorted(range(len(self.names)), key=lambda at: self.folded[at])
            places = np.full(len(self.names) + 1, np.nan)
            places[order] = np.arange(len(order))
            self._places.append(places)
        return np.asarray(self._places[0][self.number])


COMPARISONS = {
    "lt": np.less,
    "lte": np.less_equal,
    "gt": np.greater,
    "gte": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


def compared(column: Column, check: Check) -> Column:
    """Which numbers pass; what is unknown passes nothing but the word."""
    unknown = np.isnan(column)
    if check.value is None:
        return unknown if check.op == "unknown" else ~unknown
    found: Column = COMPARISONS[check.op](column, float(check.value)) & ~unknown
    return found
