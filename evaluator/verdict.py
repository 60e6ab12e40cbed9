"""One plan on one machine: ready, conditional, unsuitable or unknown, with every reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from evaluator.budgets import Change, Fit, FitWord
from evaluator.economics import rentals_of
from evaluator.facts import Grade
from evaluator.findings import Code, Finding, finding
from evaluator.host import HostItem, failures, host_findings, host_items, ram_finding
from evaluator.jobs import Workload
from evaluator.link_verdicts import LinkVerdict, LinkWord
from evaluator.links import links_told
from evaluator.machine import Machine
from evaluator.plans import Plan, Refusal, machines_to_try
from evaluator.topology import judge_link, machine_findings
from evaluator.units import gib
from evaluator.workbook import Workbook

MOST_MACHINES = 8
"""Machines of one listing that a training job may span before a cluster is the better question."""


class Status(StrEnum):
    """In the order of a shortlist: the first is the best."""

    READY = "ready"
    CONDITIONAL = "conditional"
    UNKNOWN = "unknown"
    UNSUITABLE = "unsuitable"

    @property
    def serves(self) -> bool:
        return self in (Status.READY, Status.CONDITIONAL)


ORDER = {status: place for place, status in enumerate(Status)}


def status_of(fits: FitWord, link: LinkWord, host: Iterable[HostItem] = ()) -> Status:
    """The words table. What is certain to fail outweighs what cannot be judged."""
    if fits is FitWord.DOES_NOT_FIT or link.stops or failures(host):
        return Status.UNSUITABLE
    if fits is FitWord.UNKNOWN:
        return Status.UNKNOWN
    open_link = link in (LinkWord.CLAIMED, LinkWord.UNKNOWN)
    return Status.CONDITIONAL if fits is FitWord.TIGHT or open_link else Status.READY


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
    host: tuple[HostItem, ...] = ()
    findings: tuple[Finding, ...] = ()
    reasons: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    weakest: Weakest = Weakest("memory per GPU", Grade.UNKNOWN)


@dataclass(frozen=True, slots=True)
class MachineVerdict:
    """All plans of a workload on one machine, narrowest first.

    A verdict that was kept and loaded again holds only `best`, `single` and the nearest miss in
    `plans`; `plans_judged` still counts all. `refused` are plans that the model cannot be cut into.
    """

    configuration: str
    gpu_model: str
    gpu_count: int | None
    nodes: int
    plans: tuple[PlanVerdict, ...]
    findings: tuple[Finding, ...] = ()
    refused: tuple[Refusal, ...] = ()
    plans_judged: int = 0

    @property
    def best(self) -> PlanVerdict | None:
        """The narrowest plan that serves, ready before conditional. None when none does."""
        serving = [verdict for verdict in self.plans if verdict.status.serves]
        return min(serving, key=lambda verdict: ORDER[verdict.status], default=None)

    @property
    def single(self) -> PlanVerdict | None:
        """The plan on one GPU, whatever its status. None when no plan could be judged."""
        return next((verdict for verdict in self.plans if verdict.plan.gpus == 1), None)

    @property
    def nearest(self) -> PlanVerdict | None:
        """The plan that misses by fewest bytes of those that do not serve; unknown comes last."""
        missing = [verdict for verdict in self.plans if not verdict.status.serves]
        return min(missing, key=miss_of, default=None)

    @property
    def status(self) -> Status:
        verdict = self.best or self.nearest
        return verdict.status if verdict else Status.UNKNOWN

    @property
    def host(self) -> tuple[HostItem, ...]:
        """The checklist of the plan that counts."""
        verdict = self.best or self.nearest
        return verdict.host if verdict else ()


def miss_of(verdict: PlanVerdict) -> tuple[bool, int]:
    """Sort key of what does not serve: fewest missing bytes first, what is unknown last."""
    return (verdict.status is Status.UNKNOWN, verdict.fit.missing_bytes)


def judge(
    workload: Workload,
    machine: Machine,
    max_machines: int = MOST_MACHINES,
    workbook: Workbook | None = None,
) -> MachineVerdict:
    """Every plan on a machine, narrowest first, each rejected one with its smallest change.

    Several machines of a listing are tried only where one does not do and the job is a training;
    then as few as serve.
    """
    book = workbook or Workbook(workload)
    verdict = judge_briefly(book, machine, max_machines)
    return replace(verdict, plans=tuple(explained(book, plan) for plan in verdict.plans))


def judge_briefly(
    book: Workbook, machine: Machine, max_machines: int = MOST_MACHINES
) -> MachineVerdict:
    """As `judge`, with changes for the nearest miss and the single GPU only: what a list shows.

    Finding changes takes longer than all the rest; the workbook serves many machines.
    """
    plans: list[PlanVerdict] = []
    refused: list[Refusal] = []
    for machines in machine_numbers(book.workload, machine, max_machines):
        space = book.plans(countable_gpus(machine), machines)
        plans += [judge_plan(book, plan, machine) for plan in space.plans]
        refused += space.refused
        if any(plan.status.serves for plan in plans):
            break
    verdict = MachineVerdict(
        configuration=machine.fingerprint(),
        gpu_model=machine.gpu_model.value or "",
        gpu_count=machine.gpu_count.value,
        nodes=machine.nodes,
        plans=tuple(plans),
        findings=findings_of(machine),
        refused=tuple(refused),
        plans_judged=len(plans),
    )
    shown = {one.plan for one in (verdict.single, verdict.nearest) if one}
    return replace(
        verdict,
        plans=tuple(explained(book, one) if one.plan in shown else one for one in plans),
    )


def findings_of(machine: Machine) -> tuple[Finding, ...]:
    """What every plan on a machine has to carry along."""
    return (*machine_findings(machine), *_card_findings(machine))


def explained(book: Workbook, verdict: PlanVerdict) -> PlanVerdict:
    """The verdict with the changes that would each admit it. Only memory has such changes."""
    if verdict.fit.word is not FitWord.DOES_NOT_FIT or verdict.changes:
        return verdict
    changes = book.change(verdict.plan, verdict.usable_bytes)
    if not changes:
        return verdict
    words = changes[0].words
    findings = (_with_change(one, words) for one in verdict.findings)
    reasons = (*verdict.reasons, f"The smallest change: {words}")
    return replace(verdict, changes=changes, findings=tuple(findings), reasons=reasons)


def _with_change(found: Finding, words: str) -> Finding:
    if found.code is not Code.DOES_NOT_FIT:
        return found
    return finding(found.code, **{**dict(found.gaps), "change": words})


def machine_numbers(workload: Workload, machine: Machine, most: int) -> tuple[int, ...]:
    """Numbers of machines to try, one after another until a plan serves."""
    if machine.fractional or machine.gpu_count.value is None:
        return (1,)
    limit = most if workload.training else machine.nodes
    return (1, *machines_to_try(machine.nodes, limit))


def countable_gpus(machine: Machine) -> int:
    """A share of a GPU joins no group; an unknown count is at least one."""
    return 1 if machine.fractional else machine.gpu_count.value or 1


def judge_plan(book: Workbook, plan: Plan, machine: Machine) -> PlanVerdict:
    """One plan on one machine, with every reason and without changes."""
    usable = machine.usable_bytes_per_gpu.value
    fitted = book.fit(plan, usable)
    link = judge_link(plan, machine, book.need(plan), book.exchanges(plan))
    weights = book.weights_bytes
    host = host_items(book.workload, plan, machine, weights)
    rented = rentals_of(plan, machine.nodes) * machine.nodes * countable_gpus(machine)
    return PlanVerdict(
        plan=plan,
        status=status_of(fitted.word, link.word, host),
        fit=fitted,
        link=link,
        usable_bytes=usable,
        idle_gpus=rented - plan.gpus,
        host=host,
        findings=(
            *_memory_findings(fitted),
            *book.budget(plan).findings,
            *link.findings,
            *_idle_findings(rented - plan.gpus, rented),
            *ram_finding(machine, weights),
            *host_findings(host),
        ),
        reasons=_reasons(plan, fitted, book.workload.terms, link, host),
        weakest=weakest_of(plan, machine),
    )


def _memory_findings(fitted: Fit) -> Iterator[Finding]:
    if fitted.word is FitWord.UNKNOWN or fitted.needed is None or fitted.allowed_bytes is None:
        return
    needed, usable = fitted.needed, size_words(fitted.allowed_bytes)
    if fitted.word is FitWord.DOES_NOT_FIT:
        yield finding(
            Code.DOES_NOT_FIT,
            needed=size_words(needed.typical),
            rank=fitted.rank,
            usable=usable,
            change="Take a plan that splits more, or GPUs with more memory.",
        )
    if fitted.word is FitWord.TIGHT:
        typical, high = size_words(needed.typical), size_words(needed.high)
        yield finding(Code.TIGHT_FIT, typical=typical, high=high, usable=usable)


def size_words(byte_count: float) -> str:
    return f"{gib(byte_count):,.1f} GiB"


def _idle_findings(idle: int, gpu_count: int) -> Iterator[Finding]:
    if idle:
        yield finding(Code.IDLE_GPUS, idle=idle, gpu_count=gpu_count)


def _card_findings(machine: Machine) -> Iterator[Finding]:
    if machine.usable_bytes_per_gpu.value is None:
        yield finding(Code.MEMORY_UNKNOWN)
    for one in machine.conflicts:
        words = links_told(f"{one.attribute} is {one.judged_by} against {one.outweighed}")
        yield finding(Code.CONFLICTING_VALUES, words=words)
    if len(machine.specs) > 1 and not machine.gpu_model.at_least(Grade.MEASURED):
        yield finding(Code.GPU_AMBIGUOUS, cards=", ".join(spec.name for spec in machine.specs))


FIT_SENTENCES = {
    FitWord.FITS: "It fits: {needed} needed per GPU, {allowed} usable.",
    FitWord.TIGHT: "It is tight: {needed} needed per GPU, {allowed} usable.",
    FitWord.DOES_NOT_FIT: "It does not fit: {needed} needed per GPU, {allowed} usable.",
}


def _reasons(
    plan: Plan, fitted: Fit, terms: str, link: LinkVerdict, host: Sequence[HostItem]
) -> tuple[str, ...]:
    """Sentences in the order of the questions: memory, link, host, place among the plans."""
    failed = (f"{item.name}: {item.reason}" for item in failures(host))
    return (_fit_sentence(fitted, terms), link.reason, *failed, plan.reason)


def _fit_sentence(fitted: Fit, terms: str) -> str:
    if fitted.needed is None or fitted.allowed_bytes is None:
        return "Whether it fits is unknown: memory per GPU or the size of the model is not known."
    low, high = gib(fitted.needed.low), size_words(fitted.needed.high)
    sentence = FIT_SENTENCES.get(fitted.word, "It is unknown whether it fits.")
    allowed = size_words(fitted.allowed_bytes)
    return f"{sentence.format(needed=f'{low:,.1f} to {high}', allowed=allowed)} Judged for {terms}."


def weakest_of(plan: Plan, machine: Machine) -> Weakest:
    """The first of the weakest facts that a plan stands on."""
    facts = zip(FACTS, stands_on(plan), strict=True)
    grades = {words: getattr(machine, name).grade for (name, words), stands in facts if stands}
    return Weakest(*min(grades.items(), key=lambda item: item[1]))


FACTS = (
    ("inter_node", "network between machines"),
    ("link", "link between GPUs"),
    ("gpu_count", "GPU count"),
    ("usable_bytes_per_gpu", "memory per GPU"),
)
"""Facts that a plan may stand on, in the order in which they are named when equally weak."""


def stands_on(plan: Plan) -> tuple[bool, ...]:
    """Which of `FACTS` the plan relies on."""
    linked = plan.gpus > plan.replicas * plan.nodes
    return (plan.joins_machines, linked, plan.gpus > 1, True)
