"""Rows of benchmarks: each must survive storage as a fact, and follow from its own figures.

Where link, size and machines of a row are all known, its measured bus bandwidth must also lie in
the range of our own model: those figures are shown as the kind `range`, beside the totals.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
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
from marketplace.accuracy.collective_ranges import UNIT, judge_range
from marketplace.accuracy.summary import Outcome, Summary, summarise

NO_RANGE = "range: our model has none for this row"
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
            stored, ranged = judge(row), judge_range(row)
            outcomes += (
                [_joined(stored, ranged), replace(ranged, counted=False)] if ranged else [stored]
            )
            if row.get("range") and ranged is None:
                not_judged.append(NO_RANGE)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            unreadable.append(f"{place}: {type(problem).__name__}: {problem}"[:200])
    return summarise("collectives", outcomes, not_judged, unreadable)


def _joined(stored: Outcome, ranged: Outcome) -> Outcome:
    """A row is right when it is kept whole and our range holds what it measured."""
    if ranged.within:
        return stored
    why = "; ".join(filter(None, (stored.why, f"range: {ranged.why}")))
    return replace(stored, within=False, why=why)


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
        source=str(row.get("source") or ""),
        unit=UNIT,
    )
