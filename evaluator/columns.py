"""Budgets of many (model, plan) pairs in one call: the formulas of one budget, on arrays.

A table of models is prepared once. A call then takes, for each pair, the index of its model and
the degrees of its plan, and works out every rank class of every pair at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evaluator.activations import activations_bytes, logits_bytes
from evaluator.adapters import adapters_by_kind, share_of_adapters
from evaluator.engines import Share
from evaluator.fields import InvalidWorkload
from evaluator.formats import WeightFormat, weight_format
from evaluator.jobs import Lora, ServingJob, TrainingJob, Workload
from evaluator.kv_cache import CacheSizes, cache_bytes, cache_sizes
from evaluator.partition import Stage, largest_layer, params_of
from evaluator.plans import Plan
from evaluator.ranges import InvalidRange, Number, Range, choose, choose_range, exact, total
from evaluator.serving import (
    ADAPTER_BYTES,
    TOWER,
    allowance_of,
    draft_bytes,
    engine_of,
    free_share,
    less,
    on_host,
    outside_of,
    peak_bytes,
)
from evaluator.shapes import Layer, ModelShape
from evaluator.shares import WHOLE, Allowance
from evaluator.sizes import Sizes, sizes_of
from evaluator.stage_tables import StageTable
from evaluator.states import (
    buckets_bytes,
    gathered_bytes,
    lora_states,
    on_device,
    prefetched_bytes,
    shard_buckets_bytes,
    spread_states,
    states_bytes,
)
from evaluator.training import overhead_bytes
from evaluator.weights import weights_bytes

Column = NDArray[Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BudgetColumns:
    """Bytes by component: arrays of shape (rank classes, pairs).

    `allowance` and `outside` are those of a budget.
    """

    components: Mapping[str, Range]
    allowance: Allowance = WHOLE
    outside: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, size in self.components.items():
            if not size.ordered:
                raise InvalidRange(f"{name} has a low end above its typical value or its high end")

    @property
    def bytes(self) -> Range:
        return total(self.components.values())

    @property
    def binding(self) -> Range:
        """Bytes of the rank class that asks for the largest card in each pair: arrays of shape
        (pairs,)."""
        held = self.bytes
        rows = np.argmax(self._asked(held.typical), axis=0)[np.newaxis]
        ends = (held.low, held.typical, held.high)
        return Range(*(np.take_along_axis(end, rows, axis=0)[0] for end in ends))

    def _asked(self, held: Number) -> Number:
        """Memory that a card must report in the typical case, by the limit that asks for most."""
        if not self.outside:
            return self.allowance.asks(held)
        inside = total(size for name, size in self.components.items() if name not in self.outside)
        return np.maximum(self.allowance.asks(inside.typical), held)


def plan_columns(plans: Sequence[Plan]) -> Plan:
    """A plan whose degrees are arrays with one element for each of `plans`, of which many are often
    one and the same object."""
    names = list(map(id, plans))
    distinct = dict(zip(names, plans, strict=True))
    place = {name: index for index, name in enumerate(distinct)}
    which = np.array(list(map(place.__getitem__, names)))
    return taken(stacked(Plan, [*distinct.values()]), lambda column: column[which])


class ModelTable:
    """Columns of models, made once for the same models in the same order; what a job asks for
    besides is added when it is first asked for."""

    def __init__(self, shapes: tuple[ModelShape, ...]) -> None:
        for shape in shapes:
            if not (shape.computable and shape.dimensioned):
                raise InvalidWorkload("model", shape.name, "an architecture that is covered")
        self.shapes = shapes
        self.sizes = stacked(Sizes, [sizes_of(shape) for shape in shapes])
        self.stages = StageTable(shapes)
        self._cache: dict[tuple[object, ...], CacheSizes] = {}
        self._adapters: dict[Lora, Mapping[Layer, Column]] = {}

    def cache(self, job: ServingJob) -> CacheSizes:
        key = (job.engine, job.mla_kv, job.window_kv, job.max_num_batched_tokens)
        if key not in self._cache:
            found = [cache_sizes(shape, job) for shape in self.shapes]
            self._cache[key] = stacked(CacheSizes, found)
        return self._cache[key]

    def adapters(self, lora: Lora) -> Mapping[Layer, Column]:
        """Adapter parameters of one layer of each kind, of every model."""
        if lora not in self._adapters:
            self._adapters[lora] = self._by_kind(lora)
        return self._adapters[lora]

    def _by_kind(self, lora: Lora) -> Mapping[Layer, Column]:
        found: dict[Layer, list[int]] = {}
        for model, shape in enumerate(self.shapes):
            for kind, count in adapters_by_kind(shape, lora):
                found.setdefault(kind, [0] * len(self.shapes))[model] = count
        return {kind: np.array(counts) for kind, counts in found.items()}


model_table = lru_cache(maxsize=16)(ModelTable)
"""The models of a catalog are asked about again and again, one set for each kind of question."""


class Models:
    """Models whose parts are known, ready to be taken by index. Raises InvalidWorkload."""

    def __init__(self, shapes: Sequence[ModelShape]) -> None:
        self._table = model_table(tuple(shapes))

    def sizes(self, which: Column) -> Sizes:
        return taken(self._table.sizes, lambda column: column[which])

    def cache(self, job: ServingJob, which: Column) -> CacheSizes:
        return taken(self._table.cache(job), lambda column: column[which])

    def stages(self, which: Column, pipelines: Number) -> Stage:
        """What each rank class of each pair holds: counts of shape (rank classes, pairs)."""
        return self._table.stages.stages(which, pipelines)

    def adapters(self, lora: Lora, held: Stage, plan: Plan, which: Column) -> Number:
        """Adapter parameters on one GPU of each rank class."""
        each = self._table.adapters(lora)
        count = sum(each[kind][which] * times for kind, times in held.kinds)
        return share_of_adapters(count, plan.tp)


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
            each = models.adapters(job.lora, held, plans, which) * ADAPTER_BYTES
            parts["lora_buffers"] = exact(each * job.adapters)
    else:
        training = workload.training or TrainingJob()
        lora = training.lora
        adapters = models.adapters(lora, held, plans, which) if lora else 0
        parts = _training(training, form, held, sizes, adapters, plans)
    pinned = {name: _pinned(workload, name, size) for name, size in parts.items()}
    return BudgetColumns(pinned, allowance_of(workload, plans), outside_of(workload))


def _serving(
    job: ServingJob, form: WeightFormat, held: Stage, sizes: Sizes, cache: CacheSizes, plan: Plan
) -> dict[str, Range]:
    """In the order of a serving budget, since sums keep it."""
    runs, kept = engine_of(job), cache_bytes(cache, job, plan, held.rank)
    left = 1 / free_share(job) - 1 if runs.share is Share.FREE else 0.0
    towered = (sizes.beyond > 0) & held.rank.has_embedding
    weights = weights_bytes(held, sizes.beyond, form, plan)
    if runs.table_on_host:
        weights = less(weights, on_host(sizes, runs, form, plan, held.rank))
    return {
        "weights": weights,
        "kv_cache": kept,
        "activations": peak_bytes(sizes, job, plan, held.rank),
        "engine_overhead": runs.alone,
        "cuda_graphs": runs.graphs,
        "communicators": runs.communicators(plan.engine_ranks),
        "cache_reserve": kept.scaled(left),
        "free_margin": runs.margin,
        "tower_profile": choose_range(towered, TOWER, exact(0.0)),
        "lora_buffers": exact(0.0),
        "draft_model": draft_bytes(job, plan),
    }


def _training(
    job: TrainingJob, form: WeightFormat, held: Stage, sizes: Sizes, adapters: Number, plan: Plan
) -> dict[str, Range]:
    """In the order of a training budget, since sums keep it."""
    local, layer = params_of(held, plan), largest_layer(held, plan)
    if job.lora:
        states = lora_states(weights_bytes(held, sizes.beyond, form, plan), adapters, job, plan)
    else:
        size = states_bytes(local, held.rank, sizes.beyond, job, on_device(job), plan)
        states = spread_states(size, plan)
    beside = choose(held.rank.has_embedding, sizes.beyond / plan.tp, 0.0)
    last = choose_range(held.rank.has_head, logits_bytes(sizes, job, plan), exact(0.0))
    table = sizes.vocab * sizes.hidden
    parts = {
        "model_states": states,
        "gathered_layers": gathered_bytes(layer, held.rank, table, job, form, plan),
        "prefetched_layers": prefetched_bytes(layer, job, plan),
        "gradient_buckets": buckets_bytes(sum(local) + beside, job, plan),
        "shard_buckets": shard_buckets_bytes(job, plan),
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
    """One record of arrays from many records of whole numbers."""
    names = [item.name for item in fields(kind)]  # type: ignore[arg-type]
    return kind(*np.array(list(map(attrgetter(*names), records))).T.copy())


def taken(record: T, take: Callable[[Column], Column]) -> T:
    """The record with every array passed through `take`."""
    named = fields(record)  # type: ignore[arg-type]
    return type(record)(**{item.name: take(getattr(record, item.name)) for item in named})
