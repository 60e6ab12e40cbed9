"""Which layers and which share of their parameters one GPU holds under a plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evaluator.parameters import (
    Part,
    Split,
    embedding,
    head,
    is_expert_layer,
    layer_parts,
)
from evaluator.plans import Plan
from evaluator.shapes import ModelShape


@dataclass(frozen=True, slots=True)
class RankClass:
    """GPUs that hold the same: pipeline stage `stage` with layers `first` to `first + layers`."""

    name: str
    stage: int
    first: int
    layers: int
    has_embedding: bool
    has_head: bool


def rank_classes(shape: ModelShape, plan: Plan) -> tuple[RankClass, ...]:
    """One class without pipelining; else the first, the heaviest middle, and the last stage."""
    stages = stages_of(shape, plan)
    if plan.pp == 1:
        return stages
    middle = sorted(stages[1:-1], key=lambda stage: (-_weight(shape, stage), stage.stage))[:1]
    return (stages[0], *middle, stages[-1])


def stages_of(shape: ModelShape, plan: Plan) -> tuple[RankClass, ...]:
    """Every pipeline stage in order."""
    return tuple(_stage(shape, plan, index) for index in range(plan.pp))


def _stage(shape: ModelShape, plan: Plan, index: int) -> RankClass:
    """Layers that do not divide evenly go to the first stages, one each."""
    each, left = divmod(shape.layers, plan.pp)
    first, last = index == 0, index == plan.pp - 1
    name = "every rank" if plan.pp == 1 else "middle stages"
    if plan.pp > 1 and (first or last):
        name = "first stage" if first else "last stage"
    return RankClass(
        name=name,
        stage=index,
        first=index * each + min(index, left),
        layers=each + (index < left),
        has_embedding=first,
        has_head=last,
    )


def _weight(shape: ModelShape, rank: RankClass) -> int:
    if not shape.computable:
        return rank.layers
    return sum(part.params for _, part in layers_of(shape, rank))


def layers_of(shape: ModelShape, rank: RankClass) -> Iterator[tuple[int, Part]]:
    """Every part of every layer of a stage, with the layer's index."""
    for index in range(rank.first, rank.first + rank.layers):
        for part in layer_parts(shape, is_expert_layer(shape, index)):
            yield index, part


def parts_of(shape: ModelShape, rank: RankClass) -> Iterator[tuple[int | None, Part]]:
    """Every part that a stage holds; None is no layer. A tied head is a copy on the last stage."""
    ends = embedding(shape) if rank.has_embedding else ()
    if rank.has_head:
        ends = (*ends, *head(shape))
    if shape.tied and rank.has_head and not rank.has_embedding:
        ends = (*ends, embedding(shape)[0])
    yield from ((None, part) for part in ends)
    yield from layers_of(shape, rank)


def local_params(part: Part, shape: ModelShape, tp: int) -> int:
    """Parameters of a part on one tensor-parallel rank."""
    if part.split is Split.NONE:
        return part.params
    if part.split is Split.TENSOR:
        return -(-part.params // tp)
    heads = shape.attention.kv_heads
    return -(-part.params * kv_heads_per_rank(heads, tp) // heads)


def kv_heads_per_rank(kv_heads: int, tp: int) -> int:
    """Heads are whole: at least one on each rank, replicated when tp exceeds their number."""
    return -(-kv_heads // tp)


def params_on(shape: ModelShape, rank: RankClass, tp: int) -> int:
    """Parameters on one GPU of a rank class, before sharding over data-parallel ranks."""
    return sum(local_params(part, shape, tp) for _, part in parts_of(shape, rank))


def largest_layer(shape: ModelShape, rank: RankClass, tp: int) -> int:
    """Parameters of the largest layer of a stage on one tensor-parallel rank."""
    sizes: dict[int, int] = {}
    for index, part in layers_of(shape, rank):
        sizes[index] = sizes.get(index, 0) + local_params(part, shape, tp)
    return max(sizes.values(), default=0)
