"""The GPUs and links that a machine may have, as far as time depends on them.

An unknown link is several possible worlds, the one to be feared first. A fact that becomes known
leaves fewer of them, so no range that spans them grows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evaluator.devices import Device, device_of
from evaluator.facts import Fact, Grade
from evaluator.gpus import GpuSpec
from evaluator.layouts import Links
from evaluator.link_costs import Fabric, Wire, fabric_of, wire_of
from evaluator.machine import LinkClass, Machine
from evaluator.units import GB

GPUS_OF_A_MACHINE = 8
"""Where the count is not known; network cards of a machine are divided among its GPUs."""
SLOWEST_NETWORK = Fabric(10 * GB / 8 / GPUS_OF_A_MACHINE, tcp=True)
FASTEST_NETWORK = Fabric(100.0 * GB)
"""One 10 GbE port for eight GPUs, and one XDR port for each."""


@dataclass(frozen=True, slots=True)
class Rental:
    """Devices that a label may mean (the worst counts) and the possible links."""

    device: Device
    worlds: tuple[Links, ...] = (Links(),)


def rental_of(machine: Machine, nodes: int = 1) -> Rental | None:
    """None where no card with a published peak matches. The slowest matching card counts."""
    cards = [(device, spec) for spec in machine.specs if (device := device_of(spec))]
    if not cards or len(cards) < len(machine.specs):
        return None
    device, spec = min(cards, key=lambda card: card[0].half_flops)
    fabrics = _fabrics(machine) if nodes > 1 else [None]
    wires = list(_wires(machine, spec))
    worlds = tuple(Links(wire, fabric) for fabric in fabrics for wire in wires)
    return Rental(device, worlds)


def possible_kinds(spec: GpuSpec) -> list[LinkClass]:
    """Every link that a card's form permits, slowest first. PCIe is always possible."""
    permitted = {link.kind for link in spec.permits}
    kinds = [LinkClass.P2P_DISABLED, LinkClass.PCIE_P2P]
    if "nvlink_bridge_optional" in permitted:
        kinds.append(LinkClass.NVLINK_BRIDGE)
    if "nvlink_nvswitch" in permitted:
        kinds.append(LinkClass.NVSWITCH)
    if any(kind.startswith("infinity") for kind in permitted):
        kinds.append(LinkClass.XGMI)
    return kinds


def _wires(machine: Machine, spec: GpuSpec) -> Iterator[Wire | None]:
    known = machine.link.value
    kinds = possible_kinds(spec) if known is None else [known]
    generation = machine.pcie_generation.value
    found = [wire for kind in kinds if (wire := wire_of(kind, spec, pcie_generation=generation))]
    if not found:
        yield None
    for wire in found:
        yield with_rate(wire, machine.link_bytes_per_s)


def with_rate(wire: Wire, rate: Fact[int]) -> Wire:
    """The wire with the bus bandwidth that a benchmark of this machine showed."""
    if not rate.at_least(Grade.BENCHMARKED) or not rate.value:
        return wire
    return Wire(
        wire.kind,
        wire.line_bytes_per_s,
        wire.switch_from,
        wire.between_pairs,
        benchmarked=float(rate.value),
    )


def _fabrics(machine: Machine) -> list[Fabric | None]:
    words, gpus = machine.inter_node.value, machine.gpu_count.value or GPUS_OF_A_MACHINE
    known = fabric_of(words, gpus) if words else None
    return [known] if known else [SLOWEST_NETWORK, FASTEST_NETWORK]
