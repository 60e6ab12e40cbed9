"""CUDA samples: p2pBandwidthLatencyTest, and the lines of simpleP2P.

Where peer access is impossible the table of P2P=Enabled repeats that of P2P=Disabled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from evaluator.evidence.lines import Line, Paste
from evaluator.evidence.readings import (
    BandwidthMatrix,
    Format,
    Problem,
    Reading,
    Sign,
    Standing,
    Trouble,
)

TITLE = re.compile(
    r"\s{0,20}(Uni|Bi)directional P2P=(Enabled|Disabled)[^\n]{0,60}Matrix\s{0,8}\(GB/s\)"
)
OTHER_TITLE = re.compile(
    r"\s{0,20}P2P=(?:Enabled|Disabled) Latency|\s{0,20}(?:GPU|CPU)(?:\s{1,12}\d{1,3}){1,64}\s*"
)
HEADER = re.compile(r"\s{0,20}D\\D(?:\s{1,12}\d{1,3}){1,64}\s*")
ROW = re.compile(r"\s{0,20}(\d{1,3})((?:\s{1,20}\d{1,7}\.\d{1,4}){1,64})\s*(\S{0,20})")
DEVICE = re.compile(r"\s{0,20}Device:\s{0,4}(\d{1,3}),\s{0,4}([^,]{1,80}),\s{0,4}pciBusID.{0,80}")
ACCESS = re.compile(
    r"\s{0,20}Device\s{0,4}=\s{0,4}(\d{1,3}) (CAN|CANNOT) Access Peer "
    r"Device\s{0,4}=\s{0,4}(\d{1,3})\s*"
)
CUT_ACCESS = re.compile(r"\s{0,20}Device\s{0,4}=\s{0,4}\d{1,3}.{0,40}")
SAMPLE = re.compile(
    r"Peer access from .{0,80}\(GPU(\d{1,3})\) -> .{0,80}\(GPU(\d{1,3})\) : (Yes|No)"
)

SAME = 1.1
"""Within a tenth the table with peer access shows the copy through the host."""
SLOW_SHARE = 0.5

Rows = dict[int, list[float]]


@dataclass(slots=True)
class Run:
    """What was gathered. `tables` keep the order of the text; the title is None where cut off."""

    line: int = 0
    names: dict[int, str] = field(default_factory=dict)
    access: dict[tuple[int, int], bool] = field(default_factory=dict)
    tables: list[tuple[str | None, bool | None, bool | None, Rows]] = field(default_factory=list)
    cut: int = 0
    sample: bool = False
    failed: bool = False


def read_p2p_bandwidth(paste: Paste) -> Iterator[Reading]:
    """One reading for the whole output."""
    if (
        "P2P=" in paste.text
        or "Access Peer Device" in paste.text
        or "Peer access from" in paste.text
    ):
        run = _gather(paste)
        if run.line:
            yield _reading(run)


def _gather(paste: Paste) -> Run:
    run = Run()
    rows: Rows | None = _headless(run, paste)
    for line in paste.lines:
        title = TITLE.match(line.text)
        if title:
            run.line = run.line or line.number
            rows = {}
            words = line.text.strip()
            run.tables.append((words, title[1] == "Bi", title[2] == "Enabled", rows))
        elif OTHER_TITLE.match(line.text):
            rows = None
        elif rows is not None and ROW.fullmatch(line.text):
            _take_row(run, rows, line, paste)
        else:
            _take_line(run, line, paste)
    return run


def _headless(run: Run, paste: Paste) -> Rows | None:
    """Rows above the first title belong to a table whose title was cut off."""
    for line in paste.lines:
        if TITLE.match(line.text) or OTHER_TITLE.match(line.text) or HEADER.fullmatch(line.text):
            return None
        match = ROW.fullmatch(line.text)
        if match and len(match[2].split()) > 1:
            rows: Rows = {}
            run.tables.append((None, None, None, rows))
            run.line = line.number
            return rows
        if not line.blank and run.line == 0 and ACCESS.fullmatch(line.text):
            return None
    return None


def _take_row(run: Run, rows: Rows, line: Line, paste: Paste) -> None:
    match = ROW.fullmatch(line.text)
    if not match:
        return
    figures = [float(word) for word in match[2].split()]
    if paste.cut_at(line):
        run.cut = line.number
        figures = figures[:-1]  # 5.1 at the end of a text may be the beginning of 5.12
    rows.setdefault(int(match[1]), figures)


def _take_line(run: Run, line: Line, paste: Paste) -> None:
    device, access = DEVICE.fullmatch(line.text), ACCESS.fullmatch(line.text)
    sample = SAMPLE.search(line.text)
    if device:
        run.names[int(device[1])] = device[2].strip()
    elif access:
        run.access[int(access[1]), int(access[3])] = access[2] == "CAN"
    elif "Verification error" in line.text:
        run.failed = True
    elif sample:
        run.sample = True
        run.access[int(sample[1]), int(sample[2])] = sample[3] == "Yes"
    elif paste.cut_at(line) and CUT_ACCESS.fullmatch(line.text):
        run.cut = line.number
    else:
        return
    run.line = run.line or line.number


def _reading(run: Run) -> Reading:
    count = _count(run)
    tables = tuple(_matrix(table, count) for table in run.tables if table[0] is not None)
    names = tuple(run.names[gpu] for gpu in sorted(run.names)) or None
    slow = _slow(tables)
    problems = tuple(_problems(run, tables, count))
    return Reading(
        format=Format.SIMPLE_P2P if run.sample and not run.tables else Format.P2P_BANDWIDTH,
        line=run.line,
        standing=Standing.PARTIAL if problems else Standing.OK,
        problems=problems,
        signs=frozenset(_signs(run, tables, names, slow, problems)),
        gpu_count=count or None,
        gpu_names=names,
        can_access=_can_access(run),
        cannot_access=_pairs(run, can=False),
        bandwidth=tables,
        slow_gpus=slow,
    )


def _count(run: Run) -> int:
    """Devices of the list; else as wide as the widest row, or as far as access was told."""
    if run.names:
        return len(run.names)
    widths = [len(figures) for table in run.tables for figures in table[3].values()]
    told = [gpu + 1 for pair in run.access for gpu in pair]
    return max((*widths, *told), default=0)


def _matrix(
    table: tuple[str | None, bool | None, bool | None, Rows], count: int
) -> BandwidthMatrix:
    title, both_ways, p2p, rows = table
    padded = tuple(_row(rows.get(gpu, []), count) for gpu in range(count))
    return BandwidthMatrix(title or "", both_ways, p2p, padded)


def _row(figures: list[float], count: int) -> tuple[float | None, ...]:
    """Where a figure is missing, which pair the others belong to is not known."""
    known = figures if len(figures) == count else []
    return tuple([*known, *[None] * count][:count])


def _problems(run: Run, tables: tuple[BandwidthMatrix, ...], count: int) -> Iterator[Problem]:
    if any(table[0] is None for table in run.tables):
        yield Problem(Trouble.HEADER_MISSING, run.line, expected="the title of the first table")
    missing = any(cell is None for table in tables for row in table.rows for cell in row)
    untold = run.access and len(run.access) < count * (count - 1)
    if run.cut or missing or untold:
        yield Problem(Trouble.TRUNCATED, run.cut, expected=f"all pairs of {count} GPUs")


def _signs(
    run: Run,
    tables: tuple[BandwidthMatrix, ...],
    names: tuple[str, ...] | None,
    slow: tuple[int, ...] | None,
    problems: tuple[Problem, ...],
) -> Iterator[Sign]:
    if problems:
        yield Sign.INCOMPLETE
    if len(set(names or ())) > 1:
        yield Sign.MIXED_MODELS
    if slow:
        yield Sign.SLOW_GPU
    refused = bool(run.access) and not any(run.access.values())
    if refused or run.failed or _repeats(run, tables):
        yield Sign.P2P_UNUSABLE


def _repeats(run: Run, tables: tuple[BandwidthMatrix, ...]) -> bool:
    """Whether peer access is no faster than the copy through the host that it should replace."""
    for both_ways in (False, True):
        on = _cells([table for table in tables if table.both_ways is both_ways and table.p2p])
        off = _cells(
            [table for table in tables if table.both_ways is both_ways and table.p2p is False]
        )
        headless = [table[3] for table in run.tables if table[0] is None]
        if not off and headless:
            off, on = _shared(headless[0], tables, both_ways)
        if on and off and median(on) <= median(off) * SAME:
            return True
    return False


def _cells(tables: list[BandwidthMatrix]) -> list[float]:
    return [
        cell
        for table in tables
        for at, row in enumerate(table.rows)
        for to, cell in enumerate(row)
        if cell is not None and at != to
    ]


def _shared(
    rows: Rows, tables: tuple[BandwidthMatrix, ...], both_ways: bool
) -> tuple[list[float], list[float]]:
    """The cells of a table without a title, and the same cells with peer access enabled."""
    off: list[float] = []
    on: list[float] = []
    enabled = [table for table in tables if table.both_ways is both_ways and table.p2p]
    for gpu, figures in rows.items():
        for to, figure in enumerate(figures):
            cell = enabled[0].rows[gpu][to] if enabled and _inside(enabled[0], gpu, to) else None
            if cell is not None and gpu != to:
                off.append(figure)
                on.append(cell)
    return off, on


def _inside(table: BandwidthMatrix, gpu: int, to: int) -> bool:
    return gpu < len(table.rows) and to < len(table.rows)


def _slow(tables: tuple[BandwidthMatrix, ...]) -> tuple[int, ...] | None:
    """GPUs whose pairs all stay below half of the median pair, in the last table of peer access."""
    judged = [table for table in tables if table.p2p] or list(tables)
    if not judged or len(judged[-1].rows) < 3:
        return None
    rows = judged[-1].rows
    middle = median(_cells(judged[-1:]) or [0.0]) * SLOW_SHARE
    own = {
        gpu: [
            cell for to in range(len(rows)) if to != gpu for cell in (rows[gpu][to], rows[to][gpu])
        ]
        for gpu in range(len(rows))
    }
    return tuple(
        gpu
        for gpu, cells in own.items()
        if all(cell is not None and cell < middle for cell in cells)
    )


def _can_access(run: Run) -> frozenset[tuple[int, int]] | None:
    """Pairs that can in every direction that was told."""
    refused = _pairs(run, can=False)
    return None if refused is None else (_pairs(run, can=True) or frozenset()) - refused


def _pairs(run: Run, *, can: bool) -> frozenset[tuple[int, int]] | None:
    """Pairs of which one direction was told so. None where nothing was told."""
    if not run.access:
        return None
    return frozenset((min(pair), max(pair)) for pair, told in run.access.items() if told is can)
