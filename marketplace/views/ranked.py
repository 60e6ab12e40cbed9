"""The ranked rows of a shortlist as one visitor asks for them: filtered, sorted, grouped, paged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from evaluator.candidates import Candidate
from evaluator.ranges import Range
from evaluator.spending import Cost
from evaluator.units import SECONDS_PER_HOUR, gib
from marketplace.expressions import Node, matches
from marketplace.views.axes import Axes
from marketplace.views.columns import Column

RANK = "rank"


def columns_for(axes: Axes) -> list[Column]:
    """Every column in its order. Ranges are filtered and sorted by their worse end."""
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
        Column("seen", "Seen", numbers=True, unit="hours ago", hint="<=6"),
        Column("availability", "Availability", hint="available", shown=False),
        Column("provider", "Provider", hint="not acme", shown=False),
        Column("place", "Place", hint="eu or us", shown=False),
        Column("evidence", "Weakest evidence", hint="measured or benchmarked"),
        Column("warnings", "Warnings", numbers=True, hint="0..2"),
    ]


RANKED = re.compile("[0-9]{1,9}")
MOST_SKIPPED = 10**7

DESCENDING = frozenset({"speed", "evidence"})
"""Columns whose best end is the large one."""

TIMED = frozenset({"time", "cost", "speed"})


@dataclass(frozen=True, slots=True)
class Values:
    """The value of each column of a candidate; None is unknown."""

    axes: Axes
    now: datetime

    def of(self, key: str, one: Candidate) -> Any:
        return PLAIN[key](one) if key in PLAIN else getattr(self, key)(one)

    def rank_by(self, key: str, one: Candidate) -> Any:
        """The same, or what puts words in their proper order."""
        return one.plan.weakest.grade if key == "evidence" else self.of(key, one)

    def time(self, one: Candidate) -> Any:
        return _worst(self.axes.time_of(one))

    def cost(self, one: Candidate) -> Any:
        return _worst(self.axes.cost_of(one))

    def seen(self, one: Candidate) -> float | None:
        at = one.offering.seen_at
        return (self.now - at).total_seconds() / SECONDS_PER_HOUR if at else None


def _worst(values: Range | Cost | None) -> Any:
    return None if values is None else values.high


def _memory(one: Candidate) -> float | None:
    needed = one.plan.fit.needed
    return None if needed is None else gib(needed.high)


def _machine(one: Candidate) -> str:
    return f"{one.offering.title} {one.machine.gpu_count or ''} × {one.machine.gpu_model}"


PLAIN: Mapping[str, Callable[[Candidate], Any]] = {
    RANK: lambda one: one.rank,
    "machine": _machine,
    "plan": lambda one: one.plan.plan.label,
    "status": lambda one: one.status.value,
    "gpus": lambda one: one.plan.plan.gpus,
    "memory": _memory,
    "speed": lambda one: one.outlook.rate.low if one.outlook else None,
    "hourly": lambda one: one.cost_per_hour,
    "availability": lambda one: one.offering.availability.value.replace("_", " "),
    "provider": lambda one: one.offering.provider,
    "place": lambda one: f"{one.offering.region} {one.offering.zone}".strip() or None,
    "evidence": lambda one: one.plan.weakest.grade.word,
    "warnings": lambda one: len(one.warnings),
}


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
    def skip(self) -> int:
        """Rows of the ranking that stand on earlier pages."""
        rank = self.after.partition(":")[0]
        return min(int(rank), MOST_SKIPPED) + 1 if RANKED.fullmatch(rank) else 0


@dataclass(frozen=True, slots=True)
class Ranked:
    """One page. `single` is row 0, kept on top of the first page whatever the filters say.

    `excluded` do not pass the filters. `kin` holds, by row, the other candidates on the same
    hardware where they are grouped.
    """

    rows: tuple[Candidate, ...] = ()
    single: Candidate | None = None
    single_passes: bool = True
    excluded: tuple[Candidate, ...] = ()
    next_key: str = ""
    first_page: bool = True
    kin: Mapping[str, tuple[Candidate, ...]] = field(default_factory=dict)

    @property
    def shown(self) -> tuple[Candidate, ...]:
        on_top = self.single is not None and self.first_page
        return (self.single, *self.rows) if on_top and self.single else self.rows


def key_of(one: Candidate) -> str:
    """A row's own name in an address: its listing and its plan. A page is named by rank too."""
    return f"{one.offering.key}:{one.plan.plan.key}"


def passes(one: Candidate, filters: Mapping[str, Node], values: Values) -> bool:
    return all(matches(node, values.of(key, one)) for key, node in filters.items())


def sliced(rows: Sequence[Candidate], asked: Asked) -> Ranked:
    """One page of the ranking itself. `rows` hold row 0, and one row more than the page shows."""
    behind = [one for one in rows if (one.rank or 0) >= max(asked.skip, 1)]
    page = behind[: asked.size]
    return Ranked(
        rows=tuple(page),
        single=rows[0] if rows else None,
        next_key=_next_key(page, len(behind) > asked.size),
        first_page=asked.skip == 0,
    )


def _next_key(page: Sequence[Candidate], more: bool) -> str:
    return f"{page[-1].rank}:{key_of(page[-1])}" if page and more else ""


def arranged(rows: Sequence[Candidate], asked: Asked, values: Values) -> Ranked:
    """`rows` in rank order, row 0 first."""
    single, others = (rows[0], rows[1:]) if rows else (None, ())
    passing, excluded = _parted(others, asked.filters, values)
    ordered = _ordered(passing, asked, values)
    heads, kin = _grouped(ordered) if asked.grouped else (ordered, {})
    start = _place_behind(heads, asked.after)
    page = heads[start : start + asked.size]
    return Ranked(
        rows=tuple(page),
        single=single,
        single_passes=single is None or passes(single, asked.filters, values),
        excluded=tuple(excluded),
        next_key=_next_key(page, start + asked.size < len(heads)),
        first_page=start == 0,
        kin=kin,
    )


def _parted(
    rows: Iterable[Candidate], filters: Mapping[str, Node], values: Values
) -> tuple[list[Candidate], list[Candidate]]:
    parts: tuple[list[Candidate], list[Candidate]] = ([], [])
    for one in rows:
        parts[not passes(one, filters, values)].append(one)
    return parts


def _ordered(rows: list[Candidate], asked: Asked, values: Values) -> list[Candidate]:
    """Stable: ties keep the ranking's order. What is unknown comes last, whichever way."""
    known = [(values.rank_by(asked.sort, one), one) for one in rows]
    backwards = asked.backwards != (asked.sort in DESCENDING)
    with_value = [pair for pair in known if pair[0] is not None]
    with_value.sort(key=lambda pair: pair[0], reverse=backwards)
    return [one for _, one in with_value] + [one for value, one in known if value is None]


def _grouped(rows: Iterable[Candidate]) -> tuple[list[Candidate], dict[str, tuple[Candidate, ...]]]:
    """The first of each hardware and plan stands for all; the others are told below it."""
    groups: dict[tuple[str, str], list[Candidate]] = {}
    for one in rows:
        groups.setdefault((one.offering.configuration, one.plan.plan.key), []).append(one)
    heads = [group[0] for group in groups.values()]
    return heads, {key_of(group[0]): tuple(group[1:]) for group in groups.values()}


def _place_behind(rows: Sequence[Candidate], key: str) -> int:
    """Of the row that follows the one with this key; 0 where no row has it any more."""
    wanted = key.partition(":")[2]
    places = (place for place, one in enumerate(rows, 1) if key_of(one) == wanted)
    return next(places, 0) if key else 0
