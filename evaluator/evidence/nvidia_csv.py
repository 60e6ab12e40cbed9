"""`nvidia-smi --query-gpu=... --format=csv`: the columns of names, memory and driver."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evaluator.evidence.lines import Line, Paste
from evaluator.evidence.readings import Format, Problem, Reading, Sign, Standing, Trouble

NAME, MEMORY, DRIVER = "name", "memory.total [MiB]", "driver_version"
MIB = re.compile(r"(\d{1,9}) MiB")
MOST_GPUS = 256


def read_csv(paste: Paste) -> Iterator[Reading]:
    """The first table whose header names the card; rows end where their columns do not fit."""
    for line in paste.lines:
        columns = _cells(line)
        if NAME in columns and len(columns) > 1 and MEMORY in columns:
            rows, cut = _rows(paste, line, columns)
            if rows:
                yield _reading(line, columns, rows, cut)
            return


def _cells(line: Line) -> list[str]:
    return [cell.strip() for cell in line.text.split(",")]


def _rows(paste: Paste, header: Line, columns: list[str]) -> tuple[list[list[str]], int]:
    """Whole rows, and the number of the line that the text was cut in (0 for none)."""
    rows: list[list[str]] = []
    for line in paste.after(header.number):
        cells = _cells(line)
        if paste.cut_at(line):
            return rows, line.number
        if len(cells) != len(columns) or len(rows) == MOST_GPUS:
            break
        if not MIB.fullmatch(cells[columns.index(MEMORY)]):
            break
        rows.append(cells)
    return rows, 0


def _reading(header: Line, columns: list[str], rows: list[list[str]], cut: int) -> Reading:
    names = tuple(row[columns.index(NAME)][:80] for row in rows)
    sizes = tuple(int(row[columns.index(MEMORY)].split()[0]) for row in rows)
    drivers = {row[columns.index(DRIVER)][:40] for row in rows} if DRIVER in columns else set()
    problems = (Problem(Trouble.TRUNCATED, cut, expected="a whole row"),) if cut else ()
    signs = {Sign.INCOMPLETE} if cut else set()
    if len(set(names)) > 1:
        signs.add(Sign.MIXED_MODELS)
    return Reading(
        format=Format.SMI_CSV,
        line=header.number,
        standing=Standing.PARTIAL if cut else Standing.OK,
        problems=problems,
        signs=frozenset(signs),
        gpu_count=None if cut else len(rows),
        gpu_names=names,
        vram_mib=sizes,
        driver=drivers.pop() if len(drivers) == 1 else None,
    )
