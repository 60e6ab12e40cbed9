"""Rows of text as a table, as Markdown or as CSV. Cells may hold what a stranger wrote."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence

CONTROLS = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)
"""Escape sequences and direction marks would let a listing's name repaint the terminal."""
FORMULA_STARTS = ("=", "+", "-", "@")
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
    """RFC 4180, with a quote before every cell that a spreadsheet would run, also after blanks.

    A cell may have several lines.
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(head)
    writer.writerows([_inert(_plain_lines(cell)) for cell in row] for row in rows)
    return text.getvalue().rstrip("\r\n")


def _plain_lines(cell: str) -> str:
    return "\n".join(map(plain, cell.split("\n")))


def _inert(cell: str) -> str:
    return f"'{cell}" if cell.lstrip().startswith(FORMULA_STARTS) else cell


def as_json(document: object) -> str:
    """Indented JSON whose strings hold no character that a terminal would act on."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return "\n".join(CONTROLS.sub(_escaped, line) for line in text.split("\n"))


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
