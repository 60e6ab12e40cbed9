"""The memory budget of a plan, per GPU on each rank class, and whether it fits."""

from __future__ import annotations

from evaluator.budgets import Change, Fit, MemoryBudget
from evaluator.jobs import Workload
from evaluator.plans import Plan


def budget(workload: Workload, plan: Plan) -> MemoryBudget:
    """Bytes per GPU for every rank class of a plan, by component."""
    raise NotImplementedError


def fit(memory: MemoryBudget, usable_bytes: int | None) -> Fit:
    """Whether the binding rank fits a GPU that reports `usable_bytes`. None is unknown."""
    raise NotImplementedError


def smallest_change(workload: Workload, plan: Plan, usable_bytes: int | None) -> tuple[Change, ...]:
    """Changes that would each admit the plan alone, least intrusive first. Empty if it fits."""
    raise NotImplementedError


def max_concurrent_sequences(workload: Workload, plan: Plan, usable_bytes: int) -> int | None:
    """Sequences of full length that the cache holds over all replicas (typical case)."""
    raise NotImplementedError
