"""NCCL's and RCCL's topology XML: a tree of CPUs, bridges, GPUs and network devices.

A file without GPU elements describes a machine type: somebody declares it, nothing measured it.
What lines that were lost could have changed is read as it stands, and left out of `sure`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from evaluator.evidence.documents import Element, Malformed, read_xml
from evaluator.evidence.groups import rank
from evaluator.evidence.lines import Paste
from evaluator.evidence.nesting import Nesting, cpu_of, parts
from evaluator.evidence.readings import (
    Format,
    Matrix,
    Nearest,
    Nic,
    Problem,
    Reading,
    Sign,
    Standing,
    Trouble,
    UnreadableEvidence,
)

GPU_CLASSES = ("0x0300", "0x0302", "0x0380", "0x1200")
NIC_CLASSES = ("0x0200", "0x0207")
SWITCH_CLASS = "0x0680"
BRIDGE_CLASS = "0x0604"
PARTS = ("<pci busid", "<nvlink ", "<xgmi ", "<cpu numaid", "<cpu host_hash")
STATIC_WORDS = ("static pre-configured", "pre-configured topology")
MOST_GPUS = 256
MOST_NICS = 512
MOST_TOLD = 4
"""One lost line leaves several traces."""


Pair = tuple[int, int]


@dataclass(slots=True)
class Tree:
    """The devices of a file. `gpus` holds PCI elements by the number of the GPU, `links` how many
    links one GPU names to another, `to_switch` those to each switch.

    `lost` are the traces that lost lines left; with `muddled` no GPU is sure to have its number.
    """

    root: Element
    gpus: dict[int, Element]
    nics: list[tuple[str, Element]]
    described: bool
    nesting: Nesting
    muddled: bool = False
    links: dict[Pair, tuple[str, int]] = field(default_factory=dict)
    to_switch: dict[int, dict[str, int]] = field(default_factory=dict)
    to_self: list[Element] = field(default_factory=list)
    lost: list[Problem] = field(default_factory=list)

    @property
    def count(self) -> int:
        return max(self.gpus, default=-1) + 1

    def switched(self, gpu: int) -> int:
        """Links of one GPU to switches."""
        return sum(self.to_switch.get(gpu, {}).values())


def read_nccl_xml(paste: Paste) -> Iterator[Reading]:
    """The file of a paste. Raises UnreadableEvidence where it is broken off or has no root."""
    start = paste.text.find("<system")
    if start < 0:
        if any(part in paste.text for part in PARTS):
            expected = "a whole file from <system> to </system>"
            raise _unreadable(Problem(Trouble.INVALID_XML, 1, expected=expected))
        return
    end = paste.text.rfind("</system>")
    text = paste.text[start:] if end < start else paste.text[start : end + len("</system>")]
    line = paste.text.count("\n", 0, start) + 1
    if "<!ENTITY" in paste.text:
        expected = "a file that declares no entity"
        raise _unreadable(Problem(Trouble.INVALID_XML, 0, "<!ENTITY", expected))
    try:
        root = read_xml(text, line)
    except Malformed as problem:
        raise _unreadable(problem.problem) from problem
    declared = any(words in paste.text[:start].lower() for words in STATIC_WORDS)
    yield _reading(root, line, declared)


def _unreadable(problem: Problem) -> UnreadableEvidence:
    return UnreadableEvidence([problem], Format.NCCL_XML)


def _reading(root: Element, line: int, declared: bool) -> Reading:
    tree = _tree(root)
    if tree.count > MOST_GPUS or len(tree.gpus) > MOST_GPUS:
        expected = f"at most {MOST_GPUS} GPUs"
        raise _unreadable(Problem(Trouble.TOO_LARGE, line, str(tree.count), expected))
    problems = tuple(_problems(tree, line))
    read = Reading(
        format=Format.NCCL_XML,
        line=line,
        standing=Standing.PARTIAL if problems else Standing.OK,
        problems=problems,
        signs=frozenset(_signs(tree, declared)),
        gpu_count=tree.count or None,
        **_facts(tree, Sight(tree)),
    )
    if tree.described:
        return read
    return replace(read, sure=replace(read, **_facts(tree, Sure(tree))))


def _facts(tree: Tree, sight: Sight) -> dict[str, Any]:
    nics = tuple(_nic(tree, name, element, sight) for name, element in tree.nics)
    return {
        "matrix": _matrix(tree, sight) if tree.count and not tree.described else None,
        "nics": nics or None,
        "nearest_nic": _nearest(tree.count, nics) if nics and tree.count else None,
        "numa_node": tuple(map(sight.numa, range(tree.count))) if tree.count else None,
    }


# --- devices


def _tree(root: Element) -> Tree:
    shown = [gpu.parent for gpu in root.every("gpu") if gpu.parent and gpu.parent.name == "pci"]
    pci = list(root.every("pci"))
    gpus = shown or [one for one in pci if _class(one).startswith(GPU_CLASSES)]
    named = [(net.values.get("name", ""), net) for net in root.every("net")]
    unnamed = [(_bus(one), one) for one in pci if _class(one).startswith(NIC_CLASSES)]
    numbers = _numbers(gpus) if shown else None
    tree = Tree(
        root=root,
        gpus=dict(zip(numbers or range(len(gpus)), gpus, strict=True)),
        nics=(named or unnamed)[:MOST_NICS],
        described=not shown,
        nesting=Nesting(root),
        muddled=bool(shown) and numbers is None,
    )
    if shown:
        _look_for_losses(tree, pci)
        _join(tree)
    return tree


def _numbers(gpus: list[Element]) -> list[int] | None:
    """The driver's number of each GPU. None where one has none, or not its own alone."""
    words = [gpu.values.get("dev", "") for pci in gpus for gpu in pci.inside if gpu.name == "gpu"]
    whole = all(word.isdecimal() and len(word) < 4 for word in words)
    if len(words) != len(gpus) or not whole or len({*words}) != len(words):
        return None
    return [int(word) for word in words]


def _class(pci: Element) -> str:
    return pci.values.get("class", "").lower()


def _bus(pci: Element) -> str:
    return pci.values.get("busid", "").lower()


def _look_for_losses(tree: Tree, pci: list[Element]) -> None:
    """What no dump has: NCCL writes nothing but GPUs, network devices and the way to them."""
    shown = {*tree.gpus.values()}
    buses = Counter(_bus(one) for one in pci)
    for one in pci:
        kind = _class(one)
        if one not in shown and kind.startswith(GPU_CLASSES):
            tree.lost.append(_lost(one, _bus(one), "a <gpu> in this device"))
        elif one in shown and parts(one):
            tree.lost.append(_lost(one, _bus(one), "the end of this GPU before the next device"))
            tree.muddled = True
        elif kind.startswith(BRIDGE_CLASS) and not one.inside:
            tree.lost.append(_lost(one, _bus(one), "a device below this bridge"))
        elif buses[_bus(one)] > 1:
            tree.lost.append(_lost(one, _bus(one), "an address of its own"))
    for number in sorted({*range(tree.count)} - {*tree.gpus}):
        tree.lost.append(_lost(tree.root, "", f"GPU {number}"))
    if tree.muddled:
        tree.lost.append(_lost(tree.root, "", "in each <gpu> a dev of its own"))


def _lost(element: Element, read: str, expected: str) -> Problem:
    return Problem(Trouble.TRUNCATED, element.line, read[:40], expected)


# --- links


def _join(tree: Tree) -> None:
    """Links by the bus address of their target: a GPU, a switch, or the GPU itself."""
    places = {_bus(gpu): at for at, gpu in tree.gpus.items()}
    for at, gpu in tree.gpus.items():
        for name, word in (("nvlink", "NV"), ("xgmi", "XGMI")):
            for link in gpu.every(name):
                _take_link(tree, at, link, word, places)
    for (one, other), _ in [*tree.links.items()]:
        if (other, one) not in tree.links:
            expected = f"the same link in the other direction, from GPU {other}"
            tree.lost.append(_lost(tree.gpus[one], f"a link of GPU {one}", expected))


def _take_link(tree: Tree, at: int, link: Element, word: str, places: dict[str, int]) -> None:
    count = link.values.get("count", "1")
    number = int(count) if count.isdecimal() and len(count) < 4 else 1
    address, kind = link.values.get("target", "").lower(), link.values.get("tclass", "").lower()
    target = places.get(address)
    if target == at:
        tree.to_self.append(link)
    elif target is not None:
        before = tree.links.get((at, target), (word, number))[1]
        tree.links[at, target] = (word, min(before, number))
    elif kind.startswith(SWITCH_CLASS):
        switches = tree.to_switch.setdefault(at, {})
        switches[address] = min(switches.get(address, number), number)
    elif kind.startswith(GPU_CLASSES):
        tree.lost.append(_lost(link, address, "this GPU in the file, to which a link leads"))


class Sight:
    """A file as it stands."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def link(self, one: int, other: int) -> str | None:
        """A direct link, one through switches, none, or what the tree of bridges says."""
        tree = self.tree
        if tree.muddled or one not in tree.gpus or other not in tree.gpus:
            return None
        links = [tree.links.get(pair) for pair in ((one, other), (other, one))]
        if any(links):
            word, number = min(links[0] or ("", 0), links[1] or ("", 0))
            return _word(word, number) if word else None
        if one in tree.to_switch and other in tree.to_switch:
            return _word("NV", min(tree.switched(one), tree.switched(other)))
        return self.without_link(one, other)

    def without_link(self, one: int, other: int) -> str | None:
        if self.tree.to_self:
            return None
        if self.tree.links or self.tree.to_switch:
            return NOT_JOINED
        return self.road(self.tree.gpus[one], self.tree.gpus[other])

    def road(self, one: Element, other: Element) -> str | None:
        return self.tree.nesting.road(one, other)

    def numa(self, gpu: int) -> int | None:
        """The NUMA node of the CPU above; -1 says that the machine hides it."""
        cpu = cpu_of(self.tree.gpus[gpu]) if gpu in self.tree.gpus else None
        text = cpu.values.get("numaid", "") if cpu else ""
        return int(text) if text.isdecimal() and len(text) < 5 else None


class Sure(Sight):
    """The same file, without what lost lines could have changed unseen."""

    def without_link(self, one: int, other: int) -> str | None:
        if self.tree.to_self:
            return None
        return self.road(self.tree.gpus[one], self.tree.gpus[other])

    def road(self, one: Element, other: Element) -> str | None:
        sure = self.tree.nesting.proves(one, other)
        return super().road(one, other) if sure else None

    def numa(self, gpu: int) -> int | None:
        return super().numa(gpu) if self.tree.nesting.all_cores else None


def _word(word: str, number: int) -> str:
    return f"NV{number}" if word == "NV" else word


NOT_JOINED = "NOLINK"
"""No direct link, in a file that has some; the road over the host is in `sure`."""


def _matrix(tree: Tree, sight: Sight) -> Matrix:
    gpus = range(tree.count)
    return tuple(
        tuple("X" if one == other else sight.link(one, other) for other in gpus) for one in gpus
    )


# --- network devices


def _nic(tree: Tree, name: str, element: Element, sight: Sight) -> Nic:
    """A `net` stands inside `nic` inside the PCI device; a bare PCI device is itself."""
    device = element if element.name == "pci" else _device(element)
    roads = tuple(
        sight.road(tree.gpus[gpu], device) if device and gpu in tree.gpus else None
        for gpu in range(tree.count)
    )
    return Nic(name, name if element.name == "net" else None, roads)


def _device(net: Element) -> Element | None:
    return next((above for above in net.above if above.name == "pci"), None)


def _nearest(count: int, nics: tuple[Nic, ...]) -> tuple[Nearest | None, ...]:
    found: list[Nearest | None] = []
    for gpu in range(count):
        roads = [(nic.to_gpus[gpu], nic.label) for nic in nics]
        known = [(road, label) for road, label in roads if road]
        best = max((road for road, _ in known), key=rank, default=None)
        labels = tuple(label for road, label in known if road == best)
        found.append(Nearest(best, labels) if best else None)
    return tuple(found)


def _problems(tree: Tree, line: int) -> Iterator[Problem]:
    if tree.described:
        yield Problem(Trouble.NO_GPU_NODES, line, expected="elements <gpu> as a dump has them")
    for link in tree.to_self[:1]:
        target = link.values.get("target", "")
        expected = "the address of another GPU"
        yield Problem(Trouble.NVLINK_TARGET_IS_SELF, link.line, target[:40], expected)
    yield from tree.lost[:MOST_TOLD]


def _signs(tree: Tree, declared: bool) -> Iterator[Sign]:
    if tree.described or declared:
        yield Sign.STATIC_DESCRIPTION
    if tree.lost:
        yield Sign.INCOMPLETE
    counts = [tree.switched(at) for at in tree.gpus]
    if tree.to_switch and not tree.links and counts.count(0) == 1 and len(counts) > 2:
        yield Sign.GPU_OFF_NVLINK
    widths = [gpu.values.get("link_width", "") for gpu in tree.gpus.values()]
    if any(one != other for one, other in pairwise(widths)) and all(map(str.isdecimal, widths)):
        yield Sign.PCIE_LINK_NARROW
