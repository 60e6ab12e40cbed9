"""What the accuracy command prints for one kind of case."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Miss:
    """A case outside its tolerance. The values are in the case's own unit, or None."""

    id: str
    predicted: Any
    measured: Any
    why: str


@dataclass(frozen=True, slots=True)
class KindSummary:
    """Figures of one kind of case. None where a figure has no meaning for the kind."""

    cases: int
    within_tolerance: int
    median_abs_rel_err: float | None = None
    bias: float | None = None
    worst: float | None = None
    inside_range: float | None = None
    median_width: float | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """`cases` were judged. `not_judged` counts the others by kind: they are never within.

    `unreadable` names lines or files that could not be read.
    """

    kind: str
    cases: int
    within_tolerance: int
    by_kind: dict[str, KindSummary] = field(default_factory=dict)
    misses: tuple[Miss, ...] = ()
    not_judged: dict[str, int] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()
