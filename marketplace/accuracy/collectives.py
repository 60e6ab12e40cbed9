"""Rows of benchmarks: each must survive storage as a fact, and follow from its own figures.

Whether the modelled range of a link holds the measured value is not judged here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluator.evidence.benchmarks import (
    BUS_FACTORS,
    Benchmark,
    InvalidBenchmark,
    consistent,
    from_words,
    implied_busbw_gb_s,
    to_words,
)
from marketplace.accuracy.summary import Outcome, Summary, summarise

RANGE_NOT_JUDGED = "range not judged"
FIELDS = (
    "op", "size_bytes", "algbw_gbs", "busbw_gbs", "gpu", "gpus", "nodes", "link", "inter_node",
    "nccl_version", "algorithm", "healthy",
)  # fmt: skip


def score(path: Path) -> Summary:
    """Judges every row of a file. Raises OSError where it cannot be opened."""
    outcomes, not_judged, unreadable = [], [], []
    for place, line in _lines(path):
        try:
            row = json.loads(line)
            outcomes.append(judge(row))
            if row.get("range"):
                not_judged.append(RANGE_NOT_JUDGED)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            unreadable.append(f"{place}: {type(problem).__name__}: {problem}"[:200])
    return summarise("collectives", outcomes, not_judged, unreadable)


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
        if line.strip():
            yield f"{path.name}:{number}", line


def judge(row: Mapping[str, Any]) -> Outcome:
    """One row: within when it comes back whole, its busbw follows and its health is kept."""
    stated = {field: row.get(field) for field in FIELDS}
    try:
        benchmark = from_words(stated)
    except InvalidBenchmark as problem:
        return _outcome(row, None, str(problem))
    kept = to_words(benchmark)
    lost = [field for field in FIELDS if not _same(stated[field], kept.get(field))]
    reasons = [f"{field} was lost" for field in lost]
    if consistent(benchmark) is False:
        reasons.append("busbw does not follow from algbw")
    return _outcome(row, benchmark, ", ".join(reasons))


def _same(stated: Any, kept: Any) -> bool:
    return type(stated) is type(kept) and bool(stated == kept)


def _outcome(row: Mapping[str, Any], benchmark: Benchmark | None, why: str) -> Outcome:
    implied = implied_busbw_gb_s(benchmark) if benchmark else None
    return Outcome(
        id=str(row["id"]),
        kind=str(row.get("op")) if row.get("op") in BUS_FACTORS else "other",
        within=not why,
        predicted=implied,
        measured=row.get("busbw_gbs"),
        why=why,
        compared=implied is not None,
    )
