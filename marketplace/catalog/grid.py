"""A table as a rectangle: spans filled in, header levels joined, section rows set apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from marketplace.catalog.document import Element
from marketplace.catalog.lines import read_lines
from marketplace.catalog.text import clean

MAX_SPAN = 200
"""Wider spans are a trap: colspan="1000000" would be a million cells."""
MAX_COLUMNS = 400


@dataclass(frozen=True, slots=True)
class GridCell:
    """One table cell. A spanning cell stands in several places as the same object."""

    text: str
    parts: tuple[str, ...]
    header: bool
    element: Element


@dataclass(slots=True)
class GridRow:
    """`section` numbers the thead, tbody or tfoot that holds the row."""

    element: Element
    cells: list[GridCell]
    section: int
    kind: str

    @property
    def distinct(self) -> list[GridCell]:
        return list({id(cell): cell for cell in self.cells}.values())


@dataclass(slots=True)
class _Carry:
    """Cells that reach down from rows above, by column: (cell, rows still to fill)."""

    cells: dict[int, tuple[GridCell, int]] = field(default_factory=dict)


def read_grid(table: Element) -> list[GridRow]:
    """All rows of a table, its own only: those of nested tables stay inside their cell."""
    rows: list[GridRow] = []
    for number, (kind, elements) in enumerate(_sections(table)):
        carry = _Carry()
        for element in elements:
            cells = _fill(element, carry)
            if any(cell.text for cell in cells):
                rows.append(GridRow(element, cells, number, kind))
    return rows


def _sections(table: Element) -> Iterator[tuple[str, list[Element]]]:
    """(thead, tbody or tfoot, its rows). Rows outside any section form one of their own."""
    loose: list[Element] = []
    for child in table:
        if child.tag == "tr":
            loose.append(child)
            continue
        if loose:
            yield "tbody", loose
            loose = []
        if child.tag in ("thead", "tbody", "tfoot"):
            yield child.tag, [row for row in child if row.tag == "tr"]
    if loose:
        yield "tbody", loose


def _fill(row: Element, carry: _Carry) -> list[GridCell]:
    cells: list[GridCell] = []
    for element in row:
        if element.tag not in ("td", "th"):
            continue
        _drop_carried(cells, carry)
        cell = _cell(element)
        width, height = _span(element, "colspan"), _span(element, "rowspan")
        for _ in range(min(width, MAX_COLUMNS - len(cells))):
            if height > 1:
                carry.cells[len(cells)] = (cell, height - 1)
            cells.append(cell)
    _drop_carried(cells, carry)
    return cells


def _drop_carried(cells: list[GridCell], carry: _Carry) -> None:
    while len(cells) in carry.cells and len(cells) < MAX_COLUMNS:
        cell, left = carry.cells.pop(len(cells))
        if left > 1:
            carry.cells[len(cells)] = (cell, left - 1)
        cells.append(cell)
        # A cell that was just set aside for the next row must not be used twice in this one.


def _span(element: Element, name: str) -> int:
    words = (element.get(name) or "1").strip()
    if name == "rowspan" and words == "0":
        return MAX_SPAN
    return max(1, min(MAX_SPAN, int(words))) if words.isascii() and words.isdigit() else 1


def _cell(element: Element) -> GridCell:
    lines = read_lines([element])
    parts = tuple(part for line in lines for part in line.parts)
    text = clean(" ".join(line.text for line in lines))
    return GridCell(text, parts, element.tag == "th", element)
