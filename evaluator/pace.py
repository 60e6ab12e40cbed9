"""How fast plans are on kinds of machines, as far as an order looks at it: the slow ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from evaluator.bills import Job, Spent, spent_on
from evaluator.hardware import Column
from evaluator.jobs import ServingJob, Workload
from evaluator.machine import Machine
from evaluator.outlook import Times
from evaluator.plans import Plan
from evaluator.ranges import Range, exact
from evaluator.rentals import rental_of
from evaluator.spending import goodput, hours_for, wall_hours
from evaluator.spot import reclaims_of
from evaluator.states import trainable_params
from evaluator.timing_columns import PlanTimes, RentalTable, plan_times
from evaluator.units import SECONDS_PER_HOUR
from evaluator.weights import stored_bytes


@dataclass(frozen=True, slots=True)
class Rentals:
    """What time depends on of every kind of machine, alone and as one of several.

    `number` is the place of each kind in its table, NONE where its card has no published peak.
    """

    tables: tuple[RentalTable, RentalTable]
    number: tuple[Column, Column]

    @classmethod
    def of(cls, kinds: Sequence[Machine]) -> Rentals:
        alone, several = (_table(kinds, nodes) for nodes in (1, 2))
        return cls((alone[0], several[0]), (alone[1], several[1]))

    def times(self, workload: Workload, plan: Plan, kinds: Column) -> tuple[PlanTimes, Column]:
        """Of one plan on some kinds, and the place of each kind in it."""
        joined = plan.nodes > 1
        number = self.number[joined][kinds]
        wanted = np.zeros(len(self.tables[joined].device) + 1, dtype=bool)
        wanted[number] = True
        rentals = np.flatnonzero(wanted[:-1])
        place = np.full(len(wanted), len(rentals))
        place[rentals] = np.arange(len(rentals))
        return plan_times(workload, plan, self.tables[joined], rentals), place[number]


NONE = -1


def _table(kinds: Sequence[Machine], nodes: int) -> tuple[RentalTable, Column]:
    every = [rental_of(kind, nodes) for kind in kinds]
    numbers = {one: at for at, one in enumerate(dict.fromkeys(one for one in every if one))}
    return RentalTable.of(list(numbers)), np.array(
        [NONE if one is None else numbers[one] for one in every]
    )


@dataclass(frozen=True, slots=True)
class Pace:
    """By pair of a plan and a kind, NaN where not known: tokens/s at the slow end, and hours of
    work. `kept` says whether the targets of a server hold at that end.
    """

    rate: Column
    work: Column
    kept: Column

    @classmethod
    def blank(cls, count: int) -> Pace:
        rate, work = (np.full(count, np.nan) for _ in range(2))
        return cls(rate, work, np.zeros(count, dtype=bool))

    def at(self, rows: Column) -> Pace:
        return Pace(self.rate[rows], self.work[rows], self.kept[rows])

    def put(self, rows: Column, other: Pace) -> None:
        self.rate[rows] = other.rate
        self.work[rows] = other.work
        self.kept[rows] = other.kept


@dataclass
class Clock:
    """Times plans of one workload on kinds of machines: each pair once, each plan on many kinds."""

    workload: Workload
    rentals: Rentals
    known: dict[Plan, Timed] = field(default_factory=dict)

    def paces(self, plans: Sequence[Plan], plan: Column, kind: Column) -> Pace:
        """Of pairs: the number of a plan among `plans`, and of a kind."""
        pace = Pace.blank(len(plan))
        for number in np.flatnonzero(np.bincount(plan)).tolist():
            rows = np.flatnonzero(plan == number)
            pace.put(rows, self._timed(plans[number], kind[rows]).pace.at(kind[rows]))
        return pace

    def slowest(self, name: str, plans: Sequence[Plan], plan: Column, kind: Column) -> Column:
        """The slow end of one figure of such pairs, NaN where it is not known."""
        found = np.full(len(plan), np.nan)
        for number in np.flatnonzero(np.bincount(plan)).tolist():
            rows = np.flatnonzero(plan == number)
            found[rows] = self._timed(plans[number], kind[rows]).high(name)[kind[rows]]
        return found

    def _timed(self, plan: Plan, kinds: Column) -> Timed:
        if plan not in self.known:
            self.known[plan] = Timed.none(len(self.rentals.number[0]))
        held = self.known[plan]
        left = kinds[~held.done[kinds]]
        if len(left):
            self._time(plan, left, held)
        return held

    def _time(self, plan: Plan, kinds: Column, held: Timed) -> None:
        """A kind that cannot be timed takes the place after the last."""
        times, place = self.rentals.times(self.workload, plan, kinds)
        rate = times.slow_rate
        held.pace.rate[kinds] = np.append(rate, np.nan)[place]
        held.pace.work[kinds] = np.append(work_hours(self.workload, plan, rate), np.nan)[place]
        kept = _meets_targets(self.workload.serving, times, rate)
        held.pace.kept[kinds] = np.append(kept, False)[place]
        held.done[kinds] = True
        held.place[kinds], held.batch[kinds] = place, len(held.batches)
        held.batches.append(times)

    def times(self, plan: Plan, kind: int) -> Times | None:
        """In full, of one pair."""
        held = self._timed(plan, np.array([kind]))
        found: PlanTimes = held.batches[held.batch[kind]]
        return found.one(int(held.place[kind]))


@dataclass(frozen=True, slots=True)
class Timed:
    """One plan by kind: its pace, whether it was timed, and its place in one of the batches."""

    pace: Pace
    done: Column
    batch: Column
    place: Column
    batches: list[PlanTimes] = field(default_factory=list)

    def high(self, name: str) -> Column:
        """The upper end of a figure, by kind."""
        found = np.full(len(self.done), np.nan)
        for number, times in enumerate(self.batches):
            rows = np.flatnonzero(self.done & (self.batch == number))
            values = np.append(times.columns.figure(name).high, np.nan)
            found[rows] = values[self.place[rows]]
        return found

    @classmethod
    def none(cls, kinds: int) -> Timed:
        batch, place = (np.zeros(kinds, dtype=np.int64) for _ in range(2))
        return cls(Pace.blank(kinds), np.zeros(kinds, dtype=bool), batch, place)


def _meets_targets(job: ServingJob | None, times: PlanTimes, rate: Column) -> Column:
    """At the slow end, as `outlook.missed_targets`."""
    kept = np.ones(len(rate), dtype=bool)
    if job is None:
        return kept
    for name, limit in (("ttft", job.ttft_ms), ("tpot", job.tpot_ms)):
        if limit is not None:
            kept &= times.columns.figure(name).high * 1000 <= limit
    if job.tokens_per_s is not None:
        kept &= rate >= job.tokens_per_s
    return kept


def work_hours(workload: Workload, plan: Plan, slow_rate: Column) -> Column:
    """Hours of work at the slow end of the speed; NaN for a job without an end."""
    tokens = workload.training.tokens_to_train if workload.training else None
    if tokens is None:
        return np.full(len(slow_rate), np.nan)
    work: Column = wall_hours(hours_for(tokens, exact(slow_rate)), goodput(plan.nodes)).high
    return work


class Start(NamedTuple):
    """Hours at the slow end: `before` the work begins, and `factor` times the work on spot capacity
    of so many machines.
    """

    before: float
    factor: float


@dataclass(frozen=True, slots=True)
class Starts:
    """What comes before the work of a workload with its own costs, alike for machines that load
    alike.
    """

    workload: Workload
    known: dict[tuple[int | None, int], Start] = field(default_factory=dict)

    def on(self, kind: Machine, machines: int) -> Start:
        key = (kind.download_bytes_per_s.value, machines)
        if key not in self.known:
            self.known[key] = start_of(self.workload, kind, machines)
        return self.known[key]


def start_of(workload: Workload, kind: Machine, machines: int) -> Start:
    """As `bills.bill_of` adds them up."""
    trained = trainable_params(workload)
    job = Job(workload, kind, exact(0.0), stored_bytes(workload), trained, machines)
    spent = spent_on(job)
    return Start(spent.rented.high, 1.0 + _reclaimed(workload, job, spent))


def _reclaimed(workload: Workload, job: Job, spent: Spent) -> float:
    restart: Range = (spent.setup + spent.fetched).scaled(SECONDS_PER_HOUR)
    hours = workload.costs.reclaim_hours
    lost = reclaims_of(exact(1.0), hours, job.saved, restart, job.machines).lost
    return float(lost.high) if lost else 0.0
