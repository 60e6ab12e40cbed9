"""Rows of text as a table, as Markdown or as CSV. Cells may hold what a stranger wrote."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Escape sequences and direction marks would let a listing's name repaint the terminal."""
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet runs a cell that begins with one of these."""
MARKDOWN_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#!])")


def plain(text: str) -> str:
    return CONTROLS.sub(" ", text)


def as_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell, for a terminal."""
    cells = [[plain(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    )
    return "\n".join(line.rstrip() for line in lines)


def as_markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([_marked(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _marked(cell: str) -> str:
    return MARKDOWN_SPECIAL.sub(r"\\\1", plain(cell))


def as_csv(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """RFC 4180, with a quote before every cell that a spreadsheet would run."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(head)
    writer.writerows([_inert(cell) for cell in row] for row in rows)
    return text.getvalue().rstrip("\r\n")


def _inert(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell
