"""Price tables: which are catalogs, what their columns mean, and a record for each machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from marketplace.catalog.document import Element
from marketplace.catalog.grid import GridCell, GridRow, read_grid
from marketplace.catalog.identity import sku_in, url_in
from marketplace.catalog.lines import headings_above, language_of, text_of
from marketplace.catalog.reading.availability import read_stock
from marketplace.catalog.reading.labels import Attribute, classify
from marketplace.catalog.reading.money import find_money
from marketplace.catalog.reading.names import names_gpu
from marketplace.catalog.reading.subjects import leads_with_gpu
from marketplace.catalog.records import Cell, Record, labelled

_TELLING = frozenset(
    {Attribute.PRICE, Attribute.GPU, Attribute.GPU_COUNT, Attribute.VRAM, Attribute.AVAILABILITY}
)
_RENTING = frozenset({Attribute.PRICE, Attribute.AVAILABILITY, Attribute.QUANTITY})
_NAMING = frozenset({Attribute.TITLE, Attribute.GPU, Attribute.SKU})


@dataclass(frozen=True, slots=True)
class Table:
    """A catalog table and its records."""

    element: Element
    records: tuple[Record, ...]


def read_tables(root: Element) -> Iterator[Table]:
    """Every table under `root` that lists GPU machines. Others, such as cookie tables, are not."""
    for element in root.iter("table"):
        if any(child.tag == "table" for child in islice(element.iter("table"), 1, 2)):
            continue
        records = tuple(_records(element))
        if records:
            yield Table(element, records)


def _records(table: Element) -> Iterator[Record]:
    rows = read_grid(table)
    notes = _notes(table)
    heads = _header_rows(rows)
    if _is_transposed(rows, heads):
        yield from _read_columns(table, rows, notes)
        return
    body = [row for row in rows if row not in heads and row.kind != "tfoot"]
    if _is_one_machine(rows):
        return
    labels = _labels(heads)
    known = {classify(label) or classify(label.rpartition(" / ")[2]) for label in labels}
    subject = _subject(table, notes)
    if not known & (_TELLING | _NAMING) and not _rows_speak(body):
        return
    if not known & _RENTING and not _rows_offer(body):
        # Figures of cards side by side are a comparison, not a catalog.
        return
    if not any(names_gpu(cell.text) for row in body for cell in row.distinct) and not subject:
        return
    yield from _read_rows(table, body, labels, notes, subject)


def _is_one_machine(rows: list[GridRow]) -> bool:
    """Two columns of label and value are the attributes of one machine: a card, not a list."""
    if max((len(row.cells) for row in rows), default=0) > 2:
        return False
    named = sum(classify(row.cells[0].text) is not None for row in rows if row.cells)
    return named * 2 > len(rows)


def _notes(table: Element) -> tuple[str, ...]:
    captions = [text_of(one) for one in table.iter("caption")]
    return tuple(filter(None, captions))


def _subject(table: Element, notes: tuple[str, ...]) -> str:
    """A caption or the nearest heading that names the GPU of all rows."""
    near = next(headings_above(table), "")
    return next((text for text in (*notes, near) if names_gpu(text)), "")


def _header_rows(rows: list[GridRow]) -> list[GridRow]:
    """The thead, else leading rows of th cells, else a first row that classifies."""
    heads = [row for row in rows if row.kind == "thead"]
    if heads:
        return heads
    for row in rows[:4]:
        if not all(cell.header for cell in row.distinct if cell.text):
            break
        heads.append(row)
    if heads or not rows:
        return heads if len(heads) < len(rows) else heads[:1]
    if any(names_gpu(cell.text) or _has_amount(cell) for cell in rows[0].distinct):
        return []
    classified = [classify(cell.text) for cell in rows[0].distinct]
    return rows[:1] if sum(map(bool, classified)) * 2 > len(classified) else []


def _has_amount(cell: GridCell) -> bool:
    return any(money.amount for money in find_money(cell.text[:200]))


def _labels(heads: list[GridRow]) -> list[str]:
    """One label per column, levels joined by " / ", a cell that spans levels once."""
    width = max((len(row.cells) for row in heads), default=0)
    return [_label(heads, column) for column in range(width)]


def _label(heads: list[GridRow], column: int) -> str:
    cells = [row.cells[column] for row in heads if column < len(row.cells)]
    texts = {id(cell): cell.text for cell in cells if cell.text}
    return " / ".join(dict.fromkeys(texts.values()))


def _rows_speak(body: list[GridRow]) -> bool:
    """A table without a header: rows that name a GPU and hold several cells are read as cards."""
    return any(
        len(row.distinct) > 1 and any(leads_with_gpu(cell.text) for cell in row.distinct)
        for row in body
    )


def _rows_offer(body: list[GridRow]) -> bool:
    cells = (cell for row in body for cell in row.distinct)
    return any(_has_amount(cell) or read_stock(cell.text).words for cell in cells)


def _read_rows(
    table: Element, body: list[GridRow], labels: list[str], notes: tuple[str, ...], subject: str
) -> Iterator[Record]:
    section_notes: tuple[str, ...] = ()
    section, held_only_notes = -1, True
    for row in body:
        if row.section != section:
            section_notes = section_notes if held_only_notes and section >= 0 else ()
            section, held_only_notes = row.section, True
        if _is_section_row(row, labels):
            text = row.distinct[0].text
            section_notes = (text,)
            subject = text if names_gpu(text) else subject
            continue
        held_only_notes = False
        if _is_repeated_header(row, labels):
            continue
        record = _record(row, labels, (*section_notes, *notes), subject)
        yield from _by_count(record) or [record]


_COUNT_HEADER = re.compile(
    r"(?:.{0,40}/\s)?(?P<count>\d{1,3})\s?(?:[x×]|[x×]?\s?gpus?)(?:\s/.{0,40})?", re.I
)


def _by_count(record: Record) -> list[Record]:
    """Prices under "1x", "2x", "8x": each column is a machine of its own."""
    columns = [
        (int(match["count"]), cell)
        for cell in record.cells
        if (match := _COUNT_HEADER.fullmatch(cell.label))
    ]
    if len(columns) < 2:
        return []
    counted = [cell for _, cell in columns]
    shared = tuple(cell for cell in record.cells if cell not in counted)
    return [
        replace(
            record,
            sku=f"{record.sku}-{count}x",
            cells=(
                *shared,
                Cell(str(count), "GPUs", Attribute.GPU_COUNT),
                replace(cell, label="price", attribute=Attribute.PRICE),
            ),
        )
        for count, cell in columns
        if _has_digit(cell)
    ]


def _has_digit(cell: Cell) -> bool:
    return any(letter.isdigit() for letter in cell.text)


def _is_section_row(row: GridRow, labels: list[str]) -> bool:
    distinct = [cell for cell in row.distinct if cell.text]
    wide = len(row.cells) > 1 or len(labels) > 1
    return wide and len(distinct) == 1 and (len(row.cells) == 1 or len(row.distinct) == 1)


def _is_repeated_header(row: GridRow, labels: list[str]) -> bool:
    texts = [cell.text for cell in row.cells]
    ends = [label.rpartition(" / ")[2] for label in labels]
    return all(cell.header for cell in row.distinct) and (texts == ends or len(row.distinct) > 2)


def _record(row: GridRow, labels: list[str], notes: tuple[str, ...], subject: str) -> Record:
    cells = tuple(_cells(row, labels))
    record = Record(
        title=_title(cells, subject),
        cells=cells,
        notes=notes,
        subject=subject,
        language=language_of(row.element),
        url=url_in(row.element),
    )
    return replace(record, sku=sku_in(row.element, record))


def _cells(row: GridRow, labels: list[str]) -> Iterator[Cell]:
    for column, cell in enumerate(row.cells):
        label = labels[column] if column < len(labels) else ""
        if column and cell is row.cells[column - 1] and not _spans_prices(cell, labels, column):
            continue
        if cell.text:
            yield replace(labelled(label, cell.text), parts=cell.parts)


def _spans_prices(cell: GridCell, labels: list[str], column: int) -> bool:
    """A price cell over several columns of different labels holds for each of them."""
    return (
        column < len(labels)
        and labels[column] != labels[column - 1]
        and classify(labels[column]) is Attribute.PRICE
    )


def _title(cells: tuple[Cell, ...], subject: str = "") -> str:
    """The cell that names the GPU. An id may do so by chance ("l4"): a heading outweighs it."""
    usable = [cell for cell in cells if not (subject and cell.attribute is Attribute.SKU)]
    naming = [cell.text for cell in usable if cell.attribute in _NAMING and names_gpu(cell.text)]
    others = [cell.text for cell in usable if names_gpu(cell.text)]
    titles = [cell.text for cell in cells if cell.attribute is Attribute.TITLE]
    return next(iter([*naming, *others, *titles]), "")


# --- tables that list machines side by side


def _is_transposed(rows: list[GridRow], heads: list[GridRow]) -> bool:
    """The first column names attributes and the columns are machines."""
    if len(rows) < 2 or max(len(row.cells) for row in rows) < 3:
        # Two columns are the attributes of one machine: a card, read with what stands around it.
        return False
    down = [classify(row.cells[0].text) for row in rows if row.cells]
    across = [classify(label) for label in _labels(heads or rows[:1])[1:]]
    telling = {one for one in down if one} & _TELLING
    return len([one for one in down if one]) > max(1, len([one for one in across if one])) and (
        bool(telling) and len([one for one in down if one]) * 2 >= len(down)
    )


def _read_columns(table: Element, rows: list[GridRow], notes: tuple[str, ...]) -> Iterator[Record]:
    width = max(len(row.cells) for row in rows)
    for column in range(1, width):
        cells = tuple(_column_cells(rows, column))
        title = _title(cells) or _column_title(rows, column)
        if not names_gpu(title) and not any(cell.attribute is Attribute.PRICE for cell in cells):
            continue
        record = Record(
            title=title, cells=cells, notes=notes, language=language_of(table),
            subject=_subject(table, notes),
        )  # fmt: skip
        head = rows[0].cells[column].element if column < len(rows[0].cells) else table
        yield replace(record, sku=sku_in(head, record), url=url_in(head))


def _column_cells(rows: list[GridRow], column: int) -> Iterator[Cell]:
    for number, row in enumerate(rows):
        if column >= len(row.cells) or row.cells[column] is row.cells[0]:
            continue
        label, cell = row.cells[0].text, row.cells[column]
        first = number == 0 and classify(label) is None
        if cell.text:
            made = Cell(cell.text, "name", Attribute.TITLE) if first else labelled(label, cell.text)
            yield replace(made, parts=cell.parts)


def _column_title(rows: list[GridRow], column: int) -> str:
    return rows[0].cells[column].text if column < len(rows[0].cells) else ""
