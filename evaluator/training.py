"""The components of a training budget."""

from __future__ import annotations

from evaluator.activations import activations_component, logits_component
from evaluator.budgets import Component
from evaluator.formats import WeightFormat
from evaluator.jobs import TrainingJob, Workload
from evaluator.partition import RankClass
from evaluator.plans import Plan
from evaluator.ranges import Range, total
from evaluator.states import (
    buckets_component,
    gathered_components,
    shard_buckets_component,
    states_component,
)
from evaluator.units import GIB

RESERVE = Range(1.0 * GIB, 2.5 * GIB, 5.0 * GIB)
FRAGMENTED_HIGH = 0.05


def training_components(
    workload: Workload, job: TrainingJob, form: WeightFormat, plan: Plan, rank: RankClass
) -> tuple[Component, ...]:
    """States, gathered layers or buckets, activations, logits on the last stage, overhead."""
    buckets = (buckets_component(workload, job, plan, rank), shard_buckets_component(job, plan))
    parts = [
        states_component(workload, job, form, plan, rank),
        *gathered_components(workload, job, form, plan, rank),
        *(part for part in buckets if part),
        activations_component(workload.model, job, plan, rank),
        *([logits_component(workload.model, job, plan)] if rank.has_head else []),
    ]
    return (*parts, _overhead(parts))


def overhead_bytes(others: Range) -> Range:
    """CUDA context, communicators, fragmentation beside all `others`."""
    return Range(RESERVE.low, RESERVE.typical, RESERVE.high + FRAGMENTED_HIGH * others.high)


def _overhead(parts: list[Component]) -> Component:
    return Component(
        name="overhead",
        bytes=overhead_bytes(total(part.bytes for part in parts)),
        formula="1.0 to 5.0 GiB, typically 2.5, and up to 5 % of the rest",
        source="ml-engineering: context 0.3 to 2 GiB, communicators 1.5, fragmentation 2 to 10 %",
    )
