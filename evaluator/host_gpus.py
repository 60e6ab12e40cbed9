"""Host items of the GPUs themselves: how many, how whole, how joined, how fed."""

from __future__ import annotations

from functools import lru_cache

from evaluator.checklist import Asked, HostItem, weakest
from evaluator.connections import FaultKind, Topology
from evaluator.facts import Grade
from evaluator.machine import LinkClass, Machine
from evaluator.plans import Plan
from evaluator.units import GIB, gib

COUNTED = Asked(
    "GPU count and memory",
    ("gpu_count", "usable_bytes_per_gpu", "gpu_model"),
    "Ask for `nvidia-smi --query-gpu=name,memory.total --format=csv`, or `rocm-smi` on AMD.",
)


def counted(machine: Machine) -> HostItem:
    grade = weakest(machine.gpu_count, machine.usable_bytes_per_gpu)
    name = machine.gpu_model.value or "GPU"
    return counted_item(machine.gpu_count.value, machine.usable_bytes_per_gpu.value, name, grade)


@lru_cache(maxsize=4096)
def counted_item(count: int | None, size: int | None, model: str, grade: Grade) -> HostItem:
    if count is None or size is None:
        missing = "the number of GPUs" if count is None else "the memory of each GPU"
        return COUNTED.unknown(f"The listing does not settle {missing}.")
    return COUNTED.passes(f"{count} × {model}, {gib(size):,.1f} GiB reported on each.", grade)


POWER = Asked(
    "power limit", ("power_limit_watts",), "Ask for `nvidia-smi -q -d POWER`, or `rocm-smi` on AMD."
)
NEARLY = 0.97
"""A limit this close to the published one changes no figure here."""


def power(machine: Machine) -> HostItem:
    limit = machine.power_limit_watts
    published = [spec.tdp_watts for spec in machine.specs if spec.tdp_watts]
    return power_item(limit.value, limit.grade, min(published, default=None))


@lru_cache(maxsize=4096)
def power_item(limit: int | None, grade: Grade, published: int | None) -> HostItem:
    """A low limit stops nothing, but how fast the card then is, no published figure says."""
    if limit is None:
        return POWER.unknown("The power limit is not stated.")
    if published is None:
        return POWER.unknown(f"The limit is {limit} W; the card's own is not published.", grade)
    if limit >= NEARLY * published:
        return POWER.passes(f"The limit is {limit} W of {published} W.", grade)
    words = f"The limit is {limit} W of {published} W: slower than every figure here assumes."
    remedy = f"Have the limit raised (`nvidia-smi -pl {published}`), or benchmark the job on it."
    return POWER.unknown(words, grade, remedy)


WHOLE = Asked(
    "whole GPUs", ("gpu_count", "topology"), "Ask for `nvidia-smi -L`, or `rocm-smi` on AMD."
)


def is_sliced(seen: Topology | None) -> bool | None:
    """Whether the machine was seen to be cut into slices; None where no output would show it."""
    if seen is None or FaultKind.SLICED not in seen.checked:
        return None
    return bool(seen.of_kind(FaultKind.SLICED))


@lru_cache(maxsize=64)
def whole_item(fractional: bool, grade: Grade, sliced: bool | None, exchanges: bool) -> HostItem:
    if not fractional and not sliced:
        known = Grade.MEASURED if sliced is False else grade
        return (
            WHOLE.passes("Whole GPUs are rented.", known)
            if known
            else WHOLE.unknown("The listing does not settle how many whole GPUs there are.")
        )
    known = Grade.MEASURED if sliced else grade
    words = "MIG mode is on" if sliced else "A share of a GPU is offered"
    if exchanges:
        remedy = "Have MIG mode turned off, or take whole GPUs."
        return WHOLE.fails(f"{words}, and shares cannot reach each other.", known, remedy)
    reason = f"{words}: neighbours share its bandwidth, so its speed is not known."
    return WHOLE.unknown(reason, known, "Benchmark the job on it, or take a whole GPU.")


# --- how they are joined

PEERS = Asked(
    "peer connectivity",
    ("link", "topology"),
    "Ask this very machine for `nvidia-smi topo -m` and `nvidia-smi topo -p2p r`, or for "
    "`rocm-smi --showtopo`.",
)


def peers(machine: Machine, plan: Plan) -> HostItem:
    alone = plan.gpus == 1 or machine.gpu_count.value == 1
    return peers_item(machine.link.value, machine.link.grade, alone, plan.exchanges)


@lru_cache(maxsize=256)
def peers_item(link: LinkClass | None, grade: Grade, alone: bool, exchanges: bool) -> HostItem:
    """How firmly the links are known. Whether they are enough is the link verdict's to say."""
    if alone:
        return PEERS.passes("One GPU has no peers.", grade)
    if not exchanges:
        return PEERS.passes("Replicas exchange nothing.", grade)
    if link is None:
        return PEERS.unknown("Nothing is known of the links between the GPUs.")
    words = f"The links between the GPUs ({link.replace('_', ' ')}) are {grade.word}."
    return PEERS.passes(words, grade) if grade >= Grade.MEASURED else PEERS.unknown(words, grade)


SLOTS = Asked(
    "PCIe",
    ("pcie_generation", "pcie_lanes", "topology"),
    "Ask for `nvidia-smi -q` or `lspci -vv`: link generation and width, maximum and current.",
)


def slots(machine: Machine, working: int, moves: bool) -> HostItem:
    generation, lanes, seen = machine.pcie_generation, machine.pcie_lanes, machine.topology.value
    faults = seen.of_kind(FaultKind.NARROW_SLOT) if seen else ()
    narrow = tuple(gpu for fault in faults for gpu in fault.gpus)
    left = (machine.gpu_count.value or working) - len(narrow)
    return pcie_item(
        generation.value, lanes.value, generation.grade, narrow, moves and left < working
    )


@lru_cache(maxsize=4096)
def pcie_item(
    generation: int | None,
    lanes: int | None,
    grade: Grade,
    narrow: tuple[int, ...],
    needed: bool,
) -> HostItem:
    """`narrow` GPUs sit in slots of fewer lanes; `needed` where the plan cannot leave them out."""
    which = ", ".join(map(str, narrow))
    if narrow and needed:
        words = f"The slot of GPU {which} is narrower than the others, and the plan needs it."
        return SLOTS.fails(words, Grade.MEASURED, "Have the card moved to a full slot.")
    if generation is None:
        return SLOTS.unknown("Generation and width of the slots are not stated.")
    width = f" x{lanes}" if lanes else ""
    if narrow:
        return SLOTS.passes(f"PCIe {generation}{width}; leave out GPU {which}.", grade)
    if lanes is None:
        return SLOTS.passes(f"PCIe {generation}, {grade.word}; the width is not stated.", grade)
    return SLOTS.passes(f"PCIe {generation}{width}, {grade.word}.", grade)


SHM = Asked(
    "shared memory",
    ("shm_bytes", "topology"),
    "Start the container with `--shm-size=8g` or `--ipc=host`, then look with `df -h /dev/shm`.",
)
LEAST_SHM = GIB
"""NCCL and data loaders meet there; containers have 64 MB where nobody asks for more."""


def has_small_shm(seen: Topology | None) -> bool:
    """Whether NCCL was seen to fail for want of it, or `df` showed too little."""
    kinds = (FaultKind.SHM_FAILED, FaultKind.SMALL_SHM)
    return bool(seen and any(seen.of_kind(kind) for kind in kinds))


@lru_cache(maxsize=4096)
def shm_item(size: int | None, grade: Grade, failed: bool, exchanges: bool) -> HostItem:
    """`failed` where it was seen to be too small. A flag of the container mends it, so that is
    open, not lost."""
    if not exchanges:
        return SHM.passes("One process per GPU, and none meets another.", grade)
    if failed:
        return SHM.unknown("It was seen to be too small for NCCL's segments.", Grade.MEASURED)
    if size is None:
        return SHM.unknown("The size of /dev/shm is not stated.")
    words = f"{gib(size):.2g} GiB in /dev/shm."
    return SHM.passes(words, grade) if size >= LEAST_SHM else SHM.unknown(words, grade)


GUEST = Asked(
    "virtualisation",
    ("virtual", "topology"),
    "Ask whether it is bare metal; in a guest only a benchmark shows the links.",
)


@lru_cache(maxsize=64)
def virtual_item(virtual: bool | None, grade: Grade, flattened: bool, exchanges: bool) -> HostItem:
    """A guest may show a flattened picture of the links; GPUs that exchange nothing do not care."""
    if not exchanges:
        return GUEST.passes("The plan asks nothing of the links, which a guest may hide.", grade)
    if virtual is None and not flattened:
        return GUEST.unknown("Bare metal or a virtual machine: not stated.")
    if virtual or flattened:
        return GUEST.unknown("A virtual machine may hide how the GPUs are joined.", grade)
    return GUEST.passes("Bare metal: the driver sees the links as they are.", grade)


NETWORK = Asked(
    "network between machines",
    ("inter_node",),
    "Ask for a two-node `all_reduce_perf -b 1G -e 8G -f 2`.",
)


@lru_cache(maxsize=1024)
def network_item(fabric: str | None, grade: Grade, nodes: int) -> HostItem:
    if grade >= Grade.BENCHMARKED:
        return NETWORK.passes(f"{fabric} is benchmarked.", grade)
    known = f"{fabric} is {grade.word}" if fabric else "Nothing is known"
    return NETWORK.unknown(f"{known}; the plan spans {nodes} machines.", grade)
