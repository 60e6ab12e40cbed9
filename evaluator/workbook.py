"""What depends on a workload and a plan alone, worked out once and used for every machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from evaluator.budgets import Capacity, Change, Fit, MemoryBudget
from evaluator.collectives import traffic
from evaluator.exchanges import Traffic
from evaluator.jobs import Workload
from evaluator.memory import budget, capacity, fit, smallest_change
from evaluator.plans import Plan, PlanSpace, plans_of
from evaluator.states import trainable_params
from evaluator.weights import stored_bytes


@dataclass
class Workbook:
    """Answers by plan (and by GPU memory, in bytes), computed when first asked for."""

    workload: Workload
    budgets: dict[Plan, MemoryBudget] = field(default_factory=dict)
    fits: dict[tuple[Plan, int | None], Fit] = field(default_factory=dict)
    changes: dict[tuple[Plan, int | None], tuple[Change, ...]] = field(default_factory=dict)
    spaces: dict[tuple[int, int], PlanSpace] = field(default_factory=dict)
    needs: dict[Plan, str] = field(default_factory=dict)
    moved: dict[Plan, tuple[Traffic, ...]] = field(default_factory=dict)
    capacities: dict[tuple[Plan, int | None], Capacity | None] = field(default_factory=dict)

    def plans(self, gpus: int, machines: int) -> PlanSpace:
        key = (gpus, machines)
        if key not in self.spaces:
            self.spaces[key] = plans_of(self.workload, gpus, [machines])
        return self.spaces[key]

    def budget(self, plan: Plan) -> MemoryBudget:
        if plan not in self.budgets:
            self.budgets[plan] = budget(self.workload, plan)
        return self.budgets[plan]

    def exchanges(self, plan: Plan) -> tuple[Traffic, ...]:
        """All that a plan moves between GPUs. Empty where the model's dimensions are not known."""
        if not self.workload.model.dimensioned:
            return ()
        if plan not in self.moved:
            self.moved[plan] = traffic(self.workload, plan, trainable_params(self.workload))
        return self.moved[plan]

    def need(self, plan: Plan) -> str:
        """What the plan moves, in numbers and words."""
        if not self.workload.model.dimensioned:
            return "unknown: the dimensions of the model are not stated"
        if plan not in self.needs:
            self.needs[plan] = "; ".join(one.words for one in self.exchanges(plan))
        return self.needs[plan]

    def fit(self, plan: Plan, usable_bytes: int | None) -> Fit:
        key = (plan, usable_bytes)
        if key not in self.fits:
            self.fits[key] = fit(self.budget(plan), usable_bytes)
        return self.fits[key]

    def capacity(self, plan: Plan, usable_bytes: int | None) -> Capacity | None:
        """None where nothing is served, or the model or the card is not known."""
        key = (plan, usable_bytes)
        if key not in self.capacities:
            self.capacities[key] = capacity(self.workload, plan, usable_bytes)
        return self.capacities[key]

    def change(self, plan: Plan, usable_bytes: int | None) -> tuple[Change, ...]:
        key = (plan, usable_bytes)
        if key not in self.changes:
            self.changes[key] = smallest_change(self.workload, plan, usable_bytes)
        return self.changes[key]

    @cached_property
    def weights_bytes(self) -> int | None:
        """Weights of the whole model as stored. None where its size is not known."""
        return stored_bytes(self.workload)
