"""What a plan asks of the links between GPUs, held against what is known about them.

The class of a link decides whether it would do, the grade of the evidence decides the word. A
GPU's name or form factor never sets a link; it can only make a claim implausible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from evaluator.facts import Fact, Grade
from evaluator.findings import Code, Finding, finding
from evaluator.links import (
    CARRIED_BY,
    TOLERANT,
    Demand,
    Suits,
    below_class,
    demands_of,
    fabric_suits,
    suits_at_rate,
    words_of,
)
from evaluator.machine import LinkClass, Machine
from evaluator.plans import Plan
from evaluator.units import GB


class LinkWord(StrEnum):
    """Is the link that a plan needs there? From no worry to the end of the plan."""

    NOT_NEEDED = "not_needed"
    PROVEN = "proven"
    CLAIMED = "claimed"
    UNKNOWN = "unknown"
    INSUFFICIENT = "insufficient"
    CONTRADICTED = "contradicted"

    @property
    def stops(self) -> bool:
        """Whether a plan with this word cannot be recommended."""
        return self in (LinkWord.INSUFFICIENT, LinkWord.CONTRADICTED)


SEVERITY = {word: place for place, word in enumerate(LinkWord)}

ASK_INSIDE = "nvidia-smi topo -m; nvidia-smi topo -p2p r"
ASK_BENCHMARK = "all_reduce_perf -b 1G -e 8G -f 2 -g {ranks}"
ASK_BETWEEN = "all_reduce_perf -b 1G -e 8G -f 2 on two machines"


@dataclass(frozen=True, slots=True)
class LinkVerdict:
    """`need` says in numbers what the plan moves; `settled_by` is the command that would tell.

    `grade` is that of the weakest fact which the word rests on.
    """

    word: LinkWord
    reason: str
    need: str = ""
    grade: Grade = Grade.UNKNOWN
    settled_by: str = ""
    findings: tuple[Finding, ...] = ()


def judge_link(plan: Plan, machine: Machine, need: str) -> LinkVerdict:
    """The word for a plan on a machine: the worst of its groups decides.

    `need` is the plan's traffic in numbers and words, to stand beside the word.
    """
    parts = [_judge_demand(plan, demand, machine) for demand in demands_of(plan)]
    if not parts:
        return LinkVerdict(LinkWord.NOT_NEEDED, _no_need(plan), "nothing", Grade.BENCHMARKED)
    return _worst(parts, need)


def _no_need(plan: Plan) -> str:
    return "Replicas exchange nothing." if plan.replicas > 1 else "One GPU needs no link."


def _worst(parts: Sequence[LinkVerdict], need: str) -> LinkVerdict:
    worst = max(parts, key=lambda part: SEVERITY[part.word])
    return LinkVerdict(
        word=worst.word,
        reason=worst.reason,
        need=need,
        grade=min(part.grade for part in parts),
        settled_by=worst.settled_by,
        findings=tuple(dict.fromkeys(found for part in parts for found in part.findings)),
    )


def _judge_demand(plan: Plan, demand: Demand, machine: Machine) -> LinkVerdict:
    if demand.machines > 1:
        return _judge_fabric(plan, demand, machine)
    if not machine.link.known or machine.link.value is None:
        return _unknown_link(plan, demand)
    doubt = _doubt(machine, machine.link.value, demand.ranks)
    if doubt:
        return LinkVerdict(
            LinkWord.UNKNOWN, doubt.sentence, "", Grade.UNKNOWN, ASK_INSIDE, (doubt,)
        )
    return _known_link(plan, demand, machine, machine.link.value)


def _unknown_link(plan: Plan, demand: Demand) -> LinkVerdict:
    if demand.use in TOLERANT:
        reason = f"The link is not known; the risk is low, as {demand.use} bears any link."
        return LinkVerdict(LinkWord.UNKNOWN, reason, settled_by=ASK_INSIDE)
    found = finding(Code.LINK_UNKNOWN, plan=plan.label)
    return LinkVerdict(LinkWord.UNKNOWN, found.sentence, settled_by=ASK_INSIDE, findings=(found,))


def _doubt(machine: Machine, link: LinkClass, ranks: int) -> Finding | None:
    """Why a declared link cannot be taken at its word. A measured one has shown itself."""
    permitted = {permit.kind for spec in machine.specs for permit in spec.permits}
    carriers = CARRIED_BY.get(link)
    if not permitted or carriers is None or machine.link.at_least(Grade.MEASURED):
        return None
    if not permitted & carriers:
        return finding(Code.IMPLAUSIBLE_LINK, link=words_of(link), gpu_model=_model(machine))
    if link is LinkClass.NVLINK and ranks > 2 and "nvlink_nvswitch" not in permitted:
        return finding(Code.LINK_SCOPE_UNKNOWN)
    return None


def _model(machine: Machine) -> str:
    return machine.gpu_model.value or "this GPU"


def _known_link(plan: Plan, demand: Demand, machine: Machine, link: LinkClass) -> LinkVerdict:
    answer = suits_at_rate(link, demand, machine.link_bytes_per_s)
    conflict = machine.conflict_over("link")
    if answer is Suits.ENOUGH:
        return _shown(plan, machine, link) or _enough(plan, demand, machine.link, link)
    if conflict or below_class(link, machine.link_bytes_per_s):
        against = f"{conflict.judged_by} against {conflict.outweighed}" if conflict else ""
        return _contradicted(machine, link, against)
    if answer is Suits.POOR:
        return _insufficient(plan, demand, machine.link, link)
    return _depends(plan, demand, machine.link, link)


def _shown(plan: Plan, machine: Machine, link: LinkClass) -> LinkVerdict | None:
    """A benchmark that the class would explain proves the need, whoever declared the class."""
    rate = machine.link_bytes_per_s
    if rate.value is None or not rate.at_least(Grade.BENCHMARKED) or below_class(link, rate):
        return None
    reason = f"{rate.value / GB:.3g} GB/s is benchmarked between the GPUs and carries {plan.label}."
    return LinkVerdict(LinkWord.PROVEN, reason, grade=rate.grade)


def _enough(plan: Plan, demand: Demand, fact: Fact[LinkClass], link: LinkClass) -> LinkVerdict:
    if fact.at_least(Grade.MEASURED):
        reason = f"{words_of(link)} is {fact.grade.word} and carries {plan.label}."
        return LinkVerdict(LinkWord.PROVEN, reason, grade=fact.grade)
    if demand.use in TOLERANT:
        reason = f"{words_of(link)} is {fact.grade.word}; {demand.use} bears any link."
        return LinkVerdict(LinkWord.CLAIMED, reason, grade=fact.grade, settled_by=ASK_INSIDE)
    found = finding(Code.LINK_CLAIMED, plan=plan.label, link=words_of(link))
    return LinkVerdict(
        LinkWord.CLAIMED, found.sentence, "", fact.grade, ASK_INSIDE, findings=(found,)
    )


def _contradicted(machine: Machine, link: LinkClass, against: str) -> LinkVerdict:
    rate = machine.link_bytes_per_s.value
    reason = against or f"{(rate or 0) / GB:.3g} GB/s was seen on {words_of(link)}"
    found = finding(Code.LINK_CONTRADICTED, reason=reason)
    return LinkVerdict(
        LinkWord.CONTRADICTED,
        found.sentence,
        grade=machine.link.grade,
        settled_by=ASK_INSIDE,
        findings=(found,),
    )


def _insufficient(
    plan: Plan, demand: Demand, fact: Fact[LinkClass], link: LinkClass
) -> LinkVerdict:
    reason = f"the slowest pair among {demand.ranks} GPUs sets the pace of {demand.use}"
    found = finding(Code.LINK_INSUFFICIENT, plan=plan.label, link=words_of(link), reason=reason)
    return LinkVerdict(
        LinkWord.INSUFFICIENT,
        found.sentence,
        grade=fact.grade,
        settled_by=ASK_BENCHMARK.format(ranks=demand.ranks),
        findings=(found,),
    )


def _depends(plan: Plan, demand: Demand, fact: Fact[LinkClass], link: LinkClass) -> LinkVerdict:
    reason = (
        f"{words_of(link)} is {fact.grade.word}; whether it carries {demand.use} over "
        f"{demand.ranks} GPUs only a benchmark tells."
    )
    code, gaps = Code.LINK_UNBENCHMARKED, {"plan": plan.label, "link": words_of(link)}
    return LinkVerdict(
        LinkWord.UNKNOWN,
        reason,
        grade=fact.grade,
        settled_by=ASK_BENCHMARK.format(ranks=demand.ranks),
        findings=(finding(code, **gaps),),
    )


def _judge_fabric(plan: Plan, demand: Demand, machine: Machine) -> LinkVerdict:
    """Only a benchmark over two machines proves a fabric."""
    fact = machine.inter_node
    if fact.value is None:
        found = finding(Code.FABRIC_UNKNOWN, plan=plan.label, nodes=plan.nodes)
        return LinkVerdict(
            LinkWord.UNKNOWN, found.sentence, settled_by=ASK_BETWEEN, findings=(found,)
        )
    answer = fabric_suits(fact.value, demand.use)
    if answer is Suits.POOR:
        reason = f"{demand.use} over {demand.machines} machines moves every parameter each step"
        return _fabric(LinkWord.INSUFFICIENT, fact, _poor_fabric(plan, fact.value, reason))
    if answer is Suits.ENOUGH and fact.at_least(Grade.BENCHMARKED):
        reason = f"{fact.value} between the machines is benchmarked and carries {plan.label}."
        return LinkVerdict(LinkWord.PROVEN, reason, grade=fact.grade)
    claimed = finding(Code.FABRIC_CLAIMED, plan=plan.label, nodes=plan.nodes, fabric=fact.value)
    word = LinkWord.CLAIMED if answer is Suits.ENOUGH else LinkWord.UNKNOWN
    return _fabric(word, fact, claimed)


def _poor_fabric(plan: Plan, fabric: str, reason: str) -> Finding:
    return finding(Code.LINK_INSUFFICIENT, plan=plan.label, link=fabric, reason=reason)


def _fabric(word: LinkWord, fact: Fact[str], found: Finding) -> LinkVerdict:
    return LinkVerdict(word, found.sentence, "", fact.grade, ASK_BETWEEN, (found,))


def machine_findings(machine: Machine) -> tuple[Finding, ...]:
    """What every plan on this machine has to carry along: a multi-GPU topology not verified."""
    count = machine.gpu_count.value
    if count is None or count < 2 or machine.link.at_least(Grade.MEASURED):
        return ()
    return (finding(Code.TOPOLOGY_NOT_VERIFIED, gpu_count=count),)
