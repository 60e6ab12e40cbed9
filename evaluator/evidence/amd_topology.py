"""`amd-smi topology`: as tables named by PCI address, and as JSON in its old and new shape."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluator.evidence.documents import Malformed, find_json
from evaluator.evidence.lines import Line, Paste
from evaluator.evidence.readings import (
    Format,
    Matrix,
    Problem,
    Reading,
    Sign,
    Standing,
    Trouble,
    UnreadableEvidence,
)

TITLE = re.compile(r"\s{0,20}([A-Z][A-Z -]{0,40}) TABLE:\s{0,20}")
DEVICE = re.compile(r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]|GPU\d{1,4}")
SELF = "SELF"
TYPES = {"XGMI": "XGMI", "PCIE": "PCIE"}
NO_TYPE = frozenset({"N/A", "UNKNOWN", "SELF", "NOT_APPLICABLE"})
OPEN, SHUT = "ENABLED", "DISABLED"

Pair = tuple[int, int]


@dataclass(slots=True)
class Links:
    """What either shape says. Pairs are ordered, by position in the output."""

    format: Format
    line: int
    count: int = 0
    types: dict[Pair, str] = field(default_factory=dict)
    access: dict[Pair, str] = field(default_factory=dict)


def read_amd(paste: Paste) -> Iterator[Reading]:
    """The tables, or the JSON. Raises UnreadableEvidence where JSON is broken."""
    links = _tables(paste)
    if links:
        yield _reading(links)
    elif '"link_type"' in paste.text:
        yield _reading(_json(paste))


def _tables(paste: Paste) -> Links | None:
    links: Links | None = None
    title, devices = "", list[str]()
    for line in paste.lines:
        match = TITLE.fullmatch(line.text)
        if match:
            links = links or Links(Format.AMD_TABLE, line.number)
            title = match[1]
        elif links:
            devices = _take_line(links, title, devices, line, last=line.number == paste.last)
    return links if links and links.count else None


def _take_line(
    links: Links, title: str, devices: list[str], line: Line, *, last: bool
) -> list[str]:
    """A row that lost a cell is not believed, unless the text ends in it: the rest has shifted."""
    words = line.text.replace("|", " ").split()
    if not words or not DEVICE.fullmatch(words[0]) or len(words) > 260:
        return devices
    if all(DEVICE.fullmatch(word) for word in words) and (len(words) > 1 or not devices):
        links.count = max(links.count, len(words))
        return words
    into = {"LINK TYPE": links.types, "ACCESS": links.access}.get(title)
    whole = len(words) > len(devices)
    if into is not None and words[0] in devices and (whole or last):
        row = devices.index(words[0])
        if SELF in words and words.index(SELF) != row + 1:
            return devices
        for column, word in enumerate(words[1 : len(devices) + 1]):
            into[row, column] = word
    return devices


def _json(paste: Paste) -> Links:
    try:
        document = find_json(paste, '"link_type"')
    except Malformed as problem:
        raise UnreadableEvidence([problem.problem], Format.AMD_JSON) from problem
    rows = _gpu_rows(document.value) if document else []
    if not document or not rows:
        expected = "one object per GPU"
        raise UnreadableEvidence(
            [Problem(Trouble.INVALID_JSON, 1, expected=expected)], Format.AMD_JSON
        )
    links = Links(Format.AMD_JSON, document.line, len(rows))
    numbers = [row.get("gpu") for row in rows]
    for at, row in enumerate(rows):
        if isinstance(row.get("links"), list):
            _take_new(links, at, row["links"], numbers)
        else:
            _take_old(links, at, row, numbers)
    return links


def _gpu_rows(value: Any) -> list[dict[str, Any]]:
    """The list itself, or the one list inside an object that wraps it."""
    if isinstance(value, dict):
        value = next((part for part in value.values() if isinstance(part, list)), [])
    if not isinstance(value, list):
        return []
    return [row for row in value if isinstance(row, dict) and "gpu" in row][:256]


def _take_new(links: Links, at: int, entries: list[Any], numbers: list[Any]) -> None:
    for entry in entries:
        if isinstance(entry, dict) and entry.get("gpu") in numbers:
            other = numbers.index(entry.get("gpu"))
            links.types[at, other] = str(entry.get("link_type"))
            links.access[at, other] = str(entry.get("link_status"))


def _take_old(links: Links, at: int, row: Mapping[str, Any], numbers: list[Any]) -> None:
    for key, into in (("link_type", links.types), ("link_accessibility", links.access)):
        values = row.get(key)
        for name, word in values.items() if isinstance(values, dict) else ():
            number = name.removeprefix("gpu_")
            found = [to for to, gpu in enumerate(numbers) if str(gpu) == number]
            if found:
                into[at, found[0]] = str(word)


def _reading(links: Links) -> Reading:
    matrix = _matrix(links)
    problems = tuple(_problems(links, matrix))
    return Reading(
        format=links.format,
        line=links.line,
        standing=Standing.PARTIAL if problems else Standing.OK,
        problems=problems,
        signs=frozenset(_signs(links, problems)),
        gpu_count=links.count,
        matrix=matrix if links.types else None,
        can_access=_can_access(links),
        cannot_access=frozenset(_shut(links)) if links.access else None,
    )


def _matrix(links: Links) -> Matrix:
    gpus = range(links.count)
    return tuple(
        tuple("X" if one == other else _link(links, one, other) for other in gpus) for one in gpus
    )


def _link(links: Links, one: int, other: int) -> str | None:
    """Both cells where both are printed; two that disagree are believed neither."""
    found = {links.types[pair] for pair in ((one, other), (other, one)) if pair in links.types}
    return TYPES.get(found.pop()) if len(found) == 1 else None


def _problems(links: Links, matrix: Matrix) -> Iterator[Problem]:
    if not links.types:
        expected = "a table of link types"
        yield Problem(Trouble.NO_LINK_SECTION, links.line, expected=expected)
        return
    for word in sorted({*links.types.values()} - {*TYPES, *NO_TYPE}):
        yield Problem(Trouble.UNKNOWN_CLASS, links.line, word[:40], "XGMI or PCIE")
    seen = {*links.types} | {(other, one) for one, other in links.types}
    if any((one, other) not in seen for one in range(links.count) for other in range(one)):
        yield Problem(Trouble.TRUNCATED, links.line, expected="a link type for each pair")


def _signs(links: Links, problems: tuple[Problem, ...]) -> Iterator[Sign]:
    for problem in problems:
        unknown = problem.trouble is Trouble.UNKNOWN_CLASS
        yield Sign.UNKNOWN_TOKEN if unknown else Sign.INCOMPLETE
    if SHUT in links.access.values():
        yield Sign.P2P_UNUSABLE


def _shut(links: Links) -> Iterator[Pair]:
    yield from ((min(pair), max(pair)) for pair, word in links.access.items() if word == SHUT)


def _can_access(links: Links) -> frozenset[Pair] | None:
    """Pairs that are open in every direction that was printed."""
    if not links.access:
        return None
    shut = {(min(pair), max(pair)) for pair, word in links.access.items() if word != OPEN}
    opened = {
        (min(pair), max(pair))
        for pair, word in links.access.items()
        if word == OPEN and pair[0] != pair[1]
    }
    return frozenset(pair for pair in opened if pair not in shut)
