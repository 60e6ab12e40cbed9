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
from evaluator.shares import WHOLE, Allowance, Left

WORDS = tuple(FitWord)
FITS, TIGHT, DOES_NOT_FIT, UNKNOWN = range(len(WORDS))


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
    found = _held(limits_of(workload, plans, one), sizes)
    table.word[:, known] = found.word[:, known]
    table.missing[:, known] = found.missing[:, known]
    return table


def limits_of(workload: Workload, plans: Sequence[Plan], one: MemoryBudget) -> list[Limit]:
    """What must hold on a card, as `MemoryBudget.limits`: ranges of shape (rank classes, plans).

    `one` is the budget of any plan of the workload: what lies outside the share is alike. A class
    that a plan lacks repeats another one.
    """
    model = workload.model
    if not (model.computable and model.dimensioned):
        return _stacked([budget(workload, plan) for plan in plans])
    which = np.zeros(len(plans), dtype=np.int64)
    held = budget_columns(workload, _models(model), which, plan_columns(plans))
    return _limits(held, one)


@lru_cache(maxsize=64)
def _models(shape: ModelShape) -> Models:
    return Models([shape])


def _limits(held: BudgetColumns, one: MemoryBudget) -> list[Limit]:
    inside = [size for name, size in held.components.items() if name not in one.outside]
    whole = [Limit(_full(held.bytes, held), WHOLE)] if one.outside else []
    return [Limit(_full(total(inside), held), held.allowance), *whole]


def _full(size: Range, held: BudgetColumns) -> Range:
    """Every end in the full shape."""
    shape = np.shape(held.bytes.typical)
    return Range(*(np.broadcast_to(end, shape) for end in (size.low, size.typical, size.high)))


def _stacked(budgets: Sequence[MemoryBudget]) -> list[Limit]:
    """The same from budgets of single plans, for models whose parts are not known."""
    limits = [
        [
            held.limits(rank)
            for rank in (held.ranks[0], held.ranks[len(held.ranks) // 2], held.ranks[-1])
        ]
        for held in budgets
    ]
    return [
        Limit(
            _columns([[one[at].needed for one in row] for row in limits]),
            _allowances([row[0][at].allowance for row in limits]),
        )
        for at, _ in enumerate(limits[0][0])
    ]


def _allowances(each: Sequence[Allowance]) -> Allowance:
    """Of single plans, with one element for each."""
    known, begun = [one.left for one in each if one.left], np.array([one.begun for one in each])
    if not known:
        return Allowance(np.array([one.fraction for one in each]), begun=begun)
    sizes = zip(*(left.bytes for left in known), strict=True)
    return Allowance(left=Left(known[0].below, tuple(map(np.array, sizes))), begun=begun)


def _columns(rows: Sequence[Sequence[Range]]) -> Range:
    ends = ("low", "typical", "high")
    return Range(
        *(np.array([[getattr(one, end) for one in row] for row in rows]).T for end in ends)
    )


def _held(limits: Sequence[Limit], sizes: Column) -> FitTable:
    """What asks for most in the typical case decides what is missing; all must hold to be sure."""
    typical = _by_class([limit.needed.typical for limit in limits])
    asks = _by_class([limit.asks.typical for limit in limits])
    high = _by_class([limit.needed.high for limit in limits])
    plans = np.arange(typical.shape[-1])
    allowed = np.array([_allowed(limit.allowance, plans, sizes) for limit in limits])
    decides = np.argmax(asks, axis=0)
    needed = np.rint(np.take_along_axis(typical, decides[np.newaxis], axis=0)[0])
    missing = np.maximum(0, needed[:, np.newaxis] - allowed[decides % len(limits), plans])
    each = np.tile(allowed, (len(high) // len(limits), 1, 1))
    sure = np.all(high[:, :, np.newaxis] <= each, axis=0)
    word = np.where(missing > 0, DOES_NOT_FIT, np.where(sure, FITS, TIGHT))
    return FitTable(word.astype(np.int8), missing)


def _allowed(allowance: Allowance, plans: Column, sizes: Column) -> Column:
    """Whole bytes that each plan may fill on each size, as `Limit.allowed`."""
    upright = _upright(allowance)
    found = np.broadcast_to(upright.of(sizes[np.newaxis]), (len(plans), len(sizes)))
    return np.maximum(0, found.astype(np.int64))


def _upright(allowance: Allowance) -> Allowance:
    """With plans along the first axis."""
    fraction, begun = (np.reshape(one, (-1, 1)) for one in (allowance.fraction, allowance.begun))
    if allowance.left is None:
        return Allowance(fraction, begun=begun)
    sizes = tuple(np.reshape(each, (-1, 1)) for each in allowance.left.bytes)
    return Allowance(left=Left(allowance.left.below, sizes), begun=begun)


def _by_class(ends: Sequence[Column]) -> Column:
    """Limits of one rank class after another: an array of shape (classes x limits, plans)."""
    held = np.stack([np.asarray(end, dtype=float) for end in ends], axis=1)
    return held.reshape(-1, held.shape[-1])
