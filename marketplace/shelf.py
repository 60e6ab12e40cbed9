"""All listings as columns in memory: any filter, order and later page in a few milliseconds.

Rows are read once for each state of the catalog and process. What a page prints is asked of the
database again, row by row of that page, so that a figure is never older than its listing.
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from datetime import date
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from django.db.models import F
from django.utils import timezone
from numpy.typing import NDArray

from marketplace.expressions import Check, Node, fold
from marketplace.hourly import Hour, after_locks
from marketplace.models import Listing
from marketplace.resting import made_to_rest
from marketplace.versions import Version, catalog_version

RANKED_CURRENCY = "USD"
"""Amounts are compared within one currency only; nothing is ever converted."""

MOST_LOOKED = 32
"""Searches through one column of texts that are kept while the catalog stays as it is."""

Column: TypeAlias = NDArray[Any]

WORDS = {
    "title": F("title"),
    "sku": F("sku"),
    "gpu": F("gpu_model"),
    "provider": F("provider__slug"),
    "source": F("source__key"),
    "region": F("region"),
    "availability": F("availability"),
    "link": F("link"),
    "configuration": F("configuration"),
    "currency": F("machine_hour_currency"),
}
NUMBERS = {
    "gpus": F("gpu_count"),
    "vram": F("vram_bytes_per_gpu"),
    "vcpus": F("vcpus"),
    "ram": F("ram_bytes"),
    "disk": F("local_storage_bytes"),
    "amount": F("machine_hour_amount"),
}


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
    def of(cls, texts: Sequence[str | None]) -> Words:
        numbers: dict[str, int] = {}
        number = [numbers.setdefault(text, len(numbers)) if text else -1 for text in texts]
        folded = tuple(name.casefold() for name in numbers)
        return cls(tuple(numbers), folded, np.array(number, dtype=np.int64))

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


@dataclass(frozen=True, slots=True)
class Found:
    """One page: the keys of its rows, how many pass in all, and where the next page begins."""

    keys: tuple[int, ...]
    total: int
    next_key: int | None


@dataclass(frozen=True, slots=True)
class Shelf:
    """Rows in the order of their keys. Numbers are floats, NaN is unknown.

    `reverted` has the hours of listings whose locked price has ended since their last sync, `days`
    the days of the pages of sources that were asked for, see `page_dates`.
    """

    version: Version
    keys: Column
    words: Mapping[str, Words]
    numbers: Mapping[str, Column]
    gone: Column
    reverted: Mapping[int, Hour] = field(default_factory=dict)
    days: dict[int, date | None] = field(default_factory=dict)
    _orders: dict[tuple[str, bool], tuple[Column, Column]] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _offered: dict[str, list[str]] = field(default_factory=dict)
    _kinds: dict[tuple[str, int], list[int]] = field(default_factory=dict)

    def where(self, filters: Mapping[str, Node], *, with_gone: bool = False) -> Column:
        """Which rows pass every expression."""
        passing = np.ones(len(self.keys), dtype=bool) if with_gone else ~self.gone
        for name, node in filters.items():
            passing = passing & self._passing(name, node)
        return passing

    def _passing(self, name: str, node: Node) -> Column:
        if name in self.words:
            found = fold(node, self.words[name].passing, operator.and_, operator.or_)
        else:
            column = self.numbers[name]
            found = fold(node, lambda check: compared(column, check), operator.and_, operator.or_)
        return np.asarray(found)

    def page(
        self, passing: Column, by: str, after: int, size: int, *, descending: bool = False
    ) -> Found:
        """`size` rows behind the one whose key is `after`, those without a value last."""
        order, place = self._order(by, descending)
        rows = order[passing[order]]
        start = np.searchsorted(place[rows], self._place_of(place, after), side="right")
        held = rows[start : start + size]
        more = start + size < len(rows)
        keys = tuple(self.keys[held].tolist())
        return Found(keys, len(rows), keys[-1] if more and keys else None)

    def _place_of(self, place: Column, key: int) -> int:
        at = int(np.searchsorted(self.keys, key))
        known = at < len(self.keys) and self.keys[at] == key
        return int(place[at]) if known else -1

    def _order(self, by: str, descending: bool) -> tuple[Column, Column]:
        """Rows in an order, and the place of each row in it."""
        if (by, descending) not in self._orders:
            values = self.words[by].ranks() if by in self.words else self.numbers[by]
            order = np.argsort(-values if descending else values, kind="stable")
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.arange(len(order))
            self._orders[by, descending] = (order, place)
        return self._orders[by, descending]

    def times_offered(self, configurations: Iterable[str]) -> dict[str, int]:
        """Current listings of each configuration whose GPU and host are described."""
        column = self.words["configuration"]
        if not self._counts:
            known = ~self.gone & (self.words["gpu"].number >= 0) & (column.number >= 0)
            known &= ~np.isnan(self.numbers["vcpus"]) & ~np.isnan(self.numbers["ram"])
            counts = np.bincount(column.number[known], minlength=len(column.names))
            self._counts.update(zip(column.names, counts.tolist(), strict=True))
        return {name: self._counts.get(name, 0) for name in configurations}

    def alike(self, gpu: str, gpus: int) -> Sequence[int]:
        """Keys of the current listings with so many of that GPU, cheapest first.

        All kinds are told apart at once: a kind nobody asked for yet is a look-up too.
        """
        if not self._kinds:
            order, _ = self._order("price", descending=False)
            counts = self.numbers["gpus"]
            rows = order[~(self.gone | np.isnan(counts))[order]]
            names = (*self.words["gpu"].folded, "")
            said = (names[number] for number in self.words["gpu"].number[rows].tolist())
            for name, count, key in zip(said, counts[rows], self.keys[rows].tolist(), strict=True):
                self._kinds.setdefault((name, int(count)), []).append(key)
        return self._kinds.get((gpu.casefold(), gpus), ())

    def settle(self, rows: Iterable[Listing]) -> None:
        """Sets the hour of rows whose lock has ended to what their catalog asks. Saves nothing."""
        for row in rows:
            if row.pk in self.reverted:
                row.machine_hour_amount, row.machine_hour_currency = self.reverted[row.pk]

    def offered(self, name: str) -> list[str]:
        """The texts of a column that are offered now, in order."""
        if name not in self._offered:
            column = self.words[name]
            present = np.unique(column.number[~self.gone])
            names = (column.names[number] for number in present.tolist() if number >= 0)
            self._offered[name] = sorted(names)
        return list(self._offered[name])

    @property
    def departed(self) -> set[str]:
        """Configurations of which every listing has gone."""
        return set(self.words["configuration"].names) - set(self.offered("configuration"))


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


# --- one shelf for each process


_lock = Lock()
_shelves: dict[str, Shelf] = {}


def shelf() -> Shelf:
    """The listings as they stand. One small query where nothing has changed."""
    version = (*catalog_version(), timezone.now().date())  # locks end with a day
    held = _shelves.get("now")
    if held is None or held.version != version:
        with _lock:
            held = _shelves.get("now")
            if held is None or held.version != version:
                held = _shelves["now"] = made_to_rest(lambda: _read(version), _rows)
    return held


def _rows(made: Shelf) -> Sized:
    return made.keys


def forget_shelf() -> None:
    with _lock:
        _shelves.clear()


def _read(version: Version) -> Shelf:
    """All listings in one query, the oldest key first."""
    columns = WORDS | NUMBERS | {"key": F("pk"), "gone_at": F("gone_at"), "seen_at": F("last_seen")}
    rows = Listing.objects.order_by("pk").annotate(**{f"of_{k}": v for k, v in columns.items()})
    read = list(zip(*rows.values_list(*(f"of_{name}" for name in columns)), strict=True))
    held: dict[str, Sequence[Any]] = dict(zip(columns, read or [()] * len(columns), strict=True))
    reverted = after_locks()
    if reverted:
        held |= _reverted(held, reverted)
    priced = [
        amount if currency == RANKED_CURRENCY else None
        for amount, currency in zip(held["amount"], held["currency"], strict=True)
    ]
    numbers = {name: _numbers(held[name]) for name in NUMBERS}
    return Shelf(
        version=version,
        keys=np.array(held["key"], dtype=np.int64),
        words={name: Words.of(held[name]) for name in WORDS},
        numbers=numbers | {"price": _numbers(priced), "seen": _moments(held["seen_at"])},
        gone=np.array([at is not None for at in held["gone_at"]], dtype=bool),
        reverted=reverted,
    )


def _reverted(
    held: Mapping[str, Sequence[Any]], hours: Mapping[int, Hour]
) -> dict[str, Sequence[Any]]:
    """Amounts and currencies, those of some listings by what they came to."""
    stored = zip(held["key"], held["amount"], held["currency"], strict=True)
    pairs = [hours.get(key, (amount, currency)) for key, amount, currency in stored]
    return {"amount": [one[0] for one in pairs], "currency": [one[1] for one in pairs]}


def _numbers(values: Sequence[Any]) -> Column:
    return np.array([np.nan if value is None else float(value) for value in values], dtype=float)


def _moments(values: Sequence[Any]) -> Column:
    return np.array([value.timestamp() for value in values], dtype=float)
