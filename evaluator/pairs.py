"""A group of a plan held against the pairs that were seen: which GPUs, how far, how fast.

The judgements are those of the topology reference, 4.2: the worst pair of the best assignment of
the plan's groups counts. A benchmark of the same group outweighs the class of its pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from evaluator.collectives import Traffic
from evaluator.connections import (
    FaultKind,
    Rate,
    Topology,
    family,
    is_fabric,
    rank_of,
    rate_for,
)
from evaluator.facts import Grade
from evaluator.findings import Code, Finding, finding
from evaluator.grouping import Assignment, assign
from evaluator.link_verdicts import LinkVerdict, LinkWord
from evaluator.links import (
    CARRIES_TENSOR,
    CLASS_FLOOR,
    FULL_MESH,
    TOLERANT,
    Demand,
    Use,
    bridge_links,
)
from evaluator.machine import LinkClass, Machine
from evaluator.plans import Plan
from evaluator.units import GB

BENCHMARK = "all_reduce_perf -b 1G -e 8G -f 2 -g {ranks}"
CLEARING = f"{CARRIES_TENSOR // GB} GB/s"
SWITCHED = rank_of("PXB")
"""Up to this class a pair meets below the host bridge."""
SMALL = 4
"""Ranks up to which tensor parallelism over the host bridge is worth a benchmark."""


@dataclass(frozen=True, slots=True)
class Held:
    """One group of a plan on its best GPUs, and what was seen of them."""

    plan: Plan
    demand: Demand
    machine: Machine
    topology: Topology
    placed: Assignment
    message_bytes: int

    @property
    def link(self) -> str:
        return self.topology.between(*self.placed.worst) or "an unseen link"

    @property
    def command(self) -> str:
        """The benchmark, pinned to the first group where it is not the whole machine."""
        group = self.placed.groups[0]
        pin = f"CUDA_VISIBLE_DEVICES={','.join(map(str, group))} "
        whole = len(group) == self.topology.gpus
        return ("" if whole else pin) + BENCHMARK.format(ranks=len(group))

    @property
    def rate(self) -> Rate | None:
        return rate_for(self.topology, len(self.placed.groups[0]))

    @property
    def pair(self) -> str:
        return "GPUs {} and {}".format(*self.placed.worst)

    @property
    def gaps(self) -> dict[str, str]:
        """Words for the gaps of the findings about a group."""
        return {
            "plan": self.plan.label,
            "group": self.placed.words,
            "pair": self.pair,
            "link": self.link,
            "command": self.command,
            "rate": CLEARING,
        }


def judge_on_pairs(
    plan: Plan, demand: Demand, machine: Machine, exchanges: Sequence[Traffic] = ()
) -> LinkVerdict | None:
    """The word for one group inside a machine. None where no pair was seen that settles it."""
    topology = machine.topology.value
    if topology is None:
        return None
    stopped = _stopped(plan, topology, machine.topology.grade)
    if stopped:
        return stopped
    counted = replace(topology, gpus=topology.gpus or machine.gpu_count.value or 0)
    count = max(1, plan.gpus // plan.nodes // demand.span)
    placed = assign(counted, demand.span, count)
    if placed is None:
        return None
    held = Held(plan, demand, machine, counted, placed, _message(demand, exchanges))
    if not topology.matrix:
        return _without_matrix(held)
    return _faulty(held) or _unseen(held) or _judge(held)


def _without_matrix(held: Held) -> LinkVerdict | None:
    """Outputs that show no pairs: a benchmark, or a log in which no peer access was used."""
    if held.demand.use in TOLERANT:
        return None
    if faulty := _faulty(held):
        return replace(faulty, groups=())
    if held.rate is not None:
        return replace(_by_rate(held, held.rate), groups=())
    blocked = held.demand.use is Use.TENSOR and _cut_off(held)
    return replace(_too_slow(held, Code.NO_PEER_ACCESS), groups=()) if blocked else None


def _message(demand: Demand, exchanges: Sequence[Traffic]) -> int:
    """The largest buffer that the group exchanges in one call; 0 where it is not known."""
    return max((t.message_bytes for t in exchanges if t.group == demand.ranks), default=0)


# --- what stops every group


def _stopped(plan: Plan, topology: Topology, grade: Grade) -> LinkVerdict | None:
    for kind, code, word in (
        (FaultKind.SLICED, Code.SLICED_GPU, LinkWord.INSUFFICIENT),
        (FaultKind.FABRIC_MANAGER, Code.FABRIC_MANAGER_DOWN, LinkWord.CONTRADICTED),
    ):
        for fault in topology.of_kind(kind):
            return _said(word, finding(code, plan=plan.label, words=fault.words), grade)
    return None


def _said(word: LinkWord, found: Finding, grade: Grade, held: Held | None = None) -> LinkVerdict:
    """A verdict whose reason is its finding's sentence, settled as the finding's remedy says."""
    return LinkVerdict(
        word=word,
        reason=found.sentence,
        grade=grade,
        settled_by=held.command if held else "nvidia-smi -q; nvidia-smi -L",
        findings=(found, *(_shared_memory(held.topology) if held else ())),
        cleared_by=found.remedy,
        groups=held.placed.groups if held else (),
    )


FAULT_CODES = {
    FaultKind.INACTIVE_LINKS: Code.GPU_LINK_FAULTY,
    FaultKind.OFF_FABRIC: Code.GPU_LINK_FAULTY,
    FaultKind.SLOW_GPU: Code.GPU_LINK_FAULTY,
    FaultKind.NARROW_SLOT: Code.NARROW_SLOT,
}


def _faulty(held: Held) -> LinkVerdict | None:
    """A fault of a GPU that the best assignment could not leave out, on the link it uses."""
    for fault in held.topology.faults:
        code = FAULT_CODES.get(fault.kind)
        members = sorted(held.placed.members & set(fault.gpus))
        if code and members and _matters(held, fault.kind) and held.demand.use not in TOLERANT:
            gpus = f"GPU {', '.join(map(str, members))}"
            found = finding(code, plan=held.plan.label, gpus=gpus, words=fault.words)
            return _said(LinkWord.CONTRADICTED, found, _grade(held), held)
    return _badly_bridged(held)


def _badly_bridged(held: Held) -> LinkVerdict | None:
    """Fewer links to all neighbours together than the card's bridge carries: it is not well
    seated, or one of several is missing.
    """
    whole = _bridge_links(held.machine)
    seen = min(held.topology.links_of(gpu) or 0 for gpu in held.placed.worst)
    if not whole or not 0 < seen < whole or held.demand.use in TOLERANT:
        return None
    if not is_fabric(held.link):
        return None
    words = f"{held.link}, {seen} links in all, and the bridge of this card has {whole}"
    gaps = {"plan": held.plan.label, "gpus": held.pair, "words": words}
    return _said(LinkWord.CONTRADICTED, finding(Code.GPU_LINK_FAULTY, **gaps), _grade(held), held)


def _bridge_links(machine: Machine) -> int | None:
    """Links of the smallest bridge that the possible cards take; None where one takes none, or has
    another fabric.
    """
    permits = [permit for spec in machine.specs for permit in spec.permits]
    fabrics = [permit for permit in permits if permit.kind != "pcie_only"]
    if any(permit.kind != "nvlink_bridge_optional" for permit in fabrics):
        return None
    counts = [bridge_links(permit.bytes_per_s or 0) or 0 for permit in fabrics]
    return min(counts, default=None) if len(counts) == len(machine.specs) else None


def _matters(held: Held, kind: FaultKind) -> bool:
    """A narrow slot slows no NVLink, and idle NVLink ports are no fault where none is claimed."""
    if kind is FaultKind.NARROW_SLOT:
        return not _on_fabric(held)
    if kind is FaultKind.INACTIVE_LINKS:
        return _on_fabric(held) or held.machine.link.value in CLASS_FLOOR
    return True


def _unseen(held: Held) -> LinkVerdict | None:
    """Pairs that a damaged output does not show. A seen pair that is too slow decides anyway."""
    pairs = [pair for group in held.placed.groups for pair in combinations(group, 2)]
    missing = [pair for pair in pairs if held.topology.between(*pair) is None]
    slow = [pair for pair in pairs if (w := held.topology.between(*pair)) and not is_fabric(w)]
    if not missing or slow or held.demand.use in TOLERANT:
        return None
    words = ", ".join(f"{one}–{other}" for one, other in missing[:4])
    more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
    found = finding(Code.TOPOLOGY_PARTIAL, plan=held.plan.label, pairs=words + more)
    return LinkVerdict(
        LinkWord.UNKNOWN, found.sentence, "", Grade.UNKNOWN, ASK_MATRIX, (found,), found.remedy
    )


ASK_MATRIX = "nvidia-smi topo -m; nvidia-smi topo -p2p r"


# --- the class of the worst pair


def _judge(held: Held) -> LinkVerdict:
    if held.demand.use in TOLERANT:
        return _enough(held, f"{held.demand.use} bears {held.link}")
    if held.rate is not None:
        return _by_rate(held, held.rate)
    code = _obstacle(held)
    if code:
        return _too_slow(held, code)
    if _fast(held):
        return _enough(held, f"the slowest pair of {held.placed.words} is {held.link}")
    return _open(held)


def _fast(held: Held) -> bool:
    """Fabric links between all. Infinity Fabric is fast only when the whole mesh takes part."""
    if family(held.link) == "XGMI":
        return held.demand.span >= FULL_MESH
    return is_fabric(held.link)


def _obstacle(held: Held) -> Code | None:
    """What makes a known link too slow before anybody runs a benchmark.

    Where fabric links connect the whole group, if not each with each, rings may stay on them.
    """
    if is_fabric(held.link) or _connected(held):
        return None
    if _cut_off(held):
        return Code.NO_PEER_ACCESS if held.demand.use is Use.TENSOR else None
    if held.demand.use is not Use.TENSOR or held.topology.flattened:
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


def _cut_off(held: Held) -> bool:
    """Peer access refused inside the group, or NCCL seen to go through shared memory."""
    pairs = (pair for group in held.placed.groups for pair in combinations(group, 2))
    refused = any(held.topology.reach(*pair) is False for pair in pairs)
    return refused or bool(held.topology.of_kind(FaultKind.NO_PEER_ACCESS))


def _crosses(held: Held) -> bool:
    """SYS alone does not tell: only two NUMA nodes do (topology reference 2.7)."""
    if family(held.link) != "SYS" or not held.topology.numa:
        return False
    nodes = [held.topology.numa[gpu] for gpu in held.placed.worst]
    return all(nodes) and len(set(nodes)) == 2


def _too_slow(held: Held, code: Code) -> LinkVerdict:
    """Contradicted where the catalog declared better; else known, and not enough."""
    islands = [", ".join(map(str, island)) for island in held.topology.islands]
    nodes = [held.topology.numa[g] or "?" for g in held.placed.worst] if held.topology.numa else []
    found = finding(
        code,
        **held.gaps,
        islands="; ".join(islands) or "none",
        nodes=" and ".join(nodes),
        words=_refusal(held.topology),
    )
    word = LinkWord.CONTRADICTED if _declared_better(held.machine) else LinkWord.INSUFFICIENT
    return _said(word, found, _grade(held), held)


def _declared_better(machine: Machine) -> bool:
    return machine.conflict_over("link") is not None


def _refusal(topology: Topology) -> str:
    faults = topology.of_kind(FaultKind.NO_PEER_ACCESS)
    return faults[0].words if faults and faults[0].words else "the driver refuses peer access"


def _open(held: Held) -> LinkVerdict:
    """Neither class nor benchmark settles it."""
    code = Code.TOPOLOGY_FLATTENED if held.topology.flattened else Code.LINK_UNBENCHMARKED
    found = finding(code, **held.gaps)
    return LinkVerdict(
        word=LinkWord.UNKNOWN,
        reason=f"{found.sentence} The slowest pair of {held.placed.words} is {held.link}.",
        grade=_grade(held),
        settled_by=held.command,
        findings=(found, *_shared_memory(held.topology)),
        cleared_by=f"A bus bandwidth of {CLEARING} or more with #wrong 0.",
        groups=held.placed.groups,
    )


def _enough(held: Held, why: str) -> LinkVerdict:
    proven = _grade(held) >= Grade.MEASURED
    found = () if proven else (finding(Code.LINK_CLAIMED, **held.gaps),)
    return LinkVerdict(
        word=LinkWord.PROVEN if proven else LinkWord.CLAIMED,
        reason=f"{_grade(held).word.capitalize()}: {why}.",
        grade=_grade(held),
        settled_by="" if proven else ASK_MATRIX,
        findings=(*found, *_shared_memory(held.topology)),
        groups=held.placed.groups,
    )


def _by_rate(held: Held, rate: Rate) -> LinkVerdict:
    """A benchmark of as many GPUs outweighs the class, up or down.

    A slow one of a part of the machine may have taken other GPUs than the plan would: it leaves
    the question open.
    """
    fabric = _on_fabric(held)
    floor = CLASS_FLOOR[LinkClass.NVLINK] if fabric else CARRIES_TENSOR
    words = f"{rate.ranks} GPUs reached {rate.bytes_per_s / GB:.3g} GB/s over {held.link}"
    words += _at_own_message(held)
    if rate.bytes_per_s >= floor:
        return LinkVerdict(
            LinkWord.PROVEN,
            f"Benchmarked: {words}.",
            grade=Grade.BENCHMARKED,
            findings=_shared_memory(held.topology),
            groups=held.placed.groups,
        )
    if rate.ranks < held.topology.gpus and fabric:
        return _open(held)
    if fabric:
        found = finding(Code.LINK_CONTRADICTED, reason=f"{words}, below any healthy link")
        return _said(LinkWord.CONTRADICTED, found, Grade.BENCHMARKED, held)
    found = finding(Code.LINK_INSUFFICIENT, **held.gaps, reason=words)
    return _said(LinkWord.INSUFFICIENT, found, Grade.BENCHMARKED, held)


def _on_fabric(held: Held) -> bool:
    """Whether the group's pairs are joined by fabric links, as seen or else as declared."""
    if held.topology.matrix:
        return is_fabric(held.link)
    return held.machine.link.value in CLASS_FLOOR


def _at_own_message(held: Held) -> str:
    """The rate at the plan's own message, which is what it will see; large ones are faster."""
    size = held.message_bytes
    own = rate_for(held.topology, len(held.placed.groups[0]), size) if size else None
    if own is None or own == held.rate:
        return ""
    return f" and {own.bytes_per_s / GB:.3g} GB/s at the plan's own messages of {size / 1e6:.3g} MB"


def _grade(held: Held) -> Grade:
    return held.machine.topology.grade


def _shared_memory(topology: Topology) -> tuple[Finding, ...]:
    faults = topology.of_kind(FaultKind.SMALL_SHM)
    return tuple(finding(Code.SHM_SMALL, words=fault.words) for fault in faults)
