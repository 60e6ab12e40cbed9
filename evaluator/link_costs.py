"""What a collective costs on a link: by class, generation, group size and message size.

T = latency + factor x S / bandwidth (nccl-tests PERFORMANCE.md). Latency rises where the protocol
changes, between 1 and 16 MiB. Bytes/s count one direction and one GPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from math import log2
from typing import Any

import numpy as np

from evaluator.calibration import figure
from evaluator.estimates import Setting
from evaluator.exchanges import Operation, bus_factor
from evaluator.gpus import GpuSpec
from evaluator.machine import LinkClass
from evaluator.ranges import (
    Few,
    Number,
    Range,
    by_count,
    choose,
    choose_range,
    exact,
    larger,
    largest,
    occurs,
    smaller,
    total,
)
from evaluator.units import GB, KIB, MIB


@dataclass(frozen=True, slots=True)
class Wire:
    """A link inside one machine. `line_bytes_per_s` is its line rate per GPU.

    `switch_from` is the group size from which the switch adds up all-reduces (NVLS); None is never.
    `between_pairs` is the line rate of the slot that joins pairs of GPUs, 0 where all are joined.
    `benchmarked` is the bus bandwidth that a large all-reduce showed on this machine, 0 for none.
    """

    kind: LinkClass
    line_bytes_per_s: float
    switch_from: int | None = None
    between_pairs: float = 0.0
    benchmarked: float = 0.0


@dataclass(frozen=True, slots=True)
class Fabric:
    """A network between machines. `card_bytes_per_s` is the line rate per GPU."""

    card_bytes_per_s: float
    tcp: bool = False


NVLINKS = (LinkClass.NVSWITCH, LinkClass.NVLINK, LinkClass.NVLINK_PAIRS, LinkClass.NVLINK_BRIDGE)
PAIRED = (LinkClass.NVLINK_PAIRS, LinkClass.NVLINK_BRIDGE)
PCIES = (LinkClass.PCIE_P2P, LinkClass.PCIE, LinkClass.P2P_DISABLED)
LINK_RATE = {1: 20 * GB, 2: 25 * GB, 3: 25 * GB, 4: 25 * GB, 5: 50 * GB}
"""One direction of one NVLink, by generation (vendor documents)."""
SWITCH_ADDS_FROM = {4: 5, 5: 6}
"""Group size from which NCCL lets the switch add, by NVLink generation (ml-engineering)."""
LANE_BYTES_PER_S = {3: 0.985 * GB, 4: 1.97 * GB, 5: 3.94 * GB, 6: 7.56 * GB}
PEERS_OF_A_FULL_MESH = 7


def wire_of(
    kind: LinkClass, spec: GpuSpec, links: int | None = None, pcie_generation: int | None = None
) -> Wire | None:
    """The wire that a class of link means on a card, given that the machine has that link.

    `links` is the number of NVLinks per GPU where a driver prints it. None where the card's own
    rate for the class is not published.
    """
    slot = _slot_rate(spec, pcie_generation)
    if kind in PCIES:
        return Wire(kind, slot) if slot else None
    for permitted in spec.permits:
        if permitted.bytes_per_s is None:
            continue
        if kind is LinkClass.XGMI and permitted.kind.startswith("infinity"):
            return Wire(kind, permitted.bytes_per_s / PEERS_OF_A_FULL_MESH)
        if kind in NVLINKS and permitted.kind.startswith("nvlink"):
            return _nvlink(kind, permitted.generation, permitted.bytes_per_s, links, slot)
    return None


def _nvlink(
    kind: LinkClass, generation: int | None, published: int, links: int | None, slot: float
) -> Wire:
    one = LINK_RATE.get(generation or 0)
    line = min(published, links * one) if links and one else published
    adds = SWITCH_ADDS_FROM.get(generation or 0) if kind is LinkClass.NVSWITCH else None
    return Wire(kind, line, adds, slot if kind in PAIRED else 0.0)


def _slot_rate(spec: GpuSpec, generation: int | None) -> float:
    if generation in LANE_BYTES_PER_S:
        return LANE_BYTES_PER_S[generation or 0] * (spec.pcie_lanes or 16)
    return float(spec.pcie_bytes_per_s or 0)


INFINIBAND = {"qdr": 5, "fdr": 7, "edr": 12.5, "hdr": 25, "ndr": 50, "xdr": 100}
"""GB/s of one port, by speed name."""
GIGABITS = re.compile(r"(?:(\d{1,3})\s*[x×]\s*)?(\d{1,4})\s*(?:G(?:b/s|bps|bit/s|bE|igE)?)\b", re.I)
WORDED = re.compile(r"(?:roce|rdma|tcp|efa|ethernet|ib)[_ -](\d{2,4})\b", re.I)
PORTS = re.compile(r"(?:(\d{1,2})\s*[x×]\s*)?\b(?:ib_)?(qdr|fdr|edr|hdr|ndr|xdr)\d*\b", re.I)
TCP = re.compile(r"\btcp|ethernet|gbe\b|gige\b|socket", re.I)
RDMA = re.compile(r"roce|rdma|infiniband|\bib\b|efa|gpudirect", re.I)
MOST_OF_ONE_CARD = 800
"""Gb/s; a larger figure is the sum over a machine."""
EFA_GENERATION_2 = 400


def fabric_of(words: str, gpus_per_machine: int) -> Fabric | None:
    """The network that words such as "ib_ndr", "EFA 3200 Gb/s" or "4x200 Gb/s" name.

    A bare speed name means one port for each GPU, a count or a sum is divided among the GPUs of a
    machine. None where the words hold no rate.
    """
    tcp = bool(TCP.search(words)) and not RDMA.search(words)
    port = PORTS.search(words)
    if port:
        rate = INFINIBAND[port[2].lower()] * GB
        return Fabric(rate * int(port[1]) / gpus_per_machine if port[1] else rate, tcp)
    found = GIGABITS.search(words)
    if found:
        return Fabric(_shared(found, tcp, gpus_per_machine), tcp)
    worded = WORDED.search(words)
    gigabits = int(worded[1]) if worded else EFA_GENERATION_2 if words.lower() == "efa" else None
    if gigabits is None:
        return None
    share = gpus_per_machine if tcp else 1
    return Fabric(gigabits * GB / 8 / share, tcp)


def _shared(found: re.Match[str], tcp: bool, gpus: int) -> float:
    count, gigabits = int(found[1] or 1), int(found[2])
    shared = bool(found[1]) or gigabits > MOST_OF_ONE_CARD or tcp
    return count * gigabits * GB / 8 / (gpus if shared else 1)


@dataclass(frozen=True, slots=True)
class Wires:
    """Many elements, each on one of few wires. `which` is the number of each element's."""

    wires: Few[Wire]
    which: Any


@dataclass(frozen=True, slots=True)
class Fabrics:
    """Many elements, each over one of few networks. `which` is the number of each element's."""

    fabrics: Few[Fabric]
    which: Any


def on_wire(wire: Wire | Wires, key: Hashable, read: Callable[[Wire], Range]) -> Range:
    """What is read of a wire; of many wires, for each element, once for each key."""
    if isinstance(wire, Wires):
        return wire.wires.each(key, read, wire.which)
    return read(wire)


def is_nvlink(wire: Wire | Wires) -> Number:
    return on_wire(wire, "nvlink", lambda one: exact(one.kind in NVLINKS)).typical


@lru_cache(maxsize=4096)
def bandwidth(wire: Wire, operation: Operation, gpus: int, *, switch: bool | None = None) -> Range:
    """Bus bandwidth of a large message in a group of `gpus` inside one machine.

    `switch` says whether the switch adds up (NVLS); None leaves it to NCCL's own choice. A
    benchmark narrows the range of the class, or replaces it where it lies outside.
    """
    seen = _by_class(wire, operation, gpus, switch)
    if not wire.benchmarked:
        return seen
    near = BENCHMARK_SPREAD.scaled(wire.benchmarked)
    low, high = max(near.low, seen.low), min(near.high, seen.high)
    return Range(low, min(max(wire.benchmarked, low), high), high) if low <= high else near


BENCHMARK_SPREAD = Range(0.95, 1.0, 1.05)
"""How far one run of nccl-tests lies from the next on a quiet machine."""


def _by_class(wire: Wire, operation: Operation, gpus: int, switch: bool | None) -> Range:
    if wire.kind in PCIES:
        return _pcie(wire.kind, gpus).scaled(wire.line_bytes_per_s)
    if wire.kind is LinkClass.XGMI:
        peers = min(gpus - 1, PEERS_OF_A_FULL_MESH)
        return figure("xgmi.mesh").scaled(wire.line_bytes_per_s * peers)
    if wire.kind in PAIRED and gpus > 2:
        return _across_pairs(wire)
    if operation is Operation.ALL_REDUCE and _adds(wire, gpus, switch):
        return figure("nvlink.switch_reduce").scaled(wire.line_bytes_per_s * 2 * (gpus - 1) / gpus)
    return figure("nvlink.pair" if gpus == 2 else "nvlink.ring").scaled(wire.line_bytes_per_s)


def _adds(wire: Wire, gpus: int, switch: bool | None) -> bool:
    by_choice = wire.switch_from is not None and gpus >= wire.switch_from
    return by_choice if switch is None else switch and wire.switch_from is not None


def _pcie(kind: LinkClass, gpus: int) -> Range:
    if kind is LinkClass.PCIE_P2P:
        return figure("pcie.pair" if gpus == 2 else "pcie.peer")
    pair, host = figure("pcie.pair"), figure("pcie.host")
    return Range(host.low, pair.typical, pair.high) if gpus == 2 else host


def _across_pairs(wire: Wire) -> Range:
    """A ring over several pairs goes through the slots between them; half of its hops are fast."""
    return figure("pcie.peer").scaled(wire.between_pairs)


MIDDLE_BYTES = 512 * KIB
"""Message size at which half of the change of protocol is paid."""
MIDDLE_BYTES_OF_NETWORK = 4 * MIB
WAVES = 15
"""Steps between machines grow with log2 of their number once NCCL takes trees."""


@dataclass(frozen=True, slots=True)
class Group:
    """`gpus` ranks on `nodes` machines. `wire` None only where every machine holds one rank."""

    gpus: int
    nodes: int = 1
    wire: Wire | Wires | None = None
    fabric: Fabric | Fabrics | None = None

    @property
    def inside(self) -> int:
        """Ranks of the group within one machine."""
        return larger(1, self.gpus // self.nodes)  # type: ignore[no-any-return]


def seconds(
    operation: Operation, group: Group, size_bytes: Number, *, switch: bool | None = None
) -> Range:
    """Time of one collective. `size_bytes` is the buffer in nccl-tests' convention of the op.

    Between machines the lower bound takes the slower of the two levels, the upper their sum. Kept
    for one rental: a range moves one constant at a time and asks for the same collectives again.
    """
    many = isinstance(group.wire, Wires) or isinstance(group.fabric, Fabrics)
    if many or not isinstance(size_bytes, int | float):
        return _seconds(operation, group, size_bytes, switch)
    return _kept_seconds(operation, group, size_bytes, switch)


def taken(setting: Setting, operation: Operation, group: Group, size_bytes: Number) -> float:
    """The same in a setting; links inside a machine and between machines are two assumptions."""
    spent, crossing = seconds(operation, group, size_bytes), group.nodes > 1
    if np.all(crossing) or not np.any(crossing):
        return setting.take(NETWORK if np.any(crossing) else LINK, spent)
    still = exact(spent.typical)
    inside = setting.take(LINK, choose_range(crossing, still, spent))
    between = setting.take(NETWORK, choose_range(crossing, spent, still))
    return choose(crossing, between, inside)  # type: ignore[no-any-return]


LINK, NETWORK = "link", "network between machines"


@lru_cache(maxsize=32768)
def _kept_seconds(
    operation: Operation, group: Group, size_bytes: float, switch: bool | None
) -> Range:
    return _seconds(operation, group, size_bytes, switch)


def _seconds(operation: Operation, group: Group, size_bytes: Number, switch: bool | None) -> Range:
    if not occurs(group.gpus - 1):
        return exact(0)
    parts = []
    if occurs(group.inside - 1) and group.wire:
        inside = _inside(operation, group, group.wire, size_bytes, switch)
        parts.append(choose_range(group.inside > 1, inside, exact(0)))
    if occurs(group.nodes - 1) and group.fabric:
        between = _between(operation, group, group.fabric, size_bytes)
        parts.append(choose_range(group.nodes > 1, between, exact(0)))
    latency = _latency(operation, group, size_bytes)
    slowest, both = reduce(largest, parts), total(parts)
    typical = slowest.typical + OVERLAPPED * (both.typical - slowest.typical)
    return latency + Range(slowest.low, typical, both.high)


OVERLAPPED = 0.25
"""Share of the faster level that shows, typically: 4 machines of B200 took 22 of 16 to 26 ms."""


def _inside(
    operation: Operation, group: Group, wire: Wire | Wires, size: Number, switch: bool | None
) -> Range:
    """A ring over several machines keeps the links inside busy with the ring's own share."""
    moved = _bus(operation, group.inside) * size
    return _over(moved, _rate(operation, larger(2, group.inside), wire, switch))


def _bus(operation: Operation, ranks: Number) -> Number:
    return by_count(ranks, lambda count: float(bus_factor(operation, count)))


def _rate(operation: Operation, ranks: Number, wire: Wire | Wires, switch: bool | None) -> Range:
    """Elements may differ in their wire and in how many ranks share it."""
    if isinstance(ranks, np.ndarray) and isinstance(wire, Wires):
        counts = np.flatnonzero(np.bincount(ranks)).tolist()
        every = replace(wire, which=slice(None))
        tables = [_rate(operation, count, every, switch) for count in counts]
        at = (np.searchsorted(counts, ranks), wire.which)
        ends = ([getattr(one, end) for one in tables] for end in ("low", "typical", "high"))
        return Range(*(np.array(end)[at] for end in ends))
    key = ("bandwidth", operation, ranks, switch)
    return on_wire(wire, key, lambda one: bandwidth(one, operation, ranks, switch=switch))


def _between(operation: Operation, group: Group, fabric: Fabric | Fabrics, size: Number) -> Range:
    """Each GPU of a machine carries its share of the buffer over its own card."""
    moved = _bus(operation, group.nodes) * size / group.inside
    if isinstance(fabric, Fabrics):
        return _over(moved, fabric.fabrics.each("card", _card_rate, fabric.which))
    return _over(moved, _card_rate(fabric))


def _card_rate(fabric: Fabric) -> Range:
    share = figure("network.ethernet" if fabric.tcp else "network.rate")
    return share.scaled(fabric.card_bytes_per_s)


def _over(moved: Number, rate: Range) -> Range:
    return Range(moved / rate.high, moved / rate.typical, moved / rate.low)


def _latency(operation: Operation, group: Group, size: Number) -> Range:
    rounds = 2 if operation is Operation.ALL_REDUCE else 1
    spent = exact(0)
    if occurs(group.inside - 1) and group.wire:
        wire, settled = group.wire, size / (size + MIDDLE_BYTES)
        hops = [
            on_wire(wire, part, lambda one, part=part: figure(f"{family_of(one)}.{part}"))  # type: ignore[misc]
            for part in STEP_PARTS
        ]
        inside = _steps(hops, rounds * (group.inside - 1), settled)
        spent += choose_range(group.inside > 1, inside, exact(0))
    if occurs(group.nodes - 1):
        settled = size / (size + MIDDLE_BYTES_OF_NETWORK)
        waves = by_count(group.nodes, lambda nodes: WAVES * log2(2 * nodes) / 2)
        steps = rounds * smaller(group.gpus - 1, waves)
        between = _steps([figure(f"network.{part}") for part in STEP_PARTS], steps, settled)
        spent += choose_range(group.nodes > 1, between, exact(0))
    return spent


STEP_PARTS = ("base", "hop", "settle")


def family_of(wire: Wire) -> str:
    return "pcie" if wire.kind in PCIES else "nvlink"


def _steps(parts: Sequence[Range], steps: float, settled: Number) -> Range:
    base, hop, settle = parts
    return base + (hop + settle.scaled(settled)).scaled(steps)


def busbw_range(
    operation: Operation,
    wire: Wire | Wires | None,
    gpus: int,
    nodes: int,
    fabric: Fabric | Fabrics | None,
    size_bytes: int,
    *,
    switch: bool | None = None,
) -> Range | None:
    """Bus bandwidth in bytes/s of a healthy machine, as nccl-tests prints it.

    None where a level of the group has no known link, or where one rank moves nothing.
    """
    group = Group(gpus, nodes, wire, fabric)
    missing = (group.inside > 1 and wire is None) or (nodes > 1 and fabric is None)
    if gpus < 2 or missing or size_bytes <= 0:
        return None
    time = seconds(operation, group, size_bytes, switch=switch)
    moved = float(bus_factor(operation, gpus)) * size_bytes
    return Range(moved / time.high, moved / time.typical, moved / time.low)
