"""Budgets of many (model, plan) pairs in one call: the formulas of one budget, on arrays.

A table of models is prepared once. A call then takes, for each pair, the index of its model and
the degrees of its plan, and works out every rank class of every pair at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evaluator.activations import activations_bytes, logits_bytes
from evaluator.adapters import adapter_params_on, share_of_adapters
from evaluator.engines import Share
from evaluator.fields import InvalidWorkload
from evaluator.formats import WeightFormat, weight_format
from evaluator.jobs import Lora, ServingJob, TrainingJob, Workload
from evaluator.kv_cache import CacheSizes, cache_bytes, cache_sizes
from evaluator.partition import (
    Piece,
    RankClass,
    Stage,
    params_of,
    rank_classes,
    stage_of,
)
from evaluator.plans import Plan
from evaluator.ranges import InvalidRange, Number, Range, choose, choose_range, exact, total
from evaluator.serving import ADAPTER_BYTES, TOWER, draft_bytes, engine_of, peak_bytes
from evaluator.shapes import ModelShape
from evaluator.sizes import Sizes, sizes_of
from evaluator.states import (
    buckets_bytes,
    gathered_bytes,
    lora_states,
    on_device,
    prefetched_bytes,
    spread_states,
    states_bytes,
)
from evaluator.training import overhead_bytes
from evaluator.weights import weights_bytes

Column = NDArray[Any]
T = TypeVar("T")

CLASSES = 3
"""Rank classes of a plan at most: first, middle and last stage. Those that a plan lacks repeat
another one, which changes no maximum."""


@dataclass(frozen=True, slots=True)
class BudgetColumns:
    """Bytes by component: arrays of shape (rank classes, pairs)."""

    components: Mapping[str, Range]

    def __post_init__(self) -> None:
        for name, size in self.components.items():
            if not size.ordered:
                raise InvalidRange(f"{name} has a low end above its typical value or its high end")

    @property
    def bytes(self) -> Range:
        return total(self.components.values())

    @property
    def binding(self) -> Range:
        """Bytes of the rank class that needs most in each pair: arrays of shape (pairs,)."""
        held = self.bytes
        rows = np.argmax(held.typical, axis=0)[np.newaxis]
        ends = (held.low, held.typical, held.high)
        return Range(*(np.take_along_axis(end, rows, axis=0)[0] for end in ends))


def plan_columns(plans: Sequence[Plan]) -> Plan:
    """A plan whose degrees are arrays with one element for each of `plans`."""
    names = [item.name for item in fields(Plan)]
    table = np.array([[getattr(plan, name) for plan in plans] for name in names])
    return Plan(**dict(zip(names, table, strict=True)))


class Models:
    """Models whose parts are known, ready to be taken by index. Raises InvalidWorkload."""

    def __init__(self, shapes: Sequence[ModelShape]) -> None:
        for shape in shapes:
            if not (shape.computable and shape.dimensioned):
                raise InvalidWorkload("model", shape.name, "an architecture that is covered")
        self.shapes = tuple(shapes)
        self._sizes = stacked(Sizes, [sizes_of(shape) for shape in shapes])
        self._joined: dict[tuple[int, ...], Stage] = {}
        self._cache: dict[tuple[object, ...], CacheSizes] = {}
        self._adapters: dict[tuple[object, ...], Column] = {}

    def sizes(self, which: Column) -> Sizes:
        return taken(self._sizes, lambda column: column[which])

    def cache(self, job: ServingJob, which: Column) -> CacheSizes:
        key = (job.engine, job.mla_kv, job.window_kv, job.max_num_batched_tokens)
        if key not in self._cache:
            found = [cache_sizes(shape, job) for shape in self.shapes]
            self._cache[key] = stacked(CacheSizes, found)
        return taken(self._cache[key], lambda column: column[which])

    def stages(self, which: Column, pipelines: Number) -> Stage:
        """What each rank class of each pair holds: counts of shape (rank classes, pairs)."""
        degrees, place = np.unique(pipelines, return_inverse=True)
        key = tuple(int(degree) for degree in degrees)
        if key not in self._joined:
            self._joined[key] = _stacked_stages([self._rows(degree) for degree in key])
        return _taken_stage(self._joined[key], which, place)

    def _rows(self, pipeline: int) -> list[list[Stage]]:
        """Stages of a pipeline, by rank class and model."""
        plan = Plan(pp=pipeline)
        held = [_classes(shape, plan) for shape in self.shapes]
        return [list(row) for row in zip(*held, strict=True)]

    def adapters(self, lora: Lora, plan: Plan, which: Column) -> Number:
        """Adapter parameters on one GPU of each rank class."""
        degrees, place = np.unique(plan.pp, return_inverse=True)
        key = (lora, tuple(degrees))
        if key not in self._adapters:
            rows = [self._adapter_rows(lora, int(degree)) for degree in degrees]
            self._adapters[key] = np.array(rows).swapaxes(0, 1)
        return share_of_adapters(self._adapters[key][:, place, which], plan.tp)

    def _adapter_rows(self, lora: Lora, pipeline: int) -> list[list[float]]:
        plan = Plan(pp=pipeline)
        return [
            [adapter_params_on(shape, lora, plan, stage.rank) for shape, stage in pairs]
            for pairs in (zip(self.shapes, row, strict=True) for row in self._rows(pipeline))
        ]


def _classes(shape: ModelShape, plan: Plan) -> list[Stage]:
    ranks = rank_classes(shape, plan)
    padded = (ranks[0], ranks[len(ranks) // 2], ranks[-1])
    return [stage_of(shape, rank) for rank in padded]


def budget_columns(workload: Workload, models: Models, which: Column, plans: Plan) -> BudgetColumns:
    """Budgets of pairs: the model at each index in `which` under each element of `plans`.

    `workload` gives the job and the format; its own model is not looked at. Raises
    InvalidWorkload for a format that is not known.
    """
    form = weight_format(workload.weights_format)
    if form is None:
        raise InvalidWorkload("weights_format", workload.weights_format, "a known format")
    held, sizes = models.stages(which, plans.pp), models.sizes(which)
    if workload.serving:
        job = workload.serving
        cache = models.cache(job, which)
        parts = _serving(job, form, held, sizes, cache, plans)
        if job.lora:
            each = models.adapters(job.lora, plans, which) * ADAPTER_BYTES
            parts["lora_buffers"] = exact(each * job.adapters)
    else:
        training = workload.training or TrainingJob()
        lora = training.lora
        adapters = models.adapters(lora, plans, which) if lora else 0
        parts = _training(training, form, held, sizes, adapters, plans)
    return BudgetColumns({name: _pinned(workload, name, size) for name, size in parts.items()})


def _serving(
    job: ServingJob, form: WeightFormat, held: Stage, sizes: Sizes, cache: CacheSizes, plan: Plan
) -> dict[str, Range]:
    """In the order of a serving budget, since sums keep it."""
    runs, kept = engine_of(job), cache_bytes(cache, job, plan, held.rank)
    left = 1 / job.memory_utilization - 1 if runs.share is Share.FREE else 0.0
    towered = (sizes.beyond > 0) & held.rank.has_embedding
    return {
        "weights": weights_bytes(held, sizes.beyond, form, plan),
        "kv_cache": kept,
        "activations": peak_bytes(sizes, job, plan, held.rank),
        "engine_overhead": runs.beside(plan.tp * plan.pp),
        "cuda_graphs": runs.graphs,
        "cache_reserve": kept.scaled(left),
        "tower_profile": choose_range(towered, TOWER, exact(0.0)),
        "lora_buffers": exact(0.0),
        "draft_model": draft_bytes(job, plan),
    }


def _training(
    job: TrainingJob, form: WeightFormat, held: Stage, sizes: Sizes, adapters: Number, plan: Plan
) -> dict[str, Range]:
    """In the order of a training budget, since sums keep it."""
    if job.lora:
        states = lora_states(weights_bytes(held, sizes.beyond, form, plan), adapters, job, plan)
    else:
        states = spread_states(states_bytes(held, sizes.beyond, job, on_device(job), plan), plan)
    beside = choose(held.rank.has_embedding, sizes.beyond / plan.tp, 0.0)
    last = choose_range(held.rank.has_head, logits_bytes(sizes, job, plan), exact(0.0))
    parts = {
        "model_states": states,
        "gathered_layers": gathered_bytes(held, sizes.vocab * sizes.hidden, job, form, plan),
        "prefetched_layers": prefetched_bytes(held, job, plan),
        "gradient_buckets": buckets_bytes(sum(params_of(held, plan)) + beside, job, plan),
        "activations": activations_bytes(held, sizes, job, plan),
        "logits": last,
    }
    return parts | {"overhead": overhead_bytes(total(parts.values()))}


def _pinned(workload: Workload, name: str, size: Range) -> Range:
    """A component that the user measured outranks its estimate, where there is one."""
    if name not in workload.pins:
        return size
    return choose_range(np.asarray(size.high > 0), exact(float(workload.pins[name])), exact(0.0))


def stacked(kind: type[T], records: Sequence[T]) -> T:
    """One record of arrays from many records of numbers."""
    names = [item.name for item in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: np.array([getattr(one, name) for one in records]) for name in names})


def taken(record: T, take: Callable[[Column], Column]) -> T:
    """The record with every array passed through `take`."""
    named = fields(record)  # type: ignore[arg-type]
    return type(record)(**{item.name: take(getattr(record, item.name)) for item in named})


def _stacked_stages(rows: Sequence[Sequence[Sequence[Stage]]]) -> Stage:
    """Stages by pipeline degree, rank class and model; every piece that any of them has.

    Counts get the shape (rank classes, degrees, models), what a model fixes the shape (models,).
    """
    cells = np.empty((len(rows), CLASSES, len(rows[0][0])), dtype=object)
    for degree, classes in enumerate(rows):
        for index, row in enumerate(classes):
            cells[degree, index, :] = row
    cells = cells.swapaxes(0, 1)
    keys = sorted({piece.key for stage in cells.flat for piece in stage.pieces})
    return Stage(
        _ranks({name: _each(cells, attrgetter(f"rank.{name}")) for name in RANKED}),
        tuple(_padded_piece(key, cells) for key in keys),
        _each(cells, attrgetter("dense_layers")),
        _each(cells, attrgetter("routed_layers")),
    )


RANKED = tuple(item.name for item in fields(RankClass) if item.name != "name")


def _ranks(columns: Mapping[str, Any]) -> RankClass:
    """A rank class whose numbers are arrays."""
    return RankClass(name="every class", **columns)


def _each(cells: Column, read: Callable[[Any], Any]) -> Column:
    """What `read` finds in every cell, in the same shape."""
    return np.array([read(cell) for cell in cells.flat]).reshape(cells.shape)


def _padded_piece(key: tuple[str, str, str], cells: Column) -> Piece:
    """One piece of every model; a model without it has it zero times."""
    found = np.empty(cells.shape, dtype=object)
    for index, stage in np.ndenumerate(cells):
        found[index] = next((piece for piece in stage.pieces if piece.key == key), None)
    by_model = found.reshape(-1, cells.shape[-1]).T
    known = [next((piece for piece in column if piece), None) for column in by_model]
    model = {
        name: np.array([getattr(piece, name) if piece else 1 for piece in known])
        for name in ("params", "kv_heads", "experts", "axis")
    }
    sample = next(piece for piece in known if piece)
    count = _each(found, lambda piece: piece.count if piece else 0)
    return replace(sample, count=count, **model)  # type: ignore[no-any-return]


def _taken_stage(joined: Stage, which: Column, place: Column) -> Stage:
    """Counts as (rank classes, pairs), what a model fixes as (pairs,)."""
    cut = (slice(None), place, which)
    pieces = (
        replace(
            piece,
            count=piece.count[cut],
            params=piece.params[which],
            kv_heads=piece.kv_heads[which],
            experts=piece.experts[which],
            axis=piece.axis[which],
        )
        for piece in joined.pieces
    )
    return Stage(
        _ranks({name: getattr(joined.rank, name)[cut] for name in RANKED}),
        tuple(pieces),
        joined.dense_layers[cut],
        joined.routed_layers[cut],
    )
