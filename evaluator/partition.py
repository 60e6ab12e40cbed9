"""Which layers and which share of their parameters one GPU holds under a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from evaluator.parameters import (
    Module,
    Part,
    Split,
    embedding,
    further_prediction,
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
    return sum(held.part.params * held.count for held in layer_parts_of(shape, rank))


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """`count` layers that hold the same; `kept` are their modules that stay in 16 bits."""

    routed: bool
    count: int
    kept: frozenset[str] = frozenset()

    def keeps(self, part: Part) -> bool:
        return part.module.value in self.kept or EVERY in self.kept


EVERY = "*"
"""In a list of modules to keep: every layer, or every module of a layer."""


@lru_cache(maxsize=4096)
def layer_groups(shape: ModelShape, rank: RankClass) -> tuple[LayerGroup, ...]:
    """The layers of a stage, those alike together: a budget needs two or three groups, not 100."""
    kept = _kept_by_layer(shape.kept_16bit)
    everywhere = kept.get(EVERY, frozenset())
    further = [shape.layers - 1] * shape.predict_layers if rank.has_head else []
    groups = Counter(
        (is_expert_layer(shape, index), everywhere | kept.get(str(index), frozenset()))
        for index in (*range(rank.first, rank.first + rank.layers), *further)
    )
    return tuple(LayerGroup(routed, count, names) for (routed, names), count in groups.items())


@lru_cache(maxsize=256)
def _kept_by_layer(names: tuple[str, ...]) -> Mapping[str, frozenset[str]]:
    """Modules that a quantised checkpoint leaves in 16 bits, by layer. Read once: a pasted list
    may hold thousands of names."""
    found: dict[str, set[str]] = {}
    for name in names:
        layer, module = _named_module(name)
        if module in KNOWN_MODULES:
            found.setdefault(layer, set()).add(module)
    return {layer: frozenset(modules) for layer, modules in found.items()}


KNOWN_MODULES = frozenset({EVERY, *(module.value for module in Module)})


def _named_module(name: str) -> tuple[str, str]:
    """ "self_attn", "model.layers.0" and "model.layers.*.mlp" name modules, layers and both."""
    words = name.split(".")
    if "layers" not in words:
        return EVERY, words[-1]
    layer, *rest = words[words.index("layers") + 1 :] or [EVERY]
    return layer, rest[-1] if rest else EVERY


@dataclass(frozen=True, slots=True)
class HeldPart:
    """`count` times the same part; `kept` where a quantised checkpoint leaves it in 16 bits."""

    part: Part
    count: int = 1
    kept: bool = False


def layer_parts_of(shape: ModelShape, rank: RankClass) -> Iterator[HeldPart]:
    """The parts of the layers of a stage."""
    for group in layer_groups(shape, rank):
        for part in layer_parts(shape, group.routed):
            yield HeldPart(part, group.count, group.keeps(part))


def parts_of(shape: ModelShape, rank: RankClass) -> Iterator[HeldPart]:
    """Every part that a stage holds. A tied head, and layers that predict further, need a copy of
    the embedding on the last stage."""
    ends = embedding(shape) if rank.has_embedding else ()
    if rank.has_head:
        ends = (*ends, *head(shape), *further_prediction(shape))
    if (shape.tied or shape.predict_layers) and rank.has_head and not rank.has_embedding:
        ends = (*ends, embedding(shape)[0])
    yield from map(HeldPart, ends)
    yield from layer_parts_of(shape, rank)


def local_params(part: Part, shape: ModelShape, plan: Plan) -> int:
    """Parameters of a part on one GPU. Experts are divided by `ep` where the plan has it."""
    if part.module is Module.EXPERT and plan.ep > 1 and shape.experts:
        count = shape.experts.count
        return -(-part.params * -(-count // plan.ep) // (count * plan.etp))
    if part.split is Split.NONE:
        return part.params
    if part.split is Split.TENSOR:
        return -(-part.params // plan.tp)
    heads = shape.attention.kv_heads
    return -(-part.params * kv_heads_per_rank(heads, plan.tp) // heads)


def kv_heads_per_rank(kv_heads: int, tp: int) -> int:
    """Heads are whole: at least one on each rank, replicated when tp exceeds their number."""
    return -(-kv_heads // tp)


@lru_cache(maxsize=4096)
def params_on(shape: ModelShape, rank: RankClass, plan: Plan) -> int:
    """Parameters on one GPU of a rank class, before sharding over data-parallel ranks."""
    return sum(local_params(held.part, shape, plan) * held.count for held in parts_of(shape, rank))


@lru_cache(maxsize=4096)
def experts_on(shape: ModelShape, rank: RankClass, plan: Plan) -> int:
    """How many of `params_on` are those of experts: they may be shared by other ranks."""
    experts = (held for held in parts_of(shape, rank) if held.part.module is Module.EXPERT)
    return sum(local_params(held.part, shape, plan) * held.count for held in experts)


def largest_layer(shape: ModelShape, rank: RankClass, plan: Plan) -> int:
    """Parameters of the largest layer of a stage on one GPU."""
    sizes = (
        sum(local_params(part, shape, plan) for part in layer_parts(shape, group.routed))
        for group in layer_groups(shape, rank)
    )
    return max(sizes, default=0)
