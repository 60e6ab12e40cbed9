"""All listings as columns in memory: any filter, order and later page in a few milliseconds.

Each process reads rows once, and again where they differ, see `stock`. What a page prints is asked
of the database again, row by row of that page, so that a figure is never older than its listing.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from threading import Lock

import numpy as np
from django.utils import timezone

from marketplace.expressions import Check, Node, fold
from marketplace.hourly import Hour, after_locks
from marketplace.models import Listing
from marketplace.stock import Stock
from marketplace.versions import Version, catalog_version
from marketplace.words import Column, Words, compared

RANKED_CURRENCY = "USD"
"""Amounts are compared within one currency only; nothing is ever converted."""


@dataclass(frozen=True, slots=True)
class Found:
    """One page: the keys of its rows, how many pass in all, and where the next page begins."""

    keys: tuple[int, ...]
    total: int
    next_key: int | None


@dataclass(frozen=True, slots=True)
class Shelf:
    """Rows in the order of their keys. Numbers are floats, NaN is unknown.

    `stock` is what they were made of. `reverted` has the hours of listings whose locked price has
    ended since their last sync, `days` the days of the pages of sources that were asked for, see
    `page_dates`.
    """

    version: Version
    keys: Column
    words: Mapping[str, Words]
    numbers: Mapping[str, Column]
    gone: Column
    stock: Stock = field(default_factory=Stock.empty)
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
            kinds: dict[tuple[str, int], list[int]] = {}
            for name, count, key in zip(said, counts[rows], self.keys[rows].tolist(), strict=True):
                kinds.setdefault((name, int(count)), []).append(key)
            self._kinds.update(kinds)  # at once: another thread takes what is begun for the whole
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
        column = self.words["configuration"]
        held = (column.names[number] for number in np.unique(column.number) if number >= 0)
        return set(held) - set(self.offered("configuration"))


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
                held = _shelves["now"] = _made(version, held)
    return held


def forget_shelf() -> None:
    with _lock:
        _shelves.clear()


def _made(version: Version, before: Shelf | None) -> Shelf:
    stock = (before.stock if before else Stock.empty()).renewed()
    reverted, numbers = after_locks(), dict(stock.numbers)
    ranked = stock.words["currency"].passing(Check("is", RANKED_CURRENCY.casefold()))
    numbers["price"] = np.where(ranked, numbers["amount"], np.nan)
    for key, (amount, currency) in reverted.items():
        known = amount is not None and currency == RANKED_CURRENCY
        numbers["price"][stock.keys == key] = float(amount or 0) if known else np.nan
    return Shelf(version, stock.keys, stock.words, numbers, stock.gone, stock, reverted)
