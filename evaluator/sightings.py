"""What a paste shows of one machine: its topology and its facts, from readings alone.

A guess never becomes a fact here: a pair that no output shows stays unknown, a class that one
missing pair could change is not named, and a description of a machine type only declares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from evaluator.connections import (
    FaultKind,
    NicPaths,
    Rate,
    Topology,
    is_fabric,
    rate_for,
    together,
)
from evaluator.evidence import BandwidthMatrix, BenchmarkRow, Format, Reading, Trouble
from evaluator.evidence.readings import troubles
from evaluator.exchanges import BANDWIDTH_ABOVE
from evaluator.facts import Grade
from evaluator.gpus import read_label
from evaluator.machine import LinkClass
from evaluator.seen_faults import checked_kinds, faults_of, peer_access
from evaluator.units import GB, MIB

IN_A_GUEST = (
    "Every pair looks alike and no NUMA nodes show: a virtual machine may hide the real picture."
)
COUNTING = frozenset(Format) - {
    Format.NCCL_TESTS,
    Format.NCCL_LOG,
    Format.NVBANDWIDTH,
    Format.LSTOPO,
    Format.UNKNOWN,
}
"""Outputs that list every GPU the container has; a benchmark may use some of them."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One attribute of `evaluator.machine.Machine` as a paste shows it."""

    name: str
    value: Any
    grade: Grade
    caveat: str = ""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One paste. `gpu_counts` holds every number of GPUs that an output lists."""

    readings: tuple[Reading, ...]
    topology: Topology
    facts: tuple[Seen, ...]
    gpu_counts: tuple[int, ...] = ()
    gpu_models: tuple[str, ...] = ()

    @property
    def formats(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(reading.format.value for reading in self.readings))

    @property
    def driver(self) -> str:
        return next((reading.driver for reading in self.readings if reading.driver), "")


def sight(readings: Iterable[Reading]) -> Sighting:
    """All outputs of one paste together."""
    held = tuple(readings)
    counting = [one for one in held if one.format in COUNTING and one.gpu_count]
    topology = together(topology_of(one.believed) for one in held)
    grade = Grade.MEASURED if all(one.measured for one in held) else Grade.DECLARED
    names = {name for one in held for name in one.gpu_names or ()}
    return Sighting(
        readings=held,
        topology=topology,
        facts=tuple(_facts(held, topology, grade)),
        gpu_counts=tuple(sorted({one.gpu_count for one in counting if one.gpu_count})),
        gpu_models=tuple(sorted({model for name in names if (model := read_label(name).model)})),
    )


def mismatches(seen: Sighting, gpu_count: int | None, gpu_model: str | None) -> tuple[str, ...]:
    """Why a paste cannot be of the machine that is listed, in words. Empty where it can be."""
    return tuple(_mismatches(seen, gpu_count, gpu_model))


def _mismatches(seen: Sighting, gpu_count: int | None, gpu_model: str | None) -> Iterator[str]:
    for count in seen.gpu_counts:
        if gpu_count is not None and count != gpu_count:
            yield f"{count} GPUs are in the output and {gpu_count} in the listing"
    yield from _two_pictures(seen.readings)
    most = max(
        (rate.ranks for rate in seen.topology.rates if _fits_badly(rate, gpu_count)), default=0
    )
    if most:
        yield f"{most} GPUs took part in the benchmark and {gpu_count} are in the listing"
    for model in seen.gpu_models:
        if gpu_model is not None and model != gpu_model:
            yield f"{model} is in the output and {gpu_model} in the listing"


def _fits_badly(rate: Rate, gpu_count: int | None) -> bool:
    """More ranks than one machine of the listing has, or than some of them evenly share."""
    if gpu_count is None or rate.ranks <= gpu_count:
        return False
    return rate.nodes == 1 or bool(rate.ranks % gpu_count)


def _two_pictures(readings: Sequence[Reading]) -> Iterator[str]:
    """Two outputs of one command that show a pair in two classes: of two machines, or edited. The
    better one must not win by standing first.
    """
    for one, other in combinations([r for r in readings if r.matrix], 2):
        for a, b in combinations(range(one.gpu_count or 0), 2):
            words = _at(one, a, b), _at(other, a, b)
            if one.format is other.format and None not in words and words[0] != words[1]:
                yield f"GPUs {a} and {b} are {words[0]} in one output and {words[1]} in another"
                return


def _at(reading: Reading, one: int, other: int) -> str | None:
    """The class of a pair; None where this output does not have it."""
    rows = reading.matrix or ()
    return rows[one][other] if max(one, other) < len(rows) else None


# --- facts


def _facts(held: Sequence[Reading], topology: Topology, grade: Grade) -> Iterator[Seen]:
    if topology != Topology(gpus=topology.gpus):
        yield Seen("topology", topology, grade, IN_A_GUEST if topology.flattened else "")
    if (link := link_of(topology)) and not any(_cut_off(one) for one in held):
        yield Seen("link", link, grade, IN_A_GUEST if topology.flattened else "")
    rate = rate_for(topology, topology.gpus)
    if rate and rate.message_bytes >= BANDWIDTH_ABOVE:
        yield Seen("link_bytes_per_s", rate.bytes_per_s, Grade.BENCHMARKED)
    yield from _from_each(held, grade)


def _cut_off(reading: Reading) -> bool:
    """Without its header, or without one of its GPUs, a matrix looks like a smaller machine's."""
    found = troubles(reading.problems)
    headless = Trouble.HEADER_MISSING in found
    shorter = reading.format is Format.NCCL_XML and Trouble.TRUNCATED in found
    return bool(reading.matrix) and (headless or shorter)


def _from_each(held: Sequence[Reading], grade: Grade) -> Iterator[Seen]:
    """Card, versions, memory and slots: the first output that shows them."""
    labels = [read_label(name) for one in held for name in one.gpu_names or ()]
    sizes = next((one.vram_mib for one in held if one.vram_mib), ())
    slots = [p.generation_max for one in held for p in one.pcie or () if p.generation_max]
    lanes = [p.width_now for one in held for p in one.pcie or () if p.width_now]
    limits = next((one.power_limit_w for one in held if one.power_limit_w), ())
    values = {
        "form_factor": _only(label.form_factor for label in labels),
        "usable_bytes_per_gpu": min(sizes) * MIB if sizes else None,
        "pcie_generation": min(slots, default=None),
        "pcie_lanes": min(lanes, default=None),
        "power_limit_watts": round(min(limits)) if limits else None,
        "shm_bytes": next(
            (one.shared_memory_bytes for one in held if one.shared_memory_bytes), None
        ),
        "virtual": next((one.virtual for one in held if one.virtual is not None), None),
        "driver_version": next((one.driver for one in held if one.driver), None),
        "cuda_version": next((one.cuda for one in held if one.cuda), None),
        "nccl_version": next((one.nccl_version for one in held if one.nccl_version), None),
    }
    known = ((name, value) for name, value in values.items() if value is not None)
    yield from (Seen(name, value, grade) for name, value in known)


def _only(words: Iterable[str | None]) -> str | None:
    """What all of them say; None where they differ or one of them says nothing."""
    found = set(words)
    return found.pop() if len(found) == 1 else None


def link_of(topology: Topology) -> LinkClass | None:
    """The class of the whole machine in one word. None where an unseen pair could change it."""
    if not topology.whole or topology.gpus < 2:
        return None
    words = [topology.between(*pair) or "" for pair in topology.pairs]
    if all(is_fabric(word) for word in words):
        return LinkClass.XGMI if "XGMI" in words else LinkClass.NVLINK
    if topology.islands:
        if "XGMI" in words:
            return LinkClass.XGMI_ISLANDS
        return LinkClass.NVLINK_PAIRS if topology.pairs_only else LinkClass.NVLINK_ISLANDS
    return _over_pcie(topology)


def _over_pcie(topology: Topology) -> LinkClass:
    reach = [topology.reach(*pair) for pair in topology.pairs]
    if False in reach or topology.of_kind(FaultKind.NO_PEER_ACCESS):
        return LinkClass.P2P_DISABLED
    return LinkClass.PCIE_P2P if all(reach) else LinkClass.PCIE


# --- topology


def topology_of(reading: Reading) -> Topology:
    """What one output shows of the machine."""
    matrix = reading.matrix or ()
    numa = reading.numa_affinity or tuple(
        None if node is None or node < 0 else str(node) for node in reading.numa_node or ()
    )
    return Topology(
        gpus=(reading.gpu_count if reading.format in COUNTING else 0) or len(matrix),
        matrix=matrix,
        peer=peer_access(reading),
        numa=numa if any(numa) else (),
        nics=tuple(NicPaths(nic.label, nic.to_gpus) for nic in reading.nics or ()),
        nearest_nic=tuple(
            f"{one.labels[0]} {one.link_class}" if one and one.labels else None
            for one in reading.nearest_nic or ()
        ),
        transports=tuple(one.name for one in reading.transports or ()),
        rates=tuple(_rates(reading)),
        pair_rates=_pair_rates(reading.bandwidth),
        faults=tuple(faults_of(reading)),
        checked=tuple(checked_kinds(reading)),
    )


def _pair_rates(tables: Sequence[BandwidthMatrix]) -> tuple[tuple[float | None, ...], ...]:
    """With peer access, one way. A table of both ways at once shows twice that, or less."""
    enabled = sorted((one for one in tables if one.p2p), key=lambda one: bool(one.both_ways))
    if not enabled:
        return ()
    share = 0.5 if enabled[0].both_ways else 1.0
    return tuple(
        tuple(None if rate is None else rate * share for rate in row) for row in enabled[0].rows
    )


def _rates(reading: Reading) -> Iterator[Rate]:
    for row in reading.rows or ():
        if reading.ranks and reading.ranks > 1 and not row.wrong:
            rate = round(row.best_busbw_gb_s * GB)
            name = _operation(row, reading.ranks)
            seconds = (row.time_us or 0.0) / 1e6
            yield Rate(name, reading.ranks, row.size_bytes, rate, reading.nodes or 0, seconds)


def _operation(row: BenchmarkRow, ranks: int) -> str:
    """The printed name. Without one: only an all-reduce has more bus than algorithm bandwidth, by
    2(n-1)/n (nccl-tests PERFORMANCE.md).
    """
    if row.operation != "unknown" or ranks < 3 or not row.algbw_gb_s:
        return row.operation
    factor = 2 * (ranks - 1) / ranks
    return "all_reduce" if abs(row.busbw_gb_s / row.algbw_gb_s / factor - 1) < 0.02 else "unknown"
