"""The GPUs and links that a machine may have, as far as time depends on them.

An unknown link is several possible worlds, the one to be feared first. A fact that becomes known
leaves fewer of them, so no range that spans them grows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

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

    @property
    def linked(self) -> bool:
        """Whether every possible world has a link with a known line rate."""
        return all(links.wire is not None for links in self.worlds)


def rental_of(machine: Machine, nodes: int = 1) -> Rental | None:
    """None where a card that the label may mean has no published peak.

    The slowest arithmetic and the slowest memory of those cards count, and the memory size that
    the machine itself is said to have.
    """
    cards = [(device, spec) for spec in machine.specs if (device := device_of(spec))]
    if not cards or len(cards) < len(machine.specs):
        return None
    slowest, spec = min(cards, key=lambda card: card[0].half_flops)
    device = replace(
        slowest,
        memory_bytes_per_s=min(card.memory_bytes_per_s for card, _ in cards),
        usable_bytes=machine.usable_bytes_per_gpu.value,
    )
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
    """A link that the card cannot have leaves all that it can; None where no rate is published."""
    known = machine.link.value
    generation = machine.pcie_generation.value

    def wires(kinds: list[LinkClass]) -> list[Wire]:
        every = (wire_of(kind, spec, pcie_generation=generation) for kind in kinds)
        return [wire for wire in every if wire]

    found = (wires([known]) if known else []) or wires(possible_kinds(spec))
    if not found:
        yield None
    for wire in found:
        yield with_rate(wire, machine.link_bytes_per_s)


def with_rate(wire: Wire, rate: Fact[int]) -> Wire:
    """The wire with the bus bandwidth that a benchmark of this machine showed."""
    if not rate.at_least(Grade.BENCHMARKED) or not rate.value:
        return wire
    return replace(wire, benchmarked=float(rate.value))


def _fabrics(machine: Machine) -> list[Fabric | None]:
    words, gpus = machine.inter_node.value, machine.gpu_count.value or GPUS_OF_A_MACHINE
    known = fabric_of(words, gpus) if words else None
    return [known] if known else [SLOWEST_NETWORK, FASTEST_NETWORK]
