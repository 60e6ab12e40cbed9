"""Speeds measured on a listing's hardware, each held against what was predicted for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median

from evaluator.evidence.engine_runs import GPU_RATE, UNITS
from evaluator.jobs import Workload
from evaluator.launch.benchmark import benchmark_of
from evaluator.machine import Machine
from evaluator.plans import Plan
from evaluator.ranges import Range
from marketplace.jobs_named import Job, Reader, jobs_named
from marketplace.models import Evidence, MeasuredFigure
from marketplace.workbooks import judge_machine

ALL_GPUS = "rate of all GPUs"


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure in its unit. `predicted` is None where the plan is timed no more, or where the
    reader may not know what ran; `slug` is empty where the workload has no address."""

    evidence: Evidence
    here: bool
    workload: str
    slug: str
    plan: str
    plan_key: str
    metric: str
    measured: float
    predicted: Range | None

    @property
    def unit(self) -> str:
        return UNITS[self.metric]

    @property
    def inside(self) -> bool | None:
        if self.predicted is None:
            return None
        return bool(self.predicted.low <= self.measured <= self.predicted.high)


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure of one plan over several runs."""

    workload: str
    plan: str
    metric: str
    count: int
    low: float
    middle: float
    high: float

    @property
    def unit(self) -> str:
        return UNITS[self.metric]


def compared(
    machine: Machine, looks: Sequence[Evidence], listing: int, reader: Reader
) -> list[Compared]:
    """The figures of looks that were read with them; `machine` is as its catalog declares it."""
    pairs = [(look, figure) for look in looks for figure in look.figures.all()]
    jobs = jobs_named({figure.workload for _, figure in pairs}, reader)
    predict = cache(lambda slug, key: _predicted(machine, jobs[slug], key))
    return [
        _compared(look, figure, jobs, predict(figure.workload, figure.plan), listing)
        for look, figure in pairs
    ]


def _compared(
    look: Evidence,
    figure: MeasuredFigure,
    jobs: Mapping[str, Job],
    told: tuple[str, dict[str, Range]],
    listing: int,
) -> Compared:
    job, (plan, predicted) = jobs[figure.workload], told
    return Compared(
        evidence=look,
        here=look.listing_id == listing,
        workload=job.name,
        slug=figure.workload if job.preset else "",
        plan=plan,
        plan_key=figure.plan,
        metric=figure.metric,
        measured=figure.value,
        predicted=predicted.get(figure.metric),
    )


def _predicted(machine: Machine, job: Job, key: str) -> tuple[str, dict[str, Range]]:
    """The name of the plan, and the predicted range of each figure."""
    if job.workload is None:
        return key, {}
    plans = (one.plan for one in judge_machine(job.workload, machine).plans)
    plan = next((one for one in plans if one.key == key), None)
    if plan is None:
        return key, {}
    return plan.label, dict(_ranges(job.workload, plan, machine))


def _ranges(workload: Workload, plan: Plan, machine: Machine) -> Iterator[tuple[str, Range]]:
    for one in benchmark_of(workload, plan, machine).predicted:
        yield one.metric, one.value
        if one.metric == ALL_GPUS:
            yield GPU_RATE, one.value.scaled(1 / plan.gpus)


def spreads(figures: Sequence[Compared]) -> list[Spread]:
    """Of what was measured more than once."""
    held: dict[tuple[str, str, str], list[float]] = {}
    for one in figures:
        held.setdefault((one.workload, one.plan, one.metric), []).append(one.measured)
    return [
        Spread(*names, len(values), min(values), median(values), max(values))
        for names, values in held.items()
        if len(values) > 1
    ]
