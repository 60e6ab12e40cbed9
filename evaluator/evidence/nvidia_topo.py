"""`nvidia-smi topo -m`: the class of each pair, the network devices, and the affinities."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from evaluator.evidence.groups import Family, rank
from evaluator.evidence.lines import Paste
from evaluator.evidence.matrix_blocks import (
    CELL,
    GPU,
    NIC,
    STATUS,
    Block,
    Row,
    find_blocks,
)
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

LEGEND = re.compile(r"\s{0,40}(NIC\d{1,4})\s{0,20}[:=]\s{0,20}([A-Za-z0-9_.-]{1,64})\s{0,40}")
LARGEST_MACHINE = 256
"""GPUs in one matrix. Nothing that one can rent as a machine holds more."""

Pair = tuple[str, str]


@dataclass(slots=True)
class Table:
    """A block as it is understood: device order, and what each ordered pair of names says."""

    devices: tuple[str, ...]
    columns: tuple[str, ...]
    cells: dict[Pair, str] = field(default_factory=dict)
    doubted: set[Pair] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    signs: set[Sign] = field(default_factory=set)

    @property
    def gpus(self) -> tuple[str, ...]:
        names = [name for name in self.devices if GPU.fullmatch(name)]
        return tuple(sorted(names, key=lambda name: int(name[3:])))

    @property
    def nics(self) -> tuple[str, ...]:
        return tuple(name for name in self.devices if not GPU.fullmatch(name))

    def link(self, one: str, other: str) -> str | None:
        """The class of a pair from either of its two cells; None where they disagree."""
        if (one, other) in self.doubted:
            return None
        return self.cells.get((one, other)) or self.cells.get((other, one))


def read_topo(paste: Paste) -> Iterator[Reading]:
    """Every matrix of a paste. Raises UnreadableEvidence where rows hold no GPU."""
    legend = dict(_legend(paste))
    for block in find_blocks(paste):
        if not block.is_p2p and _is_matrix(block):
            yield _read(block, paste, legend)


def _is_matrix(block: Block) -> bool:
    return any(row.cells for row in block.rows)


def _legend(paste: Paste) -> Iterator[Pair]:
    for line in paste.lines:
        match = LEGEND.fullmatch(line.text)
        if match:
            yield match[1], match[2]


def _read(block: Block, paste: Paste, legend: dict[str, str]) -> Reading:
    table = _table(block, legend)
    if not table.gpus:
        line = block.rows[0].line
        problem = Problem(Trouble.NO_GPU_ROWS, line.number, block.rows[0].name, "a row of a GPU")
        raise UnreadableEvidence([problem], Format.TOPO_MATRIX)
    if len(table.gpus) > LARGEST_MACHINE:
        expected = f"at most {LARGEST_MACHINE} GPUs"
        problem = Problem(Trouble.TOO_LARGE, block.line, str(len(table.gpus)), expected)
        raise UnreadableEvidence([problem], Format.TOPO_MATRIX)
    whole = any(len(row.cells) == len(table.devices) and row.rest.strip() for row in block.rows)
    for row in block.rows:
        shortened = whole and row is not block.rows[-1]
        _take_row(table, row, cut=paste.cut_at(row.line), shortened=shortened)
    used = {name for name, _ in table.cells}
    if sum(map(_is_long, block.rows)) > len(used):
        table.cells.clear()  # the header lost a name: no column is sure to be whose it seems
    _compare_halves(table)
    _note_columns(table, block)
    _note_gaps(table, block)
    return _reading(table, block, legend)


def _table(block: Block, legend: dict[str, str]) -> Table:
    if block.header:
        devices = tuple(dict.fromkeys((*block.devices, *block.strange)))
        return Table(devices, block.columns)
    table = Table(_assumed_devices(block, legend), ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID"))
    table.signs.add(Sign.HEADER_MISSING)
    expected = "a header that names the columns"
    table.problems.append(Problem(Trouble.HEADER_MISSING, block.line, expected=expected))
    return table


def _assumed_devices(block: Block, legend: dict[str, str]) -> tuple[str, ...]:
    """Column names without a header: the X of each row says where its own column is."""
    width = max(len(row.cells) for row in block.rows)
    names: list[str | None] = [None] * width
    for row in block.rows:
        own = row.cells.index("X") if "X" in row.cells else None
        if own is not None and row.name != f"GPU{own}" and GPU.fullmatch(row.name):
            continue  # shifted: GPUs stand first, each in the column of its number
        if own is not None:
            names[own] = row.name
    if not any(GPU.fullmatch(row.name) for row in block.rows):
        return tuple(name for name in names if name)
    gpus = _gpu_columns(names, width, legend, block.rows)
    return tuple(
        name or (f"GPU{at}" if at < gpus else f"NIC{at - gpus}") for at, name in enumerate(names)
    )


def _gpu_columns(
    names: list[str | None], width: int, legend: dict[str, str], rows: list[Row]
) -> int:
    """GPUs come first: they end where the first network device stands, or the legend begins.

    Without either, a column is a GPU's where a row of its own or an NVLink shows it.
    """
    for at, name in enumerate(names):
        if name and not GPU.fullmatch(name):
            return at - (int(name[3:]) if NIC.fullmatch(name) else 0)
    if legend:
        return width - len(legend)
    own = [int(row.name[3:]) for row in rows if GPU.fullmatch(row.name)]
    joined = [at for row in rows for at, cell in enumerate(row.cells) if Family.NVLINK.holds(cell)]
    return min(width, max((*own, *joined), default=-1) + 1)


def _take_row(table: Table, row: Row, cut: bool, shortened: bool) -> None:
    """`shortened` where the row had room for all its cells: then one inside of it may be lost."""
    if row.name not in table.devices:
        return
    cells = list(row.cells)
    if cut and len(cells) <= len(table.devices) and not row.rest.strip():
        cells = _without_cut_word(cells, len(table.devices), bool(table.columns), row)
    problem = _misfit(table, row, cells, shortened)
    if problem:
        table.problems.append(problem)
        table.signs.add(Sign.UNKNOWN_TOKEN)
        return
    if len(cells) <= table.devices.index(row.name):
        return  # only its own X shows that no cell before was lost; the rows above have these pairs
    for other, cell in zip(table.devices, cells, strict=False):
        if other != row.name:
            _take_cell(table, row, other, cell)


def _misfit(table: Table, row: Row, cells: list[str], shortened: bool) -> Problem | None:
    """Why the cells of a row cannot be told apart: one too few, one too many, or shifted."""
    number, width, own = row.line.number, len(table.devices), table.devices.index(row.name)
    rest = row.rest.split()
    if cells and len(cells) < width and (rest or shortened):
        return Problem(Trouble.UNKNOWN_CLASS, number, f"{len(cells)} cells", f"{width} cells")
    if _is_long(row):
        return Problem(Trouble.UNKNOWN_CLASS, number, rest[0], f"no more than {width} cells")
    if (len(cells) > own and cells[own] != "X") or cells.count("X") > 1:
        read = " ".join(cells)[:40]
        return Problem(Trouble.UNKNOWN_CLASS, number, read, f"one X, in column {row.name}")
    return None


def _is_long(row: Row) -> bool:
    """Whether more cells stand there than the header has names."""
    rest = row.rest.split()
    return bool(rest) and bool(CELL.fullmatch(rest[0]))


def _without_cut_word(cells: list[str], width: int, columns: bool, row: Row) -> list[str]:
    """NV1 at the very end of a text may be the beginning of NV18; PI may be PIX."""
    whole = len(cells) == width and not (columns and GPU.fullmatch(row.name))
    if not cells or (whole and CELL.fullmatch(cells[-1])):
        return cells
    last = cells[-1]
    safe = CELL.fullmatch(last) and not Family.NVLINK.holds(last)
    return cells if safe else cells[:-1]


def _take_cell(table: Table, row: Row, other: str, cell: str) -> None:
    if cell == "N/A":
        return
    if not CELL.fullmatch(cell) or cell in STATUS or cell == "X":
        expected = "NV#, PIX, PXB, PHB, NODE or SYS"
        problem = Problem(Trouble.UNKNOWN_CLASS, row.line.number, cell[:40], expected)
        table.problems.append(problem)
        table.signs.add(Sign.UNKNOWN_TOKEN)
        table.doubted |= {(row.name, other), (other, row.name)}
        return
    table.cells[row.name, other] = "SYS" if cell == "SOC" else cell


def _compare_halves(table: Table) -> None:
    """The two cells of a pair must agree; where they do not, neither is believed."""
    for (one, other), cell in table.cells.items():
        mirrored = table.cells.get((other, one), cell)
        if mirrored == cell or (other, one) in table.doubted:
            continue
        table.doubted |= {(one, other), (other, one)}
        read, expected = f"{cell} and {mirrored}", f"one class between {one} and {other}"
        table.problems.append(Problem(Trouble.UNKNOWN_CLASS, 0, read, expected))
        table.signs.add(Sign.UNKNOWN_TOKEN)


def _note_columns(table: Table, block: Block) -> None:
    for name in block.strange:
        line = block.header.number if block.header else 0
        expected = "GPU#, NIC# or a network device"
        table.problems.append(Problem(Trouble.UNKNOWN_COLUMN, line, name[:40], expected))
        table.signs.add(Sign.UNKNOWN_TOKEN)


def _note_gaps(table: Table, block: Block) -> None:
    """Missing rows of GPUs, or cells of theirs, make a matrix partial; of devices, incomplete."""
    rows = {row.name: row for row in block.rows}
    width = len(table.devices)
    short = [
        name
        for name in table.devices
        if name not in rows or len(rows[name].cells) < width or _cut_affinity(rows[name])
    ]
    if not short:
        return
    table.signs.add(Sign.INCOMPLETE)
    if any(GPU.fullmatch(name) for name in short) and Sign.HEADER_MISSING not in table.signs:
        line = block.rows[-1].line.number
        expected = f"whole rows of {', '.join(table.gpus[:1] + table.gpus[-1:])}"
        table.problems.append(Problem(Trouble.TRUNCATED, line, expected=expected))


def _cut_affinity(row: Row) -> bool:
    return row.rest.rstrip().endswith((",", "-"))


def _reading(table: Table, block: Block, legend: dict[str, str]) -> Reading:
    gpus = table.gpus
    matrix: Matrix = tuple(
        tuple("X" if one == other else table.link(one, other) for other in gpus) for one in gpus
    )
    if _one_is_off(matrix):
        table.signs.add(Sign.GPU_OFF_NVLINK)
    affinities = _affinities(table, block)
    known = [name for name in table.nics if name not in block.strange]
    return Reading(
        format=Format.TOPO_MATRIX,
        line=block.line,
        standing=Standing.PARTIAL if table.problems else Standing.OK,
        problems=tuple(table.problems),
        signs=frozenset(table.signs),
        gpu_count=len(gpus),
        matrix=matrix,
        nics=tuple(
            Nic(name, _device(name, legend), tuple(table.link(gpu, name) for gpu in gpus))
            for name in known
        ),
        nearest_nic=tuple(_nearest(table, gpu, known) for gpu in gpus) if known else None,
        cpu_affinity=affinities[0],
        numa_affinity=affinities[1],
        gpu_numa_id=affinities[2],
    )


def _one_is_off(matrix: Matrix) -> bool:
    """Whether one GPU has no NVLink at all while every other one has."""
    if len(matrix) <= 2 or any(link is None for row in matrix for link in row):
        return False
    without = [row for row in matrix if not any(Family.NVLINK.holds(link) for link in row)]
    return len(without) == 1


def _device(name: str, legend: dict[str, str]) -> str | None:
    return legend.get(name) if NIC.fullmatch(name) else name


def _nearest(table: Table, gpu: str, nics: list[str]) -> Nearest | None:
    links = [(table.link(gpu, name), name) for name in nics]
    known = [(link, name) for link, name in links if link is not None]
    if not known:
        return None
    best = max((link for link, _ in known), key=rank)
    return Nearest(best, tuple(name for link, name in known if link == best))


Affinity = tuple[str | None, ...]


def _affinities(table: Table, block: Block) -> tuple[Affinity, Affinity, Affinity]:
    rows = {row.name: row for row in block.rows}
    width = len(table.devices)
    found = [
        affinity_of(rows[gpu].rest, len(table.columns))
        if gpu in rows and len(rows[gpu].cells) == width
        else (None, None, None)
        for gpu in table.gpus
    ]
    cpu, numa, gpu_id = (tuple(one[at] for one in found) for at in range(3))
    return cpu, numa, gpu_id


def affinity_of(rest: str, columns: int) -> tuple[str | None, str | None, str | None]:
    """CPU, NUMA and GPU NUMA cells out of the text behind the classes; None for blank or N/A.

    With tabs the first field is the CPU list even where it is blank. A lone N/A belongs to the
    last column, before which the tool prints a tab too many.
    """
    fields = [part.strip(" |") for part in rest.split("\t")[1:]] if "\t" in rest else []
    words = rest.replace("|", " ").split()
    if not words or not columns:
        return None, None, None
    if fields:
        cpu, others = fields[0], [part for part in fields[1:] if part]
    else:
        cpu, others = _spaced(words, columns)
    numa, gpu_id = _last_two(others, columns)
    return _known(cpu), _known(numa), _known(gpu_id)


def _spaced(words: list[str], columns: int) -> tuple[str, list[str]]:
    """Without tabs, blanks cannot be counted: a lone N/A is not a CPU list."""
    if words[0] == "N/A" and len(words) < columns:
        return "", words
    return words[0], words[1:]


def _last_two(others: list[str], columns: int) -> tuple[str, str]:
    if columns <= 1 or not others:
        return "", ""
    if columns == len(COLUMNS_OF_NEWEST):
        if len(others) > 1:
            return others[0], others[1]
        return ("", others[0]) if others[0] == "N/A" else (others[0], "")
    return others[-1], ""


COLUMNS_OF_NEWEST = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")


def _known(text: str) -> str | None:
    return None if text in ("", "N/A") else text
