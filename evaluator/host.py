"""The host checklist: what a machine and its offer must bring. Unknown never fails.

`machine_items` depend on no plan, `plan_items` on little of one: judge the first once per machine.
Every item is a cached function of plain values, so thousands of plans cost a look-up each.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from evaluator.calibration import figure
from evaluator.checklist import (
    Asked,
    HostCounts,
    HostItem,
    HostWord,
    count,
    failures,
    host_findings,
)
from evaluator.facts import Grade
from evaluator.findings import Code, Finding, finding
from evaluator.host_gpus import (
    counted,
    has_small_shm,
    is_sliced,
    network_item,
    peers,
    power,
    shm_item,
    slots,
    virtual_item,
    whole_item,
)
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.offer import AVAILABILITY, offer_items
from evaluator.plans import Plan
from evaluator.software import software_items
from evaluator.states import host_bytes
from evaluator.storage import storage_items
from evaluator.units import gb

__all__ = [
    "AVAILABILITY",
    "HostCounts",
    "HostItem",
    "HostWord",
    "count",
    "failures",
    "host_findings",
    "host_items",
    "machine_items",
    "offer_items",
    "plan_items",
    "ram_finding",
]


def host_items(
    workload: Workload, plan: Plan, machine: Machine, weights_bytes: int | None
) -> tuple[HostItem, ...]:
    """What the machine itself must bring for a plan. `weights_bytes` are the whole model's."""
    alone = machine_items(workload, machine, weights_bytes)
    return (*alone, *plan_items(workload, plan, machine, weights_bytes))


def machine_items(
    workload: Workload, machine: Machine, weights_bytes: int | None
) -> tuple[HostItem, ...]:
    """The items that no plan changes."""
    return (
        counted(machine),
        *storage_items(workload, machine, weights_bytes),
        *software_items(workload, machine),
        power(machine),
    )


def plan_items(
    workload: Workload, plan: Plan, machine: Machine, weights_bytes: int | None
) -> tuple[HostItem, ...]:
    """The items that depend on how many GPUs of a machine work, and on what they exchange."""
    return tuple(_plan_items(workload, plan, machine, weights_bytes))


def _plan_items(
    workload: Workload, plan: Plan, machine: Machine, weights_bytes: int | None
) -> Iterator[HostItem]:
    working, exchanges = max(1, plan.gpus // plan.nodes), plan.exchanges
    seen = machine.topology.value
    yield peers(machine, plan)
    yield cores_item(machine.vcpus.value, machine.vcpus.grade, working)
    ram, offloaded = machine.ram_bytes, host_bytes(workload, plan)
    yield ram_item(ram.value, ram.grade, weights_bytes, offloaded, working)
    yield slots(machine, working, exchanges)
    yield shm_item(machine.shm_bytes.value, machine.shm_bytes.grade, has_small_shm(seen), exchanges)
    yield whole_item(machine.fractional, machine.gpu_count.grade, is_sliced(seen), exchanges)
    guest = machine.virtual
    yield virtual_item(guest.value, guest.grade, bool(seen and seen.flattened), exchanges)
    ports = machine.open_ports
    yield ports_item(ports.value, ports.grade, plan.replicas if workload.serving else 0)
    if plan.joins_machines:
        yield network_item(machine.inter_node.value, machine.inter_node.grade, plan.nodes)


def ram_finding(machine: Machine, weights_bytes: int | None) -> tuple[Finding, ...]:
    """RAM below the weights is slow to load, not impossible: engines map the files."""
    ram = machine.ram_bytes.value
    if ram is None or weights_bytes is None or ram >= weights_bytes:
        return ()
    reason = "the weights are then streamed from disk while loading"
    needed = f"{gb(weights_bytes):,.0f} GB of weights"
    return (finding(Code.HOST_RAM_SMALL, ram=f"{gb(ram):.0f} GB", needed=needed, reason=reason),)


# --- processor, memory, reach

CORES = Asked("vCPUs per GPU", ("vcpus",), "Ask for `nproc`.")


@lru_cache(maxsize=4096)
def cores_item(cores: int | None, grade: Grade, working: int) -> HostItem:
    """Below one core per working GPU its process cannot be scheduled beside the others."""
    if cores is None:
        return CORES.unknown("The number of vCPUs is not stated.")
    words = f"{cores} vCPUs for {_gpus(working, 'working ')}."
    remedy = f"Take {working} vCPUs or more, or a plan on {_gpus(cores)} or fewer."
    return CORES.passes(words, grade) if cores >= working else CORES.fails(words, grade, remedy)


def _gpus(count: int, kind: str = "") -> str:
    return f"{count} {kind}GPU{'s' if count > 1 else ''}"


RAM = Asked("host RAM", ("ram_bytes",), "Ask for `free -h`.")


@lru_cache(maxsize=4096)
def ram_item(
    ram: int | None, grade: Grade, weights: int | None, offloaded: int | None, working: int
) -> HostItem:
    """Offloaded states must be in RAM at once, pinned buffers beside them; weights can be streamed
    while they load."""
    asked = f" The job keeps {gb(offloaded):,.0f} GB in it." if offloaded else ""
    if ram is None:
        return RAM.unknown(f"The size of the RAM is not stated.{asked}")
    have = f"{gb(ram):,.0f} GB of RAM"
    pinned = figure("rent.pinned").typical * working
    if offloaded and ram < offloaded:
        remedy = f"Take {gb(offloaded + pinned):.0f} GB or more, or offload less."
        return RAM.fails(f"{have}.{asked}", grade, remedy)
    if ram < (offloaded or 0) + pinned:
        words = f"{have}.{asked} About {gb(pinned):,.0f} GB of pinned buffers come on top."
        return RAM.unknown(words, grade, "Measure one step, or take more RAM.")
    if weights is not None and ram < weights:
        words = f"{have} for {gb(weights):,.0f} GB of weights: slow to load."
        return RAM.unknown(words, grade, "Load once and time it, or take more RAM.")
    return RAM.passes(f"{have}.{asked}", grade)


PORTS = Asked("ports", ("open_ports",), "Ask how many ports can be reached from outside.")


@lru_cache(maxsize=1024)
def ports_item(ports: int | None, grade: Grade, servers: int) -> HostItem:
    """One for each server; a proxy on the machine makes one do for all."""
    if not servers:
        return PORTS.passes("A job that serves nobody needs none from outside.", grade)
    needed = f"{servers} server{'s' if servers > 1 else ''}"
    if ports is None:
        return PORTS.unknown(f"Nothing says which ports are open; {needed} will listen.")
    if ports >= servers:
        return PORTS.passes(f"{ports} open ports for {needed}.", grade)
    return PORTS.unknown(f"{ports} open ports for {needed}.", grade, "Put a proxy before them.")
