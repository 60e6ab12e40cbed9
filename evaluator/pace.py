"""How fast plans are on kinds of machines, as far as an order looks at it: the slow ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluator.hardware import Column
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.outlook import outlook_of
from evaluator.plans import Plan


@dataclass(frozen=True, slots=True)
class Pace:
    """By pair of a plan and a kind: tokens/s and hours at the slow end, NaN where not known.

    `kept` says whether every promise holds at that end: the deadline, or the targets.
    """

    rate: Column
    hours: Column
    kept: Column


def paces(workload: Workload, pairs: Sequence[tuple[Plan, Machine]]) -> Pace:
    rows = [_pace(workload, plan, machine) for plan, machine in pairs]
    rate, hours, kept = (np.array(column) for column in zip(*rows, strict=True))
    return Pace(rate, hours, kept)


def _pace(workload: Workload, plan: Plan, machine: Machine) -> tuple[float, float, bool]:
    found = outlook_of(workload, plan, machine)
    if found is None:
        return np.nan, np.nan, False
    hours = found.hours.high if found.hours else np.nan
    return found.rate.low, hours, found.keeps_promises
