"""What a plan asks of the links between GPUs, held against what is known about them.

The class of a link decides whether it would do, the grade of the evidence decides the word. A
GPU's name or form factor never sets a link; it can only make a claim implausible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evaluator.connections import FaultKind, Topology, rates_of
from evaluator.exchanges import Traffic
from evaluator.facts import Fact, Grade
from evaluator.findings import Code, Finding, finding
from evaluator.group_rates import reached
from evaluator.held import benchmark_of, clearing_rate, is_amd, need_of, programs_of
from evaluator.link_faults import with_shared_memory
from evaluator.link_verdicts import SEVERITY, GroupVerdict, LinkVerdict, LinkWord
from evaluator.links import (
    CARRIED_BY,
    MOVES,
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
from evaluator.pairs import judge_on_pairs
from evaluator.plans import Plan
from evaluator.units import GB

__all__ = ["LinkVerdict", "LinkWord", "demand_word", "judge_link", "machine_findings"]

ASK_INSIDE = "nvidia-smi topo -m; nvidia-smi topo -p2p r"
ASK_INSIDE_AMD = "rocm-smi --showtopo; amd-smi topology"
ASK_BETWEEN = "all_reduce_perf -b 1G -e 8G -f 2 on two machines"


CLEARED_INSIDE = "A matrix in which every pair of a group has the link that is claimed."
CARRIES_BETWEEN = 10 * GB
"""Bus bandwidth of one RDMA card of 100 Gb/s and more: 12.2 GB/s (topology reference 3)."""
STARVES = 3 * GB
"""TCP over 25 Gb/s moves at most this."""
CLEARED_BETWEEN = f"A bus bandwidth of {CARRIES_BETWEEN // GB} GB/s or more, with #wrong 0."
CLEARED_BY = {
    ASK_INSIDE: CLEARED_INSIDE,
    ASK_INSIDE_AMD: CLEARED_INSIDE,
    ASK_BETWEEN: CLEARED_BETWEEN,
}
"""What result of a command would clear the doubt; a benchmark's where nothing else is named."""


def judge_link(
    plan: Plan, machine: Machine, need: str, exchanges: tuple[Traffic, ...] = ()
) -> LinkVerdict:
    """The word for a plan on a machine: the worst of its groups decides.

    `need` is the plan's traffic in numbers and words, to stand beside the word; `exchanges` is
    the same as numbers, so that a benchmark is read at the plan's own message size.
    """
    demands = demands_of(plan)
    parts = [_judge_demand(plan, one, machine, exchanges) for one in demands]
    if not parts:
        return LinkVerdict(LinkWord.NOT_NEEDED, _no_need(plan), "nothing", Grade.BENCHMARKED)
    groups = (_group(one, part, exchanges) for one, part in zip(demands, parts, strict=True))
    return _worst(parts, need, tuple(groups))


def _group(demand: Demand, part: LinkVerdict, exchanges: tuple[Traffic, ...]) -> GroupVerdict:
    """One group in words: what it moves, how often, and what bounds it."""
    across = f" on {demand.machines} machines" if demand.machines > 1 else ""
    return GroupVerdict(
        name=f"{demand.use} over {demand.ranks} GPUs{across}",
        word=part.word,
        need=need_of(demand.use, exchanges).words,
        reason=part.reason,
        settled_by=part.settled_by,
        cleared_by=part.cleared_by,
        machines=demand.machines,
        use=demand.use,
    )


def _no_need(plan: Plan) -> str:
    return "Replicas exchange nothing." if plan.replicas > 1 else "One GPU needs no link."


def _worst(
    parts: Sequence[LinkVerdict], need: str, groups: tuple[GroupVerdict, ...]
) -> LinkVerdict:
    worst = max(parts, key=lambda part: SEVERITY[part.word])
    return LinkVerdict(
        word=worst.word,
        reason=worst.reason,
        need=need,
        grade=min(part.grade for part in parts),
        settled_by=worst.settled_by,
        findings=tuple(dict.fromkeys(found for part in parts for found in part.findings)),
        cleared_by=worst.cleared_by,
        groups=next((part.groups for part in parts if part.groups), ()),
        parts=groups,
    )


def _cleared_by(command: str, demand: Demand, exchanges: tuple[Traffic, ...]) -> str:
    if command in CLEARED_BY:
        return CLEARED_BY[command]
    rate = clearing_rate(demand.ranks, _messages(demand, exchanges))
    return f"A bus bandwidth of {rate}, with #wrong 0."


def _messages(demand: Demand, exchanges: tuple[Traffic, ...]) -> tuple[int, ...]:
    return need_of(demand.use, exchanges).messages


def demand_word(
    plan: Plan, demand: Demand, machine: Machine, exchanges: tuple[Traffic, ...] = ()
) -> LinkWord:
    """The word alone, for one group of a plan; the worst of all its groups is the plan's."""
    return _judged(plan, demand, machine, exchanges).word


def _judge_demand(
    plan: Plan, demand: Demand, machine: Machine, exchanges: tuple[Traffic, ...]
) -> LinkVerdict:
    part = _judged(plan, demand, machine, exchanges)
    if part.settled_by == ASK_INSIDE and is_amd(machine):
        part = replace(part, settled_by=ASK_INSIDE_AMD)
    if part.cleared_by or not part.settled_by:
        return part
    return replace(part, cleared_by=_cleared_by(part.settled_by, demand, exchanges))


def _judged(
    plan: Plan, demand: Demand, machine: Machine, exchanges: tuple[Traffic, ...]
) -> LinkVerdict:
    if demand.machines > 1:
        return _seen_fabric(plan, demand, machine, exchanges) or _judge_fabric(
            plan, demand, machine
        )
    on_pairs = judge_on_pairs(plan, demand, machine, exchanges)
    if on_pairs is None or _claim_outlives(on_pairs, machine):
        by_class = _judge_class(plan, demand, machine, exchanges)
        needed = machine.link.value is LinkClass.P2P_DISABLED
        return with_shared_memory(plan, machine.topology.value, by_class, needed=needed)
    return on_pairs


def _claim_outlives(seen: LinkVerdict, machine: Machine) -> bool:
    """A damaged output that shows no slow pair proves nothing, and takes no claim away."""
    partial = any(found.code is Code.TOPOLOGY_PARTIAL for found in seen.findings)
    return partial and machine.link.known


def _judge_class(
    plan: Plan, demand: Demand, machine: Machine, exchanges: tuple[Traffic, ...]
) -> LinkVerdict:
    if not machine.link.known or machine.link.value is None:
        return _unknown_link(plan, demand)
    doubt = _doubt(machine, machine.link.value, demand.ranks)
    if doubt:
        return LinkVerdict(
            LinkWord.UNKNOWN, doubt.sentence, "", Grade.UNKNOWN, ASK_INSIDE, (doubt,)
        )
    messages = _messages(demand, exchanges)
    return _known_link(plan, demand, machine, machine.link.value, messages)


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


def _known_link(
    plan: Plan, demand: Demand, machine: Machine, link: LinkClass, messages: tuple[int, ...]
) -> LinkVerdict:
    answer = suits_at_rate(link, demand, machine.link_bytes_per_s)
    conflict = machine.conflict_over("link")
    if answer is Suits.ENOUGH:
        return _shown(plan, machine, link) or _enough(plan, demand, machine.link, link)
    if conflict or below_class(link, machine.link_bytes_per_s):
        against = f"{conflict.judged_by} against {conflict.outweighed}" if conflict else ""
        return _contradicted(machine, link, against)
    if answer is Suits.POOR:
        return _insufficient(plan, demand, machine.link, link, messages)
    return _depends(plan, demand, machine.link, link, messages)


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
    plan: Plan, demand: Demand, fact: Fact[LinkClass], link: LinkClass, messages: tuple[int, ...]
) -> LinkVerdict:
    reason = f"the slowest pair among {demand.ranks} GPUs sets the pace of {demand.use}"
    command = benchmark_of(demand.use, demand.ranks, messages)
    rate = clearing_rate(demand.ranks, messages)
    gaps = {"plan": plan.label, "link": words_of(link), "command": command, "rate": rate}
    found = finding(Code.LINK_INSUFFICIENT, **gaps, reason=reason)
    return LinkVerdict(
        LinkWord.INSUFFICIENT,
        found.sentence,
        grade=fact.grade,
        settled_by=command,
        findings=(found,),
    )


def _depends(
    plan: Plan, demand: Demand, fact: Fact[LinkClass], link: LinkClass, messages: tuple[int, ...]
) -> LinkVerdict:
    reason = (
        f"{words_of(link)} is {fact.grade.word}; whether it carries {demand.use} over "
        f"{demand.ranks} GPUs only a benchmark tells."
    )
    command = benchmark_of(demand.use, demand.ranks, messages)
    rate = clearing_rate(demand.ranks, messages)
    gaps = {"plan": plan.label, "link": words_of(link), "command": command, "rate": rate}
    return LinkVerdict(
        LinkWord.UNKNOWN,
        reason,
        grade=fact.grade,
        settled_by=command,
        findings=(finding(Code.LINK_UNBENCHMARKED, **gaps),),
    )


SEEN_FABRICS = (
    (FaultKind.TCP_BETWEEN, Code.FABRIC_OVER_TCP, LinkWord.INSUFFICIENT),
    (FaultKind.NO_GPUDIRECT, Code.FABRIC_STAGED, LinkWord.UNKNOWN),
)


def _seen_fabric(
    plan: Plan, demand: Demand, machine: Machine, exchanges: tuple[Traffic, ...]
) -> LinkVerdict | None:
    """What a benchmark over several machines, else a NCCL log, showed between them, for a use that
    cannot bear any link.
    """
    topology, grade = machine.topology.value, machine.topology.grade
    if topology is None or demand.use in TOLERANT:
        return None
    if shown := _benchmarked_fabric(plan, demand, topology, exchanges):
        return shown
    for kind, code, word in SEEN_FABRICS:
        for fault in topology.of_kind(kind):
            found = finding(code, plan=plan.label, nodes=plan.nodes, words=fault.words)
            return LinkVerdict(word, found.sentence, "", grade, ASK_BETWEEN, (found,), found.remedy)
    return None


def _benchmarked_fabric(
    plan: Plan, demand: Demand, topology: Topology, exchanges: tuple[Traffic, ...]
) -> LinkVerdict | None:
    """The all-reduce of the most ranks over machines. None where its rate settles nothing."""
    ranks = max((rate.ranks for rate in topology.rates if rate.nodes > 1), default=0)
    nodes = max((rate.nodes for rate in topology.rates if rate.ranks == ranks), default=0)
    curves = (rates_of(topology, ranks, nodes, program) for program in programs_of(demand.use))
    curve = next((found for found in curves if found), ())
    shown = reached(curve, _messages(demand, exchanges), CARRIES_BETWEEN, fabric=False)
    if shown is None:
        return None
    words = f"{ranks} GPUs on {nodes} machines reached {shown.words}"
    if shown.suffices:
        return LinkVerdict(LinkWord.PROVEN, f"Benchmarked: {words}.", grade=Grade.BENCHMARKED)
    if curve[-1].bytes_per_s > STARVES:
        return None
    gaps = {"command": ASK_BETWEEN, "rate": f"{CARRIES_BETWEEN // GB} GB/s", "reason": words}
    found = finding(Code.LINK_INSUFFICIENT, plan=plan.label, link="the network", **gaps)
    return LinkVerdict(
        LinkWord.INSUFFICIENT, found.sentence, "", Grade.BENCHMARKED, ASK_BETWEEN, (found,)
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
        reason = f"{demand.use} over {demand.machines} machines {MOVES[demand.use]}"
        return _fabric(LinkWord.INSUFFICIENT, fact, _poor_fabric(plan, fact.value, reason))
    if answer is Suits.ENOUGH and fact.at_least(Grade.BENCHMARKED):
        reason = f"{fact.value} between the machines is benchmarked and carries {plan.label}."
        return LinkVerdict(LinkWord.PROVEN, reason, grade=fact.grade)
    claimed = finding(Code.FABRIC_CLAIMED, plan=plan.label, nodes=plan.nodes, fabric=fact.value)
    word = LinkWord.CLAIMED if answer is Suits.ENOUGH else LinkWord.UNKNOWN
    return _fabric(word, fact, claimed)


def _poor_fabric(plan: Plan, fabric: str, reason: str) -> Finding:
    gaps = {"command": ASK_BETWEEN, "rate": f"{CARRIES_BETWEEN // GB} GB/s", "reason": reason}
    return finding(Code.LINK_INSUFFICIENT, plan=plan.label, link=fabric, **gaps)


def _fabric(word: LinkWord, fact: Fact[str], found: Finding) -> LinkVerdict:
    return LinkVerdict(word, found.sentence, "", fact.grade, ASK_BETWEEN, (found,))


def machine_findings(machine: Machine) -> tuple[Finding, ...]:
    """What every plan on this machine has to carry along: a multi-GPU topology not verified."""
    count = machine.gpu_count.value
    if count is None or count < 2 or machine.link.at_least(Grade.MEASURED):
        return ()
    return (finding(Code.TOPOLOGY_NOT_VERIFIED, gpu_count=count),)
