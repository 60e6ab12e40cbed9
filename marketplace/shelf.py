"""All listings as columns in memory: any filter, order and later page in a few milliseconds.

Rows are read once for each state of the catalog and process. What a page prints is asked of the
database again, row by row of that page, so that a figure is never older than its listing.
"""

from __future__ import annotations

import operator
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from django.db.models import F, FloatField, Func, QuerySet, TextField
from django.db.models.functions import Cast
from django.utils import timezone
from numpy.typing import NDArray

from marketplace.expressions import Check, Node, fold
from marketplace.hourly import Hour, after_locks
from marketplace.models import Listing
from marketplace.versions import Version, catalog_version

RANKED_CURRENCY = "USD"
"""Amounts are compared within one currency only; nothing is ever converted."""

ROWS_AT_ONCE = 5_000
MOST_LOOKED = 32
"""Searches through one column of texts that are kept while the catalog stays as it is."""

Column: TypeAlias = NDArray[Any]


class Plainly:
    """As the database gives it: to look at each number in Python takes longer than to fetch it."""

    def get_db_converters(self, connection: Any) -> list[Any]:
        return []


class Amount(Plainly, Cast):
    pass


class Moment(Plainly, Func):
    """A time as seconds since 1970."""

    template = "EXTRACT(EPOCH FROM %(expressions)s)::double precision"
    output_field = FloatField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """A text there: whole seconds, and behind them their fraction if it has one."""
        text = "%(expressions)s"
        sums = f"strftime('%%%%s', {text}) + CAST(substr({text}, 20) AS REAL)"
        return self.as_sql(compiler, connection, template=sums, **context)


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
    "provider_name": F("provider__name"),
    "zone": F("zone"),
    "url": F("url"),
    "findings": Cast("findings", TextField()),
    "corrections": Cast("corrections", TextField()),
}
"""Documents are read as texts: nearly always they are the same in many rows."""
NUMBERS = {
    "gpus": F("gpu_count"),
    "vram": F("vram_bytes_per_gpu"),
    "vcpus": F("vcpus"),
    "ram": F("ram_bytes"),
    "disk": F("local_storage_bytes"),
    "quantity": F("quantity"),
    "amount": Amount("machine_hour_amount", FloatField()),
    "seen": Moment("last_seen"),
    "gone_at": Moment("gone_at"),
    "key": F("pk"),
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
                held = _shelves["now"] = _read(version)
    return held


def forget_shelf() -> None:
    with _lock:
        _shelves.clear()


def _read(version: Version) -> Shelf:
    """All listings in one query, the oldest key first."""
    words, numbers = _columns()
    keys = numbers.pop("key").astype(np.int64)
    reverted = after_locks()
    if reverted:
        words["currency"], numbers["amount"] = _reverted(keys, words, numbers, reverted)
    ranked = words["currency"].passing(Check("is", RANKED_CURRENCY.casefold()))
    gone = ~np.isnan(numbers.pop("gone_at"))
    numbers["price"] = np.where(ranked, numbers["amount"], np.nan)
    return Shelf(version, keys, words, numbers, gone, reverted)


def _columns() -> tuple[dict[str, Words], dict[str, Column]]:
    named = {f"of_{name}": value for name, value in (WORDS | NUMBERS).items()}
    rows = Listing.objects.order_by("pk").annotate(**named).values_list(*named)
    words = {name: Told() for name in WORDS}
    numbers: dict[str, list[Column]] = {name: [np.array([], dtype=float)] for name in NUMBERS}
    for part in parts_of(rows):
        columns = dict(zip((*WORDS, *NUMBERS), zip(*part, strict=True), strict=True))
        for name, told in words.items():
            told.add(columns[name])
        for name, parts in numbers.items():
            parts.append(np.array(columns[name], dtype=float))
    made = {name: np.concatenate(parts) for name, parts in numbers.items()}
    return {name: Words.told(told) for name, told in words.items()}, made


def parts_of(rows: QuerySet[Any, Any]) -> Iterator[list[Any]]:
    """Some rows at a time, so that never all of them are held as rows."""
    left = rows.iterator(chunk_size=ROWS_AT_ONCE)
    while part := list(islice(left, ROWS_AT_ONCE)):
        yield part


def _reverted(
    keys: Column,
    words: Mapping[str, Words],
    numbers: Mapping[str, Column],
    hours: Mapping[int, Hour],
) -> tuple[Words, Column]:
    """Currencies and amounts, those of some listings by what they came to."""
    held, amount = words["currency"], numbers["amount"].copy()
    currency = [*held.names, ""]
    texts = [currency[number] for number in held.number]
    for key, (asked, unit) in hours.items():
        at = int(np.searchsorted(keys, key))
        if at < len(keys) and keys[at] == key:
            texts[at], amount[at] = unit, np.nan if asked is None else float(asked)
    return Words.of(texts), amount
