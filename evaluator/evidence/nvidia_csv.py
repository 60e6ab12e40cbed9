"""`nvidia-smi --query-gpu=... --format=csv`: columns of names, memory, driver, slots and limits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evaluator.evidence.lines import Line, Paste
from evaluator.evidence.readings import (
    Format,
    PcieLink,
    Problem,
    Reading,
    Sign,
    Standing,
    Trouble,
)

FABRIC = "fabric.state"
NAME, MEMORY, DRIVER = "name", "memory.total [MiB]", "driver_version"
LIMIT, MIG, ECC = "power.limit [W]", "mig.mode.current", "ecc.mode.current"
SLOT = {
    "generation_max": ("pcie.link.gen.max", "pcie.link.gen.gpumax"),
    "generation_now": ("pcie.link.gen.current", "pcie.link.gen.gpucurrent"),
    "host_generation_max": ("pcie.link.gen.hostmax",),
    "width_max": ("pcie.link.width.max",),
    "width_now": ("pcie.link.width.current",),
}
"""Columns of a slot by the field that they fill."""
SHAPES = {MEMORY: re.compile(r"\d{1,9} MiB"), LIMIT: re.compile(r"\d{1,5}(?:\.\d{1,2})? W")}
WHOLE = re.compile(r"\d{1,3}")
STATES = {"Enabled": True, "Disabled": False}
COLUMN = re.compile(
    r"name|index|uuid|count|timestamp|serial|pstate|compute_cap|display_[a-z]{1,10}"
    r"|(?:gpu|driver|vbios|persistence)[._][a-z_.]{1,40}"
    r"|(?:pci|pcie|power|memory|ecc|mig|clocks|temperature|utilization|fan|fabric)\.[a-z_.]{1,60}"
    r"(?: \[[A-Za-z%]{1,4}\])?"
)
"""Heads of columns, so that a sentence with commas is none."""
MOST_GPUS = 256
Table = list[dict[str, str]]


def read_csv(paste: Paste) -> Iterator[Reading]:
    """The first table whose header names the card; rows end where their columns do not fit."""
    for line in paste.lines:
        columns = _cells(line)
        if NAME in columns and len(columns) > 1 and all(map(COLUMN.fullmatch, columns)):
            rows, cut = _rows(paste, line, columns)
            if rows:
                yield _reading(line, columns, rows, cut)
            return


def _cells(line: Line) -> list[str]:
    return [cell.strip() for cell in line.text.split(",")]


def _rows(paste: Paste, header: Line, columns: list[str]) -> tuple[Table, int]:
    """Whole rows, and the number of the line that the text was cut in (0 for none)."""
    rows: Table = []
    for line in paste.after(header.number):
        cells = _cells(line)
        if paste.cut_at(line):
            return rows, line.number
        row = dict(zip(columns, cells, strict=False))
        if len(cells) != len(columns) or len(rows) == MOST_GPUS or not _fits(row):
            break
        rows.append(row)
    return rows, 0


def _fits(row: dict[str, str]) -> bool:
    """Whether every cell of a known column looks as the tool prints it."""
    slots = (row[name] for names in SLOT.values() for name in names if name in row)
    shaped = all(shape.fullmatch(row[name]) for name, shape in SHAPES.items() if _told(row, name))
    return shaped and all(WHOLE.fullmatch(cell) or cell in NOT_TOLD for cell in slots)


NOT_TOLD = ("[N/A]", "N/A", "[Not Supported]")


def _told(row: dict[str, str], name: str) -> bool:
    return name in row and (row[name] not in NOT_TOLD or name == MEMORY)


def _reading(header: Line, columns: list[str], rows: Table, cut: int) -> Reading:
    names = tuple(row[NAME][:80] for row in rows)
    slots = tuple(_slot(_index(row, at), row) for at, row in enumerate(rows))
    drivers = {row[DRIVER][:40] for row in rows} if DRIVER in columns else set()
    states = {row[MIG] for row in rows} if MIG in columns else set()
    return Reading(
        format=Format.SMI_CSV,
        line=header.number,
        standing=Standing.PARTIAL if cut else Standing.OK,
        problems=(Problem(Trouble.TRUNCATED, cut, expected="a whole row"),) if cut else (),
        signs=frozenset(_signs(names, slots, cut)),
        gpu_count=None if cut else len(rows),
        gpu_names=names,
        vram_mib=tuple(int(row[MEMORY].split()[0]) for row in rows) if MEMORY in columns else None,
        driver=drivers.pop() if len(drivers) == 1 else None,
        mig_enabled="Enabled" in states if states & {*STATES} else None,
        ecc=tuple(STATES.get(row[ECC]) for row in rows) if ECC in columns else None,
        power_limit_w=_limits(rows),
        fabric_state=_fabric(rows),
        pcie=slots if any(name in columns for names in SLOT.values() for name in names) else None,
    )


def _fabric(rows: Table) -> str | None:
    """The state of the first GPU whose fabric is not up, or of the first."""
    states = [
        f"{row['fabric.state']} / {row.get('fabric.status', '')}" for row in rows if FABRIC in row
    ]
    down = [
        state for state in states if not state.lower().startswith(("completed / success", "n/a"))
    ]
    return next(iter([*down, *states]), None)


def _limits(rows: Table) -> tuple[float, ...] | None:
    known = [float(row[LIMIT].split()[0]) for row in rows if _told(row, LIMIT)]
    return tuple(known) if len(known) == len(rows) else None


def _index(row: dict[str, str], at: int) -> int:
    """The driver's own number where it is printed; else rows stand in that order."""
    return int(row["index"]) if WHOLE.fullmatch(row.get("index", "")) else at


def _slot(gpu: int, row: dict[str, str]) -> PcieLink:
    found = {field: [row[name] for name in names if name in row] for field, names in SLOT.items()}
    known = {
        field: int(cells[0])
        for field, cells in found.items()
        if cells and WHOLE.fullmatch(cells[0])
    }
    return PcieLink(gpu, **known)


def _signs(names: tuple[str, ...], slots: tuple[PcieLink, ...], cut: int) -> Iterator[Sign]:
    if cut:
        yield Sign.INCOMPLETE
    if len(set(names)) > 1:
        yield Sign.MIXED_MODELS
    if any((slot.generation_now or 99) < (slot.generation_max or 0) for slot in slots):
        yield Sign.PCIE_IDLE_DOWNTRAINED
    if any((slot.width_now or 99) < (slot.width_max or 0) for slot in slots):
        yield Sign.PCIE_LINK_NARROW
