"""Speeds measured on a listing's hardware, each held against what was predicted for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median

from evaluator.evidence.engine_runs import GPU_RATE, UNITS
from evaluator.jobs import Workload
from evaluator.launch.benchmark import benchmark_of
from evaluator.machine import Machine
from evaluator.plans import Plan
from evaluator.ranges import Range
from evaluator.workload import parse_workload, workload_presets
from marketplace.models import Evidence, MeasuredFigure
from marketplace.workbooks import judge_machine

ALL_GPUS = "rate of all GPUs"


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure in its unit. `predicted` is None where the plan is timed no more."""

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


def compared(machine: Machine, looks: Iterable[Evidence], listing: int) -> list[Compared]:
    """The figures of looks that were read with them; `machine` is as its catalog declares it."""
    predict = cache(lambda slug, key: _predicted(machine, slug, key))
    return [
        _compared(look, figure, predict(figure.workload, figure.plan), look.listing_id == listing)
        for look in looks
        for figure in look.figures.all()
    ]


def _compared(
    look: Evidence, figure: MeasuredFigure, told: tuple[str, str, dict[str, Range]], here: bool
) -> Compared:
    workload, plan, predicted = told
    return Compared(
        evidence=look,
        here=here,
        workload=workload,
        slug=figure.workload,
        plan=plan,
        plan_key=figure.plan,
        metric=figure.metric,
        measured=figure.value,
        predicted=predicted.get(figure.metric),
    )


def _predicted(machine: Machine, slug: str, key: str) -> tuple[str, str, dict[str, Range]]:
    """The names of workload and plan, and the predicted range of each figure."""
    document = workload_presets().get(slug)
    if document is None:
        return slug, key, {}
    workload = parse_workload(document)
    plans = (one.plan for one in judge_machine(workload, machine).plans)
    plan = next((one for one in plans if one.key == key), None)
    if plan is None:
        return workload.name, key, {}
    return workload.name, plan.label, dict(_ranges(workload, plan, machine))


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
