"""What every rank class of many (model, plan) pairs holds, from counts along the layers.

Each model is looked at once: its pieces, and for layers of a kind how many of the first n they are.
Any stage of any pipeline is then a difference of two such counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.partition import (
    LayerGroup,
    Piece,
    PieceKey,
    RankClass,
    Stage,
    ends_of,
    groups_of,
    joined_parts,
    layer_weight,
    layers_of,
    share_of_layers,
)
from evaluator.ranges import Number
from evaluator.shapes import Layer, ModelShape

Column = NDArray[Any]
MEMORY = {"cached": attrgetter("attends"), "recurrent": attrgetter("recurs")}
"""What a layer keeps, and which kinds of layers do."""


@dataclass(frozen=True, slots=True)
class Rows:
    """One model: parameters and padded axis of its pieces by key, the weight of a layer of each
    group, the group of each layer, and numbers of the whole model."""

    keys: tuple[PieceKey, ...]
    numbers: Column
    groups: tuple[LayerGroup, ...]
    weights: list[int]
    of_layer: Column
    whole: tuple[int, ...]


@lru_cache(maxsize=1024)
def rows_of(shape: ModelShape) -> Rows:
    groups, of_layer = groups_of(shape)
    states = shape.recurrence.layers if shape.recurrence else 0
    cached = shape.layers if shape.cached_layers is None else shape.cached_layers
    listed, experts = bool(shape.kinds), shape.experts.count if shape.experts else 1
    split = (shape.attention.kv_heads, experts)
    keys, numbers = zip(*joined_parts(shape), strict=True)
    return Rows(
        keys=keys,
        numbers=np.array(numbers),
        groups=groups,
        weights=[layer_weight(shape, group.kind) for group in groups],
        of_layer=np.array(of_layer),
        whole=(
            *split,
            shape.layers,
            cached,
            states,
            shape.tied,
            shape.hidden,
            shape.predict_layers,
            listed,
        ),
    )


class StageTable:
    """Stages of models by their index."""

    def __init__(self, shapes: Sequence[ModelShape]) -> None:
        rows = [rows_of(shape) for shape in shapes]
        self.keys, self._numbers = _numbers(rows)
        named = {group.name: group for row in rows for group in row.groups}
        self._groups = [(named[name].kind, named[name].places) for name in sorted(named)]
        whole = np.array([row.whole for row in rows]).T
        self._heads, self._experts, self._layers, *rest = whole
        self._cached, self._states, self._tied, self._width, self._further, self._listed = rest
        there = np.arange(max(self._layers)) < self._layers[:, np.newaxis]
        self._at, weights = _by_layer(rows, sorted(named), there)
        self._before = _counts_before(self._at, len(named))
        self._last = self._at[np.arange(len(rows)), self._layers - 1]
        self._weight = _sums_before(weights)
        self._middle: dict[int, Column] = {}

    def stages(self, which: Column, pipelines: Number) -> Stage:
        """What each rank class of each pair holds: counts of shape (rank classes, pairs)."""
        stage = self._stage_indices(which, pipelines)
        first, count = layers_of(self._layers[which], pipelines, stage)
        held = self._before[:, which, first + count] - self._before[:, which, first]
        starts, ends = stage == 0, stage == pipelines - 1
        memory = self._memory(which, held, count)
        rank = RankClass("every class", stage, first, count, starts, ends, **memory)
        times = self._times(which, held, rank)
        numbers = self._numbers[:, :, which]
        heads, experts = self._heads[which], self._experts[which]
        counts = self._by_place(which, times, rank)
        pieces = (
            Piece(*key, params, counts[key[0]], heads, experts, axis)
            for key, (params, axis) in zip(self.keys, numbers, strict=True)
        )
        kinds = self._by_kind(times)
        return Stage(rank, tuple(pieces), kinds, self._tied[which], self._width[which])

    def _times(self, which: Column, held: Column, rank: RankClass) -> Column:
        """Layers of each group; those that predict further are alike to the last one."""
        further = self._further[which]
        if not further.any():
            return held
        groups = np.arange(len(held))[:, np.newaxis, np.newaxis]
        return held + further * rank.has_head * (self._last[which] == groups)  # type: ignore[no-any-return]

    def _by_place(self, which: Column, times: Column, rank: RankClass) -> dict[str, Column]:
        """How often each place occurs."""
        tied, further = self._tied[which], self._further[which]
        counts = ends_of(tied, further, rank.has_embedding, rank.has_head)
        for (_, places), count in zip(self._groups, times, strict=True):
            for place in places:
                counts[place] = counts[place] + count if place in counts else count
        return counts

    def _by_kind(self, times: Column) -> tuple[tuple[Layer, Column], ...]:
        found: dict[Layer, Column] = {}
        for (kind, _), count in zip(self._groups, times, strict=True):
            found[kind] = found[kind] + count if kind in found else count
        return tuple(sorted(found.items(), key=lambda item: item[0]))

    def _memory(self, which: Column, held: Column, count: Column) -> dict[str, Column]:
        """Layers that keep tokens or a state: counted, or a share where only totals are known."""
        layers, listed = self._layers[which], self._listed[which]
        totals = {"cached": self._cached, "recurrent": self._states}
        return {
            name: np.where(
                listed,
                sum(
                    count
                    for (kind, _), count in zip(self._groups, held, strict=True)
                    if keeps(kind)
                ),
                share_of_layers(totals[name][which], count, layers),
            )
            for name, keeps in MEMORY.items()
        }

    def _stage_indices(self, which: Column, pipelines: Column) -> Column:
        """First, heaviest middle and last stage of each pair; a plan that lacks one repeats it."""
        degrees, place = np.unique(pipelines, return_inverse=True)
        middle = np.array([self._heaviest(int(degree)) for degree in degrees])
        return np.array([np.zeros_like(pipelines), middle[place, which], pipelines - 1])

    def _heaviest(self, pipeline: int) -> Column:
        """The heaviest stage but the first and the last, of each model."""
        if pipeline not in self._middle:
            self._middle[pipeline] = self._weighed(pipeline)
        return self._middle[pipeline]

    def _weighed(self, pipeline: int) -> Column:
        if pipeline < 3:
            return np.full(len(self._layers), pipeline - 1)
        inner = np.arange(1, pipeline - 1)[:, np.newaxis]
        first, count = layers_of(self._layers, pipeline, inner)
        model = np.arange(len(self._layers))
        weights = self._weight[model, first + count] - self._weight[model, first]
        heaviest: Column = np.argmax(weights, axis=0) + 1
        return heaviest


def _numbers(rows: Sequence[Rows]) -> tuple[list[PieceKey], Column]:
    """Every key, and numbers of the shape (pieces, numbers of a piece, models): no parameters where
    a model lacks a piece."""
    held = [key for row in rows for key in row.keys]
    keys = sorted(set(held))
    slot = {key: index for index, key in enumerate(keys)}
    of_piece = list(map(slot.__getitem__, held))
    of_model = np.repeat(np.arange(len(rows)), [len(row.keys) for row in rows])
    table = np.empty((len(keys), 2, len(rows)), dtype=np.int64)
    table[:, 0], table[:, 1] = 0, 1
    table[of_piece, :, of_model] = np.concatenate([row.numbers for row in rows])
    return keys, table


def _by_layer(rows: Sequence[Rows], names: Sequence[str], there: Column) -> tuple[Column, Column]:
    """The group of each layer of each model, -1 behind its last one, and its weight."""
    slot = {name: index for index, name in enumerate(names)}
    slots = np.array([slot[group.name] for row in rows for group in row.groups])
    weights = np.array([weight for row in rows for weight in row.weights])
    before = np.cumsum([0, *(len(row.groups) for row in rows)])[:-1]
    group = np.concatenate([row.of_layer for row in rows])
    group += np.repeat(before, [len(row.of_layer) for row in rows])
    return _scattered(slots[group], there, -1), _scattered(weights[group], there, 0)


def _scattered(flat: Column, there: Column, elsewhere: int) -> Column:
    """Values laid row by row on where they belong."""
    table = np.full(there.shape, elsewhere, dtype=flat.dtype)
    table[there] = flat
    return table


def _counts_before(at: Column, groups: int) -> Column:
    """How many of the first n layers are of each group: (groups, models, n)."""
    there = at == np.arange(groups)[:, np.newaxis, np.newaxis]
    return _sums_before(there, np.int32)


def _sums_before(values: Column, dtype: Any = None) -> Column:
    *shape, count = values.shape
    sums = np.zeros((*shape, count + 1), dtype=dtype or values.dtype)
    np.cumsum(values, axis=-1, out=sums[..., 1:])
    return sums
