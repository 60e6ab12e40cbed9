"""Which layers and which share of their parameters one GPU holds under a plan."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache, reduce

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
from evaluator.ranges import Number, choose, larger
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
    groups = layer_groups(shape, rank)
    return sum(part.params * one.count for one in groups for part in layer_parts(shape, one.routed))


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """`count` layers that hold the same; `kept` are their modules that stay in 16 bits."""

    routed: bool
    count: int
    kept: frozenset[str] = frozenset()

    def kept_share(self, part: Part, gated: bool) -> float:
        """The share of a part that stays in 16 bits: all of it, or some of its projections."""
        if part.module.value in self.kept or EVERY in self.kept:
            return 1.0
        if part.module is Module.ATTENTION:
            return len(self.kept & PROJECTIONS[part.split]) / 2
        if part.module is Module.MLP:
            return min(1.0, len(self.kept & MLP_PROJECTIONS) / (3 if gated else 2))
        return 0.0


MLP_PROJECTIONS = frozenset({"gate_proj", "up_proj", "down_proj"})
PROJECTIONS = {split: frozenset[str]() for split in Split} | {
    Split.TENSOR: frozenset({"q_proj", "o_proj"}),
    Split.KV_HEADS: frozenset({"k_proj", "v_proj"}),
}
"""Projections by the part that they are in: queries and output have one size, keys and values
another."""


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


NAMED = frozenset(module.value for module in Module).union(MLP_PROJECTIONS, *PROJECTIONS.values())
KNOWN_MODULES = frozenset({EVERY, *NAMED})


def _named_module(name: str) -> tuple[str, str]:
    """ "self_attn", "model.layers.0" and "model.layers.*.mlp" name modules, layers and both.

    Of a pattern ("re:.*self_attn.*") the last known word counts, in every layer.
    """
    if name.startswith("re:"):
        found = [word for word in re.findall(r"\w+", name) if word in NAMED]
        return EVERY, found[-1] if found else ""
    words = name.split(".")
    if "layers" not in words:
        return EVERY, words[-1]
    layer, *rest = words[words.index("layers") + 1 :] or [EVERY]
    return layer, rest[-1] if rest else EVERY


class Rule(StrEnum):
    """Which parameters of a part a weight format may quantise."""

    KEPT = "kept"
    """None: embedding, head, norms, router, and what a checkpoint leaves in 16 bits."""
    MATRIX = "matrix"
    EXPERT = "expert"


QUANTISED = (Module.ATTENTION, Module.MLP, Module.EXPERT)


@dataclass(frozen=True, slots=True)
class Piece:
    """`params` parameters alike in place, split and rule, `count` times on a rank.

    Numbers may be arrays, one element for each (model, plan). `place` tells layers of one kind,
    or an end of the model. `kv_heads`, `experts` and `axis` (an expert's inner size) are the
    model's.
    """

    place: str
    split: Split
    rule: Rule
    params: Number
    count: Number
    kv_heads: Number
    experts: Number
    axis: Number

    @property
    def key(self) -> tuple[str, str, str]:
        """Pieces are summed in this order, so that a padded list gives the same sum."""
        return (self.place, self.split, self.rule)


@dataclass(frozen=True, slots=True)
class Stage:
    """What one GPU of a rank class holds, before its share is taken. `rank` may hold arrays."""

    rank: RankClass
    pieces: tuple[Piece, ...]
    dense_layers: Number
    routed_layers: Number


@lru_cache(maxsize=4096)
def stage_of(shape: ModelShape, rank: RankClass) -> Stage:
    groups = layer_groups(shape, rank)
    parts = [part for group in groups for part in _of_group(shape, group)]
    return Stage(
        rank,
        _joined(shape, [*_of_ends(shape, rank), *parts]),
        sum(group.count for group in groups if not group.routed),
        sum(group.count for group in groups if group.routed),
    )


Placed = tuple[str, Part, int, bool]
"""A part, where it is, how often, and whether the checkpoint keeps it in 16 bits."""


def _of_group(shape: ModelShape, group: LayerGroup) -> Iterator[Placed]:
    kind = "routed" if group.routed else "dense"
    place = f"layers {kind} {','.join(sorted(group.kept))}"
    for part in layer_parts(shape, group.routed):
        share = group.kept_share(part, shape.gated)
        kept = round(part.params * share)
        if kept:
            yield place, replace(part, params=kept), group.count, True
        if kept < part.params:
            yield place, replace(part, params=part.params - kept), group.count, False


def _of_ends(shape: ModelShape, rank: RankClass) -> Iterator[Placed]:
    """A tied head, and layers that predict further, need a copy of the embedding on the last
    stage."""
    first, last = int(rank.has_embedding), int(rank.has_head)
    copied = int((shape.tied or shape.predict_layers > 0) and last and not first)
    yield from (("end first", part, first, False) for part in embedding(shape))
    yield from (("end last", part, last, False) for part in head(shape))
    yield from (("end further", part, last, False) for part in further_prediction(shape))
    yield "end copy", embedding(shape)[0], copied, False


def _joined(shape: ModelShape, placed: Iterable[Placed]) -> tuple[Piece, ...]:
    """Parts that are alike make one piece: a layer has three to five instead of ten."""
    sums: dict[tuple[str, Split, Rule], Piece] = {}
    experts = shape.experts
    for place, part, count, kept in placed:
        quantised = part.module in QUANTISED and not kept
        matrix = Rule.EXPERT if part.module is Module.EXPERT else Rule.MATRIX
        key = (place, part.split, matrix if quantised else Rule.KEPT)
        held = sums.get(key)
        sums[key] = Piece(
            *key,
            params=part.params + (held.params if held else 0),
            count=count,
            kv_heads=shape.attention.kv_heads,
            experts=experts.count if experts else 1,
            axis=max(part.padded_axis, held.axis if held else 0, 1),
        )
    return tuple(sorted(sums.values(), key=lambda piece: piece.key))


def local_params(piece: Piece, plan: Plan) -> Number:
    """Parameters of one of the pieces on one GPU, rounded up.

    KV heads are whole. Experts are divided by `ep`, or like all else by `tp` where it is 1.
    """
    if piece.split is Split.NONE:
        return piece.params
    if piece.split is Split.TENSOR:
        return -(-piece.params // plan.tp)
    if piece.split is Split.KV_HEADS:
        here = kv_heads_per_rank(piece.kv_heads, plan.tp)
        return -(-piece.params * here // piece.kv_heads)
    each = piece.params * kv_heads_per_rank(piece.experts, plan.ep)
    degree = choose(plan.ep > 1, plan.etp, plan.tp)
    return -(-each // (piece.experts * degree))


def kv_heads_per_rank(kv_heads: Number, tp: Number) -> Number:
    """Heads are whole: at least one on each rank, replicated when tp exceeds their number."""
    return -(-kv_heads // tp)


def params_of(stage: Stage, plan: Plan) -> tuple[Number, Number]:
    """Parameters on one GPU of a stage, before data-parallel ranks share them: those of experts,
    and all others."""
    experts, others = 0, 0
    for piece in stage.pieces:
        here = local_params(piece, plan) * piece.count
        if piece.split is Split.EXPERTS:
            experts = experts + here
        else:
            others = others + here
    return experts, others


@lru_cache(maxsize=4096)
def params_on(shape: ModelShape, rank: RankClass, plan: Plan) -> int:
    """All parameters on one GPU of a rank class."""
    return sum(params_of(stage_of(shape, rank), plan))


def largest_layer(stage: Stage, plan: Plan) -> Number:
    """Parameters of the largest layer of a stage on one GPU."""
    sums: dict[str, Number] = {}
    for piece in stage.pieces:
        if piece.place.startswith("layers"):
            here = choose(piece.count > 0, local_params(piece, plan), 0)
            sums[piece.place] = sums.get(piece.place, 0) + here
    return reduce(larger, sums.values(), 0)
