"""A group of a plan held against the pairs that were seen: which GPUs, how far, how fast.

The judgements are those of the topology reference, 4.2: the worst pair of the best assignment of
the plan's groups counts. A benchmark of the same group outweighs the class of its pairs.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from evaluator.connections import FaultKind, Topology, family, is_fabric, rank_of
from evaluator.exchanges import Traffic
from evaluator.facts import Grade
from evaluator.findings import Code, finding
from evaluator.group_rates import Reached
from evaluator.grouping import assign
from evaluator.held import Held, need_of
from evaluator.link_faults import (
    cut_off,
    faulty,
    meets_in_memory,
    stopped,
    suspicions,
    with_shared_memory,
)
from evaluator.link_verdicts import LinkVerdict, LinkWord
from evaluator.links import FULL_MESH, WAITED_FOR, Demand
from evaluator.machine import Machine
from evaluator.pair_rates import ceiling
from evaluator.plans import Plan
from evaluator.units import GB

SWITCHED = rank_of("PXB")
"""Up to this class a pair meets below the host bridge."""
SMALL = 4
"""Ranks up to which tensor parallelism over the host bridge is worth a benchmark."""


def judge_on_pairs(
    plan: Plan, demand: Demand, machine: Machine, exchanges: tuple[Traffic, ...] = ()
) -> LinkVerdict | None:
    """The word for one group inside a machine. None where no pair was seen that settles it."""
    topology = machine.topology.value
    if topology is None:
        return None
    if stop := stopped(plan, topology, machine.topology.grade):
        return stop
    counted = replace(topology, gpus=topology.gpus or machine.gpu_count.value or 0)
    count = max(1, plan.gpus // plan.nodes // demand.span)
    placed = assign(counted, demand.span, count)
    if placed is None:
        return None
    messages = need_of(demand.use, exchanges).messages
    held = Held(plan, demand, machine, counted, placed, messages)
    seen = _with_matrix(held) if topology.matrix else _without_matrix(held)
    needed = meets_in_memory(held)
    return with_shared_memory(plan, topology, seen, needed=needed) if seen else None


def _with_matrix(held: Held) -> LinkVerdict:
    return faulty(held) or _capped(held) or _unseen(held) or _judge(held)


def _without_matrix(held: Held) -> LinkVerdict | None:
    """Outputs that show no pairs: a benchmark, or a log in which no peer access was used."""
    if held.tolerant:
        return None
    if fault := faulty(held) or _capped(held):
        return fault
    if shown := held.reached:
        return _by_rate(held, shown)
    blocked = held.demand.use in WAITED_FOR and cut_off(held)
    return _too_slow(held, Code.NO_PEER_ACCESS) if blocked else None


def _unseen(held: Held) -> LinkVerdict | None:
    """Pairs that a damaged output does not show. A seen pair that is too slow decides anyway."""
    pairs = [pair for group in held.placed.groups for pair in combinations(group, 2)]
    missing = [pair for pair in pairs if held.topology.between(*pair) is None]
    slow = [pair for pair in pairs if (w := held.topology.between(*pair)) and not is_fabric(w)]
    if not missing or slow or held.tolerant:
        return None
    words = ", ".join(f"{one}–{other}" for one, other in missing[:4])
    more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
    told = {"pairs": words + more, "command": held.tools.matrix}
    found = finding(Code.TOPOLOGY_PARTIAL, plan=held.plan.label, **told)
    verdict = held.said(LinkWord.UNKNOWN, found, Grade.UNKNOWN, ASK_MATRIX)
    return replace(verdict, groups=())


ASK_MATRIX = "nvidia-smi topo -m; nvidia-smi topo -p2p r"


def _capped(held: Held) -> LinkVerdict | None:
    """Single pairs that are each too slow: no group through them can be fast enough.

    A benchmark of the group itself, as new or newer, says more.
    """
    newest = min((rate.look for rate in held.curve), default=None)
    if held.tolerant or (newest is not None and newest <= held.topology.pair_look):
        return None
    limits = [one for group in held.placed.groups if (one := ceiling(held.topology, group))]
    narrow = min(limits, key=lambda one: one.bytes_per_s, default=None)
    if narrow is None or narrow.bytes_per_s >= held.needed:
        return None
    reason = f"{narrow.words}, and {held.needed / GB:.3g} are needed"
    found = finding(Code.LINK_INSUFFICIENT, **held.gaps, reason=reason)
    return held.said(LinkWord.INSUFFICIENT, found)


# --- the class of the worst pair


def _judge(held: Held) -> LinkVerdict:
    if held.tolerant:
        return _enough(held, f"{held.demand.use} bears {held.link}")
    code = _obstacle(held)
    shown = held.reached
    if shown is not None and not (code and _is_older(held)):
        return _by_rate(held, shown)
    if code:
        return _too_slow(held, code)
    if _fast(held) and (slow := _slow_together(held)):
        return _doubted(held, slow)
    if _fast(held):
        return _enough(held, f"the slowest pair of {held.placed.words} is {held.link}")
    return _open(held)


def _slow_together(held: Held) -> str:
    """A benchmark of the whole machine that is too slow for links which join all its pairs: one of
    its GPUs may be at fault, and nothing says which. In words; "" where there is none.
    """
    if held.larger is None or not held.topology.all_to_all:
        return ""
    ranks, shown = held.larger
    return "" if shown.suffices else f"all {ranks} GPUs together reached only {shown.words}"


def _doubted(held: Held, why: str) -> LinkVerdict:
    verdict = _open(held)
    return replace(verdict, reason=f"The links are there, but {why}. {verdict.reason}")


def _is_older(held: Held) -> bool:
    """Whether the machine was benchmarked before the matrix that now shows an obstacle."""
    return min(rate.look for rate in held.curve) > held.topology.look


def _fast(held: Held) -> bool:
    """Fabric links between all. Infinity Fabric is fast only when the whole mesh takes part: all
    eight, or all of a smaller hive.
    """
    if family(held.link) != "XGMI":
        return is_fabric(held.link)
    hives = [len(hive) for hive in held.topology.islands if held.placed.groups[0][0] in hive]
    return held.demand.span >= min(FULL_MESH, *hives)


def _obstacle(held: Held) -> Code | None:
    """What makes a known link too slow before anybody runs a benchmark.

    Where fabric links connect the whole group, if not each with each, rings may stay on them.
    """
    if is_fabric(held.link) or _connected(held):
        return None
    if cut_off(held):
        return Code.NO_PEER_ACCESS if held.demand.use in WAITED_FOR else None
    if held.demand.use not in WAITED_FOR or held.topology.flattened:
        return None
    if _crosses(held):
        return Code.LINK_CROSSES_SOCKETS
    if held.topology.islands:
        return Code.GROUP_LEAVES_ISLAND
    wide = held.demand.ranks > SMALL and rank_of(held.topology.between(*held.placed.worst))
    return Code.GROUP_LEAVES_ISLAND if wide and wide > SWITCHED else None


def _connected(held: Held) -> bool:
    islands = [set(island) for island in held.topology.islands]
    return all(any(set(group) <= one for one in islands) for group in held.placed.groups)


def _crosses(held: Held) -> bool:
    """SYS alone does not tell: only two NUMA nodes do (topology reference 2.7)."""
    if family(held.link) != "SYS" or not held.topology.numa:
        return False
    nodes = [held.topology.numa[gpu] for gpu in held.placed.worst]
    return all(nodes) and len(set(nodes)) == 2


def _too_slow(held: Held, code: Code) -> LinkVerdict:
    """Contradicted where the catalog declared better; else known, and not enough."""
    nodes = [held.topology.numa[g] or "?" for g in held.placed.worst] if held.topology.numa else []
    found = finding(
        code,
        **held.gaps,
        islands=_off_island(held.topology),
        nodes=" and ".join(nodes),
        words=_refusal(held.topology),
        peers=held.tools.peers,
    )
    word = LinkWord.CONTRADICTED if _declared_better(held.machine) else LinkWord.INSUFFICIENT
    return held.said(word, found)


def _off_island(topology: Topology) -> str:
    islands = "; ".join(", ".join(map(str, island)) for island in topology.islands)
    return f"leaves the fast islands ({islands})" if islands else "finds no fast island to stay on"


def _declared_better(machine: Machine) -> bool:
    return machine.conflict_over("link") is not None


def _refusal(topology: Topology) -> str:
    faults = topology.of_kind(FaultKind.NO_PEER_ACCESS)
    return faults[0].words if faults and faults[0].words else "the driver refuses peer access"


def _open(held: Held) -> LinkVerdict:
    """Neither class nor benchmark settles it."""
    code = Code.TOPOLOGY_FLATTENED if held.topology.flattened else Code.LINK_UNBENCHMARKED
    found = finding(code, **held.gaps)
    why = f"{found.sentence} The slowest pair of {held.placed.words} is {held.link}."
    verdict = held.said(LinkWord.UNKNOWN, found)
    cleared = f"A bus bandwidth of {held.clearing} with #wrong 0."
    return replace(verdict, reason=why, cleared_by=cleared)


def _enough(held: Held, why: str) -> LinkVerdict:
    proven = held.grade >= Grade.MEASURED
    return LinkVerdict(
        word=LinkWord.PROVEN if proven else LinkWord.CLAIMED,
        reason=f"{held.grade.word.capitalize()}: {why}.",
        grade=held.grade,
        settled_by="" if proven else ASK_MATRIX,
        findings=() if proven else (finding(Code.LINK_CLAIMED, **held.gaps),),
        groups=held.placed.groups,
    )


def _by_rate(held: Held, shown: Reached) -> LinkVerdict:
    """A benchmark of as many GPUs outweighs the class, up or down, at the plan's own messages.

    A slow one of a part of the machine may have taken other GPUs than the plan would: it leaves
    the question open.
    """
    words = f"{held.ranks} GPUs reached {shown.words}, over {held.link}"
    if shown.suffices:
        return LinkVerdict(
            LinkWord.PROVEN,
            f"Benchmarked: {words}.",
            grade=Grade.BENCHMARKED,
            findings=suspicions(held),
            groups=held.placed.groups if held.topology.matrix else (),
        )
    if held.ranks < held.topology.gpus and held.on_fabric:
        return _open(held)
    if held.on_fabric:
        found = finding(Code.LINK_CONTRADICTED, reason=f"{words}, below any healthy link")
        return held.said(LinkWord.CONTRADICTED, found, Grade.BENCHMARKED)
    found = finding(Code.LINK_INSUFFICIENT, **held.gaps, reason=words)
    return held.said(LinkWord.INSUFFICIENT, found, Grade.BENCHMARKED)
