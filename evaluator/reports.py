"""A machine's verdict as JSON and back, cut down to the plans that a shortlist can show."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from evaluator import __version__
from evaluator.findings import Code, Finding
from evaluator.verdict import MachineVerdict


@cache
def evaluator_version() -> str:
    """Version and a digest of the evaluator's own code and data.

    A kept verdict counts only for the code that made it: whoever mends a formula or a figure need
    not remember to throw old verdicts away.
    """
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*")):
        if path.suffix in (".py", ".toml"):
            digest.update(path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:16]}"


class UnreadableReport(ValueError):
    """A kept report of another shape: judge again instead of guessing what it meant."""


def condense(verdict: MachineVerdict) -> MachineVerdict:
    """Keeps the plan that counts, the one on a single GPU and the nearest miss, in order."""
    wanted = [verdict.best, verdict.single, verdict.nearest]
    kept = tuple(plan for plan in verdict.plans if any(plan is one for one in wanted))
    return replace(verdict, plans=kept, refused=())


def to_report(verdict: MachineVerdict) -> dict[str, Any]:
    """Plain JSON values of a condensed verdict."""
    report: dict[str, Any] = _encode(condense(verdict))
    return report


def from_report(report: Mapping[str, Any]) -> MachineVerdict:
    """The verdict that `to_report` kept. Raises UnreadableReport for anything else."""
    try:
        verdict: MachineVerdict = _decoder(MachineVerdict)(report)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableReport(f"{type(error).__name__}: {error}") from error
    return verdict


def _encode(value: Any) -> Any:
    if isinstance(value, Finding):
        return value.as_dict()
    if is_dataclass(value):
        return {item.name: _encode(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Enum):
        return value.value
    return [_encode(item) for item in value] if isinstance(value, tuple) else value


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    """How to read one type. Every field must be there: a missing one is another shape.

    `Any` is a number of a range, which is an array only where nothing is kept.
    """
    if kind is Finding:
        return _finding
    if is_dataclass(kind):
        return _record(kind)
    if get_origin(kind) is tuple:
        return _sequence(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return _optional(next(one for one in get_args(kind) if one is not NoneType))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    return _plain(float if kind is Any else kind)


def _finding(stored: Mapping[str, Any]) -> Finding:
    return Finding(Code(stored["code"]), tuple(sorted(stored["gaps"].items())))


def _record(kind: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    readers = {item.name: _decoder(hints[item.name]) for item in fields(kind)}

    def read(stored: Mapping[str, Any]) -> Any:
        if stored.keys() != readers.keys():
            raise ValueError(f"{kind.__name__} has other fields: {', '.join(stored)}")
        return kind(**{name: reader(stored[name]) for name, reader in readers.items()})

    return read


def _sequence(item: Any) -> Callable[[Any], Any]:
    reader = _decoder(item)
    return lambda stored: tuple(reader(one) for one in stored)


def _optional(kind: Any) -> Callable[[Any], Any]:
    reader = _decoder(kind)
    return lambda stored: None if stored is None else reader(stored)


def _plain(kind: Any) -> Callable[[Any], Any]:
    allowed = (int, float) if kind is float else (kind,)

    def read(stored: Any) -> Any:
        if not isinstance(stored, allowed):
            raise TypeError(f"{stored!r} is no {kind.__name__}")
        return stored

    return read
