"""Tables of `nvidia-smi topo`: where one begins, which columns it has, which rows it holds.

No fixed widths: a row is its name, then as many cells as the header names devices; what is left
is affinity. Blanks, tabs, pipes and wrapped lines are all the same to this grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from evaluator.evidence.lines import Line, Paste

GPU = re.compile(r"GPU\d{1,4}")
NIC = re.compile(r"NIC\d{1,4}")
RDMA = re.compile(r"(?!gpu)[a-z][a-z0-9]{1,15}(?:_[a-z0-9]{1,12}){0,3}")
GLUED = re.compile(r"(?:(?:GPU|NIC)\d{1,4}){2,64}")
CELL = re.compile(r"X|NV[1-9]\d{0,2}|PIX|PXB|PHB|NODE|SYS|SOC|C2C|DIS|OK|CNS|GNS|TNS|NS|DR|U")
GLUED_CELLS = re.compile(r"(?!X+$)(?:NV[1-9]\d{0,2}|PIX|PXB|PHB|NODE|SYS|SOC|C2C|X){2,64}")
ONE_CELL = re.compile(r"NV[1-9]\d{0,2}|PIX|PXB|PHB|NODE|SYS|SOC|C2C|X")
STATUS = frozenset({"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"})
AFFINITY = re.compile(r"[\d,][\d,-]{0,4000}")
RULE = re.compile(r"[\s|:+=-]*")
WORD = re.compile(r"[^\s|]+")
TITLES = ("CPU", "Affinity", "NUMA", "GPU", "ID")
COLUMNS = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
MOST_DEVICES = 1_024


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its name, its cells as printed, and the text behind them."""

    line: Line
    name: str
    cells: tuple[str, ...]
    rest: str


@dataclass(slots=True)
class Block:
    """A table. `devices` is empty where the header is missing; `strange` are odd column names,
    `wrapped` counts the further lines of the header.
    """

    header: Line | None = None
    devices: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()
    wrapped: int = 0
    rows: list[Row] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def take(self, row: Row) -> None:
        self.rows.append(row)
        self.names.add(row.name)

    @property
    def line(self) -> int:
        return self.header.number if self.header else self.rows[0].line.number

    @property
    def is_p2p(self) -> bool:
        """Whether this is the table of `topo -p2p`: the cells tell, else the columns. A word that
        no version prints is taken for a class, the beginning of a status for a cut one.
        """
        cells = {cell for row in self.rows for cell in row.cells} - {"X", "N/A"}
        links = {cell for cell in cells - STATUS if CELL.fullmatch(cell)}
        if cells & STATUS or links:
            return len(cells & STATUS) > len(links)
        strange = [cell for cell in cells if not any(one.startswith(cell) for one in STATUS)]
        return not (self.columns or strange or any(row.rest for row in self.rows))


MOST_BLOCKS = 64
"""Tables in one paste: one for each machine of a large job."""


def find_blocks(paste: Paste) -> Iterator[Block]:
    """The tables of a paste, the first 64."""
    return islice(_blocks(paste), MOST_BLOCKS)


def _blocks(paste: Paste) -> Iterator[Block]:
    """A row without a header before it begins a table of its own."""
    block: Block | None = None
    gap = 0
    for line in paste.lines:
        if block and not block.rows and _continued_header(block, line, line.words):
            continue
        found = _header(line) or _row(line, block)
        if isinstance(found, Block):
            if block and block.rows:
                yield block
            block = found
        elif isinstance(found, Row):
            if block is None or gap > MOST_GAP or found.name in block.names:
                if block and block.rows:
                    yield block
                block = Block()
            block.take(found)
        elif block and not _continued(block, line):
            gap += 0 if line.blank or RULE.fullmatch(line.text) else 1
            continue
        gap = 0
    if block and block.rows:
        yield block


MOST_GAP = 3
"""Lines of something else inside a table, such as a log line of another process."""


def _header(line: Line) -> Block | None:
    """A header: device names from the first GPU on, then titles of affinity columns."""
    start = GPU.search(line.text)
    if not start:
        return None
    words = list(_split_glued(WORD.findall(line.text[start.start() :])))
    devices, columns, strange = _sort_words(words)
    if not devices or len(strange) > 1 or len(devices) > MOST_DEVICES:
        return None
    if len(words) > 1 and (CELL.fullmatch(words[1]) or AFFINITY.fullmatch(words[1])):
        return None
    if len(words) == 1 and line.text[: start.start()].strip():
        return None
    if len(words) == 1 and not start.start():
        return None
    return Block(line, tuple(devices), columns, tuple(strange))


def _split_glued(words: list[str]) -> Iterator[str]:
    """`NIC11NIC12` is two names whose blank was lost."""
    for word in words:
        if GLUED.fullmatch(word):
            yield from re.findall(r"[A-Z]{3}\d{1,4}", word)
        else:
            yield word


def _sort_words(words: list[str]) -> tuple[list[str], tuple[str, ...], list[str]]:
    devices: list[str] = []
    strange: list[str] = []
    for at, word in enumerate(words):
        follows = (words[at + 1 : at + 2] or [""])[0]
        if word in TITLES and (follows in TITLES or follows.startswith("Aff")):
            return devices, _columns(words[at:]), strange
        known = GPU.fullmatch(word) or NIC.fullmatch(word) or _rdma(word)
        (devices if known else strange).append(word)
    return devices, (), strange


def _rdma(word: str) -> bool:
    return bool(RDMA.fullmatch(word)) and any(letter.isdigit() for letter in word)


def _columns(words: list[str]) -> tuple[str, ...]:
    titles = " ".join(words)
    if titles.startswith("CPU Aff"):  # the rest of the title may stand on a wrapped line
        titles = f"CPU Affinity {titles}"
    return tuple(name for name in COLUMNS if name in titles)


def _row(line: Line, block: Block | None) -> Row | None:
    """A row of the table: of a GPU or a network device."""
    words = list(WORD.finditer(line.text))
    if not words or not _is_row_name(words[0][0], block):
        return None
    most = len(block.devices) + len(block.strange) if block and block.header else MOST_DEVICES
    cells: list[str] = []
    end = words[0].end()
    for word in words[1:]:
        printed = _as_printed(word[0])
        if len(cells) >= most or not all(_may_be_cell(one, cells, most) for one in printed):
            break
        cells.extend(printed)
        end = word.end()
    if not cells and len(words) > 1:
        return None
    if not any(CELL.fullmatch(cell) for cell in cells) and len(words) > 1:
        return None
    return Row(line, words[0][0], tuple(cells), line.text[end:].rstrip())


def _as_printed(word: str) -> list[str]:
    """The tool prints capitals; a copy through a chat or a form may not. `NODENODE` is two cells
    whose blank was lost.
    """
    if CELL.fullmatch(word.upper()):
        return [word.upper()]
    return ONE_CELL.findall(word) if GLUED_CELLS.fullmatch(word) else [word]


def _is_row_name(word: str, block: Block | None) -> bool:
    if GPU.fullmatch(word) or NIC.fullmatch(word):
        return True
    if block and block.header:
        return word in block.devices or word in block.strange
    return word.startswith("mlx") and _rdma(word)


def _may_be_cell(word: str, cells: list[str], most: int) -> bool:
    """Anything but affinity. N/A is a cell only while cells are missing from a known header."""
    if CELL.fullmatch(word):
        return True
    if word == "N/A":
        return most < MOST_DEVICES and len(cells) < most
    return not AFFINITY.fullmatch(word) and most < MOST_DEVICES


def _continued(block: Block, line: Line) -> bool:
    """Takes up the rest of a row that a narrow terminal wrapped."""
    words = line.words
    if not words or not block.header or not block.rows:
        return False
    row = block.rows[-1]
    missing = len(block.devices) + len(block.strange) - len(row.cells)
    cells = [word for word in words if CELL.fullmatch(word)]
    if not 0 < len(cells) <= missing or words[: len(cells)] != cells:
        return False
    if row.line.number + 2 < line.number or row.rest.strip():
        return False
    rest = line.text.split(cells[-1])[-1]
    block.rows[-1] = Row(row.line, row.name, (*row.cells, *cells), rest)
    return True


def _continued_header(block: Block, line: Line, words: list[str]) -> bool:
    devices, columns, strange = _sort_words(list(_split_glued(words)))
    if strange or not (devices or columns) or (devices and block.columns):
        return False
    if block.header and line.number > block.header.number + 1 + block.wrapped:
        return False
    if devices and not _goes_on(block.devices, devices):
        return False
    block.devices, block.columns = (*block.devices, *devices), (*block.columns, *columns)
    block.wrapped += 1
    return True


def _goes_on(before: tuple[str, ...], names: list[str]) -> bool:
    """Whether a line takes up a header where it broke off: GPU5 after GPU4, or network devices."""
    last, first = before[-1], names[0]
    if set(before) & set(names):
        return False
    return not GPU.fullmatch(first) or (
        bool(GPU.fullmatch(last)) and int(first[3:]) == int(last[3:]) + 1
    )
