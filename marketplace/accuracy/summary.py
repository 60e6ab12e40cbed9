"""What the accuracy command prints for one kind of case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf, isfinite
from statistics import fmean, median
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
    """Figures of one kind of case. None where a figure has no meaning for the kind.

    Errors are relative to the measured value; `bias` and `worst` keep their sign. `inside_range`
    is the share of measured values inside low to high, `median_width` the median of high / low;
    a range that begins at nothing, or below, is wider than any other.
    """

    cases: int
    within_tolerance: int
    median_abs_rel_err: float | None = None
    bias: float | None = None
    worst: float | None = None
    inside_range: float | None = None
    median_width: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """One judged case. `low` and `high` are the ends of the prediction where it is a range."""

    id: str
    kind: str
    within: bool
    predicted: Any
    measured: Any
    why: str = ""
    low: float | None = None
    high: float | None = None
    compared: bool = True
    """False where the case bounds a value on one side only: it has no error to average."""
    counted: bool = True
    """False for a second answer to a case: a kind of its own, outside the totals."""
    source: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """`cases` were judged. `not_judged` counts the others by kind: they are never within.

    `unreadable` names lines or files that could not be read. `misses_beside` are those of kinds
    that are outside the totals. `outcomes` are all answers, in the order of the cases. `groups`
    counts curves and those in which our pick is near the best; `cuts` are figures of parts of the
    cases, `notes` are shown.
    """

    kind: str
    cases: int
    within_tolerance: int
    by_kind: dict[str, KindSummary] = field(default_factory=dict)
    misses: tuple[Miss, ...] = ()
    not_judged: dict[str, int] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()
    misses_beside: tuple[Miss, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    groups: Mapping[str, int] | None = None
    cuts: Mapping[str, KindSummary] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def matched(self) -> bool:
        """Whether the path held any case at all."""
        return bool(self.cases or self.not_judged or self.unreadable)

    def as_dict(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        told = asdict(replace(self, outcomes=()))
        del told["outcomes"]
        return told


def summarise(
    kind: str,
    outcomes: Sequence[Outcome],
    not_judged: Iterable[str] = (),
    unreadable: Iterable[str] = (),
    *,
    groups: Mapping[str, int] | None = None,
    cuts: Mapping[str, KindSummary] | None = None,
    notes: Iterable[str] = (),
) -> Summary:
    """Totals of judged cases; `not_judged` holds the kind of each case that was left out."""
    kinds = sorted({outcome.kind for outcome in outcomes})
    counted = [one for one in outcomes if one.counted]
    return Summary(
        kind=kind,
        cases=len(counted),
        within_tolerance=sum(one.within for one in counted),
        by_kind={name: figures_of([one for one in outcomes if one.kind == name]) for name in kinds},
        misses=_misses(counted),
        misses_beside=_misses(one for one in outcomes if not one.counted),
        outcomes=tuple(outcomes),
        not_judged=dict(sorted(Counter(not_judged).items())),
        unreadable=tuple(unreadable),
        groups=groups,
        cuts=cuts or {},
        notes=tuple(notes),
    )


def _misses(outcomes: Iterable[Outcome]) -> tuple[Miss, ...]:
    missed = (one for one in outcomes if not one.within)
    return tuple(Miss(one.id, one.predicted, one.measured, one.why) for one in missed)


def figures_of(outcomes: Sequence[Outcome]) -> KindSummary:
    """The figures of any set of judged cases."""
    numeric = [one for one in outcomes if one.compared and _numeric(one)]
    errors = [(one.predicted - one.measured) / one.measured for one in numeric]
    ranged = [one for one in numeric if one.low is not None and one.high is not None]
    inside = [(one.low or 0) <= one.measured <= (one.high or 0) for one in ranged]
    widths = [_width(one) for one in ranged]
    width = median(widths) if widths else inf
    return KindSummary(
        cases=len(outcomes),
        within_tolerance=sum(one.within for one in outcomes),
        median_abs_rel_err=median(map(abs, errors)) if errors else None,
        bias=median(errors) if errors else None,
        worst=max(errors, key=abs) if errors else None,
        inside_range=fmean(inside) if inside else None,
        median_width=width if isfinite(width) else None,
    )


def _width(one: Outcome) -> float:
    low = one.low or 0
    return (one.high or 0) / low if low > 0 else inf


def _numeric(one: Outcome) -> bool:
    return (
        not isinstance(one.measured, bool)
        and isinstance(one.measured, int | float)
        and isinstance(one.predicted, int | float)
        and one.measured != 0
    )
