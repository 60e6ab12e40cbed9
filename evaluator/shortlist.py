"""Many offers: each case judged once, prices joined, the best picked, and only those explained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import pairwise

import numpy as np

from evaluator.answers import MEMORY_UNKNOWN, NOT_KNOWN, WHY
from evaluator.candidates import Candidate
from evaluator.choices import Choices, too_little_known
from evaluator.clerk import Clerk, Entry
from evaluator.contest import Field, Heat, down_to, field_of, first_of, nearness, on_one_gpu, order
from evaluator.economics import Terms, terms_of
from evaluator.fleet import Fleet
from evaluator.front import front_of
from evaluator.hardware import Column
from evaluator.jobs import Needs, Workload
from evaluator.judging import NOBODY, Judged, judge_hardware
from evaluator.offers import Offering
from evaluator.rates import PRECISION

__all__ = ["Candidate", "Offering", "Shortlist", "judge_fleet", "shortlist"]

NOTHING_JUDGED = "no plan could be judged"
OUTSIDE_REGIONS = "they are outside the wanted regions"
SAME_ELSEWHERE = "the same machine is shown at the same price in another place"
BEYOND_LIMIT = "they rank below those shown"
GONE = "they are sold out, or fewer are offered than are needed"
NEAR_MISSES, UNRANKED = 5, 20


@dataclass(frozen=True, slots=True)
class Shortlist:
    """`rows` begins with row 0, the best single-GPU option, even where it does not serve.

    `rows` are ranked, `unranked` serve but have no comparable price, `near_misses` do not serve.
    Every offering is shown in one of the three or counted in `hidden` by reason. `rule` says in
    words why the order is as it is. `front` are those of all ranked offers, shown or not, that no
    other beats in cost, time and evidence at once; empty where that was not asked for.
    `unranked_total` counts the unranked that are not shown, too.
    """

    total: int
    rows: tuple[Candidate, ...] = ()
    unranked: tuple[Candidate, ...] = ()
    near_misses: tuple[Candidate, ...] = ()
    hidden: Mapping[str, int] = field(default_factory=dict)
    currency: str = "USD"
    configurations: int = 0
    unranked_total: int = 0
    rule: str = ""
    front: tuple[Candidate, ...] = ()

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
    weigh: bool = False,
) -> Shortlist:
    """Ranks the offers of a fleet by the rule of the workload, in an order free of the input's.

    `skip` rows are ranked and not written out, but for ranks 0 and 1: the answer stands in one of
    them, on later pages too. `among` marks the offers to look at, all without it. `judged` is what
    `judge_fleet` gave for a workload of this fingerprint before. `now` lets findings name an age.
    `weigh` asks for the front, for which the best plan of every offer is timed.
    """
    asked = np.ones(len(fleet), dtype=bool) if among is None else among
    race, inside = race_of(workload, fleet, judged or judge_fleet(workload, fleet), asked)
    leaders, picked = race.heat.leaders, race.picked(limit + skip)
    written = sorted({0, 1, *range(skip, len(picked.rows))} & set(range(len(picked.rows))))
    clerk = Clerk(workload, fleet, race.choices, race.terms, inside, now)
    found = told(race, clerk, asked, picked, tuple(clerk.ranked(picked.rows, written)))
    if not weigh:
        return found
    return replace(found, front=front_of(leaders, race.choices, clerk, race.single))


def race_of(workload: Workload, fleet: Fleet, judged: Judged, asked: Column) -> tuple[Race, Column]:
    """What competes of the offers that are asked for, and which of them are in wanted regions."""
    inside = asked & fleet.in_regions(workload.needs)
    race = Race.of(workload, fleet, judged, inside)
    race.hide(OUTSIDE_REGIONS, int(np.count_nonzero(asked & ~inside)))
    return race, inside


def told(
    race: Race, clerk: Clerk, asked: Column, picked: Picked, rows: tuple[Candidate, ...]
) -> Shortlist:
    """A shortlist of rows that are written out already."""
    return Shortlist(
        total=int(np.count_nonzero(asked)),
        rows=rows,
        unranked=tuple(clerk.candidates(picked.unranked)),
        near_misses=tuple(clerk.candidates(picked.near)),
        hidden={reason: count for reason, count in race.hidden.items() if count},
        currency=race.terms.currency,
        configurations=race.fleet.distinct(asked),
        unranked_total=race.unranked_total,
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


@dataclass(frozen=True, slots=True)
class Queue:
    """Lanes with their bounds, of which the first `count` groups are wanted; so many as `first`
    says are timed at once.
    """

    heat: Heat
    rows: Column
    bounds: tuple[Column, ...]
    count: int
    first: int

    @property
    def cases(self) -> Column:
        """Of the lanes that are timed at once."""
        return self.heat.leaders.case[self.ahead(self.first)]

    def ahead(self, count: int) -> Column:
        """The lanes with the best bounds."""
        if count >= len(self.rows):
            return self.rows
        return self.rows[first_of(self.bounds, np.arange(len(self.rows)), count)]


@dataclass
class Race:
    """What competes, by whom it is judged, and what was hidden on the way, by reason."""

    fleet: Fleet
    choices: Choices
    terms: Terms
    heat: Heat
    hidden: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, workload: Workload, fleet: Fleet, judged: Judged, inside: Column) -> Race:
        terms, rates = terms_of(workload), fleet.rates(terms_of(workload))
        choices = Choices.of(judged, fleet.hardware, workload)
        lanes = fleet.lanes(terms, inside)
        leaders = field_of(fleet, lanes.leaders, rates, choices)
        race = cls(fleet, choices, terms, Heat(lanes, leaders, rates.per_hour))
        race._leave_out(workload.needs)
        return race

    def hide(self, reason: str, count: int) -> None:
        self.hidden[reason] += count

    def _leave_out(self, needs: Needs) -> None:
        """Takes out what the workload's own needs exclude. An unknown price is not excluded."""
        self._drop_cases(NOTHING_JUDGED, self.choices.judged.nothing)
        if needs.min_grade is not None:
            little = too_little_known(self.choices, needs.min_grade)
            self._drop_cases(f"less is known of them than {needs.min_grade.word}", little)
        limit = needs.max_price_per_hour
        if limit is not None:
            dear, lanes = self._dear(float(limit)), self.heat.lanes
            reason = f"they cost more than {limit} {self.terms.currency} per hour"
            self.hide(reason, int(lanes.every.size[lanes.places][dear].sum()))
            self.heat = self.heat.keep(~dear)

    def _dear(self, limit: float) -> Column:
        """By group."""
        lanes = self.heat.lanes
        per_hour = self.heat.per_hour[lanes.every.offer[lanes.places]]
        rentals = np.repeat(self.heat.leaders.rentals, lanes.groups)
        found: Column = np.round(per_hour * rentals, PRECISION) > limit
        return found

    def _drop_cases(self, reason: str, out: Column) -> None:
        if out.any():
            dropped = out[self.heat.leaders.case]
            self.hide(reason, int(self.heat.lanes.offers[dropped].sum()))
            self.heat = self.heat.keep_lanes(~dropped)

    # --- picking

    def picked(self, limit: int) -> Picked:
        single = self.single
        others, room = self._without(single), limit - (single is not None)
        queues = [self._ranked(others, room), self._unranked(others, limit)]
        self.choices.settle(np.concatenate([queue.cases for queue in queues]))
        rows, unranked = self._written([self._first(queue) for queue in queues])
        return self._counted([single, *rows] if single else rows, unranked, others)

    def beside(self, rows: list[Entry]) -> Picked:
        """These rows, with what serves at no comparable price and what misses by least."""
        others = self._without(self.single)
        (unranked,) = self._written([self._first(self._unranked(others, UNRANKED))])
        return self._counted(rows, unranked, others)

    def _counted(self, rows: list[Entry], unranked: list[Entry], others: Heat) -> Picked:
        parts = Picked(rows, unranked, self._near(others, ~others.leaders.serves))
        self._count_hidden(parts)
        return parts

    @property
    def unranked_total(self) -> int:
        """Groups that serve at no comparable price, those that no part shows included."""
        others = self._without(self.single)
        marked = others.leaders.serves & others.leaders.unranked
        return int(others.lanes.groups[marked].sum())

    def _ranked(self, heat: Heat, count: int) -> Queue:
        return self._queue(heat, heat.leaders.serves & ~heat.leaders.unranked, count)

    def _unranked(self, heat: Heat, count: int) -> Queue:
        return self._queue(heat, heat.leaders.serves & heat.leaders.unranked, count)

    def ordered(self) -> Field:
        """All rows that are ranked, in their order behind row 0; `plan` is what each shows."""
        others = self._without(self.single)
        lanes = np.flatnonzero(others.leaders.serves & ~others.leaders.unranked)
        self.choices.settle(others.leaders.case[lanes])
        every = others.members(lanes)
        every = replace(every, plan=self.choices.plan[every.case])
        keys = self._by_rule(every)
        return self.single_row.followed_by(every.keep(np.lexsort(keys[::-1])))

    def _queue(self, heat: Heat, marked: Column, count: int) -> Queue:
        """What serves, as far as it is of words that may come to the top."""
        rows = np.flatnonzero(marked) if count > 0 else NOBODY
        rows = down_to(heat.leaders.tier, rows, heat.lanes.groups, count)
        if not self.choices.rule.timed or not len(rows):
            return Queue(heat, rows, (), count, len(rows))
        bounds = self._bounds(heat.leaders.keep(rows))
        return Queue(heat, rows, bounds, count, max(count, FEW))

    def _first(self, queue: Queue) -> Field:
        """The first groups of a queue, in order, with their best plans. Lanes whose bounds are
        worse than the last of those are never timed.
        """
        taken = queue.first
        while True:
            rows = queue.ahead(taken)
            self.choices.settle(queue.heat.leaders.case[rows])
            best = queue.heat.front(rows, queue.count, self._by_rule)
            if taken >= len(queue.rows):
                return best
            last = best.keep(np.arange(len(best))[-1:])
            left = int(_up_to(queue.bounds, self._by_rule(last)).sum())
            if left <= taken:
                return best
            taken = min(4 * taken, left)

    def _written(self, parts: Sequence[Field]) -> list[list[Entry]]:
        """With their narrowest plans, which are sought for all parts at once."""
        case = np.concatenate([part.case for part in parts])
        offer = np.concatenate([part.offer for part in parts])
        chosen = (offer, self.choices.plan[case], self.choices.narrowest(case))
        entries = [Entry(*map(int, row)) for row in zip(*chosen, strict=True)]
        ends = np.cumsum([0, *map(len, parts)]).tolist()
        return [entries[start:end] for start, end in pairwise(ends)]

    def _bounds(self, of: Field) -> tuple[Column, ...]:
        """No group of a lane comes before these keys. Without prices a lane goes by place."""
        speed, gpus = self.choices.bounds(of.case)
        keys = order(of, of.plan, speed, self.choices)[:3]
        return (*keys, gpus, np.where(of.unranked, of.offer, 0))

    def _by_rule(self, held: Field) -> tuple[Column, ...]:
        plan, speed = self.choices.plan[held.case], self.choices.speed.at(held.case)
        return order(held, plan, speed, self.choices)

    def _by_miss(self, held: Field) -> tuple[Column, ...]:
        return nearness(held, self.choices.judged.gpus[held.plan])

    def _near(self, heat: Heat, marked: Column) -> list[Entry]:
        return _entries(heat.front(np.flatnonzero(marked), NEAR_MISSES, self._by_miss))

    @cached_property
    def single(self) -> Entry | None:
        return next(iter(_entries(self.single_row)), None)

    @cached_property
    def single_row(self) -> Field:
        """The first in order among plans on one GPU; where none serves, the one that misses least.

        One with a comparable price comes before a firmer one whose cost nobody can say.
        """
        heat = on_one_gpu(self.fleet, self.heat, self.choices.judged.single)
        serving = np.flatnonzero(heat.leaders.serves)
        return self._firmest(heat, serving) if len(serving) else self._least_missing(heat)

    def _firmest(self, heat: Heat, rows: Column) -> Field:
        of = heat.leaders
        firmness = of.unranked * 8 + of.status * 2 + of.tight
        rows = down_to(firmness, rows, heat.lanes.groups, 1)
        return heat.front(rows, 1, self._by_rule_alone)

    def _by_rule_alone(self, held: Field) -> tuple[Column, ...]:
        return order(held, held.plan, self.choices.speed_of_singles(held.case), self.choices)

    def _least_missing(self, heat: Heat) -> Field:
        single, of = self.choices.judged.single, heat.leaders
        misses = np.where(single.status[of.case] == NOT_KNOWN, np.inf, of.missing)
        rows = down_to(misses, np.arange(len(of)), heat.lanes.groups, 1)
        return heat.front(rows, 1, self._by_miss)

    def _without(self, single: Entry | None) -> Heat:
        """All groups but that of row 0, where its best plan is the one that row 0 shows."""
        if single is None:
            return self.heat
        lanes, of = self.heat.lanes, self.heat.leaders
        place = int(lanes.every.place[single.offer])
        row = lanes.lane_of(np.array([place]))
        if of.serves[row].all():
            if not self.choices.may_choose(int(of.case[row][0]), single.plan):
                return self.heat
            self.choices.settle(of.case[row])
        same = self._plans(of)[row] == single.plan
        return self.heat.without(place) if same.all() else self.heat

    def _plans(self, of: Field) -> Column:
        """The plan of each: what serves takes the best by the rule, where that is known."""
        return np.where(of.serves, self.choices.plan[of.case], of.plan)

    # --- counting

    def sizes(self) -> Column:
        """How many offers each stands for, by the offer that comes first of those alike."""
        found = np.zeros(len(self.fleet), dtype=np.int64)
        lanes = self.heat.lanes
        found[lanes.every.offer[lanes.places]] = lanes.every.size[lanes.places]
        return found

    def _count_hidden(self, parts: Picked) -> None:
        """Every offering that no part shows, under the first reason that holds."""
        lanes, of = self.heat.lanes, self.heat.leaders
        shown = sorted({entry.offer for entry in parts.entries})
        seen = lanes.every.place[np.array(shown, dtype=np.int64)]
        size, left = lanes.every.size[seen], lanes.offers
        self.hide(SAME_ELSEWHERE, int((size - 1).sum()))
        np.subtract.at(left, lanes.lane_of(seen), size)
        self.hide(BEYOND_LIMIT, int(left[of.serves].sum()))
        reasons = np.where(of.gone & np.isin(of.why, GIVES_WAY), len(WHY), of.why)
        counts = np.bincount(reasons[~of.serves], left[~of.serves])
        for reason, count in zip((*WHY, GONE), counts, strict=False):
            self.hide(reason, int(count))


FEW = 96
"""Lanes that are timed at once at least: one more takes less than another turn."""


def _up_to(keys: Sequence[Column], last: Sequence[Column]) -> Column:
    """Which keys do not come after the last one."""
    found = np.ones(len(keys[0]), dtype=bool)
    for key, end in zip(reversed(keys), reversed(last), strict=True):
        found = (key < end) | ((key == end) & found)
    return found


def _entries(of: Field) -> list[Entry]:
    return [Entry(int(offer), int(plan)) for offer, plan in zip(of.offer, of.plan, strict=True)]


GIVES_WAY = (0, WHY.index(MEMORY_UNKNOWN))
"""What is no failure of the plan itself, so that a machine which is gone is the reason."""
