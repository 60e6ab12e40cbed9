"""How well pasted terminal output is read: every field that a case carries must agree."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.evidence import Reading, Sign, UnreadableEvidence, read_evidence
from marketplace.accuracy.summary import Outcome, Summary, summarise
from marketplace.accuracy.topology_facts import facts_of, refused_facts

NOT_COMPARED = frozenset(
    {"id", "also", "gpu_names_from_source", "source", "fidelity", "notes", "warnings"}
)
COUNTED_SIGNS = frozenset(sign.value for sign in Sign)
RELATIVE_TOLERANCE = 0.005
"""Bandwidths agree within half a percent, as the cases' own table says."""


@dataclass(frozen=True, slots=True)
class TopologyCase:
    """A pasted text and the fields that a correct reader gives."""

    name: str
    text: str
    expect: Mapping[str, Any]


def score(path: Path) -> Summary:
    """Judges every case of a folder, or one file. Raises OSError where it cannot be opened."""
    outcomes, unreadable = [], []
    for file in _case_files(path):
        try:
            outcomes.append(judge(read_case(file)))
        except (ValueError, KeyError, TypeError, FileNotFoundError) as problem:
            unreadable.append(f"{file.name}: {type(problem).__name__}: {problem}"[:200])
    return summarise("topology", outcomes, (), unreadable)


def _case_files(path: Path) -> list[Path]:
    """The answer files: each stands beside the text of the same name."""
    if path.is_dir():
        return sorted(path.glob("*.json"))
    with path.open("rb"):
        return [path.with_suffix(".json")]


def read_case(file: Path) -> TopologyCase:
    """Raises ValueError for an answer that is no object."""
    expect = json.loads(file.read_text("utf-8"))
    if not isinstance(expect, dict) or "expect" not in expect:
        raise ValueError("a case is an object with the key expect")
    text = file.with_suffix(".txt").read_bytes().decode("utf-8", errors="replace")
    return TopologyCase(file.stem, text, expect)


def judge(case: TopologyCase) -> Outcome:
    """Within when no field differs. The reasons name field, expected and read."""
    try:
        readings = read_evidence(case.text)
    except UnreadableEvidence as problem:
        found, signs = refused_facts(problem), frozenset[str]()
    else:
        found, signs = facts_of(readings), _signs(readings)
    wrong = {where: (wanted, got) for where, wanted, got in _differences(case, found, signs)}
    return Outcome(
        id=case.name,
        kind=str(case.expect.get("format")),
        within=not wrong,
        predicted={where: got for where, (_, got) in wrong.items()},
        measured={where: wanted for where, (wanted, _) in wrong.items()},
        why=", ".join(wrong),
        compared=False,
    )


def _signs(readings: tuple[Reading, ...]) -> frozenset[str]:
    return frozenset(sign.value for reading in readings for sign in reading.signs)


def _differences(
    case: TopologyCase, found: Mapping[str, Any], signs: frozenset[str]
) -> Iterator[tuple[str, Any, Any]]:
    for field, wanted in case.expect.items():
        if field in NOT_COMPARED:
            continue
        got = found.get(field)
        if field == "error":
            if wanted is not None and wanted not in found["errors"]:
                yield field, wanted, sorted(found["errors"])
        elif not agree(wanted, got):
            yield field, wanted, got
    wanted_signs = frozenset(case.expect.get("warnings") or ())
    if wanted_signs - signs or len((signs & COUNTED_SIGNS) - wanted_signs) > 1:
        yield "warnings", sorted(wanted_signs), sorted(signs)


def agree(wanted: Any, got: Any) -> bool:
    """Equal; numbers with a fraction within half a percent."""
    if isinstance(wanted, Mapping):
        return isinstance(got, Mapping) and _same_keys(wanted, got)
    if isinstance(wanted, list):
        if not isinstance(got, list) or len(wanted) != len(got):
            return False
        return all(agree(one, other) for one, other in zip(wanted, got, strict=True))
    if isinstance(wanted, float) and isinstance(got, int | float) and not isinstance(got, bool):
        return abs(wanted - got) <= RELATIVE_TOLERANCE * abs(wanted)
    return type(wanted) is type(got) and bool(wanted == got)


def _same_keys(wanted: Mapping[str, Any], got: Mapping[str, Any]) -> bool:
    """A key too many is a difference unless it says nothing, or only names the nearest devices."""
    extra = {key for key, value in got.items() if value is not None} - set(wanted)
    if extra - UNNAMED:
        return False
    return all(agree(value, got.get(key)) for key, value in wanted.items())


UNNAMED = frozenset({"nics"})
"""A description by bus addresses has devices without names: cases give their class alone."""
