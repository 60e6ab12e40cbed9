"""Who comes before whom: the rules on columns, and the first few by them, lane by lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from evaluator.answers import CONDITIONAL, NONE, NOT_KNOWN, READY, UNSUITABLE
from evaluator.choices import NO_TIER, UNTIMED, Choices, Speed
from evaluator.fleet import Fleet
from evaluator.hardware import Column
from evaluator.jobs import Costs
from evaluator.judging import Chosen
from evaluator.lanes import Lanes
from evaluator.rates import PRECISION, Rates
from evaluator.rules import Goal
from evaluator.spending import MILLION
from evaluator.units import SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True)
class Field:
    """Groups of like offers, each with one plan: columns with one element for each.

    `offer` is the first offer of the group by place, `case` its machine's, `per_hour` the rate of
    one rental, NaN where it cannot be compared; those of one lane differ in these two alone.
    `status` and the words after it are of the plan as it is offered; `gone` marks offers of too few
    rentals.
    """

    offer: Column
    case: Column
    per_hour: Column
    billed_hours: Column
    spot: Column
    rentals: Column
    plan: Column
    status: Column
    tight: Column
    missing: Column
    why: Column
    gone: Column

    def __len__(self) -> int:
        return len(self.offer)

    @property
    def cost(self) -> Column:
        """Of all rentals for an hour; 0 where it cannot be compared."""
        return np.round(np.nan_to_num(self.per_hour) * self.rentals, PRECISION)

    @property
    def unranked(self) -> Column:
        return np.isnan(self.per_hour)

    @property
    def serves(self) -> Column:
        found: Column = self.status <= CONDITIONAL
        return found

    @property
    def tier(self) -> Column:
        """The words of a group in one number: its status, then its price, then its fit."""
        found: Column = 4 * self.status.astype(np.int64) + 2 * self.unranked + self.tight
        return found

    def followed_by(self, other: Field) -> Field:
        pairs = {one.name: (getattr(self, one.name), getattr(other, one.name)) for one in FIELDS}
        return Field(**{name: np.concatenate(pair) for name, pair in pairs.items()})

    def keep(self, rows: Column) -> Field:
        return Field(**{item.name: getattr(self, item.name)[rows] for item in FIELDS})


FIELDS = fields(Field)


@dataclass(frozen=True, slots=True)
class Heat:
    """Lanes that compete, each by its first group; `per_hour` is the rate of every offer."""

    lanes: Lanes
    leaders: Field
    per_hour: Column

    def keep(self, groups: Column) -> Heat:
        """Of the marked groups alone."""
        return self._on(*self.lanes.keep(groups))

    def without(self, place: int) -> Heat:
        """Of all groups but one."""
        return self._on(*self.lanes.without(place))

    def _on(self, lanes: Lanes, left: Column) -> Heat:
        return Heat(lanes, self._priced(self.leaders.keep(left), lanes.leaders), self.per_hour)

    def keep_lanes(self, marked: Column) -> Heat:
        return self if marked.all() else self._on(*self.lanes.keep_lanes(marked))

    def _priced(self, of: Field, offer: Column) -> Field:
        return replace(of, offer=offer, per_hour=self.per_hour[offer])

    def members(self, rows: Column) -> Field:
        """All groups of some lanes."""
        of = self.leaders.keep(np.repeat(rows, self.lanes.groups[rows]))
        return self._priced(of, self.lanes.every.offer[self.lanes.members(rows)])

    def front(self, rows: Column, count: int, keys: Keys) -> Field:
        """The first `count` groups of some lanes, in order. Leaders tell which lanes matter."""
        leading = first_of(keys(self.leaders.keep(rows)), np.arange(len(rows)), count)
        every = self.members(rows[leading])
        return every.keep(first_of(keys(every), np.arange(len(every)), count))


Keys = Callable[[Field], tuple[Column, ...]]
"""Columns to sort groups by, the first one first."""


def field_of(fleet: Fleet, offer: Column, rates: Rates, choices: Choices) -> Field:
    """Every offer with the narrowest plan of its best tier, or with the one that misses least."""
    judged = choices.judged
    case = judged.case[fleet.machine[offer]]
    best = _with_best(choices, judged.nearest)
    blank = Field(
        offer=offer,
        case=case,
        per_hour=rates.per_hour[offer],
        billed_hours=rates.billed_hours[offer],
        spot=rates.spot[offer],
        rentals=judged.rentals[case],
        plan=best.plan[case],
        status=best.status[case],
        tight=best.tight[case],
        missing=best.missing[case],
        why=best.why[case],
        gone=fleet.offered[offer] < judged.rentals[case],
    )
    return _as_offered(fleet, blank)


def _with_best(choices: Choices, nearest: Chosen) -> Chosen:
    serves = choices.tier != NO_TIER
    return Chosen(
        np.where(serves, choices.plan, nearest.plan),
        np.where(serves, choices.tier // 2, nearest.status),
        np.where(serves, choices.tier % 2, nearest.tight).astype(bool),
        np.where(serves, 0, nearest.missing),
        np.where(serves, 0, nearest.why),
    )


def on_one_gpu(fleet: Fleet, heat: Heat, single: Chosen) -> Heat:
    """The same groups with the plan on one GPU; those that have none are left out."""
    held = heat.keep_lanes(single.plan[heat.leaders.case] != NONE)
    return replace(held, leaders=_single_field(fleet, held.leaders, single))


def _single_field(fleet: Fleet, of: Field, single: Chosen) -> Field:
    blank = replace(
        of,
        rentals=np.ones(len(of), dtype=np.int64),
        plan=single.plan[of.case],
        status=single.status[of.case],
        tight=single.tight[of.case],
        missing=single.missing[of.case],
        why=single.why[of.case],
        gone=fleet.offered[of.offer] < 1,
    )
    return _as_offered(fleet, blank)


def _as_offered(fleet: Fleet, of: Field) -> Field:
    """A machine that must be waited for is conditional at best: when it comes is not known."""
    waits = fleet.waits[of.offer] & (of.status == READY)
    status = np.where(of.gone, UNSUITABLE, np.where(waits, CONDITIONAL, of.status))
    return replace(of, status=status)


def order(of: Field, plans: Column, speed: Speed, choices: Choices) -> tuple[Column, ...]:
    """Columns to sort by, the first one first; no two groups are equal in all of them."""
    hours = choices.hours(of.case, plans, speed.work, of.spot)
    promise = choices.in_time(speed, hours)
    timed = (promise != UNTIMED) & ~of.unranked
    money = np.where(timed, _money(of, speed, hours, choices), of.cost)
    return (of.tier, promise, np.round(money, PRECISION), choices.judged.gpus[plans], of.offer)


def _money(of: Field, speed: Speed, hours: Column, choices: Choices) -> Column:
    """What the goal compares, at the slow end of the speed."""
    if choices.rule.goal is Goal.FINISH:
        whole: Column = of.cost * billed(of, hours, choices.workload.costs)
        return whole
    if choices.rule.goal is Goal.TOKENS:
        million: Column = of.cost / (speed.rate * SECONDS_PER_HOUR) * MILLION
        return million
    return of.cost


def billed(of: Field, hours: Column, costs: Costs) -> Column:
    """Hours that are paid: whole billing units, at least the minimum term."""
    stated = costs.billing_unit_hours
    unit = of.billed_hours if stated is None else float(stated)
    paid: Column = np.maximum(np.ceil(hours / unit) * unit, float(costs.minimum_hours or 0))
    return paid


def nearness(of: Field, gpus: Column) -> tuple[Column, ...]:
    """What is known to miss by fewest bytes first; what cannot be judged comes last."""
    return (of.status == NOT_KNOWN, of.missing, of.tier, of.cost, gpus, of.offer)


def first_of(keys: Sequence[Column], rows: Column, count: int) -> Column:
    """The first `count` of the rows, in the order of the keys. Sorts no more than it must."""
    taken, left = [rows[:0]], rows
    for key in keys:
        room = count - sum(map(len, taken))
        if len(left) <= room or not room:
            break
        values = key[left]
        bound = np.partition(values, room - 1)[room - 1]
        taken.append(left[values < bound])
        left = left[values == bound]
    found = np.concatenate([*taken, left])
    return found[np.lexsort([key[found] for key in reversed(keys)])][:count]


def down_to(key: Column, rows: Column, sizes: Column, count: int) -> Column:
    """The rows with the lowest keys, whose sizes add up to `count`, and all equal to the last.
    Whole numbers are small and not below 0.

    Nothing after them can come into the first `count`.
    """
    place = key[rows]
    if not np.issubdtype(place.dtype, np.integer):
        _, place = np.unique(place, return_inverse=True)
    held = np.cumsum(np.bincount(place, sizes[rows]))
    found: Column = rows[place <= np.searchsorted(held, count)]
    return found
