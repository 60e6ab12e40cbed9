"""The memory budget of a plan, per GPU on each rank class, and whether it fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import ceil

from evaluator.budgets import (
    LONGEST,
    Capacity,
    Change,
    Component,
    Fit,
    FitWord,
    MemoryBudget,
    RankBudget,
)
from evaluator.changes import Option, options
from evaluator.findings import Code, Finding, finding
from evaluator.formats import WeightFormat, weight_format
from evaluator.gpus import specs
from evaluator.jobs import ServingJob, Workload
from evaluator.kv_cache import BLOCK_TOKENS, bytes_per_token, sequence_bytes
from evaluator.parameters import total_params
from evaluator.partition import RankClass, rank_classes
from evaluator.plans import Plan
from evaluator.ranges import exact
from evaluator.serving import (
    activation_peak,
    allowance_of,
    engine_of,
    outside_of,
    serving_components,
)
from evaluator.training import training_components
from evaluator.units import GIB, gib

__all__ = [
    "Capacity",
    "Change",
    "Component",
    "Fit",
    "FitWord",
    "MemoryBudget",
    "RankBudget",
    "budget",
    "cache_room",
    "cache_tokens",
    "capacity",
    "fit",
    "longest_start",
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
        return MemoryBudget((), allowance_of(workload, plan), unknown)
    classes = rank_classes(workload.model, plan)
    ranks = tuple(_rank_budget(workload, form, plan, rank) for rank in classes)
    if workload.serving and plan.tp > 1 and engine_of(workload.serving).samples_on_first:
        ranks = (*ranks[:-1], *_tensor_ranks(workload, workload.serving, plan, ranks[-1]))
    allowance = allowance_of(workload, plan)
    return MemoryBudget(ranks, allowance, _width(ranks), outside_of(workload))


def _unknown(workload: Workload, form: WeightFormat | None) -> tuple[Finding, ...]:
    shape = workload.model
    wide = shape.mlp_size or shape.experts or shape.recurrent
    if form and shape.dimensioned and wide and total_params(shape) is not None:
        return ()
    return (finding(Code.ARCHITECTURE_UNKNOWN, architecture=shape.architecture or shape.name),)


def _rank_budget(workload: Workload, form: WeightFormat, plan: Plan, rank: RankClass) -> RankBudget:
    components: tuple[Component, ...] = ()
    if workload.serving:
        components = serving_components(workload, workload.serving, form, plan, rank)
    elif workload.training:
        components = training_components(workload, workload.training, form, plan, rank)
    return RankBudget(rank.name, tuple(_pinned(workload, part) for part in components))


def _tensor_ranks(
    workload: Workload, job: ServingJob, plan: Plan, last: RankBudget
) -> tuple[RankBudget, ...]:
    """The last stage where an engine gathers the logits on rank 0 alone: that rank, and others."""
    rank = rank_classes(workload.model, plan)[-1]
    peak = activation_peak(workload.model, job, plan, rank, logits_share=1 / plan.tp)
    peak = _pinned(workload, peak)
    parts = tuple(peak if part.name == peak.name else part for part in last.components)
    stage = "" if plan.pp == 1 else f"{last.rank}, "
    return replace(last, rank=f"{stage}rank 0"), RankBudget(f"{stage}other ranks", parts)


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
    low, high = f"{gib(part.bytes.low):,.1f} GiB", f"{gib(part.bytes.high):,.1f} GiB"
    return (finding(Code.ACTIVATIONS_WIDE, low=low, high=high),)


def fit(memory: MemoryBudget, usable_bytes: int | None) -> Fit:
    """Whether every rank class fits a GPU that reports `usable_bytes`. None is unknown.

    One that exceeds a limit in the typical case decides, else the one whose high end asks for most:
    a last stage with logits may need less than the first in the typical case, and more at the most.
    """
    held = [(rank, limit) for rank in memory.ranks for limit in memory.limits(rank)]
    if not held or usable_bytes is None:
        binding = memory.binding
        needed = binding.bytes if binding else None
        return Fit(FitWord.UNKNOWN, binding.rank if binding else "", needed)
    rank, limit = max(held, key=lambda one: one[1].asks.typical)
    word = FitWord.DOES_NOT_FIT
    if not limit.missing(usable_bytes):
        rank, limit = max(held, key=lambda one: one[1].asks.high)
        sure = all(one.holds(usable_bytes) for _, one in held)
        word = FitWord.FITS if sure else FitWord.TIGHT
    allowed, missing = limit.allowed(usable_bytes), limit.missing(usable_bytes)
    return Fit(word, rank.rank, limit.needed, allowed, missing, limit.share_of(usable_bytes))


def smallest_change(workload: Workload, plan: Plan, usable_bytes: int | None) -> tuple[Change, ...]:
    """Changes that would each admit the plan alone, least intrusive first.

    The last one is always the memory that a GPU needs. Empty where it fits, or cannot be judged.
    """
    memory, steps = _memory_and_steps(workload, plan)
    if usable_bytes is None or fit(memory, usable_bytes).word is not FitWord.DOES_NOT_FIT:
        return ()
    admitted = (_first_that_fits(group, usable_bytes) for group in steps)
    return (*(change for change in admitted if change), _larger_gpu(memory))


@dataclass
class Step:
    """A workload and plan with one thing changed. Most are never asked for their memory: a smaller
    step did."""

    option: Option

    @cached_property
    def memory(self) -> MemoryBudget:
        return budget(self.option.workload, self.option.plan)


@lru_cache(maxsize=1024)
def _memory_and_steps(
    workload: Workload, plan: Plan
) -> tuple[MemoryBudget, tuple[tuple[Step, ...], ...]]:
    """Budgets of a plan and of its changes: alike for every GPU, so worked out once for all."""
    groups = tuple(tuple(map(Step, group)) for group in options(workload, plan))
    return budget(workload, plan), groups


def _first_that_fits(steps: tuple[Step, ...], usable_bytes: int) -> Change | None:
    admitted = (
        step.option.change
        for step in steps
        if fit(step.memory, usable_bytes).word is not FitWord.DOES_NOT_FIT
    )
    return next(admitted, None)


def _larger_gpu(memory: MemoryBudget) -> Change:
    needed = memory.usable_for(memory.binding) if memory.binding else exact(0)
    most = max((memory.usable_for(rank).high for rank in memory.ranks), default=0)
    least, safe = ceil(gib(needed.typical)), ceil(gib(most))
    words = f"Use GPUs that report at least {least:,} GiB ({safe:,} GiB to be safe)"
    return Change("usable_gib", str(least), f"{words}{_cards(least * GIB)}.")


@lru_cache(maxsize=1024)
def _cards(needed_bytes: int) -> str:
    """The smallest published card of each vendor that reports so much, as words."""
    enough = [one for one in specs() if (one.usable_bytes or 0) >= needed_bytes]
    ranked = sorted(enough, key=lambda one: (one.usable_bytes or 0, one.id), reverse=True)
    smallest = {one.vendor: one.name for one in ranked}
    return f", such as {' or '.join(sorted(smallest.values()))}" if smallest else ""


def capacity(workload: Workload, plan: Plan, usable_bytes: int | None) -> Capacity | None:
    """None for a training job, an unknown model or an unknown card."""
    if usable_bytes is None:
        return None
    asked = (cache_tokens, max_concurrent_sequences, longest_start)
    found = [one(workload, plan, usable_bytes) for one in asked]
    known = [one for one in found if one is not None]
    return Capacity(*known) if len(known) == len(found) else None


def max_concurrent_sequences(workload: Workload, plan: Plan, usable_bytes: int) -> int | None:
    """Sequences of full length that the caches of all replicas hold, in the typical case.

    None for a training job or an unknown model; 0 where not even the weights fit.
    """
    each = _fill(workload, plan, usable_bytes, _sequences)
    return None if each is None else each * plan.replicas * plan.dp


def cache_tokens(workload: Workload, plan: Plan, usable_bytes: int) -> int | None:
    """Tokens that the cache of one replica holds, in whole blocks, in the typical case.

    Window layers are counted as if every sequence were shorter than its window. None and 0 as in
    `max_concurrent_sequences`.
    """
    return _fill(workload, plan, usable_bytes, _tokens)


def longest_start(workload: Workload, plan: Plan, usable_bytes: int) -> int | None:
    """The largest `max_model_len` with which the engine starts: one such sequence in the cache.

    SGLang and llama.cpp limit or refuse requests instead; for them it is the longest request that
    one empty cache serves. None and 0 as in `max_concurrent_sequences`.
    """
    return _fill(workload, plan, usable_bytes, _longest)


Filling = Callable[[float, Workload, Plan, RankClass], int]


def _fill(workload: Workload, plan: Plan, usable_bytes: int, filling: Filling) -> int | None:
    """What fills the room for the cache on the tightest rank class, in one of its copies."""
    memory = budget(workload, plan)
    if workload.serving is None or not memory.ranks:
        return None
    classes = rank_classes(workload.model, plan)  # other tensor ranks follow, with more room
    most = [
        filling(cache_room(memory, ranked, usable_bytes), workload, plan, rank)
        for ranked, rank in zip(memory.ranks, classes, strict=False)
    ]
    return max(0, min(most))


def cache_room(memory: MemoryBudget, rank: RankBudget, usable_bytes: int) -> float:
    """Bytes that all other components leave for the cache of one GPU, in the typical case."""
    rooms = []
    for limit in memory.limits(rank):
        taken = limit.needed.typical - rank.without(_but_cache(rank)).typical
        rooms.append(limit.allowed(usable_bytes) - taken)
    return float(min(rooms)) * _free_share(rank)


def _but_cache(rank: RankBudget) -> set[str]:
    return {part.name for part in rank.components if part.name not in CACHE}


CACHE = ("kv_cache", "cache_reserve")
"""What grows with the requests: the cache, and the share of free memory that stays unused."""


def _free_share(rank: RankBudget) -> float:
    """The part of the room that the cache itself may take."""
    cache, reserve = (rank.component(name) for name in CACHE)
    if cache is None or reserve is None or not cache.bytes.typical:
        return 1.0
    return float(cache.bytes.typical / (cache.bytes.typical + reserve.bytes.typical))


def _sequences(room: float, workload: Workload, plan: Plan, rank: RankClass) -> int:
    job = workload.serving
    one = sequence_bytes(workload.model, job, plan, rank, job.sequence_tokens) if job else 0
    return int(room // one) if one else 0


def _tokens(room: float, workload: Workload, plan: Plan, rank: RankClass) -> int:
    job = workload.serving
    each = bytes_per_token(workload.model, job, plan, rank) if job else 0
    return int(room // (each * BLOCK_TOKENS)) * BLOCK_TOKENS if each else 0


def _longest(room: float, workload: Workload, plan: Plan, rank: RankClass) -> int:
    """By bisection, since windows and blocks make the cache of a sequence a curve of steps."""
    job, low, high = workload.serving, 0, LONGEST
    while job and low < high:
        middle = (low + high + 1) // 2
        fits = sequence_bytes(workload.model, job, plan, rank, middle) <= room
        low, high = (middle, high) if fits else (low, middle - 1)
    return low
