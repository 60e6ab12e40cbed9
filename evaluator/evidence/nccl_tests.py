"""nccl-tests and rccl-tests: rows of size, time and bandwidth, as text or JSON.

The average over all sizes is not read: it mixes small messages with large ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluator.evidence.benchmarks import BUS_FACTORS
from evaluator.evidence.documents import Malformed, find_json
from evaluator.evidence.lines import Line, Paste
from evaluator.evidence.readings import (
    BenchmarkRow,
    Format,
    Problem,
    Reading,
    Sign,
    Standing,
    Trouble,
    UnreadableEvidence,
)

RANK = re.compile(
    r"#?\s{0,8}Rank\s{1,4}(?P<rank>\d{1,5})\b.{0,120}?(?:\bon\s{1,20}(?P<host>\S{1,100})\s{1,20})?"
    r"\bdevice\s{1,4}(?P<device>\d{1,3})\s{1,4}\[[^\]]{1,20}\]\s{1,4}(?P<name>\S.{0,80})"
)
SHARE = re.compile(r"#\s{0,4}nThread\s{1,4}(\d{1,3})\s{1,4}nGpus\s{1,4}(\d{1,3})\b")
"""Ranks of one process: threads times GPUs of each."""
BEGINS = re.compile(r"#\s{0,4}nThread\s{1,4}\d|#\s{0,4}Collective test starting")
"""The first line that a run prints. One paste may hold a run for each size of group."""
OPERATION = re.compile(
    r"\b(all_reduce|all_gather|reduce_scatter|broadcast|reduce|alltoall|sendrecv|gather|scatter|hypercube)_perf\b"
)
OUT_OF_BOUNDS = re.compile(
    r"#\s{0,8}Out of bounds values\s{0,8}:\s{0,8}(\d{1,12})\s{1,8}(OK|FAILED)"
)
TRAILER = "# Avg bus bandwidth"
TYPES = frozenset(
    {"int8", "char", "uint8", "uchar", "int32", "int", "uint32", "uint", "int64", "uint64"}
    | {"half", "float16", "float", "float32", "double", "float64", "bfloat16", "bf16"}
    | {"f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2"}
)
STAMP = re.compile(r"\s\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\s{0,40}$")
"""The time of a row, which newer versions print last on request."""
LARGEST_BYTES = 10**15
COLLAPSE_FROM_BYTES = 1 << 20
COLLAPSE_SHARE = 0.5
FACTOR_ALL_REDUCE = 2.0


@dataclass(slots=True)
class Run:
    """What was gathered of one output. `joined` where two ranks stand on one line, `odd` are rows
    whose figures do not go together.
    """

    line: int = 0
    operation: str = "unknown"
    names: dict[int, str] = field(default_factory=dict)
    places: dict[int, tuple[str, str]] = field(default_factory=dict)
    rows: list[BenchmarkRow] = field(default_factory=list)
    failed: int = 0
    line_failed: int = 0
    closed: bool = False
    joined: bool = False
    per_process: int = 1
    odd: list[BenchmarkRow] = field(default_factory=list)
    cut: int = 0
    version: str | None = None

    @property
    def nodes(self) -> int | None:
        """Machines, by host names or by device numbers that occur again. None: nothing says."""
        hosts = {host for host, _ in self.places.values() if host}
        numbers = Counter(device for _, device in self.places.values())
        return max(len(hosts), *numbers.values()) if numbers else None

    @property
    def ranks(self) -> int | None:
        """How many took part: those that are listed, where none of them is missing in the list or
        by the two bandwidths of the rows.
        """
        counted = len(self.names)
        if not counted:
            return _ranks(self.rows)
        all_listed = counted == max(self.names) + 1 and not counted % self.per_process
        return counted if all_listed and not self.joined and _agrees(self, counted) else None


def read_nccl_tests(paste: Paste) -> Iterator[Reading]:
    """Text or JSON. Raises UnreadableEvidence for wrong results: nothing of the run counts."""
    if '"bus_bw"' in paste.text or '"average_bus_bandwidth"' in paste.text:
        yield _reading(_json(paste))
        return
    for run in _runs(paste):
        if run.line:
            yield _reading(run)


def _runs(paste: Paste) -> list[Run]:
    runs = [Run()]
    for line in paste.lines:
        if runs[-1].line and _begins(runs[-1], line.text):
            runs.append(Run())
        run = runs[-1]
        before = len(run.rows) + len(run.names) + run.failed + run.closed
        _take_line(run, line, paste)
        if len(run.rows) + len(run.names) + run.failed + run.closed > before:
            run.line = run.line or line.number
    return runs


def _begins(run: Run, text: str) -> bool:
    """Whether another run starts here: its command, or its first line where none was shown."""
    named = OPERATION.search(text)
    return bool(run.rows and (BEGINS.match(text) or (named and not text.startswith("#"))))


def _take_line(run: Run, line: Line, paste: Paste) -> None:
    rank, bounds = RANK.match(line.text.strip()), OUT_OF_BOUNDS.search(line.text)
    operation = OPERATION.search(line.text)
    if share := SHARE.search(line.text):
        run.per_process = max(1, int(share[1]) * int(share[2]))
    if operation and run.operation == "unknown":
        run.operation = operation[1]
    if rank:
        number = int(rank["rank"])
        run.joined = run.joined or "Rank " in rank["name"]
        run.names[number] = "" if paste.cut_at(line) else rank["name"].strip()
        run.places[number] = (rank["host"] or "", rank["device"])
    elif bounds:
        run.closed = True
        if bounds[2] == "FAILED" or int(bounds[1]):
            run.failed, run.line_failed = run.failed + 1, line.number
    elif TRAILER in line.text:
        run.closed = True
    else:
        _take_row(run, line, paste)


def _take_row(run: Run, line: Line, paste: Paste) -> None:
    words = STAMP.sub("", line.text.replace("|", " ")).split()
    if len(words) < 3 or not (words[0].isdecimal() and words[1].isdecimal()):
        return
    if words[2].lower() not in TYPES or len(words) > 20 or len(words[0]) > 16:
        return
    figures = words[3:]
    if figures and not _is_figure(figures[0]):
        figures = figures[1:]
    if len(figures) % 4 == 1:
        figures = figures[1:]
    row = _row(run.operation, int(words[0]), figures) if len(figures) in (4, 8) else None
    if row is None or (paste.cut_at(line) and not _is_whole(figures)):
        run.cut = line.number
    else:
        run.rows.append(row)
        if row.wrong:
            run.failed, run.line_failed = run.failed + 1, line.number


def _is_whole(figures: list[str]) -> bool:
    """A last line without an end: its last word is the count of wrong results, 0 or N/A."""
    return len(figures) == 8 and figures[-1] in ("0", "N/A", "0e+00")


def _is_figure(word: str) -> bool:
    return word[:1].isdigit() or word[:1] == "-" or word == "N/A"


def _row(operation: str, size: int, figures: list[str]) -> BenchmarkRow | None:
    numbers = [_figure(word) for word in figures]
    algbw, busbw = numbers[1], numbers[2]
    if algbw is None or busbw is None or size > LARGEST_BYTES:
        return None
    second = numbers[4:] or [None] * 4
    wrong = [int(count) for count in (numbers[3], second[3]) if count is not None]
    return BenchmarkRow(
        operation=operation,
        size_bytes=size,
        time_us=numbers[0],
        algbw_gb_s=algbw,
        busbw_gb_s=busbw,
        algbw_in_place_gb_s=second[1],
        busbw_in_place_gb_s=second[2],
        wrong=sum(wrong) if wrong else None,
    )


def _figure(word: Any) -> float | None:
    if isinstance(word, bool):
        return None
    try:
        figure = float(word)
    except (TypeError, ValueError, OverflowError):
        return None
    return figure if 0 <= figure < 1e15 else None


def _json(paste: Paste) -> Run:
    """The file that `-J` writes. Its env, args and pid are not looked at; of host names, which are
    numbered before storage, only how many there are.
    """
    mark = '"bus_bw"' if '"bus_bw"' in paste.text else '"average_bus_bandwidth"'
    try:
        document = find_json(paste, mark)
    except Malformed as problem:
        raise UnreadableEvidence([problem.problem], Format.NCCL_TESTS) from problem
    value = document.value if document else None
    if not document or not isinstance(value, dict) or not isinstance(value.get("results"), list):
        expected = "an object with a list of results"
        broken = Problem(Trouble.INVALID_JSON, 1, expected=expected)
        raise UnreadableEvidence([broken], Format.NCCL_TESTS)
    run = Run(document.line, _operation(value), closed=True)
    for at, device in enumerate(value.get("devices") or ()):
        if isinstance(device, dict):
            told = device.get("device_info") or device.get("name") or device.get("device_name")
            run.names[at] = str(told or "")[:80]
            if device.get("hostname") or "device" in device:
                host, number = device.get("hostname") or "", device.get("device", at)
                run.places[at] = (str(host), str(number))
    for result in value["results"]:
        if isinstance(result, dict):
            _take_result(run, result, document.line)
    bounds = value.get("out_of_bounds")
    if isinstance(bounds, dict) and (_figure(bounds.get("count")) or bounds.get("okay") is False):
        run.failed, run.line_failed = run.failed + 1, document.line
    return run


def _operation(value: Mapping[str, Any]) -> str:
    """The program's name, which is the first argument of the command."""
    arguments = value.get("args")
    first = str(arguments[0]) if isinstance(arguments, list) and arguments else ""
    match = OPERATION.search(first) or OPERATION.search(str(value.get("test_name", "")))
    return match[1] if match else "unknown"


def _take_result(run: Run, result: Mapping[str, Any], line: int) -> None:
    size = _figure(result.get("size"))
    out, inside = _column(result.get("out_of_place")), _column(result.get("in_place"))
    first = out if out[2] is not None else inside
    if size is None or size > LARGEST_BYTES or first[1] is None or first[2] is None:
        run.cut = run.cut or line
        return
    wrong = [int(count) for count in (out[3], inside[3]) if count is not None]
    run.rows.append(
        BenchmarkRow(
            operation=run.operation,
            size_bytes=int(size),
            time_us=first[0],
            algbw_gb_s=first[1],
            busbw_gb_s=first[2],
            algbw_in_place_gb_s=inside[1],
            busbw_in_place_gb_s=inside[2],
            wrong=sum(wrong) if wrong else None,
        )
    )
    if any(wrong):
        run.failed, run.line_failed = run.failed + 1, line


Column = tuple[float | None, float | None, float | None, float | None]


def _column(told: Any) -> Column:
    """Time, algorithm bandwidth, bus bandwidth and wrong results. Without algbw busbw stands."""
    values = told if isinstance(told, dict) else {}
    bus = _figure(values.get("bus_bw"))
    alg = _figure(values.get("alg_bw"))
    return (
        _figure(values.get("time")),
        bus if alg is None else alg,
        bus,
        _figure(values.get("nwrong")),
    )


def _reading(run: Run) -> Reading:
    if run.failed:
        expected = "results without an error"
        problem = Problem(Trouble.DATA_CORRUPTION, run.line_failed, expected=expected)
        raise UnreadableEvidence([problem], Format.NCCL_TESTS)
    ranks = run.ranks
    if ranks:
        run.odd = [row for row in run.rows if not _fits(row, ranks)]
        run.rows = [row for row in run.rows if _fits(row, ranks)]
    problems = tuple(_problems(run, ranks))
    return Reading(
        format=Format.NCCL_TESTS,
        line=run.line,
        standing=Standing.PARTIAL if problems else Standing.OK,
        problems=problems,
        signs=frozenset(_signs(run, problems)),
        gpu_count=ranks,
        gpu_names=tuple(dict.fromkeys(name for name in run.names.values() if name)) or None,
        rows=tuple(run.rows),
        ranks=ranks,
        nodes=run.nodes,
    )


def _ranks(rows: list[BenchmarkRow]) -> int | None:
    """Ranks out of the factor between the two bandwidths; above 1 only all-reduce can be."""
    top = max(rows, key=lambda row: row.algbw_gb_s, default=None)
    if top is None or not top.algbw_gb_s or top.busbw_gb_s <= top.algbw_gb_s * 1.02:
        return None
    factor = top.busbw_gb_s / top.algbw_gb_s
    return round(2 / (FACTOR_ALL_REDUCE - factor)) if factor < FACTOR_ALL_REDUCE * 0.995 else None


FACTORS = [BUS_FACTORS[name] for name in ("all_reduce", "all_gather", "broadcast")]
"""Of operations that share a factor one each."""
PRINTED_TO = 0.005
SLACK = 1.005
"""Half of the last printed digit in GB/s, and what a source that rounds again may add."""


def _agrees(run: Run, ranks: int) -> bool:
    """Whether the fastest row is one of so many ranks."""
    top = max(run.rows, key=lambda row: row.algbw_gb_s, default=None)
    return top is None or _fits(top, ranks)


def _fits(row: BenchmarkRow, ranks: int) -> bool:
    """Whether the two bandwidths of a row lie apart by the factor of so many ranks. They do not
    where a figure before them was lost.
    """
    if ranks == 1 or row.algbw_gb_s <= 2 * PRINTED_TO:
        return True
    low = (row.busbw_gb_s - PRINTED_TO) / (row.algbw_gb_s + PRINTED_TO) / SLACK
    high = (row.busbw_gb_s + PRINTED_TO) / (row.algbw_gb_s - PRINTED_TO) * SLACK
    named = BUS_FACTORS.get(row.operation)
    return any(low <= factor(ranks) <= high for factor in ([named] if named else FACTORS))


def _problems(run: Run, ranks: int | None) -> Iterator[Problem]:
    if ranks == 1 or (run.rows and all(row.best_busbw_gb_s == 0 for row in run.rows)):
        yield Problem(Trouble.SINGLE_RANK, run.line, expected="two ranks or more")
    if run.cut or not run.rows:
        yield Problem(Trouble.TRUNCATED, run.cut or run.line, expected="whole rows")
    if run.odd:
        read = f"{run.odd[0].algbw_gb_s} and {run.odd[0].busbw_gb_s}"
        expected = f"the two bandwidths of a row of {ranks} ranks"
        yield Problem(Trouble.TRUNCATED, run.line, read, expected)
    if run.names and ranks is None:
        expected = "a line for each rank, as many as the bandwidths of the rows tell"
        yield Problem(Trouble.TRUNCATED, run.line, f"{len(run.names)} ranks", expected)


def _signs(run: Run, problems: tuple[Problem, ...]) -> Iterator[Sign]:
    if any(problem.trouble is Trouble.TRUNCATED for problem in problems):
        yield Sign.INCOMPLETE
    if len({name for name in run.names.values() if name}) > 1:
        yield Sign.MIXED_MODELS
    peak = 0.0
    for row in run.rows:
        if row.size_bytes >= COLLAPSE_FROM_BYTES and row.best_busbw_gb_s < peak * COLLAPSE_SHARE:
            yield Sign.BANDWIDTH_COLLAPSE
        peak = max(peak, row.best_busbw_gb_s)
