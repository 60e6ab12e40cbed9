"""hwloc's view of a machine: `lstopo` as text, and its XML. It counts GPUs and names slots."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evaluator.evidence.documents import Element, Malformed, read_xml
from evaluator.evidence.lines import Line, Paste
from evaluator.evidence.readings import (
    Format,
    PcieLink,
    Problem,
    Reading,
    Sign,
    Standing,
    Trouble,
    UnreadableEvidence,
)

BACKENDS = ("nvml", "rsmi", "cuda", "hip", "ze", "opencl")
"""Names of GPUs by the library that found them, most telling first. One GPU may have several."""

NAME = re.compile(r"(nvml|rsmi|cuda|hip|ze|opencl)(\d{1,3}(?:d\d{1,3})?)")
GPU_LINE = re.compile(r"\s{0,200}(?:GPU|CoProc|OSDev|Co-Processor)\b")
PCI_LINE = re.compile(r"\s{0,200}PCI L#\d{1,5}|\s{0,200}PCI [0-9a-f]{2,4}:")
TREE_LINE = re.compile(
    r"\s{0,200}(?:Machine|NUMANode|Package|HostBridge|PCIBridge|PCI|Core|GPU) L#\d"
)
LINK = re.compile(r"link=(\d{1,4}(?:\.\d{1,4})?)GB/s\b")
QUOTED = re.compile(r'"([a-z]{2,6}\d{1,3}(?:d\d{1,3})?)"')


def read_hwloc(paste: Paste) -> Iterator[Reading]:
    """Text or XML. Raises UnreadableEvidence where the XML is broken off."""
    start = paste.text.find("<topology")
    if start >= 0 and "<object" in paste.text:
        yield _read_xml(paste, start)
    elif any(TREE_LINE.match(line.text) for line in paste.lines):
        yield _read_text(paste)


def _read_xml(paste: Paste, start: int) -> Reading:
    end = paste.text.rfind("</topology>")
    text = paste.text[start:] if end < start else paste.text[start : end + len("</topology>")]
    line = paste.text.count("\n", 0, start) + 1
    if "<!ENTITY" in paste.text:
        expected = "a file that declares no entity"
        problem = Problem(Trouble.INVALID_XML, 0, "<!ENTITY", expected)
        raise UnreadableEvidence([problem], Format.HWLOC_XML)
    try:
        root = read_xml(text, line)
    except Malformed as problem:
        raise UnreadableEvidence([problem.problem], Format.HWLOC_XML) from problem
    names = [element.values.get("name", "") for element in root.every("object")]
    return _reading(Format.HWLOC_XML, line, _count(names) or _by_class(root), ())


def _by_class(root: Element) -> int:
    """GPUs by PCI class, where no library of theirs was at hand: 3D, or display with a vendor."""
    types = [element.values.get("pci_type", "") for element in root.every("object")]
    return sum(kind.startswith(("0302", "0380", "1200")) for kind in types)


def _count(names: list[str]) -> int:
    """Distinct GPUs by the first library that names any."""
    found: dict[str, set[str]] = {}
    for name in names:
        match = NAME.fullmatch(name)
        if match:
            found.setdefault(match[1], set()).add(match[2])
    return next((len(found[backend]) for backend in BACKENDS if backend in found), 0)


def _read_text(paste: Paste) -> Reading:
    first = next(line.number for line in paste.lines if TREE_LINE.match(line.text))
    names: list[str] = []
    slots: list[float | None] = []
    slot: float | None = None
    for line in paste.lines:
        if PCI_LINE.match(line.text):
            link = LINK.search(line.text)
            slot = float(link[1]) if link else None
        elif GPU_LINE.match(line.text):
            _take_names(line, slot, names, slots)
    cut = not paste.ended and not _whole(paste)
    expected = "the end of the tree"
    problems = (Problem(Trouble.TRUNCATED, paste.last, expected=expected),) if cut else ()
    return _reading(Format.LSTOPO, first, _count(names), problems, tuple(slots))


def _take_names(
    line: Line, slot: float | None, names: list[str], slots: list[float | None]
) -> None:
    found = [name for name in QUOTED.findall(line.text) if NAME.fullmatch(name)][-1:]
    before = _count(names)
    names.extend(found)
    if _count(names) > before:
        slots.append(slot)


def _whole(paste: Paste) -> bool:
    """A last line without an end is whole where its bracket or quotation mark is closed."""
    last = paste.lines[paste.last - 1].text.rstrip() if paste.last else ""
    return last.endswith((")", '"')) or "(" not in last


def _reading(
    format: Format,
    line: int,
    count: int,
    problems: tuple[Problem, ...],
    slots: tuple[float | None, ...] = (),
) -> Reading:
    if not count:
        expected = "a GPU that a library of its vendor found"
        problems = (*problems, Problem(Trouble.NO_GPU_NODES, line, expected=expected))
    return Reading(
        format=format,
        line=line,
        standing=Standing.PARTIAL if problems else Standing.OK,
        problems=problems,
        signs=frozenset({Sign.INCOMPLETE}) if problems else frozenset(),
        gpu_count=count or None,
        pcie=tuple(PcieLink(at, link_gb_s=slot) for at, slot in enumerate(slots)) or None,
    )
