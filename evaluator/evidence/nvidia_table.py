"""The table of plain `nvidia-smi`: names, memory, driver, CUDA, MIG. It says nothing of links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from evaluator.evidence.lines import Line, Paste
from evaluator.evidence.readings import (
    Format,
    MigInstance,
    Problem,
    Reading,
    Sign,
    Standing,
    Trouble,
)

DRIVER = re.compile(r"Driver Version:\s{0,8}(\d{1,4}(?:\.\d{1,4}){0,3})")
CUDA = re.compile(r"CUDA (?:UMD )?Version:\s{0,8}(\d{1,3}\.\d{1,3})")
MEMORY = re.compile(r"(\d{1,8})\s{0,4}MiB\s{0,8}/\s{0,8}(\d{1,8})\s{0,4}MiB")
WATTS = re.compile(r"\d{1,5}W\s{0,8}/\s{0,8}(\d{1,5})W")
BUS = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d")
PERSISTENCE = frozenset({"On", "Off", "N/A", "TCC", "WDDM", "MCDM", "WDDM-"})


@dataclass(slots=True)
class Table:
    """What was gathered of one table."""

    line: int
    driver: str | None = None
    cuda: str | None = None
    names: dict[int, str] = field(default_factory=dict)
    memory: dict[int, int] = field(default_factory=dict)
    watts: dict[int, float] = field(default_factory=dict)
    mig: dict[int, bool] = field(default_factory=dict)
    instances: list[MigInstance] = field(default_factory=list)
    current: int | None = None
    part: str = "gpus"


def read_tables(paste: Paste) -> Iterator[Reading]:
    """Every table of a paste. A second head, or a GPU seen twice, begins the next one."""
    table: Table | None = None
    for line in paste.lines:
        head = _head(line)
        if head:
            if table and table.names:
                yield _reading(table)
            table = head
        elif table and "|" in line.text:
            _take(table, line)
    if table and (table.names or table.driver):
        yield _reading(table)


def _head(line: Line) -> Table | None:
    if "NVIDIA-SMI" not in line.text or "|" not in line.text:
        return None
    driver, cuda = DRIVER.search(line.text), CUDA.search(line.text)
    if not driver and "KMD" not in line.text:
        return None
    return Table(line.number, driver[1] if driver else None, cuda[1] if cuda else None)


def _take(table: Table, line: Line) -> None:
    if "MIG devices" in line.text:
        table.part = "mig"
    elif "Processes" in line.text:
        table.part = "processes"
    if table.part == "mig":
        _take_instance(table, line)
    elif table.part == "gpus":
        _take_gpu(table, line)


def _take_gpu(table: Table, line: Line) -> None:
    cells = [cell.split() for cell in line.text.strip().strip("|").split("|")]
    if len(cells) < 2:
        return
    first, second = cells[0], cells[1]
    if len(first) >= 2 and first[0].isdecimal() and len(first[0]) < 5 and _has_bus(second):
        table.current = int(first[0])
        table.names[table.current] = " ".join(_name(first[1:]))
    elif table.current is not None:
        _take_details(table, table.current, line, cells)


def _has_bus(words: list[str]) -> bool:
    return bool(words) and bool(BUS.fullmatch(words[0]))


def _name(words: list[str]) -> list[str]:
    """Without the persistence column, which ends the cell."""
    while len(words) > 1 and words[-1] in PERSISTENCE:
        words = words[:-1]
    return words


def _take_details(table: Table, gpu: int, line: Line, cells: list[list[str]]) -> None:
    memory, watts = MEMORY.search(line.text), WATTS.search(line.text)
    if memory and gpu not in table.memory:
        table.memory[gpu] = int(memory[2])
    if watts:
        table.watts[gpu] = float(watts[1])
    if not cells[0] and cells[-1] in (["Enabled"], ["Disabled"]):
        table.mig[gpu] = cells[-1] == ["Enabled"]


def _take_instance(table: Table, line: Line) -> None:
    words = line.text.replace("|", " ").split()
    memory = MEMORY.search(line.text)
    ids = words[:4]
    if memory and len(ids) == 4 and all(word.isdecimal() and len(word) < 5 for word in ids):
        gpu, instance = int(ids[0]), int(ids[1])
        table.instances.append(MigInstance(gpu, instance=instance, mib=int(memory[2])))


def _reading(table: Table) -> Reading:
    gpus = sorted(table.names)
    cut = not gpus or any(gpu not in table.memory for gpu in gpus)
    expected = "a row of names and a row of memory per GPU"
    problems = (Problem(Trouble.TRUNCATED, table.line, expected=expected),) if cut else ()
    names = tuple(table.names[gpu] for gpu in gpus)
    return Reading(
        format=Format.SMI_TABLE,
        line=table.line,
        standing=Standing.PARTIAL if cut else Standing.OK,
        problems=problems,
        signs=frozenset(_signs(table, names, cut)),
        gpu_count=len(gpus) or None,
        gpu_names=names or None,
        vram_mib=None if cut else tuple(table.memory[gpu] for gpu in gpus),
        driver=table.driver,
        cuda=table.cuda,
        mig_enabled=any(table.mig.values()) if table.mig else None,
        mig_instances=tuple(table.instances),
        power_limit_w=tuple(table.watts[gpu] for gpu in gpus) if _all(table.watts, gpus) else None,
    )


def _all(figures: dict[int, float], gpus: list[int]) -> bool:
    return bool(gpus) and all(gpu in figures for gpu in gpus)


def _signs(table: Table, names: tuple[str, ...], cut: bool) -> Iterator[Sign]:
    if any(table.mig.values()) or table.instances:
        yield Sign.MIG_MODE
    if cut:
        yield Sign.INCOMPLETE
    if len(set(names)) > 1:
        yield Sign.MIXED_MODELS
