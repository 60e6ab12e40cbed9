"""Where a figure comes from: its parts and their sizes."""

from __future__ import annotations

from django import template

from evaluator.budgets import Asked, Component, MemoryBudget, RankBudget
from evaluator.jobs import Workload
from evaluator.memory import budget
from evaluator.plans import Plan

register = template.Library()


@register.filter
def milliseconds(seconds: float) -> str:
    """Seconds in milliseconds with three digits."""
    return f"{seconds * 1000:,.3g} ms" if seconds < 1 else f"{seconds * 1000:,.0f} ms"


@register.filter
def measure(value: float, unit: str) -> str:
    """With three digits and its unit; seconds of less than one in milliseconds."""
    return milliseconds(value) if unit.startswith("s") else f"{_digits(value)} {unit}"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


@register.filter
def parts_of(plan: Plan, workload: Workload) -> tuple[Component, ...]:
    """What the fullest GPU under a plan has to hold."""
    binding = budget(workload, plan).binding
    return binding.components if binding else ()


@register.filter
def asked(memory: MemoryBudget, rank: RankBudget) -> tuple[Asked, ...]:
    """What a card must report for a rank, limit by limit."""
    return memory.asked(rank)
