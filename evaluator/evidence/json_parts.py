"""Parts of a benchmark's JSON that are dropped before storage: environment and arguments."""

from __future__ import annotations

import re

PART = re.compile(r'"(env|environment|args|argv|command)"\s{0,8}:\s{0,8}(?=[\[{])')
PROGRAM = re.compile(r"\b[a-z_]{4,24}_perf\b")
TOKEN = re.compile(r'[\[\]{}"]')


def without_parts(text: str) -> tuple[str, int]:
    """The text with emptied parts, and how many. Line breaks stay, so that line numbers do."""
    kept: list[str] = []
    at = dropped = 0
    for match in PART.finditer(text):
        if match.start() < at:
            continue
        end = _end_of(text, match.end())
        inside = text[match.end() : end]
        told = _emptied(match[1], inside)
        kept.append(text[at : match.end()] + told)
        dropped += told != inside
        at = end
    kept.append(text[at:])
    return "".join(kept), dropped


def _end_of(text: str, start: int) -> int:
    """Behind the bracket that closes the one at `start`; the end of the text where none does."""
    depth, at = 0, start
    while match := TOKEN.search(text, at):
        at = match.end()
        if match[0] == '"':
            at = _end_of_string(text, at)
        else:
            depth += 1 if match[0] in "[{" else -1
            if depth == 0:
                return at
    return len(text)


def _end_of_string(text: str, at: int) -> int:
    while (close := text.find('"', at)) >= 0:
        slashes = len(text[at:close]) - len(text[at:close].rstrip("\\"))
        at = close + 1
        if slashes % 2 == 0:
            return at
    return len(text)


def _emptied(name: str, inside: str) -> str:
    """Of the arguments the program's own name stays: it says which operation was measured."""
    program = PROGRAM.search(inside) if name in ("args", "argv", "command") else None
    words = f'"{program[0]}"' if program else ""
    breaks = "\n" * inside.count("\n")
    if inside[:1] == "{":
        words = ""
    return f"{inside[:1]}{words}{breaks}{']' if inside[:1] == '[' else '}'}"
