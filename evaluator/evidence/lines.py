"""A paste as numbered lines: what a terminal, a browser or a forum added is taken off.

Line numbers are those of the paste, so that a problem points to where the reader sees it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

ESCAPES = re.compile(r"\x1b\[[0-9;?]{0,32}[A-Za-z]|\x1b[()][A-Z0-9]|\x1b\][^\x07\n]{0,200}\x07")
SEVERAL_BREAKS = re.compile(r"\r\n|\r|\x0b|\x0c|\x85|\u2028|\u2029")
INVISIBLE = re.compile("[\u200b-\u200f\u2060\ufeff\u00ad\x00-\x08\x0e-\x1a\x1c-\x1f]")
OTHER_BLANKS = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
QUOTED = re.compile(r"^(?:[ \t]?>[ \t]?){1,4}(?=[ \t]|GPU|NIC|mlx)")
LOGGED = re.compile(
    r"^(?:(?:\[[^\]\n]{1,60}\](?:<std(?:out|err)>)?:?|\([^)\n]{1,80}\)|[\w.-]{1,60}\s{0,8}\|"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,20}|std(?:out|err) [FP]|\s{0,5}\d{1,5}:?)\s){1,3}"
    r"(?=\s{0,20}(?:(?:GPU|NIC|mlx5_)\d|#\s|\d{1,16}\s{1,20}\d{1,16}\s{1,20}[a-z]))"
)
"""What a job's log, a container's or an editor puts before each line of a table or a benchmark:
rank, worker, time or line number.
"""
TAGGED = re.compile(r"^\[\d{1,4},\d{1,6}\](?:<std(?:out|err)>)?:[ \t]?")
"""What `mpirun --tag-output` puts there: job and rank."""
MARKUP = re.compile(r"</?(?:br|pre|code|p|span)\s{0,4}/?>")
LONGEST_LINE = 8_000
"""500 GPUs in one matrix row. A longer line is no line of these tools, and is left out."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a paste, without what is not the tool's own. Numbers count from 1."""

    number: int
    text: str

    @property
    def words(self) -> list[str]:
        return self.text.split()

    @property
    def blank(self) -> bool:
        return not self.text or self.text.isspace()


@dataclass(frozen=True, slots=True)
class Paste:
    """`ended` is False where the last line has no end: its last word may be cut."""

    lines: tuple[Line, ...]
    ended: bool
    text: str

    @property
    def last(self) -> int:
        """The number of the last line that is not blank; 0 for a blank paste."""
        return next((line.number for line in reversed(self.lines) if not line.blank), 0)

    def cut_at(self, line: Line) -> bool:
        """Whether the text stops inside this line."""
        return not self.ended and line.number == self.last

    def after(self, number: int) -> Iterator[Line]:
        """The lines behind a line of that number."""
        return iter(self.lines[number:])


def _own(line: str) -> str:
    """The line without what was put before it."""
    return LOGGED.sub("", TAGGED.sub("", QUOTED.sub("", line)))


def read_paste(text: str) -> Paste:
    """Lines of a text, without escapes, quotation marks, odd blanks and markup of tables."""
    plain = SEVERAL_BREAKS.sub("\n", ESCAPES.sub("", text))
    plain = MARKUP.sub("", OTHER_BLANKS.sub(" ", INVISIBLE.sub("", plain)))
    if "&lt;" in plain or "&gt;" in plain or "&nbsp;" in plain:
        plain = OTHER_BLANKS.sub(" ", html.unescape(plain))
    lines = [
        Line(number, _own(line) if len(line) <= LONGEST_LINE else "")
        for number, line in enumerate(plain.split("\n"), 1)
    ]
    return Paste(tuple(lines), plain.endswith("\n"), plain)
