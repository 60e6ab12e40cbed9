"""How fast plans are on kinds of machines, as far as an order looks at it: the slow ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evaluator.bills import Job, Spent, spent_on
from evaluator.hardware import Column
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.outlook import outlook_of
from evaluator.plans import Plan
from evaluator.ranges import Range, exact
from evaluator.spending import goodput, hours_for, wall_hours
from evaluator.spot import reclaims_of
from evaluator.states import trainable_params
from evaluator.units import SECONDS_PER_HOUR
from evaluator.weights import stored_bytes


@dataclass(frozen=True, slots=True)
class Pace:
    """By pair of a plan and a kind, NaN where not known: tokens/s at the slow end, and hours of
    work. `kept` says whether the targets of a server hold at that end.
    """

    rate: Column
    work: Column
    kept: Column


def paces(workload: Workload, pairs: Sequence[tuple[Plan, Machine]]) -> Pace:
    rows = [_pace(workload, plan, machine) for plan, machine in pairs]
    rate, work, kept = (np.array(column) for column in zip(*rows, strict=True))
    return Pace(rate, work, kept)


def _pace(workload: Workload, plan: Plan, machine: Machine) -> tuple[float, float, bool]:
    found = outlook_of(workload, plan, machine)
    if found is None:
        return np.nan, np.nan, False
    return found.rate.low, work_hours(workload, plan, found.rate.low), not found.missed


def work_hours(workload: Workload, plan: Plan, slow_rate: float) -> float:
    """Hours of work at the slow end of the speed; NaN for a job without an end."""
    tokens = workload.training.tokens_to_train if workload.training else None
    if tokens is None:
        return np.nan
    return float(wall_hours(hours_for(tokens, exact(slow_rate)), goodput(plan.nodes)).high)


class Start(NamedTuple):
    """Hours at the slow end: `before` the work begins, and `factor` times the work on spot capacity
    of so many machines.
    """

    before: float
    factor: float


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
