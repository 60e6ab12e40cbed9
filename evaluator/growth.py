"""What a machine type is worth with 1, 2, 4, 8 and more GPUs, then with more machines: a table.

Each row takes the fastest plan that fits, by its low end. Efficiencies are not held at 1: more
memory can bring more than its share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from evaluator.bills import Job
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.marginal import PerHour, Step, marginal_table
from evaluator.outlook import job_on
from evaluator.plans import Plan
from evaluator.prices import TimeUnit
from evaluator.scaling import (
    Fits,
    Gain,
    Point,
    fit_serial,
    gains,
    strong_curve,
    strong_efficiency,
    weak_curve,
)


@dataclass(frozen=True, slots=True)
class GrowthRow:
    """The same work on so many GPUs, and work that grew with them.

    `gain` compares the rate per GPU with the first row, and says how many GPUs of the first row
    each added one is worth; `step` has the hours and the money. `grown` is the fastest plan at
    grown work, `grown_efficiency` its rate per GPU against the first; None where it does not fit.
    """

    gain: Gain
    step: Step
    grown: Point | None = None
    grown_efficiency: float | None = None

    @property
    def plan(self) -> Plan:
        return self.gain.point.plan

    @property
    def gpus(self) -> int:
        return self.plan.gpus


@dataclass(frozen=True, slots=True)
class Growth:
    """Rows from few GPUs to many, with the serial shares that explain both curves best."""

    rows: tuple[GrowthRow, ...]
    strong: Fits | None
    weak: Fits | None


def counts_of(gpus: int) -> list[int]:
    """1, 2, 4 and so on, and all GPUs of the machine."""
    powers = [1 << shift for shift in range(gpus.bit_length()) if 1 << shift <= gpus]
    return sorted({*powers, gpus})


def unpriced(_: int) -> None:
    """What so many GPUs cost an hour where nobody says."""


def growth(
    workload: Workload,
    machine: Machine,
    per_hour: PerHour = unpriced,
    most_machines: int = 1,
    unit: TimeUnit = TimeUnit.HOUR,
) -> Growth:
    """The table of a machine type; counts on which no plan fits have no row. Hours and money of a
    job are those of its bill: start, download, verification and what is billed beside.

    `per_hour` prices a number of GPUs, over all machines: by the GPU, or in whole machines.
    """
    inside = machine.gpu_count.value or 1
    counts, nodes = counts_of(inside), range(2, most_machines + 1)
    strong = [*strong_curve(workload, machine, counts)]
    strong += strong_curve(workload, machine, [inside], nodes)
    grown = _grown(workload, machine, counts, nodes, strong)
    tokens = workload.training.tokens_to_train if workload.training else None
    steps = marginal_table(strong, tokens, per_hour, unit, partial(_job, workload, machine))
    rows = tuple(_rows(gains(strong), steps, grown))
    return Growth(rows, fit_serial(_pairs(strong)), fit_serial(_pairs(grown)))


def _job(workload: Workload, machine: Machine, point: Point) -> Job:
    return job_on(workload, point.plan, machine, point.rate)


def _grown(
    workload: Workload,
    machine: Machine,
    counts: Sequence[int],
    nodes: Sequence[int],
    strong: Sequence[Point],
) -> list[Point]:
    """The workload's own work is that of the smallest count on which it fits."""
    base = min((point.gpus for point in strong), default=1)
    inside = weak_curve(workload, machine, [one for one in counts if one >= base], base=base)
    return inside + weak_curve(workload, machine, counts[-1:], nodes, base=base)


def _pairs(points: Sequence[Point]) -> list[tuple[int, float]]:
    return [(point.gpus, point.rate.low) for point in points]


def _rows(
    found: Sequence[Gain], steps: Sequence[Step], grown: Sequence[Point]
) -> Iterator[GrowthRow]:
    by_gpus = {point.gpus: point for point in grown}
    base = min(grown, key=lambda point: point.gpus, default=None)
    for gain, step in zip(found, steps, strict=True):
        wide = by_gpus.get(step.gpus)
        yield GrowthRow(gain, step, wide, _against(base, wide))


def _against(base: Point | None, wide: Point | None) -> float | None:
    if base is None or wide is None:
        return None
    return strong_efficiency((base.gpus, base.rate.low), (wide.gpus, wide.rate.low))
