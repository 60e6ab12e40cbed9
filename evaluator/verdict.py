"""One plan on one machine: ready, conditional, unsuitable or unknown, with every reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evaluator.budgets import Change, Fit
from evaluator.facts import Grade
from evaluator.findings import Finding
from evaluator.host import HostItem
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.plans import Plan
from evaluator.topology import LinkVerdict


class Status(StrEnum):
    """In the order of a shortlist: the first is the best."""

    READY = "ready"
    CONDITIONAL = "conditional"
    UNKNOWN = "unknown"
    UNSUITABLE = "unsuitable"

    @property
    def serves(self) -> bool:
        return self in (Status.READY, Status.CONDITIONAL)


@dataclass(frozen=True, slots=True)
class Weakest:
    """The fact that a candidate stands on least firmly."""

    fact: str
    grade: Grade


@dataclass(frozen=True, slots=True)
class PlanVerdict:
    """One plan on one machine. `budget(workload, verdict.plan)` gives the memory by component.

    `usable_bytes` is what the driver reports on the worst card that the label may mean; None is
    unknown. `idle_gpus` counts GPUs of the rented machines that the plan leaves unused.
    """

    plan: Plan
    status: Status
    fit: Fit
    link: LinkVerdict
    usable_bytes: int | None = None
    idle_gpus: int = 0
    findings: tuple[Finding, ...] = ()
    reasons: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    weakest: Weakest = Weakest("memory per GPU", Grade.UNKNOWN)


@dataclass(frozen=True, slots=True)
class MachineVerdict:
    """All plans of a workload on one machine, narrowest first.

    A verdict that was kept and loaded again holds only `best`, `single` and the nearest miss in
    `plans`; `plans_judged` still counts all.
    """

    configuration: str
    gpu_model: str
    gpu_count: int | None
    nodes: int
    plans: tuple[PlanVerdict, ...]
    host: tuple[HostItem, ...] = ()
    findings: tuple[Finding, ...] = ()
    plans_judged: int = 0

    @property
    def best(self) -> PlanVerdict | None:
        """The narrowest plan that serves, ready before conditional. None when none does."""
        raise NotImplementedError

    @property
    def single(self) -> PlanVerdict | None:
        """The plan on one GPU, whatever its status. None when no plan could be judged."""
        raise NotImplementedError

    @property
    def status(self) -> Status:
        raise NotImplementedError


def judge(workload: Workload, machine: Machine, max_machines: int = 8) -> MachineVerdict:
    """Every plan on a machine; several machines only where a training job needs them."""
    raise NotImplementedError
