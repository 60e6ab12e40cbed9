"""Which layers and which share of their parameters one GPU holds under a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from itertools import product, starmap

from evaluator.module_names import named_share, names_of_layers
from evaluator.parameters import (
    QUANTISED,
    Module,
    Part,
    Split,
    embedding,
    further_prediction,
    halves_of,
    head,
    layer_halves,
    layer_parts,
)
from evaluator.plans import Plan
from evaluator.ranges import Number, choose, larger, smaller
from evaluator.shapes import DENSE, Feed, Layer, Mixer, ModelShape, Word


@dataclass(frozen=True, slots=True)
class RankClass:
    """GPUs that hold the same: pipeline stage `stage` with layers `first` to `first + layers`.

    `cached` of the layers keep tokens, `recurrent` of them a state of one size. All but the name
    may be arrays.
    """

    name: str
    stage: Number
    first: Number
    layers: Number
    has_embedding: Number
    has_head: Number
    cached: Number = 0
    recurrent: Number = 0


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


def layers_of(total: Number, pp: Number, stage: Number) -> tuple[Number, Number]:
    """First layer and number of layers of a stage: what does not divide evenly goes to the first
    stages, one each."""
    each, left = total // pp, total % pp
    return stage * each + smaller(stage, left), each + (stage < left)


def _stage(shape: ModelShape, plan: Plan, index: int) -> RankClass:
    start, count = layers_of(shape.layers, plan.pp, index)
    first, last = index == 0, index == plan.pp - 1
    name = "every rank" if plan.pp == 1 else "middle stages"
    if plan.pp > 1 and (first or last):
        name = "first stage" if first else "last stage"
    cached, recurrent = _memory_of(shape, start, count)
    return RankClass(name, index, start, count, first, last, cached, recurrent)


def _memory_of(shape: ModelShape, start: int, count: int) -> tuple[int, int]:
    """Layers of a stage that keep tokens, and that keep a state. Where only totals are known the
    shares round up."""
    if shape.kinds:
        held = shape.layer_kinds[start : start + count]
        return sum(kind.attends for kind in held), sum(kind.recurs for kind in held)
    cached = shape.layers if shape.cached_layers is None else shape.cached_layers
    states = shape.recurrence.layers if shape.recurrence else 0
    return share_of_layers(cached, count, shape.layers), share_of_layers(
        states, count, shape.layers
    )


def share_of_layers(some: Number, count: Number, layers: Number) -> Number:
    return -(-some * count // layers)


def _weight(shape: ModelShape, rank: RankClass) -> int:
    if not shape.computable:
        return int(rank.layers)
    return sum(layer_weight(shape, one.kind) * one.count for one in layer_groups(shape, rank))


def layer_weight(shape: ModelShape, kind: Layer) -> int:
    """Parameters of one layer of a kind."""
    return sum(part.params for part in layer_parts(shape, kind))


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """`count` layers that hold the same; `kept` are their modules that stay in 16 bits."""

    kind: Layer
    count: int
    kept: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return _name(self.kind, self.kept)

    @property
    def places(self) -> tuple[str, ...]:
        """Where its parts are."""
        return _places(self.kind, self.kept)


@lru_cache(maxsize=1024)
def _name(kind: Layer, kept: frozenset[str]) -> str:
    return f"{' '.join(kind)} {','.join(sorted(kept))}"


@lru_cache(maxsize=1024)
def _places(kind: Layer, kept: frozenset[str]) -> tuple[str, ...]:
    """Norms keep 16 bits in any case."""
    words = ",".join(sorted(kept))
    *halves, norms = halves_of(kind)
    return (*(f"{half} {words}" for half in halves), norms)


@lru_cache(maxsize=4096)
def layer_groups(shape: ModelShape, rank: RankClass) -> tuple[LayerGroup, ...]:
    """The layers of a stage, those alike together: a budget needs two or three groups, not 100.

    Layers that predict further are alike to the last one.
    """
    groups, of_layer = groups_of(shape)
    further = [of_layer[-1]] * shape.predict_layers if rank.has_head else []
    held = Counter([*of_layer[rank.first : rank.first + rank.layers], *further])
    return tuple(replace(groups[index], count=count) for index, count in sorted(held.items()))


@lru_cache(maxsize=1024)
def groups_of(shape: ModelShape) -> tuple[tuple[LayerGroup, ...], tuple[int, ...]]:
    """Groups of a whole model, and the index of the group of each layer."""
    if shape.kept_16bit:
        names = names_of_layers(shape.kept_16bit, shape.layers)
        return _grouped(list(zip(shape.layer_kinds, names, strict=True)))
    if shape.kinds or shape.experts:
        return _grouped([_PLAIN[kind] for kind in shape.layer_kinds])
    return (LayerGroup(DENSE, shape.layers),), (0,) * shape.layers


Kind = tuple[Layer, frozenset[str]]
_PLAIN: dict[Layer, Kind] = {
    kind: (kind, frozenset()) for kind in starmap(Layer, product(Mixer, Feed))
}
"""One object for each kind, which is found by its identity before it is compared."""


def _grouped(alike: list[Kind]) -> tuple[tuple[LayerGroup, ...], tuple[int, ...]]:
    found = {key: index for index, key in enumerate(dict.fromkeys(alike))}
    of_layer = tuple(map(found.__getitem__, alike))
    groups = (
        LayerGroup(kind, of_layer.count(index), names) for (kind, names), index in found.items()
    )
    return tuple(groups), of_layer


class Rule(Word):
    """Which parameters of a part a weight format may quantise."""

    KEPT = "kept"
    """None: embedding, head, norms, router, and what a checkpoint leaves in 16 bits."""
    MATRIX = "matrix"
    EXPERT = "expert"


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
    def key(self) -> tuple[str, Split, Rule]:
        """Pieces are summed in this order, so that a padded list gives the same sum."""
        return (self.place, self.split, self.rule)


@dataclass(frozen=True, slots=True)
class Stage:
    """What one GPU of a rank class holds, before its share is taken. `rank` may hold arrays.

    `kinds` are the kinds of its layers and how many there are of each, in the order of their names.
    `tied` tells whether the model's embedding is its head too, `width` is the model's hidden size.
    """

    rank: RankClass
    pieces: tuple[Piece, ...]
    kinds: tuple[tuple[Layer, Number], ...]
    tied: Number
    width: Number


@lru_cache(maxsize=4096)
def stage_of(shape: ModelShape, rank: RankClass) -> Stage:
    groups = layer_groups(shape, rank)
    times = ends_of(shape.tied, shape.predict_layers, rank.has_embedding, rank.has_head)
    for group in groups:
        for place in group.places:
            times[place] = times.get(place, 0) + group.count
    held = (replace(piece, count=times.get(piece.place, 0)) for piece in pieces_of(shape))
    there = tuple(piece for piece in held if piece.count)
    return Stage(rank, there, kinds_of(groups), shape.tied, shape.hidden)


def kinds_of(groups: Iterable[LayerGroup]) -> tuple[tuple[Layer, int], ...]:
    counts: dict[Layer, int] = {}
    for group in groups:
        counts[group.kind] = counts.get(group.kind, 0) + group.count
    return tuple(sorted(counts.items()))


def ends_of(tied: Number, further: Number, first: Number, last: Number) -> dict[str, Number]:
    """How often a rank holds each end of a model: a tied head, and layers that predict further,
    need a copy of the embedding on the last stage."""
    copied = last * (1 - first) * larger(tied, smaller(further, 1))
    return {FIRST: 1 * first, LAST: 1 * last, FURTHER: 1 * last, COPY: copied}


FIRST, LAST, FURTHER, COPY = "end first", "end last", "end further", "end copy"


@lru_cache(maxsize=1024)
def pieces_of(shape: ModelShape) -> tuple[Piece, ...]:
    """Every piece of a model once: its ends, and one layer of each group."""
    heads, experts = shape.attention.kv_heads, shape.experts.count if shape.experts else 1
    return tuple(
        Piece(*key, params, 1, heads, experts, axis) for key, (params, axis) in joined_parts(shape)
    )


PieceKey = tuple[str, Split, Rule]
Joined = list[tuple[PieceKey, tuple[int, int]]]


def joined_parts(shape: ModelShape) -> Joined:
    """Parts that are alike make one piece: a layer has three to five instead of ten. Parameters and
    the padded axis of each, in the order of the keys."""
    sums: dict[PieceKey, tuple[int, int]] = {}
    for place, (_, added, split, _, padded), rule in _placed(shape):
        if added:
            key = (place, split, rule)
            params, axis = sums.get(key, _NONE)
            sums[key] = (params + added, padded if padded > axis else axis)
    return sorted(sums.items())


_NONE = (0, 1)


Placed = tuple[str, Part, Rule]
"""A part, where it is, and what may be quantised of it."""


def _placed(shape: ModelShape) -> list[Placed]:
    table = embedding(shape)
    ends = ((FIRST, table), (LAST, head(shape)), (FURTHER, further_prediction(shape)))
    found = [(place, part, RULES[part.module]) for place, parts in ends for part in parts]
    found.append((COPY, table[0], Rule.KEPT))
    seen = set()
    for group in groups_of(shape)[0]:
        halves = layer_halves(shape, group.kind).values()
        for place, half in zip(group.places, halves, strict=True):
            if place not in seen:
                seen.add(place)
                found += _of_half(shape, place, half, group.kept)
    return found


def _of_half(
    shape: ModelShape, place: str, parts: Iterable[Part], names: frozenset[str]
) -> Iterable[Placed]:
    if not names:
        return [(place, part, RULES[part.module]) for part in parts]
    return _of_named(shape, place, parts, names)


def _of_named(
    shape: ModelShape, place: str, parts: Iterable[Part], names: frozenset[str]
) -> Iterator[Placed]:
    """Of a part that a checkpoint keeps in 16 bits in a share, both shares."""
    for part in parts:
        kept = round(part.params * named_share(part, names, gated=shape.gated))
        if kept:
            yield place, part._replace(params=kept), Rule.KEPT
        if kept < part.params:
            yield place, part._replace(params=part.params - kept), RULES[part.module]


RULES = {module: Rule.MATRIX if module in QUANTISED else Rule.KEPT for module in Module} | {
    Module.EXPERT: Rule.EXPERT
}


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
    """Parameters of the largest layer of a stage on one GPU: of its halves that the stage holds."""
    sums: dict[str, Number] = {}
    held: dict[str, Number] = {}
    for piece in stage.pieces:
        sums[piece.place] = sums.get(piece.place, 0) + local_params(piece, plan)
        held[piece.place] = piece.count
    halves: dict[str, Number] = {}
    for place, size in sums.items():
        half = " ".join(place.split(" ")[:2])
        halves[half] = larger(halves.get(half, 0), choose(held[place] > 0, size, 0))
    layers = (
        choose(count > 0, sum(halves.get(half, 0) for half in halves_of(kind)), 0)
        for kind, count in stage.kinds
    )
    return reduce(larger, layers, 0)
