"""Many offers: each case judged once, prices joined, the best picked, and only those explained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

import numpy as np

from evaluator.candidates import Candidate
from evaluator.choices import Choices, too_little_known
from evaluator.clerk import Clerk, Entry
from evaluator.contest import (
    Field,
    down_to,
    field_of,
    first_of,
    nearness,
    order,
    single_field,
)
from evaluator.economics import Terms, terms_of
from evaluator.fleet import Fleet, Lanes
from evaluator.hardware import Column
from evaluator.jobs import Needs, Workload
from evaluator.judging import MEMORY_UNKNOWN, NOT_KNOWN, WHY, Judged, judge_hardware
from evaluator.offers import Offering

__all__ = ["Candidate", "Offering", "Shortlist", "judge_fleet", "shortlist"]

Keys = Callable[[Field], tuple[Column, ...]]
"""Columns to sort groups by, the first one first."""

NOTHING_JUDGED = "no plan could be judged"
OUTSIDE_REGIONS = "they are outside the wanted regions"
SAME_ELSEWHERE = "the same machine is shown at the same price in another place"
BEYOND_LIMIT = "they rank below those shown"
GONE = "they are sold out, or fewer are offered than are needed"
NEAR_MISSES = 5


@dataclass(frozen=True, slots=True)
class Shortlist:
    """`rows` begins with row 0, the best single-GPU option, even where it does not serve.

    `rows` are ranked, `unranked` serve but have no comparable price, `near_misses` do not serve.
    Every offering is shown in one of the three or counted in `hidden` by reason. `rule` says in
    words why the order is as it is.
    """

    total: int
    rows: tuple[Candidate, ...] = ()
    unranked: tuple[Candidate, ...] = ()
    near_misses: tuple[Candidate, ...] = ()
    hidden: Mapping[str, int] = field(default_factory=dict)
    currency: str = "USD"
    configurations: int = 0
    rule: str = ""

    @property
    def shown(self) -> int:
        """Offerings shown in any part."""
        parts = (*self.rows, *self.unranked, *self.near_misses)
        return len({candidate.offering.key for candidate in parts})


def judge_fleet(workload: Workload, fleet: Fleet) -> Judged:
    """All plans on all machines; prices and demands are joined to it by `shortlist`."""
    return judge_hardware(workload, fleet.hardware, fleet.links, fleet.rentals)


def shortlist(
    workload: Workload,
    fleet: Fleet,
    limit: int = 20,
    now: datetime | None = None,
    *,
    among: Column | None = None,
    judged: Judged | None = None,
    skip: int = 0,
) -> Shortlist:
    """Ranks the offers of a fleet by the rule of the workload, in an order free of the input's.

    `skip` rows are ranked and not written out, but for ranks 0 and 1: the answer stands in one of
    them, on later pages too. `among` marks the offers to look at, all without it. `judged` is what
    `judge_fleet` gave for a workload of this fingerprint before. `now` lets findings name an age.
    """
    asked = np.ones(len(fleet.offers), dtype=bool) if among is None else among
    inside = asked & fleet.in_regions(workload.needs)
    verdicts = judged or judge_fleet(workload, fleet)
    race = Race.of(workload, fleet, verdicts, inside)
    race.hide(OUTSIDE_REGIONS, int(asked.sum() - inside.sum()))
    picked = race.picked(limit + skip)
    written = sorted({0, 1, *range(skip, len(picked.rows))} & set(range(len(picked.rows))))
    clerk = Clerk(workload, fleet, race.choices, race.terms, inside, now)
    return Shortlist(
        total=int(asked.sum()),
        rows=tuple(clerk.ranked(picked.rows, written)),
        unranked=tuple(clerk.candidates(picked.unranked)),
        near_misses=tuple(clerk.candidates(picked.near)),
        hidden={reason: count for reason, count in race.hidden.items() if count},
        currency=race.terms.currency,
        configurations=int((np.bincount(fleet.machine[asked]) > 0).sum()),
        rule=race.choices.rule.sentence,
    )


@dataclass(frozen=True, slots=True)
class Picked:
    rows: list[Entry]
    unranked: list[Entry]
    near: list[Entry]

    @property
    def entries(self) -> list[Entry]:
        return [*self.rows, *self.unranked, *self.near]


@dataclass
class Race:
    """What competes, by whom it is judged, and what was hidden on the way, by reason."""

    fleet: Fleet
    choices: Choices
    terms: Terms
    lanes: Lanes
    groups: Field
    hidden: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, workload: Workload, fleet: Fleet, judged: Judged, inside: Column) -> Race:
        terms, needs = terms_of(workload), workload.needs
        choices = Choices.of(judged, fleet.hardware, workload)
        every = field_of(fleet, fleet.groups(inside), fleet.rates(terms), choices)
        race = cls(fleet, choices, terms, fleet.lanes(terms), every)
        race._leave_out(needs)
        return race

    def hide(self, reason: str, count: int) -> None:
        self.hidden[reason] += count

    def _leave_out(self, needs: Needs) -> None:
        """Takes out what the workload's own needs exclude. An unknown price is not excluded."""
        self._drop(NOTHING_JUDGED, self.choices.judged.nothing[self.groups.case])
        if needs.min_grade is not None:
            little = too_little_known(self.choices, needs.min_grade)
            self._drop(
                f"less is known of them than {needs.min_grade.word}", little[self.groups.case]
            )
        limit = needs.max_price_per_hour
        if limit is not None:
            dear = ~self.groups.unranked & (self.groups.cost > float(limit))
            self._drop(f"they cost more than {limit} {self.terms.currency} per hour", dear)

    def _drop(self, reason: str, out: Column) -> None:
        if out.any():
            self.hide(reason, int(self.groups.size[out].sum()))
            self.groups = self.groups.keep(np.flatnonzero(~out))

    @cached_property
    def tier(self) -> Column:
        """Of every group, once the needs have left some out."""
        return self.groups.tier

    # --- picking

    def picked(self, limit: int) -> Picked:
        single = self._single()
        others = self._without(single)
        serves, unranked = self.groups.serves[others], self.groups.unranked[others]
        room = limit - (single is not None)
        rows = self._serving(others[serves & ~unranked], room)
        parts = Picked(
            [single, *rows] if single else rows,
            self._serving(others[serves & unranked], limit),
            self._near(others[~serves]),
        )
        self._count_hidden(parts)
        return parts

    def _serving(self, rows: Column, count: int) -> list[Entry]:
        """The best of what serves: only those that may be among them are timed."""
        if count < 1:
            return []
        near_top = down_to(self.tier, rows, count)
        self.choices.settle(self.groups.case[near_top])
        best = self._front(self.groups, near_top, count, self._by_rule)
        case, offer = self.groups.case[best], self.groups.offer[best]
        chosen = (offer, self.choices.plan[case], self.choices.narrowest(case))
        return [Entry(*map(int, row)) for row in zip(*chosen, strict=True)]

    def _front(self, of: Field, rows: Column, count: int, keys: Keys) -> Column:
        """The first `count` rows in order. The first of every lane tell which lanes matter."""

        def first(some: Column) -> Column:
            held = of.keep(some)
            return some[first_of(keys(held), np.arange(len(held)), count)]

        leading = first(rows[self.lanes.leaders(of.offer[rows])])
        matter = self.lanes.together(of.offer[rows], of.offer[leading])
        return first(rows[matter])

    def _by_rule(self, held: Field) -> tuple[Column, ...]:
        plan, speed = self.choices.plan[held.case], self.choices.speed.at(held.case)
        return order(held, plan, speed, self.choices)

    def _by_miss(self, held: Field) -> tuple[Column, ...]:
        return nearness(held, self._gpus(held.plan))

    def _near(self, rows: Column) -> list[Entry]:
        best = self._front(self.groups, rows, NEAR_MISSES, self._by_miss)
        return [Entry(int(self.groups.offer[row]), int(self.groups.plan[row])) for row in best]

    def _single(self) -> Entry | None:
        """The first in order among plans on one GPU; where none serves, the one that misses least.

        One with a comparable price comes before a firmer one whose cost nobody can say.
        """
        leading = np.flatnonzero(self.lanes.leaders(self.groups.offer))
        leaders = self.groups.keep(leading)
        held = single_field(self.fleet, leaders, self.choices.judged.single)
        serving = np.flatnonzero(held.serves)
        best = self._firmest(held, serving) if len(serving) else self._least_missing(held)
        return Entry(int(held.offer[best[0]]), int(held.plan[best[0]])) if len(best) else None

    def _firmest(self, held: Field, rows: Column) -> Column:
        held_ranked = held.unranked * 8 + held.status * 2 + held.tight
        return self._front(held, down_to(held_ranked, rows, 1), 1, self._by_rule_alone)

    def _by_rule_alone(self, held: Field) -> tuple[Column, ...]:
        return order(held, held.plan, self.choices.speed_of_singles(held.case), self.choices)

    def _least_missing(self, held: Field) -> Column:
        single = self.choices.judged.single
        misses = np.where(single.status[held.case] == NOT_KNOWN, np.inf, held.missing)
        rows = down_to(misses, np.arange(len(held)), 1)
        return self._front(held, rows, 1, self._by_miss)

    def _without(self, single: Entry | None) -> Column:
        """All groups but that of row 0, where its best plan is the one that row 0 shows."""
        rows = np.arange(len(self.groups))
        if single is None:
            return rows
        (row,) = np.flatnonzero(self.groups.offer == single.offer)
        if self.groups.serves[row]:
            self.choices.settle(self.groups.case[[row]])
        same = self._plans(self.groups)[row] == single.plan
        return rows[rows != row] if same else rows

    def _plans(self, of: Field) -> Column:
        """The plan of each group: what serves takes the best by the rule, where that is known."""
        return np.where(of.serves, self.choices.plan[of.case], of.plan)

    def _gpus(self, plans: Column) -> Column:
        return self.choices.judged.gpus[plans]

    # --- counting

    def _count_hidden(self, parts: Picked) -> None:
        """Every offering that no part shows, under the first reason that holds."""
        of, shown = self.groups, np.zeros(len(self.fleet.offers), dtype=bool)
        shown[[entry.offer for entry in parts.entries]] = True
        seen = shown[of.offer]
        self.hide(SAME_ELSEWHERE, int((of.size[seen] - 1).sum()))
        below = ~seen & of.serves
        self.hide(BEYOND_LIMIT, int(of.size[below].sum()))
        reasons = np.where(of.gone & np.isin(of.why, GIVES_WAY), len(WHY), of.why)
        counts = np.bincount(reasons[~seen & ~of.serves], of.size[~seen & ~of.serves])
        for reason, count in zip((*WHY, GONE), counts, strict=False):
            self.hide(reason, int(count))


GIVES_WAY = (0, WHY.index(MEMORY_UNKNOWN))
"""What is no failure of the plan itself, so that a machine which is gone is the reason."""
