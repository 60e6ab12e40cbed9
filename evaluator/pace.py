"""How fast plans are on kinds of machines, as far as an order looks at it: the slow ends."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from threading import RLock
from typing import NamedTuple

import numpy as np

from evaluator.bills import Job, Spent, spent_on
from evaluator.hardware import Column, Hardware
from evaluator.jobs import ServingJob, Workload
from evaluator.machine import Machine
from evaluator.outlook import Times
from evaluator.plans import Plan
from evaluator.ranges import Number, Range, choose_range, exact
from evaluator.rentals import rental_of
from evaluator.spending import goodput, hours_for, wall_hours
from evaluator.spot import reclaims_of
from evaluator.states import trainable_params
from evaluator.timing_columns import Pairs, PairTimes, RentalTable, pair_times, rate_bounds
from evaluator.units import SECONDS_PER_HOUR
from evaluator.weights import stored_bytes


@dataclass(frozen=True, slots=True)
class Rentals:
    """What time depends on of every kind of machine, alone and as one of several.

    `number` is the place of each kind in the table, in a row for each of the two; the place behind
    the last is for a card without a published peak.
    """

    table: RentalTable
    number: Column

    @classmethod
    def of(cls, kinds: Sequence[Machine]) -> Rentals:
        every = [rental_of(kind, nodes) for nodes in (1, 2) for kind in kinds]
        distinct = dict.fromkeys(one for one in every if one)
        numbers = {one: at for at, one in enumerate(distinct)}
        found = [len(distinct) if one is None else numbers[one] for one in every]
        number = np.array(found, dtype=np.int64).reshape(2, len(kinds))
        return cls(RentalTable.of(list(distinct)), number)


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

    def __add__(self, other: Pace) -> Pace:
        """The one below the other."""
        return Pace(
            np.concatenate([self.rate, other.rate]),
            np.concatenate([self.work, other.work]),
            np.concatenate([self.kept, other.kept]),
        )


class Ledger:
    """Paces of pairs of a plan and a rental, each entered once on a line of its own.

    Line 0 is for what cannot be timed: every pair with the number behind the last rental.
    """

    def __init__(self, plans: int, rentals: int) -> None:
        self.line = np.full((plans, rentals + 1), -1, dtype=np.int32)
        self.line[:, rentals] = 0
        self.pace = Pace.blank(1)

    def __len__(self) -> int:
        return len(self.pace.rate)

    def missing(self, plan: Column, rental: Column) -> tuple[Column, Column]:
        """The pairs that were not entered, each once."""
        new = self.line[plan, rental] < 0
        if not new.any():
            return plan[:0], rental[:0]
        wanted = np.zeros(self.line.shape, dtype=bool)
        wanted[plan[new], rental[new]] = True
        plans, rentals = np.nonzero(wanted)
        return plans, rentals

    def enter(self, plan: Column, rental: Column, pace: Pace) -> None:
        self.line[plan, rental] = len(self) + np.arange(len(plan))
        self.pace += pace

    def read(self, plan: Column, rental: Column) -> Pace:
        return self.pace.at(self.line[plan, rental])


class Clock:
    """Times plans of one workload, by their numbers, on kinds of machines: each pair once.

    One thread at a time: what is known of a pair is entered line by line.
    """

    def __init__(self, workload: Workload, rentals: Rentals, plans: Sequence[Plan]) -> None:
        self.workload, self.rentals, self.plans = workload, rentals, plans
        self._joined = np.array([plan.nodes > 1 for plan in plans], dtype=np.int64)
        known = len(rentals.table)
        self._exact, self._bounds = (Ledger(len(plans), known) for _ in range(2))
        self._lock = RLock()
        self._firsts: list[int] = []
        self._batches: list[PairTimes] = []

    def paces(self, plan: Column, kind: Column) -> Pace:
        """Of pairs: the number of a plan, and of a kind."""
        rental = self.rentals.number[self._joined[plan], kind]
        with self._lock:
            pairs = self._pairs(*self._exact.missing(plan, rental))
            for rows, times in pair_times(self.workload, pairs) if len(pairs) else ():
                self._firsts.append(len(self._exact))
                self._batches.append(times)
                pace = self._pace(pairs.plan[rows], times.slow_rate, times)
                self._exact.enter(pairs.plan[rows], pairs.rental[rows], pace)
            return self._exact.read(plan, rental)

    def slowest(self, name: str, plan: Column, kind: Column) -> Column:
        """The slow end of one figure of such pairs, NaN where it is not known."""
        self.paces(plan, kind)
        with self._lock:
            ends = [times.columns.figure(name).high for times in self._batches]
            lines = self._exact.line[plan, self.rentals.number[self._joined[plan], kind]]
        found: Column = np.concatenate([[np.nan], *ends])[lines]
        return found

    def bounds(self, plan: Column, kind: Column) -> Pace:
        """What no pair does better than, much sooner had; of a server its pace itself."""
        if self.workload.serving:
            return self.paces(plan, kind)
        rental = self.rentals.number[self._joined[plan], kind]
        with self._lock:
            pairs = self._pairs(*self._bounds.missing(plan, rental))
            if len(pairs):
                pace = self._pace(pairs.plan, rate_bounds(self.workload, pairs))
                self._bounds.enter(pairs.plan, pairs.rental, pace)
            return self._bounds.read(plan, rental)

    def times(self, plan: int, kind: int) -> Times | None:
        """In full, of one pair."""
        self.paces(np.array([plan]), np.array([kind]))
        line = int(self._exact.line[plan, self.rentals.number[self._joined[plan], kind]])
        batch = bisect_right(self._firsts, line) - 1
        return self._batches[batch].one(line - self._firsts[batch]) if line else None

    def _pairs(self, plan: Column, rental: Column) -> Pairs:
        return Pairs(self.plans, self.rentals.table, plan, rental)

    def _pace(self, plan: Column, rate: Column, times: PairTimes | None = None) -> Pace:
        work = work_hours(self.workload, self._joined[plan] > 0, rate)
        kept = np.ones(len(rate), dtype=bool)
        job = self.workload.serving
        return Pace(rate, work, _meets_targets(job, times, rate) if job and times else kept)


def _meets_targets(job: ServingJob, times: PairTimes, rate: Column) -> Column:
    """At the slow end, as `outlook.missed_targets`."""
    kept = np.ones(len(rate), dtype=bool)
    for name, limit in (("ttft", job.ttft_ms), ("tpot", job.tpot_ms)):
        if limit is not None:
            kept &= times.columns.figure(name).high * 1000 <= limit
    if job.tokens_per_s is not None:
        kept &= rate >= job.tokens_per_s
    return kept


def work_hours(workload: Workload, joined: Column, slow_rate: Column) -> Column:
    """Hours of work at the slow end of the speed; NaN for a job without an end. `joined` marks
    plans on several machines.
    """
    tokens = workload.training.tokens_to_train if workload.training else None
    if tokens is None:
        return np.full(len(slow_rate), np.nan)
    left = choose_range(joined, goodput(MANY), goodput(1))
    work: Column = wall_hours(hours_for(tokens, exact(slow_rate)), left).high
    return work


MANY = 2
"""Stands for any number of machines above one: goodput tells no more of them apart."""


class Start(NamedTuple):
    """Hours at the slow end: `before` the work begins, and `factor` times the work on spot capacity
    of so many machines. Numbers, or columns of them.
    """

    before: Number
    factor: Number


@dataclass(frozen=True, slots=True)
class Starts:
    """What comes before the work of a workload with its own costs, by kind and machines: alike for
    kinds that load alike, so worked out for the first of them.
    """

    workload: Workload
    kinds: Sequence[Machine]
    loads_like: Column
    before: Column
    factor: Column

    @classmethod
    def of(cls, workload: Workload, hardware: Hardware, most: int) -> Starts:
        """On up to so many machines."""
        before, factor = (np.full((len(hardware.kinds), most + 1), np.nan) for _ in range(2))
        return cls(workload, hardware.kinds, hardware.loads_like, before, factor)

    def at(self, kinds: Column, machines: Column) -> Start:
        first = self.loads_like[kinds]
        missing = np.isnan(self.factor[first, machines])
        if missing.any():
            for pair in set(zip(first[missing].tolist(), machines[missing].tolist(), strict=True)):
                start = start_of(self.workload, self.kinds[pair[0]], pair[1])
                self.before[pair], self.factor[pair] = start
        return Start(self.before[first, machines], self.factor[first, machines])


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
