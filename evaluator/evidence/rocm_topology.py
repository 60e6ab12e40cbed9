"""`rocm-smi --showtopo`: link type and NUMA node. Hops and weight are not used: hops is 1 inside
every XGMI fabric, however indirect the road.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from evaluator.evidence.lines import Line, Paste
from evaluator.evidence.readings import (
    Format,
    Matrix,
    Problem,
    Reading,
    Sign,
    Standing,
    Trouble,
)

TITLE = re.compile(r"\s{0,20}=*\s{0,8}([A-Z][A-Za-z ]{0,60}?)\s{0,8}(=*)\s{0,20}")
BETWEEN = "between two GPUs"
LINK_TYPE = "Link Type between two GPUs"
ACCESS = "Link accessibility between two GPUs"
NUMA = re.compile(
    r"\s{0,8}GPU\[(\d{1,4})\]\s{0,20}:\s{0,8}\(Topology\) Numa Node:\s{0,8}(-?\d{1,4})"
)
GPU = re.compile(r"GPU(\d{1,4})")
TYPES = {"0": "X", "X": "X", "XGMI": "XGMI", "PCIE": "PCIE"}
UNKNOWN_TYPES = frozenset({"XXXX", "N/A", "UNKNOWN"})
END = "End of ROCm SMI Log"


@dataclass(slots=True)
class Log:
    """What was gathered: the rows of each table by its title, and the NUMA nodes. `sizes` are the
    numbers of GPUs that headers list, `newest` the GPU and the line of the last row.
    """

    line: int = 0
    tables: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    devices: list[int] = field(default_factory=list)
    sizes: set[int] = field(default_factory=set)
    numa: dict[int, int] = field(default_factory=dict)
    newest: tuple[int, int] = (0, 0)
    ended: bool = False
    strange: list[Problem] = field(default_factory=list)


def read_rocm(paste: Paste) -> Iterator[Reading]:
    """One reading for all sections of a paste."""
    log = _gather(paste)
    if log.line:
        yield _reading(log, paste)


def _gather(paste: Paste) -> Log:
    log, title = Log(), ""
    for line in paste.lines:
        if BETWEEN in line.text or "Numa Nodes" in line.text:
            title = _title(line)
            log.line = log.line or line.number
            log.tables.setdefault(title, {})
        elif END in line.text:
            log.ended, title = True, ""
        elif title:
            _take(log, title, line)
    return log


def _title(line: Line) -> str:
    match = TITLE.fullmatch(line.text)
    return match[1] if match else line.text.strip("= ")[:80]


def _take(log: Log, title: str, line: Line) -> None:
    numa = NUMA.match(line.text)
    words = line.text.replace("|", " ").split()
    if numa:
        log.numa[int(numa[1])] = int(numa[2])
    elif words and all(GPU.fullmatch(word) for word in words) and len(words) <= 256:
        if len(words) > 1 or not log.devices or line.text[:1].isspace():
            listed = [int(word[3:]) for word in words]
            log.sizes.add(len(listed))
            log.devices = max(log.devices, listed, key=len)
    elif words and GPU.fullmatch(words[0]) and title in log.tables:
        log.newest = int(words[0][3:]), line.number
        log.tables[title].setdefault(log.newest[0], words[1:])


def _reading(log: Log, paste: Paste) -> Reading:
    gpus = log.devices or sorted(
        {gpu for rows in log.tables.values() for gpu in rows} | set(log.numa)
    )
    rows = log.tables.get(LINK_TYPE, {})
    matrix = _matrix(log, gpus, rows, paste) if rows else None
    problems = tuple(_problems(log, matrix, paste))
    signs = {Sign.INCOMPLETE} if problems or not log.ended else set()
    if log.strange:
        signs.add(Sign.UNKNOWN_TOKEN)
    numa = tuple(log.numa.get(gpu) for gpu in gpus)
    return Reading(
        format=Format.ROCM_TOPOLOGY,
        line=log.line,
        standing=Standing.PARTIAL if problems else Standing.OK,
        problems=problems,
        signs=frozenset(signs),
        gpu_count=len(gpus) or None,
        matrix=matrix,
        numa_node=numa if log.numa else None,
        can_access=_accessible(log, gpus, "True"),
        cannot_access=_accessible(log, gpus, "False"),
    )


def _accessible(log: Log, gpus: list[int], word: str) -> frozenset[tuple[int, int]] | None:
    """Pairs of which the table of accessibility says so; None where it is not there."""
    rows = log.tables.get(ACCESS)
    if not rows:
        return None
    places = {gpu: at for at, gpu in enumerate(gpus)}
    return frozenset(
        (min(at, to), max(at, to))
        for gpu, words in rows.items()
        if (at := places.get(gpu)) is not None and len(words) == len(gpus)
        for to, said in enumerate(words)
        if at != to and said == word
    )


def _matrix(log: Log, gpus: list[int], rows: dict[int, list[str]], paste: Paste) -> Matrix:
    cells = {
        (gpu, other): word
        for gpu, words in rows.items()
        if _fits(gpus, gpu, words, last=log.newest == (gpu, paste.last))
        for other, word in zip(gpus, words, strict=False)
    }
    return tuple(
        tuple("X" if one == other else _pair(log, cells, one, other) for other in gpus)
        for one in gpus
    )


def _fits(gpus: list[int], gpu: int, words: list[str], *, last: bool) -> bool:
    """Whether each cell stands in its column: none lost, or only from the end of a cut text."""
    own = gpus.index(gpu) if gpu in gpus else len(words)
    in_place = all((TYPES.get(word) == "X") == (at == own) for at, word in enumerate(words))
    return in_place and (len(words) == len(gpus) or (last and len(words) < len(gpus)))


def _pair(log: Log, cells: dict[tuple[int, int], str], one: int, other: int) -> str | None:
    """Both cells where both are printed; two that disagree are believed neither."""
    found = {_type(log, cells[pair]) for pair in ((one, other), (other, one)) if pair in cells}
    return found.pop() if len(found) == 1 else None


def _type(log: Log, word: str) -> str | None:
    link = TYPES.get(word)
    if link in (None, "X") and word not in UNKNOWN_TYPES and not log.strange:
        expected = "XGMI or PCIE"
        log.strange.append(Problem(Trouble.UNKNOWN_CLASS, log.line, word[:40], expected))
    return None if link == "X" else link


def _problems(log: Log, matrix: Matrix | None, paste: Paste) -> Iterator[Problem]:
    yield from log.strange
    if matrix is None:
        expected = "the section Link Type between two GPUs"
        yield Problem(Trouble.NO_LINK_SECTION, log.line, expected=expected)
    elif any(link is None for row in matrix for link in row):
        yield Problem(Trouble.TRUNCATED, paste.last, expected="a link type for each pair")
    elif len(log.sizes) > 1:
        yield Problem(Trouble.TRUNCATED, log.line, expected="as many GPUs in each table")
    elif _cut(paste):
        yield Problem(Trouble.TRUNCATED, paste.last, expected="the end of the ROCm SMI log")


def _cut(paste: Paste) -> bool:
    """Whether the text stops inside a title or a line of NUMA nodes."""
    if paste.ended or not paste.last:
        return False
    last = paste.lines[paste.last - 1]
    title = TITLE.fullmatch(last.text)
    if "=" in last.text:
        return not title or not title[2]
    return "GPU[" in last.text and not NUMA.match(last.text)
