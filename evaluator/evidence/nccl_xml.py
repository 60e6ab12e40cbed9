"""NCCL's and RCCL's topology XML: a tree of CPUs, bridges, GPUs and network devices.

A file without GPU elements describes a machine type: somebody declares it, nothing measured it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from evaluator.evidence.documents import Element, Malformed, read_xml
from evaluator.evidence.groups import rank
from evaluator.evidence.lines import Paste
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
PARTS = ("<pci busid", "<nvlink ", "<xgmi ", "<cpu numaid", "<cpu host_hash")
STATIC_WORDS = ("static pre-configured", "pre-configured topology")
MOST_GPUS = 256
MOST_NICS = 512


@dataclass(slots=True)
class Tree:
    """The devices of a file in document order. `gpus` holds PCI elements."""

    gpus: list[Element]
    nics: list[tuple[str, Element]]
    described: bool
    joined: dict[frozenset[int], tuple[str, int]] = field(default_factory=dict)
    to_switch: dict[int, int] = field(default_factory=dict)
    to_self: list[Element] = field(default_factory=list)


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
    if len(tree.gpus) > MOST_GPUS:
        expected = f"at most {MOST_GPUS} GPUs"
        raise _unreadable(Problem(Trouble.TOO_LARGE, line, str(len(tree.gpus)), expected))
    _join(tree)
    problems = tuple(_problems(tree, line))
    count = len(tree.gpus)
    nics = tuple(_nic(tree, name, element) for name, element in tree.nics)
    return Reading(
        format=Format.NCCL_XML,
        line=line,
        standing=Standing.PARTIAL if problems else Standing.OK,
        problems=problems,
        signs=frozenset(_signs(tree, declared)),
        gpu_count=count or None,
        matrix=_matrix(tree) if count and not tree.described else None,
        nics=nics or None,
        nearest_nic=_nearest(count, nics) if nics and count else None,
        numa_node=tuple(_numa(gpu) for gpu in tree.gpus) if count else None,
    )


def _tree(root: Element) -> Tree:
    measured = [gpu.parent for gpu in root.every("gpu") if gpu.parent]
    pci = list(root.every("pci"))
    gpus = measured or [one for one in pci if _class(one).startswith(GPU_CLASSES)]
    named = [(net.values.get("name", ""), net) for net in root.every("net")]
    unnamed = [(_bus(one), one) for one in pci if _class(one).startswith(NIC_CLASSES)]
    return Tree(_by_device(gpus), (named or unnamed)[:MOST_NICS], described=not measured)


def _by_device(gpus: list[Element]) -> list[Element]:
    """By the number that the runtime gave them, where each has its own."""
    numbers = [gpu.values.get("dev", "") for pci in gpus for gpu in pci.every("gpu")]
    whole = all(number.isdecimal() and len(number) < 6 for number in numbers)
    if len(numbers) != len(gpus) or not whole or len({*numbers}) != len(numbers):
        return gpus
    return [gpu for _, gpu in sorted(zip(map(int, numbers), gpus, strict=True), key=_first)]


def _first(pair: tuple[int, Element]) -> int:
    return pair[0]


def _class(pci: Element) -> str:
    return pci.values.get("class", "").lower()


def _bus(pci: Element) -> str:
    return pci.values.get("busid", "").lower()


def _join(tree: Tree) -> None:
    """Links by the bus address of their target: a GPU, a switch, or the GPU itself."""
    places = {_bus(gpu): at for at, gpu in enumerate(tree.gpus)}
    for at, gpu in enumerate(tree.gpus):
        for name, word in (("nvlink", "NV"), ("xgmi", "XGMI")):
            for link in gpu.every(name):
                _take_link(tree, at, link, word, places)


def _take_link(tree: Tree, at: int, link: Element, word: str, places: dict[str, int]) -> None:
    count = link.values.get("count", "1")
    number = int(count) if count.isdecimal() and len(count) < 4 else 1
    target = places.get(link.values.get("target", "").lower())
    if target == at:
        tree.to_self.append(link)
    elif target is not None:
        pair = frozenset((at, target))
        before = tree.joined.get(pair, (word, number))[1]
        tree.joined[pair] = (word, min(before, number))
    elif link.values.get("tclass", "").lower().startswith(SWITCH_CLASS):
        tree.to_switch[at] = tree.to_switch.get(at, 0) + number


def _matrix(tree: Tree) -> Matrix:
    gpus = range(len(tree.gpus))
    return tuple(
        tuple("X" if one == other else _link(tree, one, other) for other in gpus) for one in gpus
    )


def _link(tree: Tree, one: int, other: int) -> str | None:
    """A direct link, one through switches, none, or what the tree of bridges says."""
    word, number = tree.joined.get(frozenset((one, other)), ("", 0))
    if word:
        return f"NV{number}" if word == "NV" else word
    if one in tree.to_switch and other in tree.to_switch:
        return f"NV{min(tree.to_switch[one], tree.to_switch[other])}"
    if tree.to_self:
        return None
    if tree.joined or tree.to_switch:
        return NOT_JOINED
    return _road(tree.gpus[one], tree.gpus[other])


NOT_JOINED = "NOLINK"
"""No direct link; the file does not say which class the road over the host has."""


def _road(one: Element, other: Element) -> str:
    """The class by the tree: one bridge, several, one CPU, or two.

    NODE is the safe reading inside one CPU: the file does not state the root complexes.
    """
    first = [above for above in one.above if above.name == "pci"]
    second = [above for above in other.above if above.name == "pci"]
    if first and second and first[0] is second[0]:
        return "PIX"
    if any(bridge is another for bridge in first for another in second):
        return "PXB"
    return "NODE" if _cpu(one) is _cpu(other) else "SYS"


def _cpu(element: Element) -> Element | None:
    return next((above for above in element.above if above.name == "cpu"), None)


def _numa(gpu: Element) -> int | None:
    """The NUMA node of the CPU above; -1 says that the machine hides it."""
    cpu = _cpu(gpu)
    text = cpu.values.get("numaid", "") if cpu else ""
    return int(text) if text.isdecimal() and len(text) < 5 else None


def _nic(tree: Tree, name: str, element: Element) -> Nic:
    """A `net` stands inside `nic` inside the PCI device; a bare PCI device is itself."""
    device = element if element.name == "pci" else _device(element)
    roads = tuple(_road(gpu, device) if device else None for gpu in tree.gpus)
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


def _signs(tree: Tree, declared: bool) -> Iterator[Sign]:
    if tree.described or declared:
        yield Sign.STATIC_DESCRIPTION
    counts = [tree.to_switch.get(at, 0) for at in range(len(tree.gpus))]
    if tree.to_switch and not tree.joined and counts.count(0) == 1 and len(counts) > 2:
        yield Sign.GPU_OFF_NVLINK
    widths = [gpu.values.get("link_width", "") for gpu in tree.gpus]
    if any(one != other for one, other in pairwise(widths)) and all(map(str.isdecimal, widths)):
        yield Sign.PCIE_LINK_NARROW
