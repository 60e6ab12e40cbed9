"""What stops or slows a group of GPUs although its matrix promises better.

A suspicion gives way to a healthy benchmark of the whole group that is as new or newer. Both stay
in sight: the verdict is proven, and a finding says what speaks against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from evaluator.connections import Fault, FaultKind, Topology, is_fabric
from evaluator.facts import Grade
from evaluator.findings import Code, Finding, finding
from evaluator.held import Held
from evaluator.link_verdicts import LinkVerdict, LinkWord
from evaluator.links import ALL_TO_ALL, CLASS_FLOOR, bridge_links
from evaluator.machine import Machine
from evaluator.pair_rates import FAR_BELOW, LEAST_NVLINK, SlowPair, one_way, slow_pairs
from evaluator.plans import Plan
from evaluator.units import GB

STOPS_ALL = (
    (FaultKind.SLICED, Code.SLICED_GPU, LinkWord.INSUFFICIENT, "nvidia-smi -L"),
    (FaultKind.FABRIC_MANAGER, Code.FABRIC_MANAGER_DOWN, LinkWord.CONTRADICTED, "nvidia-smi -q"),
    (FaultKind.SHM_FAILED, Code.SHM_FAILED, LinkWord.INSUFFICIENT, "df -h /dev/shm"),
)
"""Faults that no group of GPUs of the machine escapes, and the command that shows them gone."""


def stopped(plan: Plan, topology: Topology, grade: Grade) -> LinkVerdict | None:
    """The verdict on any group where such a fault stands."""
    for kind, code, word, command in STOPS_ALL:
        for fault in topology.of_kind(kind):
            found = finding(code, plan=plan.label, words=fault.words)
            return LinkVerdict(word, found.sentence, "", grade, command, (found,), found.remedy)
    return None


PAIR_BENCHMARK = "p2pBandwidthLatencyTest"
FAULT_CODES = {
    FaultKind.INACTIVE_LINKS: (Code.GPU_LINK_FAULTY, ""),
    FaultKind.OFF_FABRIC: (Code.GPU_LINK_FAULTY, ""),
    FaultKind.SLOW_GPU: (Code.GPU_SLOW, PAIR_BENCHMARK),
    FaultKind.NARROW_SLOT: (Code.NARROW_SLOT, "nvidia-smi -q"),
}
"""Where no command is named, it is the vendor's own."""


def faulty(held: Held) -> LinkVerdict | None:
    """A fault of GPUs that the best assignment could not leave out, on the link that they use."""
    if held.tolerant:
        return None
    for kind in FAULT_CODES:
        faults = _of_group(held, kind)
        if faults and not _outweighed(held, min(fault.look for fault in faults)):
            told = _told(held, kind, faults)
            return held.said(LinkWord.CONTRADICTED, told, command=_command(held, kind))
    if (found := _badly_bridged(held)) and not _outweighed(held, held.topology.look):
        return held.said(LinkWord.CONTRADICTED, found, command=held.tools.matrix)
    if (found := _slow_pair(held)) and not _outweighed(held, held.topology.pair_look):
        return held.said(LinkWord.CONTRADICTED, found, command=PAIR_BENCHMARK)
    return None


def suspicions(held: Held) -> tuple[Finding, ...]:
    """What stands against a group that a benchmark has cleared, as a finding each."""
    if held.tolerant or (shown := held.reached) is None:
        return ()
    kinds = ((kind, _of_group(held, kind)) for kind in FAULT_CODES)
    told = (_told(held, kind, faults) for kind, faults in kinds if faults)
    found = [one for one in (*told, _badly_bridged(held), _slow_pair(held)) if one]
    gaps = {"plan": held.plan.label, "rate": shown.seen.words, "command": held.command}
    return tuple(finding(Code.LINK_SUSPECTED, words=_words(one), **gaps) for one in found)


def _words(found: Finding) -> str:
    gaps = dict(found.gaps)
    return f"{gaps['gpus']}: {gaps['words']}" if "gpus" in gaps else gaps["words"]


def _outweighed(held: Held, look: int) -> bool:
    """Whether a healthy benchmark of all GPUs, as new as the suspicion or newer, clears it.

    One of a part of the machine may have run on other GPUs.
    """
    shown = held.reached
    newest = min((rate.look for rate in held.curve), default=None)
    whole = held.ranks == held.topology.gpus
    return bool(shown and shown.suffices and whole and newest is not None and newest <= look)


def _of_group(held: Held, kind: FaultKind) -> list[Fault]:
    """Faults of one kind on GPUs of the group, where they matter for the link that it uses."""
    if not _matters(held, kind):
        return []
    members = held.placed.members
    return [fault for fault in held.topology.of_kind(kind) if members & set(fault.gpus)]


def _told(held: Held, kind: FaultKind, faults: Sequence[Fault]) -> Finding:
    members = sorted({gpu for fault in faults for gpu in fault.gpus} & held.placed.members)
    return finding(
        FAULT_CODES[kind][0],
        plan=held.plan.label,
        gpus=f"GPU {', '.join(map(str, members))}",
        words="; ".join(dict.fromkeys(fault.words for fault in faults)),
        command=_command(held, kind),
    )


def _command(held: Held, kind: FaultKind) -> str:
    """What shows such a fault, and shows it gone."""
    tools = held.tools.matrix if kind is FaultKind.OFF_FABRIC else held.tools.links
    return FAULT_CODES[kind][1] or tools


def _badly_bridged(held: Held) -> Finding | None:
    """Fewer links to all neighbours together than the card's bridge carries: it is not well
    seated, or one of several is missing.
    """
    whole = _bridge_links(held.machine)
    seen = min(held.topology.links_of(gpu) or 0 for gpu in held.placed.worst)
    if not held.topology.matrix or not whole or not 0 < seen < whole or not is_fabric(held.link):
        return None
    words = f"{held.link}, {seen} links in all, and the bridge of this card has {whole}"
    gaps = {"gpus": held.pair, "words": words, "command": held.tools.matrix}
    return finding(Code.GPU_LINK_FAULTY, plan=held.plan.label, **gaps)


def _slow_pair(held: Held) -> Finding | None:
    """A pair inside a group that the best assignment could not leave out."""
    slow = [one for one in _slow_pairs(held) if held.placed.joins(one.pair)]
    if not slow:
        return None
    usual = max(one.usual for one in slow) * FAR_BELOW / GB
    return finding(
        Code.PAIR_SLOW,
        plan=held.plan.label,
        words="; ".join(one.words for one in slow[:MOST_TOLD]),
        command=PAIR_BENCHMARK,
        rate=f"{usual:.3g} GB/s or more one way",
    )


MOST_TOLD = 3


def _slow_pairs(held: Held) -> Iterator[SlowPair]:
    """By the class that was seen. Without a matrix: slower than one NVLink, where all are claimed
    to be joined.
    """
    yield from slow_pairs(held.topology)
    if held.topology.matrix or held.machine.link.value not in ALL_TO_ALL:
        return
    for pair in held.topology.pairs:
        rate = one_way(held.topology, pair)
        if rate and rate < FAR_BELOW * LEAST_NVLINK:
            yield SlowPair(pair, rate, LEAST_NVLINK)


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
        return not held.on_fabric
    if kind is FaultKind.INACTIVE_LINKS:
        return held.on_fabric or held.machine.link.value in CLASS_FLOOR
    return True


# --- peer access and the memory that stands in for it


def cut_off(held: Held) -> bool:
    """Peer access refused inside the group, or NCCL seen to go through shared memory."""
    pairs = (pair for group in held.placed.groups for pair in combinations(group, 2))
    refused = any(held.topology.reach(*pair) is False for pair in pairs)
    return refused or bool(held.topology.of_kind(FaultKind.NO_PEER_ACCESS))


def meets_in_memory(held: Held) -> bool:
    """Whether the ranks of a group have to meet in shared memory."""
    return cut_off(held) and not held.on_fabric


def with_shared_memory(
    plan: Plan, topology: Topology | None, verdict: LinkVerdict, *, needed: bool
) -> LinkVerdict:
    """The verdict with what a small /dev/shm means for it: where the ranks meet there (`needed`),
    NCCL fails or hangs without room.
    """
    faults = topology.of_kind(FaultKind.SMALL_SHM) if topology else ()
    if not faults:
        return verdict
    words = faults[0].words
    if not needed:
        small = finding(Code.SHM_SMALL, words=words)
        return replace(verdict, findings=(*verdict.findings, small))
    found = finding(Code.SHM_FAILED, plan=plan.label, words=words)
    return replace(
        verdict,
        word=LinkWord.INSUFFICIENT,
        reason=found.sentence,
        settled_by="df -h /dev/shm",
        cleared_by=found.remedy,
        findings=(*verdict.findings, found),
    )
