"""nvbandwidth, as text and as JSON: copies between host and GPUs, and between GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluator.evidence.documents import Malformed, find_json
from evaluator.evidence.lines import Line, Paste
from evaluator.evidence.readings import (
    BandwidthMatrix,
    Format,
    Problem,
    Reading,
    Sign,
    Standing,
    Trouble,
    UnreadableEvidence,
)

RUNNING = re.compile(r"\s{0,20}[Rr]unning ([a-z0-9_]{4,80})\.?\s*")
SUM = re.compile(r"\s{0,20}SUM ([a-z0-9_]{4,80})\s{1,20}(\d{1,9}(?:\.\d{1,6})?)\s*")
ROW = re.compile(r"\s{0,20}(\d{1,3})((?:\s{1,20}(?:\d{1,7}\.\d{1,6}|\d{1,7}|N/A)){1,64})\s*")
DEVICE = re.compile(r"\s{0,20}Device (\d{1,3}): ([^\n(]{2,80}?)\s{0,8}(?:\([^)]{0,40}\))?\s*")
DRIVER = re.compile(r"\s{0,20}Driver Version:\s{0,8}(\d{1,4}(?:\.\d{1,4}){1,3})")

TO_DEVICE, TO_HOST = "host_to_device_memcpy_ce", "device_to_host_memcpy_ce"
BETWEEN = "device_to_device"

Rows = list[tuple[float | None, ...]]


@dataclass(slots=True)
class Run:
    """Rows and sums by test."""

    line: int
    rows: dict[str, Rows] = field(default_factory=dict)
    sums: dict[str, float] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    driver: str | None = None
    failed: list[str] = field(default_factory=list)
    waived: set[str] = field(default_factory=set)


def read_nvbandwidth(paste: Paste) -> Iterator[Reading]:
    """Text or JSON. Raises UnreadableEvidence where the JSON is broken."""
    if '"testcases"' in paste.text:
        yield _reading(_json(paste))
    elif "_memcpy_" in paste.text or "nvbandwidth" in paste.text:
        run = _text(paste)
        if run.rows or run.sums:
            yield _reading(run)


def _text(paste: Paste) -> Run:
    run, test = Run(0), ""
    for line in paste.lines:
        running = RUNNING.fullmatch(line.text)
        if running:
            test = running[1]
            run.rows.setdefault(test, [])
            run.line = run.line or line.number
        else:
            _take_line(run, test, line, paste)
    return run


def _take_line(run: Run, test: str, line: Line, paste: Paste) -> None:
    total, row = SUM.fullmatch(line.text), ROW.fullmatch(line.text)
    device, driver = DEVICE.fullmatch(line.text), DRIVER.match(line.text)
    if total and not paste.cut_at(line):
        run.sums[total[1]] = float(total[2])
        run.line = run.line or line.number
    elif test and row:
        _take_row(run, test, row[2].split())
    elif device:
        run.names[int(device[1])] = device[2]
    elif driver:
        run.driver = driver[1]
    elif test and "waived" in line.text.lower():
        run.waived.add(test)


def _take_row(run: Run, test: str, words: list[str]) -> None:
    """A row of figures; the row of column numbers above them has no decimal point."""
    if any("." in word or word == "N/A" for word in words):
        run.rows[test].append(tuple(_figure(word) for word in words))


def _figure(word: Any) -> float | None:
    try:
        figure = float(word)
    except (TypeError, ValueError, OverflowError):
        return None
    return figure if 0 <= figure < 1e9 else None


def _json(paste: Paste) -> Run:
    try:
        document = find_json(paste, '"testcases"')
    except Malformed as problem:
        raise UnreadableEvidence([problem.problem], Format.NVBANDWIDTH) from problem
    body = (
        document.value.get("nvbandwidth") if document and isinstance(document.value, dict) else None
    )
    tests = body.get("testcases") if isinstance(body, dict) else None
    if not document or not isinstance(body, dict) or not isinstance(tests, list):
        expected = "an object nvbandwidth with a list of testcases"
        broken = Problem(Trouble.INVALID_JSON, 1, expected=expected)
        raise UnreadableEvidence([broken], Format.NVBANDWIDTH)
    run = Run(document.line, driver=_words(body.get("Driver Version")))
    for test in tests:
        if isinstance(test, dict):
            _take_test(run, test)
    for at, told in enumerate(body.get("GPU Device list") or body.get("GPU Device info") or ()):
        run.names[at] = str(told).split(":", 1)[-1].split("(")[0].strip()[:80]
    return run


def _words(value: Any) -> str | None:
    return value[:40] if isinstance(value, str) else None


def _take_test(run: Run, test: Mapping[str, Any]) -> None:
    name, matrix, total = test.get("name"), test.get("bandwidth_matrix"), _figure(test.get("sum"))
    if not isinstance(name, str):
        return
    run.rows[name] = [
        tuple(_figure(cell) for cell in row)
        for row in (matrix if isinstance(matrix, list) else ())
        if isinstance(row, list)
    ]
    if total is not None:
        run.sums[name] = total
    if test.get("status") == "Waived":
        run.waived.add(name)
    elif test.get("status") not in ("Passed", None):
        run.failed.append(name[:80])


def _reading(run: Run) -> Reading:
    tables = tuple(_matrix(name, rows) for name, rows in run.rows.items() if _square(name, rows))
    problems = tuple(_problems(run))
    names = tuple(run.names[gpu] for gpu in sorted(run.names)) or None
    signs = {Sign.INCOMPLETE} if problems else set()
    if len(set(names or ())) > 1:
        signs.add(Sign.MIXED_MODELS)
    return Reading(
        format=Format.NVBANDWIDTH,
        line=run.line,
        standing=Standing.PARTIAL if problems else Standing.OK,
        problems=problems,
        signs=frozenset(signs),
        gpu_count=_count(run) or None,
        gpu_names=names,
        driver=run.driver,
        bandwidth=tables,
        host_to_device_gb_s=run.sums.get(TO_DEVICE),
        device_to_host_gb_s=run.sums.get(TO_HOST),
    )


def _square(name: str, rows: Rows) -> bool:
    return BETWEEN in name and len(rows) > 1 and all(len(row) == len(rows) for row in rows)


def _matrix(name: str, rows: Rows) -> BandwidthMatrix:
    return BandwidthMatrix(name, "bidirectional" in name, True, tuple(rows))


def _count(run: Run) -> int:
    widths = [len(row) for rows in run.rows.values() for row in rows]
    return len(run.names) or max(widths, default=0)


def _problems(run: Run) -> Iterator[Problem]:
    """A test that ran has rows and a sum, unless it was waived."""
    for name, rows in run.rows.items():
        summed = any(total.startswith(name) for total in run.sums)  # read1, read2, total
        if name not in run.waived and name not in run.failed and not summed:
            expected = f"the sum of {name}" if rows else f"the rows of {name}"
            yield Problem(Trouble.TRUNCATED, run.line, expected=expected)
    for name in run.failed:
        yield Problem(Trouble.COMMAND_FAILED, run.line, name, "a test that passed")
