"""What the nesting of a topology file proves, although lines of it may be lost.

A lost `</pci>` and `<pci …>` put the devices of two bridges under one, a lost `</cpu>` and
`<cpu …>` those of two NUMA nodes, and the file stays well-formed. Two things would show it:

- Buses are numbered depth first. A switch lies on a bus of its own and has one more inside (NCCL
  writes its upper port only, src/graph/xml.cc), so a lost switch leaves two numbers in a row out
  between its devices and those before.
- Each `cpu` holds the mask of its cores: those of a lost one are in no mask.

Devices whose place nothing of this confirms may well lie as they stand, but it is not proven.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from evaluator.evidence.documents import Element

BUS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):[0-9a-f]{2}\.[0-9a-f]")
MASK = re.compile(r"[0-9a-f]{1,8}(?:,[0-9a-f]{8}){0,255}")
BITS_PER_DIGIT = 4
INSIDE_A_SWITCH = 2
"""A device below a switch is at least so many buses behind the switch itself."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The buses that a device and all below it take: from its own to the highest."""

    domain: str
    first: int
    last: int


class Nesting:
    """Answers for one file, each worked out once."""

    def __init__(self, root: Element) -> None:
        cpus = list(root.every("cpu"))
        self.all_cores = shows_all_cores(cpus) and all(map(_has_number, cpus))
        self._stretches: dict[Element, Stretch | None] = {}
        self._runs: dict[Element, int] = {}
        self._number = 0
        self._above: dict[Element, list[Element]] = {}
        for cpu in cpus:
            for pci in parts(cpu):
                self._measure(pci)

    def road(self, one: Element, other: Element) -> str:
        """The class by the tree: one bridge, several, one CPU, or two.

        NODE is the safe reading inside one CPU: the file does not state the root complexes.
        """
        first, second = self._bridges(one), self._bridges(other)
        if first and second and first[0] is second[0]:
            return "PIX"
        if meeting(first, second):
            return "PXB"
        return "NODE" if cpu_of(one) is cpu_of(other) else "SYS"

    def proves(self, one: Element, other: Element) -> bool:
        """Whether no lost line could have made the road of two devices look better than it is."""
        bridge = meeting(self._bridges(one), self._bridges(other))
        if bridge is None:
            return self.all_cores or cpu_of(one) is not cpu_of(other)
        runs = [self._runs.get(branch(bridge, device)) for device in (one, other)]
        return runs[0] is not None and runs[0] == runs[1]

    def _bridges(self, device: Element) -> list[Element]:
        if device not in self._above:
            self._above[device] = bridges(device)
        return self._above[device]

    def _measure(self, pci: Element) -> Stretch | None:
        below = [self._measure(part) for part in parts(pci)]
        self._stretches[pci] = found = _stretch(pci, below)
        self._number_runs(pci)
        return found

    def _number_runs(self, bridge: Element) -> None:
        """Branches of one bridge between which no switch can be missing share a number."""
        held = [(found, part) for part in parts(bridge) if (found := self._stretches[part])]
        last: Stretch | None = None
        for found, part in sorted(held, key=_place):
            if self._stretches[bridge] is None or last is None or _leaves_room(last, found):
                self._number += 1
            self._runs[part] = self._number
            last = found


def _place(held: tuple[Stretch, Element]) -> tuple[int, int]:
    return held[0].first, held[0].last


def _leaves_room(before: Stretch, after: Stretch) -> bool:
    """Whether two numbers in a row are missing between two branches."""
    return after.first - before.last > INSIDE_A_SWITCH


def _stretch(pci: Element, below: Iterable[Stretch | None]) -> Stretch | None:
    """None where the address cannot be read, or where what is below cannot lie there."""
    match = BUS.fullmatch(pci.values.get("busid", "").lower())
    if not match:
        return None
    domain, first = match[1], int(match[2], 16)
    last = first
    for part in below:
        if part is None or part.domain != domain or part.first < first + INSIDE_A_SWITCH:
            return None
        last = max(last, part.last)
    indented = all(part.column > pci.column for part in parts(pci))
    return Stretch(domain, first, last) if indented else None


def shows_all_cores(cpus: Iterable[Element]) -> bool:
    """Whether the masks of all CPUs together hold each core once. A mask is printed as wide as the
    machine may have cores.
    """
    masks = [cpu.values.get("affinity", "").lower() for cpu in cpus]
    if not masks or not all(map(MASK.fullmatch, masks)):
        return False
    digits = max(len(mask.replace(",", "")) for mask in masks)
    cores = [int(mask.replace(",", ""), 16) for mask in masks]
    together = 0
    for one in cores:
        together |= one
    width = together.bit_length()
    whole = sum(cores) == together == (1 << width) - 1
    return whole and width > BITS_PER_DIGIT * (digits - 1)


def _has_number(cpu: Element) -> bool:
    """-1 is what a machine says that hides its NUMA nodes."""
    return cpu.values.get("numaid", "").isdecimal()


# --- the tree


def parts(element: Element) -> list[Element]:
    return [part for part in element.inside if part.name == "pci"]


def bridges(device: Element) -> list[Element]:
    """The bridges above a device, nearest first."""
    return [above for above in device.above if above.name == "pci"]


def meeting(first: list[Element], second: list[Element]) -> Element | None:
    """The nearest bridge that two devices have in common: from the outermost on, they share all
    down to it.
    """
    shared = None
    for one, other in zip(reversed(first), reversed(second), strict=False):
        if one is not other:
            break
        shared = one
    return shared


def branch(bridge: Element, device: Element) -> Element:
    """The part of a bridge that holds a device."""
    path = [device, *bridges(device)]
    return path[next(place for place, one in enumerate(path) if one is bridge) - 1]


def cpu_of(element: Element) -> Element | None:
    return next((above for above in element.above if above.name == "cpu"), None)
