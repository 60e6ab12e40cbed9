"""Whether many plans fit many sizes of GPU: `memory.fit` for a whole table at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from evaluator.budgets import FitWord, Limit, MemoryBudget
from evaluator.columns import BudgetColumns, Models, budget_columns, plan_columns
from evaluator.hardware import Column
from evaluator.jobs import Workload
from evaluator.memory import budget
from evaluator.plans import Plan
from evaluator.ranges import Range, total
from evaluator.shapes import ModelShape

WORDS = tuple(FitWord)
FITS, TIGHT, DOES_NOT_FIT, UNKNOWN = range(len(WORDS))


@dataclass(frozen=True, slots=True)
class Bounds:
    """What rank classes need of a GPU under each plan: arrays of shape (rank classes, plans).

    `limits` are what must hold on a card, as in `MemoryBudget.limits`; `whole` decides which rank
    class binds. A class that a plan lacks repeats another one.
    """

    whole: Range
    limits: tuple[Limit, ...]


@dataclass(frozen=True, slots=True)
class FitTable:
    """By plan and size of GPU: the place of the word in `WORDS`, and the bytes that are missing."""

    word: Column
    missing: Column


def fit_table(workload: Workload, plans: Sequence[Plan], usable: Sequence[int | None]) -> FitTable:
    """Every plan on every size; `usable` is bytes that the driver reports, None is unknown."""
    shape = (len(plans), len(usable))
    table = FitTable(np.full(shape, UNKNOWN, np.int8), np.zeros(shape))
    one = budget(workload, Plan())
    if not one.ranks or not plans:
        return table
    known = np.array([size is not None for size in usable], dtype=bool)
    sizes = np.array([size or 0 for size in usable], dtype=np.int64)
    found = _held(bounds_of(workload, plans, one), sizes)
    table.word[:, known] = found.word[:, known]
    table.missing[:, known] = found.missing[:, known]
    return table


def bounds_of(workload: Workload, plans: Sequence[Plan], one: MemoryBudget) -> Bounds:
    """`one` is the budget of any plan of the workload: what may be used of a card is alike."""
    model = workload.model
    if not (model.computable and model.dimensioned):
        return _stacked([budget(workload, plan) for plan in plans])
    which = np.zeros(len(plans), dtype=np.int64)
    held = budget_columns(workload, _models(model), which, plan_columns(plans))
    return _bounds(held, one)


@lru_cache(maxsize=64)
def _models(shape: ModelShape) -> Models:
    return Models([shape])


def _bounds(held: BudgetColumns, one: MemoryBudget) -> Bounds:
    inside = [size for name, size in held.components.items() if name not in one.outside]
    limits = [Limit(_full(total(inside), held), one.utilization)]
    whole = _full(held.bytes, held)
    return Bounds(whole, (*limits, Limit(whole, 1.0)) if one.outside else tuple(limits))


def _full(size: Range, held: BudgetColumns) -> Range:
    """Every end in the full shape."""
    shape = np.shape(held.bytes.typical)
    return Range(*(np.broadcast_to(end, shape) for end in (size.low, size.typical, size.high)))


def _stacked(budgets: Sequence[MemoryBudget]) -> Bounds:
    """The same from budgets of single plans, for models whose parts are not known."""
    padded = [(held.ranks[0], held.ranks[len(held.ranks) // 2], held.ranks[-1]) for held in budgets]
    whole = _columns([[rank.bytes for rank in ranks] for ranks in padded])
    limits = [
        [held.limits(rank) for rank in ranks] for held, ranks in zip(budgets, padded, strict=True)
    ]
    joined = [
        Limit(_columns([[one[at].needed for one in row] for row in limits]), first.share)
        for at, first in enumerate(limits[0][0])
    ]
    return Bounds(whole, tuple(joined))


def _columns(rows: Sequence[Sequence[Range]]) -> Range:
    ends = ("low", "typical", "high")
    return Range(
        *(np.array([[getattr(one, end) for one in row] for row in rows]).T for end in ends)
    )


def _held(bounds: Bounds, sizes: Column) -> FitTable:
    """The binding rank class decides what is missing, and all of them whether it is sure."""
    binding = np.argmax(bounds.whole.typical, axis=0)[np.newaxis]
    excess = [_of_class(limit.needed.typical, binding) for limit in bounds.limits]
    allowed = [(sizes * limit.share).astype(np.int64) for limit in bounds.limits]
    over = np.array(
        [need[:, np.newaxis] - size for need, size in zip(excess, allowed, strict=True)]
    )
    hardest = np.argmax(over, axis=0)[np.newaxis]
    rounded = np.array(
        [np.rint(need)[:, np.newaxis] - size for need, size in zip(excess, allowed, strict=True)]
    )
    missing = np.maximum(0, np.take_along_axis(rounded, hardest, axis=0)[0])
    sure = [
        np.max(limit.needed.high, axis=0)[:, np.newaxis] <= size
        for limit, size in zip(bounds.limits, allowed, strict=True)
    ]
    fits = np.where(np.all(sure, axis=0), FITS, TIGHT)
    return FitTable(np.where(missing > 0, DOES_NOT_FIT, fits).astype(np.int8), missing)


def _of_class(sizes: Column, rows: Column) -> Column:
    found: Column = np.take_along_axis(np.asarray(sizes, dtype=float), rows, axis=0)[0]
    return found
