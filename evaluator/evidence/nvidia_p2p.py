"""`nvidia-smi topo -p2p`: whether the driver allows one capability between each pair.

OK says that it is allowed, not that data arrives whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evaluator.evidence.lines import Paste
from evaluator.evidence.matrix_blocks import GPU, STATUS, Block, Row, find_blocks
from evaluator.evidence.readings import (
    Format,
    Matrix,
    Problem,
    Reading,
    Sign,
    Standing,
    Trouble,
)

COMMAND = re.compile(r"topo\s{1,8}(?:-p2p|--p2pstatus)[\s=]{1,8}([rwnap]{1,5})\b")
PEER_ACCESS = frozenset("rwp")
"""Read, write and PCIe: what a copy between GPUs needs. NVLink and atomics are other questions."""

ABOVE = 4
"""A command stands in the lines just above its table."""


def read_p2p(paste: Paste) -> Iterator[Reading]:
    """Every status table of a paste."""
    for block in find_blocks(paste):
        if block.is_p2p and any(row.cells for row in block.rows):
            yield _read(block, paste)


def _read(block: Block, paste: Paste) -> Reading:
    gpus = _gpus(block)
    cells = {
        (row.name, other): cell
        for row in block.rows
        for other, cell in zip(gpus, _cells(block, paste, row), strict=False)
    }
    matrix: Matrix = tuple(
        tuple("X" if one == other else _status(cells.get((one, other))) for other in gpus)
        for one in gpus
    )
    capability = _capability(block, paste)
    problems = _problems(block, gpus, matrix)
    signs = {Sign.INCOMPLETE} if problems else set()
    if not block.header:
        signs.add(Sign.HEADER_MISSING)
    if _unusable(matrix, capability):
        signs.add(Sign.P2P_UNUSABLE)
    return Reading(
        format=Format.TOPO_P2P,
        line=block.line,
        standing=Standing.PARTIAL if problems else Standing.OK,
        problems=problems,
        signs=frozenset(signs),
        gpu_count=len(gpus),
        p2p_matrix=matrix,
        p2p_capability=capability,
    )


def _gpus(block: Block) -> tuple[str, ...]:
    if block.header:
        return tuple(name for name in block.devices if GPU.fullmatch(name))
    return tuple(f"GPU{at}" for at in range(max(len(row.cells) for row in block.rows)))


def _cells(block: Block, paste: Paste, row: Row) -> tuple[str, ...]:
    """The cells of a row; N or NS at the very end of a text may be the beginning of more."""
    return row.cells[:-1] if paste.cut_at(row.line) and not _whole(block, row.cells) else row.cells


def _whole(block: Block, cells: tuple[str, ...]) -> bool:
    return len(cells) == len(_gpus(block)) and cells[-1] in {*STATUS, "X"} - {"N"}


def _status(cell: str | None) -> str | None:
    return cell if cell in STATUS else None


def _problems(block: Block, gpus: tuple[str, ...], matrix: Matrix) -> tuple[Problem, ...]:
    number = block.rows[-1].line.number
    if not block.header:
        return (Problem(Trouble.HEADER_MISSING, block.line, expected="a header of GPU names"),)
    if any(cell is None for row in matrix for cell in row):
        expected = f"a status for each pair of {len(gpus)} GPUs"
        return (Problem(Trouble.TRUNCATED, number, expected=expected),)
    return ()


def _unusable(matrix: Matrix, capability: str | None) -> bool:
    if capability is not None and not PEER_ACCESS & set(capability):
        return False
    return any(cell not in ("X", "OK", "U", None) for row in matrix for cell in row)


def _capability(block: Block, paste: Paste) -> str | None:
    """The letter of the command; the output does not repeat it."""
    above = paste.lines[max(0, block.line - 1 - ABOVE) : block.line]
    found = [match[1] for line in above for match in COMMAND.finditer(line.text)]
    return found[-1] if found else None
