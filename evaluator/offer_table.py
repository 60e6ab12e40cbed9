"""Offers as columns: what many say alike is held once, and one is written out when asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from evaluator.hardware import Column, numbered
from evaluator.offers import Offering, place_of


@dataclass(frozen=True, slots=True)
class Coded:
    """Distinct values, and which of them each row has."""

    values: tuple[Any, ...]
    number: Column

    @classmethod
    def of(cls, values: Iterable[Hashable]) -> Coded:
        held = list(values)
        number, firsts = numbered(held)
        return cls(tuple(held[first] for first in firsts), number)

    def at(self, row: int) -> Any:
        return self.values[self.number[row]]

    def each(self) -> Iterator[Any]:
        """Row by row."""
        return map(self.values.__getitem__, self.number.tolist())

    def read(self, read: Callable[[Any], Any], kind: Any) -> Column:
        """What is read of the value of each row: of many alike once."""
        return np.array([read(value) for value in self.values], dtype=kind)[self.number]

    def alike(self, key: Callable[[Any], Hashable]) -> Column:
        """Equal numbers for rows whose values have equal keys."""
        number, _ = numbered(map(key, self.values))
        return number[self.number]

    def read_as(self, read: Callable[[Any], Hashable]) -> Coded:
        """What is read of each value in its place."""
        found = Coded.of(map(read, self.values))
        return Coded(found.values, found.number[self.number])

    def at_rows(self, rows: Column) -> Coded:
        return Coded(self.values, self.number[rows])

    def changed(self, rows: Mapping[int, Hashable]) -> Coded:
        """The same with other values in some rows."""
        longer = self.followed_by(rows.values())
        number = longer.number[: len(self.number)]
        number[list(rows)] = longer.number[len(self.number) :]
        return Coded(longer.values, number)

    def followed_by(self, values: Iterable[Hashable]) -> Coded:
        """With more rows behind."""
        numbers = {value: at for at, value in enumerate(self.values)}
        more = [numbers.setdefault(value, len(numbers)) for value in values]
        number = np.append(self.number, np.array(more, dtype=np.int64))
        return Coded(tuple(numbers), number)


@dataclass(frozen=True, slots=True)
class OfferTable:
    """Offers in the order of their place.

    `key` names each, as text or as a number. `seen` are moments, NaN is unknown. `quotes` are all
    prices, those of one offer together as it has them, and `asker` is the offer of each.
    """

    key: Column
    provider: Coded
    title: Coded
    configuration: Coded
    region: Coded
    zone: Coded
    url: Coded
    availability: Coded
    quantity: Coded
    findings: Coded
    seen: Column
    quotes: Coded
    asker: Column

    @classmethod
    def of(cls, offerings: Iterable[Offering]) -> OfferTable:
        rows = tuple(sorted(offerings, key=place_of))
        moments = [one.seen_at.timestamp() if one.seen_at else np.nan for one in rows]
        return cls(
            key=np.array([one.key for one in rows], dtype=np.str_),
            seen=np.array(moments, dtype=float),
            quotes=Coded.of(quote for one in rows for quote in one.quotes),
            asker=np.repeat(np.arange(len(rows)), [len(one.quotes) for one in rows]),
            **{name: Coded.of(getattr(one, name) for one in rows) for name in CODED},
        )

    def __len__(self) -> int:
        return len(self.key)

    def offer(self, row: int) -> Offering:
        first, end = np.searchsorted(self.asker, [row, row + 1])
        seen = self.seen[row]
        return Offering(
            key=str(self.key[row]),
            quotes=tuple(self.quotes.at(at) for at in range(first, end)),
            seen_at=None if np.isnan(seen) else datetime.fromtimestamp(seen, UTC),
            **{name: getattr(self, name).at(row) for name in CODED},
        )

    def group(self) -> Column:
        """Equal numbers for offers that differ in nothing but their place and the time they were
        seen, counted up as they are met.
        """
        codes = self.findings.alike(lambda held: tuple(one.code for one in held))
        said = (self.provider, self.title, self.configuration, self.availability, self.quantity)
        return met(together([*(one.number for one in said), codes, self._asked()]))[0]

    def _asked(self) -> Column:
        """Equal numbers for offers at equal prices in equal order."""
        number, price = np.zeros(len(self), dtype=np.int64), self.quotes.number
        nth = np.arange(len(price)) - np.searchsorted(self.asker, self.asker)
        for turn in range(int(nth.max(initial=-1)) + 1):
            asked = np.zeros(len(self), dtype=np.int64)
            asked[self.asker[nth == turn]] = price[nth == turn] + 1
            number, _ = met(together([number, asked]))
        return number

    def doubt(self) -> Column:
        """Equal numbers for offers of which the catalog itself gives the same to doubt."""
        return met(together([self.findings.number, self.availability.number]))[0]

    def places(self) -> Mapping[str, Column]:
        """Offers by the name of their region or zone, without case."""
        found: dict[str, Column] = {}
        for column in (self.region, self.zone):
            order = np.argsort(column.number, kind="stable")
            ends = np.flatnonzero(np.diff(column.number[order])) + 1
            for rows in np.split(order, ends) if len(order) else ():
                name = column.at(rows[0]).casefold()
                found[name] = np.union1d(found[name], rows) if name in found else rows
        return found

    def known_as(self, others: Mapping[int, Offering]) -> OfferTable:
        """The same where of some offers another machine is known, with other findings."""
        return replace(
            self,
            configuration=self.configuration.changed(_of_each(others, "configuration")),
            findings=self.findings.changed(_of_each(others, "findings")),
        )


CODED = (
    *("provider", "title", "configuration", "region", "zone", "url"),
    *("availability", "quantity", "findings"),
)


def _of_each(offers: Mapping[int, Offering], name: str) -> dict[int, Hashable]:
    return {row: getattr(one, name) for row, one in offers.items()}


LARGEST = 2**62


def together(columns: Sequence[Column]) -> Column:
    """Equal numbers for rows that have equal numbers, of 0 and more, in every column."""
    number, size = columns[0], int(columns[0].max(initial=0)) + 1
    for column in columns[1:]:
        width = int(column.max(initial=0)) + 1
        if size * width > LARGEST:
            number, firsts = met(number)
            size = len(firsts)
        number, size = number * width + column, size * width
    return number


def met(numbers: Column) -> tuple[Column, Column]:
    """The same numbers counted up in the order in which they are met, and where each first is."""
    _, firsts, number = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place[number], firsts[order]
