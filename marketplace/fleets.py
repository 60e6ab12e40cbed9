"""All current offers as the evaluator ranks them: read once for each state of the catalog."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Any, TypeAlias, TypeVar

import numpy as np
from django.utils import timezone

from evaluator.fleet import Fleet
from evaluator.hardware import Column
from evaluator.jobs import Workload
from evaluator.judging import Judged
from evaluator.machine import Machine
from evaluator.offer_table import OfferTable
from evaluator.ranking import Ranking
from evaluator.shortlist import judge_fleet
from evaluator.units import SECONDS_PER_HOUR
from marketplace.expressions import Node, fold
from marketplace.versions import Version, catalog_version
from marketplace.words import Words, compared
from marketplace.workbooks import name_of

MOST_JUDGED = 8
"""Workloads whose judgements each process keeps for one state of the catalog."""
MOST_ANSWERS = 64
"""Rankings kept likewise: of one workload with its demands, one part of the rows, one minute."""
MOST_RANKINGS = 4
"""Whole rankings, which are large where the catalog is: tens of bytes for each row and column."""

MOST_ORDERS = 8
"""Rankings filtered and sorted by columns, likewise some tens of bytes for each row."""
MOST_APART = 4
"""Viewers with evidence of their own, for whom each process keeps the offers as they see them."""

Kept = TypeVar("Kept")

OFFER_COLUMNS = frozenset({"machine", "provider", "place", "availability", "seen"})
"""What an offer itself says, whatever plan is judged on it."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A fleet with the columns that visitors filter by, and what came of it."""

    fleet: Fleet
    read: OrderedDict[str, Words] = field(default_factory=OrderedDict)
    judged: OrderedDict[str, Judged] = field(default_factory=OrderedDict)
    answers: OrderedDict[Any, Any] = field(default_factory=OrderedDict)
    rankings: OrderedDict[Any, Ranking] = field(default_factory=OrderedDict)
    orders: OrderedDict[Any, Any] = field(default_factory=OrderedDict)
    apart: OrderedDict[Any, Offered] = field(default_factory=OrderedDict)
    known: OrderedDict[Any, Any] = field(default_factory=OrderedDict)

    @classmethod
    def of(cls, table: OfferTable, machines: Mapping[str, Machine]) -> Offered:
        return cls(Fleet.on(table, machines))

    @property
    def table(self) -> OfferTable:
        return self.fleet.table

    def words(self, name: str) -> Words:
        """A column of texts, put together where somebody asks for it."""
        return _once(self.read, name, len(TEXTS), lambda: Words.of(TEXTS[name](self.fleet)))

    def where(self, filters: Mapping[str, Node], now: datetime) -> Column:
        """Which offers pass every expression over what an offer itself says."""
        passing = np.ones(len(self.fleet), dtype=bool)
        for name, node in filters.items():
            passing = passing & self._passing(name, node, now)
        return passing

    def _passing(self, name: str, node: Node, now: datetime) -> Column:
        if name in TEXTS:
            return np.asarray(fold(node, self.words(name).passing, operator.and_, operator.or_))
        ages = self.hours_since(now)
        found = fold(node, lambda check: compared(ages, check), operator.and_, operator.or_)
        return np.asarray(found)

    def hours_since(self, now: datetime) -> Column:
        """How long ago each was seen."""
        return np.asarray((now.timestamp() - self.table.seen) / SECONDS_PER_HOUR)

    @property
    def machines(self) -> dict[str, Machine]:
        """What stands behind the offers, by their configuration."""
        held = self.fleet.hardware.machines
        return dict(zip(self.fleet.configurations, held, strict=True))

    def machine(self, configuration: str) -> Machine:
        number = self.fleet.configurations.index(configuration)
        return self.fleet.hardware.machines[number]

    def seen_with(self, own: Hashable, make: Callable[[], Offered]) -> Offered:
        """The same offers for one who knows more of some: made once for what is known of them."""
        return _once(self.apart, own, MOST_APART, make)

    def known_by(self, looks: Hashable, judge: Callable[[], Kept]) -> Kept:
        """What looks at machines come to: judged once for what they showed."""
        found: Kept = _once(self.known, looks, MOST_ANSWERS, judge)
        return found

    def with_model(self, model: str) -> Column:
        held = [one.gpu_model.value == model for one in self.fleet.hardware.machines]
        return np.array(held, dtype=bool)[self.fleet.machine]

    def seen_after(self, moment: datetime) -> Column:
        return np.isnan(self.table.seen) | (self.table.seen > moment.timestamp())

    def judged_for(self, workload: Workload) -> Judged:
        """Judged once for each workload while the catalog stays as it is. Findings quote the name
        of a model, which may be somebody's own.
        """
        key = name_of(workload)
        return _once(self.judged, key, MOST_JUDGED, lambda: judge_fleet(workload, self.fleet))

    def ranking_of(self, key: Hashable, rank: Callable[[], Ranking]) -> Ranking:
        """Ranked whole once for each question, for pages that filter and order it."""
        return _once(self.rankings, key, MOST_RANKINGS, rank)

    def ordered(self, key: Hashable, order: Callable[[], Kept]) -> Kept:
        """A whole ranking filtered and sorted once, for all the pages that it fills."""
        found: Kept = _once(self.orders, key, MOST_ORDERS, order)
        return found

    def answer_to(self, key: Hashable, rank: Callable[[], Kept]) -> Kept:
        """Written out once for each question."""
        found: Kept = _once(self.answers, key, MOST_ANSWERS, rank)
        return found


def _once(held: OrderedDict[Any, Kept], key: Any, most: int, make: Callable[[], Kept]) -> Kept:
    """What `make` gave for this key before; the oldest of too many is let go."""
    found = held.get(key)
    if found is None:
        found = held[key] = make()
        while len(held) > most:
            held.popitem(last=False)
    return found


def _named(fleet: Fleet) -> Iterator[str]:
    cards = [
        f"{one.gpu_count.value or ''} × {one.gpu_model.value or ''}"
        for one in fleet.hardware.machines
    ]
    titles = fleet.table.title
    for title, machine in zip(titles.number, fleet.machine, strict=True):
        yield f"{titles.values[title]} {cards[machine]}"


def _places(fleet: Fleet) -> Iterator[str]:
    region, zone = fleet.table.region, fleet.table.zone
    for one, other in zip(region.number, zone.number, strict=True):
        yield f"{region.values[one]} {zone.values[other]}".strip()


TEXTS: Mapping[str, Callable[[Fleet], Iterable[str]]] = {
    "machine": _named,
    "provider": lambda fleet: fleet.table.provider.each(),
    "place": _places,
    "availability": lambda fleet: (
        one.replace("_", " ") for one in fleet.table.availability.each()
    ),
}

Read: TypeAlias = Callable[[], tuple[OfferTable, dict[str, Machine]]]

_lock = Lock()
_kept: dict[Version, Offered] = {}


def offered_now(read: Read) -> Offered:
    """What everybody sees offered. `read` gives offers and machines where something changed."""
    version = (*catalog_version(), timezone.now().date())  # locks end with a day
    with _lock:
        if version not in _kept:
            before = next(iter(_kept.values()), None)
            made = _made(*read(), before)
            _kept.clear()
            _kept[version] = made
        return _kept[version]


def _made(table: OfferTable, machines: Mapping[str, Machine], before: Offered | None) -> Offered:
    """With all that was judged before, where neither offers nor machines are others."""
    if before and before.table is table and before.machines == machines:
        return before
    return Offered.of(table, machines)


def forget_fleet() -> None:
    with _lock:
        _kept.clear()
