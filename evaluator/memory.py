"""The memory budget of a plan, per GPU on each rank class, and whether it fits."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import ceil

from evaluator.budgets import (
    Change,
    Component,
    Fit,
    FitWord,
    MemoryBudget,
    RankBudget,
)
from evaluator.changes import options
from evaluator.findings import Code, Finding, finding
from evaluator.formats import WeightFormat, weight_format
from evaluator.jobs import Workload
from evaluator.kv_cache import sequence_bytes
from evaluator.parameters import total_params
from evaluator.partition import RankClass, rank_classes
from evaluator.plans import Plan
from evaluator.ranges import exact
from evaluator.serving import serving_components
from evaluator.training import training_components
from evaluator.units import gib

__all__ = [
    "Change",
    "Component",
    "Fit",
    "FitWord",
    "MemoryBudget",
    "RankBudget",
    "budget",
    "fit",
    "max_concurrent_sequences",
    "smallest_change",
]


def budget(workload: Workload, plan: Plan) -> MemoryBudget:
    """Bytes per GPU for every rank class of a plan, by component.

    Empty, with a finding, where the model's size or dimensions are unknown.
    """
    form = weight_format(workload.weights_format)
    unknown = _unknown(workload, form)
    if unknown or form is None:
        return MemoryBudget((), _utilization(workload), unknown)
    classes = rank_classes(workload.model, plan)
    ranks = tuple(_rank_budget(workload, form, plan, rank) for rank in classes)
    return MemoryBudget(ranks, _utilization(workload), _width(ranks))


def _unknown(workload: Workload, form: WeightFormat | None) -> tuple[Finding, ...]:
    shape = workload.model
    wide = shape.mlp_size or shape.experts
    if form and shape.dimensioned and wide and total_params(shape) is not None:
        return ()
    return (finding(Code.ARCHITECTURE_UNKNOWN, architecture=shape.architecture or shape.name),)


def _utilization(workload: Workload) -> float:
    return workload.serving.memory_utilization if workload.serving else 1.0


def _rank_budget(workload: Workload, form: WeightFormat, plan: Plan, rank: RankClass) -> RankBudget:
    components: tuple[Component, ...] = ()
    if workload.serving:
        components = serving_components(workload, workload.serving, form, plan, rank)
    elif workload.training:
        components = training_components(workload, workload.training, form, plan, rank)
    return RankBudget(rank.name, tuple(_pinned(workload, part) for part in components))


def _pinned(workload: Workload, part: Component) -> Component:
    """A component that the user measured outranks its estimate."""
    if part.name not in workload.pins:
        return part
    size = exact(workload.pins[part.name])
    return replace(part, bytes=size, formula="pinned by the workload", inputs=(), source="you")


def _width(ranks: tuple[RankBudget, ...]) -> tuple[Finding, ...]:
    """Says how wide the estimate of the binding rank's activations is."""
    binding = max(ranks, key=lambda rank: rank.bytes.typical)
    part = binding.component("activations")
    if part is None or part.bytes.low == part.bytes.high:
        return ()
    low, high = f"{gib(part.bytes.low):.1f} GiB", f"{gib(part.bytes.high):.1f} GiB"
    return (finding(Code.ACTIVATIONS_WIDE, low=low, high=high),)


def fit(memory: MemoryBudget, usable_bytes: int | None) -> Fit:
    """Whether the binding rank fits a GPU that reports `usable_bytes`. None is unknown."""
    rank = memory.binding
    if rank is None or usable_bytes is None:
        needed = rank.bytes if rank else None
        return Fit(FitWord.UNKNOWN, rank.rank if rank else "", needed)
    allowed, needed = int(usable_bytes * memory.utilization), rank.bytes
    missing = max(0, round(needed.typical) - allowed)
    if missing:
        word = FitWord.DOES_NOT_FIT
    else:
        word = FitWord.FITS if needed.high <= allowed else FitWord.TIGHT
    return Fit(word, rank.rank, needed, allowed, missing)


def smallest_change(workload: Workload, plan: Plan, usable_bytes: int | None) -> tuple[Change, ...]:
    """Changes that would each admit the plan alone, least intrusive first.

    The last one is always the memory that a GPU needs. Empty where it fits, or cannot be judged.
    """
    memory, steps = _memory_and_steps(workload, plan)
    if usable_bytes is None or fit(memory, usable_bytes).word is not FitWord.DOES_NOT_FIT:
        return ()
    admitted = (_first_that_fits(group, usable_bytes) for group in steps)
    return (*(change for change in admitted if change), _larger_gpu(memory))


Step = tuple[Change, MemoryBudget]


@lru_cache(maxsize=1024)
def _memory_and_steps(
    workload: Workload, plan: Plan
) -> tuple[MemoryBudget, tuple[tuple[Step, ...], ...]]:
    """Budgets of a plan and of its changes: alike for every GPU, so worked out once for all."""
    groups = tuple(
        tuple((step.change, budget(step.workload, step.plan)) for step in group)
        for group in options(workload, plan)
    )
    return budget(workload, plan), groups


def _first_that_fits(steps: tuple[Step, ...], usable_bytes: int) -> Change | None:
    admitted = (
        change
        for change, memory in steps
        if fit(memory, usable_bytes).word is not FitWord.DOES_NOT_FIT
    )
    return next(admitted, None)


def _larger_gpu(memory: MemoryBudget) -> Change:
    needed = memory.binding.bytes if memory.binding else exact(0)
    least = ceil(gib(needed.typical / memory.utilization))
    safe = ceil(gib(needed.high / memory.utilization))
    words = f"Use GPUs that report at least {least} GiB ({safe} GiB to be safe)."
    return Change("usable_gib", str(least), words)


def max_concurrent_sequences(workload: Workload, plan: Plan, usable_bytes: int) -> int | None:
    """Sequences of full length that the caches of all replicas hold, in the typical case.

    None for a training job or an unknown model; 0 where not even the weights fit.
    """
    job, memory = workload.serving, budget(workload, plan)
    if job is None or not memory.ranks:
        return None
    allowed = int(usable_bytes * memory.utilization)
    rooms = [
        _sequences(allowed, ranked, sequence_bytes(workload.model, job, plan, rank, tokens))
        for ranked, rank in zip(memory.ranks, rank_classes(workload.model, plan), strict=True)
        if (tokens := job.sequence_tokens)
    ]
    return max(0, min(rooms, default=0)) * plan.replicas


def _sequences(allowed: int, rank: RankBudget, one: float) -> int:
    cache = rank.component("kv_cache")
    room = allowed - rank.bytes.typical + (cache.bytes.typical if cache else 0)
    return int(room // one) if one else 0
