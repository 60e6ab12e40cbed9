"""The ranked rows of a shortlist as one visitor asks for them: filtered, sorted, grouped, paged."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from evaluator.candidates import Candidate
from evaluator.facts import Grade
from evaluator.hardware import Column
from evaluator.ranking import Cut, Ranking
from evaluator.shortlist import Shortlist
from evaluator.units import GIB
from evaluator.verdict import Status
from marketplace.expressions import Check, Node, fold
from marketplace.fleets import TEXTS, Offered
from marketplace.rankings import FILTERED_OUT
from marketplace.templatetags.rows import Relatives, relative
from marketplace.views import columns
from marketplace.views.axes import Axes
from marketplace.words import Words, compared

RANK = "rank"


GROUPED = "they stand below another offer of the same hardware"


def columns_for(axes: Axes) -> list[columns.Column]:
    """Every column in its order. Ranges are filtered and sorted by their worse end."""
    Column = columns.Column
    return [
        Column("machine", "Machine", hint="H100 or B200", fixed=True),
        Column("plan", "Plan", hint="not fsdp", fixed=True),
        Column("status", "Status", hint="ready", shown=False),
        Column("gpus", "GPUs of the plan", numbers=True, hint="2..8", shown=False),
        Column("memory", "Memory per GPU", numbers=True, unit="GiB", hint="<=40"),
        Column("time", axes.time, numbers=True, unit=axes.time_unit, hint="<=100"),
        Column("cost", axes.cost, numbers=True, unit=axes.cost_unit, hint="<=500"),
        Column("speed", "Speed", numbers=True, unit="tokens/s", hint=">=1000", shown=False),
        Column("hourly", "Per hour", numbers=True, hint="<=20"),
        Column("seen", "Seen", numbers=True, unit=columns.AGO, hint="<=6"),
        Column("availability", "Availability", hint="available", shown=False),
        Column("provider", "Provider", hint="not acme", shown=False),
        Column("place", "Place", hint="eu or us", shown=False),
        Column("evidence", "Weakest evidence", hint="measured or benchmarked"),
        Column("warnings", "Warnings", numbers=True, hint="0..2"),
    ]


RANKED = re.compile("[0-9]{1,9}")
MOST_SKIPPED = 10**7
MOST_KIN = 12
"""Offers of the same hardware that a row names; the others are counted."""

DESCENDING = frozenset({"speed", "evidence"})
"""Columns whose best end is the large one."""

WORDS = frozenset({"machine", "plan", "status", "availability", "provider", "place", "evidence"})
IN_ORDER = frozenset({"status", "evidence"})
"""Words that have an order of their own, which is not that of the alphabet."""

STATUSES, GRADES = tuple(Status), tuple(Grade)


@dataclass(frozen=True, slots=True)
class Values:
    """What each column of a ranking holds, for all rows at once: words, or numbers with NaN."""

    axes: Axes
    now: datetime
    offered: Offered
    ranking: Ranking

    def passing(self, filters: Mapping[str, Node]) -> Column:
        """By place, whether a row passes every expression."""
        found = np.ones(len(self.ranking), dtype=bool)
        for key, node in filters.items():
            found = found & fold(node, self._check(key), operator.and_, operator.or_)
        return found

    def _check(self, key: str) -> Callable[[Check], Column]:
        if key in WORDS:
            return self._words(key).passing
        numbers = self.numbers(key)
        return lambda check: compared(numbers, check)

    def order_by(self, key: str) -> Column:
        """Numbers that sort like the column; NaN where it is unknown."""
        if key == RANK:
            return np.arange(len(self.ranking), dtype=float)
        if key in WORDS and key not in IN_ORDER:
            return self._words(key).ranks()
        return self.numbers(key)

    def _words(self, key: str) -> Words:
        if key in TEXTS:
            held = self.offered.words(key)
            return replace(held, number=held.number[self.ranking.offer])
        names, number = self._named(key)
        held = Words.of(names)
        return replace(held, number=held.number[number])

    def _named(self, key: str) -> tuple[Sequence[str], Column]:
        """Texts, and which of them each row has."""
        if key == "plan":
            return self.ranking.plans()
        names = [one.value for one in STATUSES] if key == "status" else [one.word for one in GRADES]
        return names, self.ranking.column(key).astype(np.int64)

    def numbers(self, key: str) -> Column:
        if key == "seen":
            return self.offered.hours_since(self.now)[self.ranking.offer]
        name, factor = self.axes.column_of(key) or (OWN.get(key, key), 1.0)
        return self.ranking.column(name) / (GIB if key == "memory" else 1.0) * factor


OWN = {"speed": "rate"}
"""Names under which the ranking knows columns."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What shapes the table besides the ranking itself."""

    filters: Mapping[str, Node] = field(default_factory=dict)
    sort: str = RANK
    backwards: bool = False
    grouped: bool = False
    after: str = ""
    size: int = 20

    @property
    def plain(self) -> bool:
        """Whether the ranking's own order is wanted, of all that is ranked."""
        return not (self.filters or self.grouped or self.backwards) and self.sort == RANK

    @property
    def whole(self) -> Asked:
        """The same on whatever page."""
        return replace(self, after="", size=0)

    @property
    def skip(self) -> int:
        """Rows of the ranking that stand on earlier pages."""
        rank = self.after.partition(":")[0]
        return min(int(rank), MOST_SKIPPED) + 1 if RANKED.fullmatch(rank) else 0


@dataclass(frozen=True, slots=True)
class Ranked:
    """One page. `single` is row 0, kept on top of the first page whatever the filters say.
    `leading` are row 0 and the first row behind it, of those that pass: the answer is one of them.

    `kin` holds, by row, the other offers of the same hardware where they are grouped.
    """

    rows: tuple[Candidate, ...] = ()
    single: Candidate | None = None
    leading: tuple[Candidate, ...] = ()
    single_passes: bool = True
    next_key: str = ""
    first_page: bool = True
    kin: Mapping[str, Relatives] = field(default_factory=dict)

    @property
    def shown(self) -> tuple[Candidate, ...]:
        on_top = self.single is not None and self.first_page
        return (self.single, *self.rows) if on_top and self.single else self.rows


def key_of(one: Candidate) -> str:
    """A row's own name in an address: its listing and its plan. A page is named by rank too."""
    return f"{one.offering.key}:{one.plan.plan.key}"


def sliced(rows: Sequence[Candidate], asked: Asked) -> Ranked:
    """One page of the ranking itself. `rows` hold row 0, and one row more than the page shows."""
    behind = [one for one in rows if (one.rank or 0) >= max(asked.skip, 1)]
    page = behind[: asked.size]
    return Ranked(
        rows=tuple(page),
        single=rows[0] if rows else None,
        leading=tuple(one for one in rows if one.rank in (0, 1)),
        next_key=_next_key(page, len(behind) > asked.size),
        first_page=asked.skip == 0,
    )


def _next_key(page: Sequence[Candidate], more: bool) -> str:
    return f"{page[-1].rank}:{key_of(page[-1])}" if page and more else ""


@dataclass(frozen=True, slots=True)
class Order:
    """Places of a ranking in the order asked for, on all pages. Where they are grouped, `heads`
    stand for their kin: `members` are all places group by group, the head of each first, up to its
    end in `ends`; `group` numbers the group of each head.
    """

    passing: Column
    heads: Column
    group: Column
    members: Column
    ends: Column

    @classmethod
    def of(cls, asked: Asked, values: Values) -> Order:
        passing = values.passing(asked.filters)
        ordered = _ordered(passing, asked, values)
        if not asked.grouped:
            return cls(passing, ordered, NOWHERE, NOWHERE, NOWHERE)
        return cls(passing, *_grouped(ordered, values.ranking.hardware[ordered]))

    @property
    def leading(self) -> list[int]:
        """Row 0 and the first one behind it, of those that pass."""
        places: list[int] = np.flatnonzero(self.passing)[:2].tolist()
        return places if places[:1] == [0] else places[:1]

    def kin(self, at: int) -> Column:
        """Places below a head."""
        if not len(self.group):
            return NOWHERE
        group = int(self.group[at])
        start = self.ends[group - 1] if group else 0
        return self.members[start + 1 : self.ends[group]]

    @property
    def aside(self) -> dict[str, Column]:
        """What no page shows."""
        out = np.flatnonzero(~self.passing)
        below = np.ones(len(self.members), dtype=bool)
        below[self.ends[:-1]] = below[:1] = False
        return {FILTERED_OUT: out[out > 0], GROUPED: self.members[below]}


@dataclass(frozen=True, slots=True)
class Page:
    """Some of an order, from one place in it on."""

    asked: Asked
    order: Order
    start: int

    @classmethod
    def of(cls, asked: Asked, order: Order, ranking: Ranking) -> Page:
        return cls(asked, order, _place_behind(order.heads, asked.after, ranking))

    @property
    def shown(self) -> list[int]:
        found: list[int] = self.order.heads[self.start : self.start + self.asked.size].tolist()
        return found

    @property
    def cut(self) -> Cut:
        """What the ranking writes out."""
        aside = self.order.aside
        return Cut(self.shown, with_single=self.start == 0, aside=aside)

    def ranked(self, result: Shortlist, ranking: Ranking) -> Ranked:
        """The page with the rows that were written out."""
        written = {one.rank: one for one in result.rows}
        rows, passing = [written[place] for place in self.shown], self.order.passing
        more = self.start + self.asked.size < len(self.order.heads)
        return Ranked(
            rows=tuple(rows),
            single=written.get(0),
            leading=tuple(map(ranking.written, self.order.leading)),
            single_passes=not len(passing) or bool(passing[0]),
            next_key=_next_key(rows, more),
            first_page=self.start == 0,
            kin={
                key_of(row): self._kin(at, ranking)
                for at, row in enumerate(rows, self.start)
                if self.asked.grouped
            },
        )

    def _kin(self, at: int, ranking: Ranking) -> Relatives:
        places = self.order.kin(at)
        named = map(relative, ranking.briefs(places[:MOST_KIN].tolist()))
        return Relatives(len(places), tuple(named))


NOWHERE = np.array([], dtype=np.int64)


def _ordered(passing: Column, asked: Asked, values: Values) -> Column:
    """Stable: ties keep the ranking's order. What is unknown comes last, whichever way."""
    places = np.flatnonzero(passing)
    places = places[places > 0]
    by = values.order_by(asked.sort)[places]
    backwards = asked.backwards != (asked.sort in DESCENDING)
    found: Column = places[np.argsort(-by if backwards else by, kind="stable")]
    return found


def _grouped(ordered: Column, hardware: Column) -> tuple[Column, Column, Column, Column]:
    """The first of each hardware and plan stands for all; the others are told below it."""
    _, first, number = np.unique(hardware, return_index=True, return_inverse=True)
    members, group = ordered[np.argsort(number, kind="stable")], np.argsort(first)
    return ordered[first[group]], group, members, np.cumsum(np.bincount(number))


def _place_behind(heads: Column, key: str, ranking: Ranking) -> int:
    """Of the row that follows the one with this key; 0 where no row has it any more."""
    _, _, name = key.partition(":")
    offer, _, plan = name.partition(":")
    at = np.flatnonzero(heads == ranking.place_of(offer, plan)) if key else NOWHERE
    return int(at[0]) + 1 if len(at) else 0
