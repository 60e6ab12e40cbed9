"""How each fault went, from tests that really ran: a fault without one is never called survived."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from marketplace.faults.catalogue import FAULTS, Fault, Harm


class Result(StrEnum):
    """A fault that was not survived ended as its `harm` says."""

    SURVIVED = "survived"
    WRONG_STATE = Harm.WRONG_STATE.value
    LOST = Harm.LOST.value
    LET_IN = Harm.LET_IN.value
    NOT_TESTED = "not tested"


@dataclass(frozen=True, slots=True)
class Trial:
    """One test that ran, or was skipped. `outcome` is passed, failed or skipped."""

    name: str
    outcome: str
    faults: tuple[str, ...]


@dataclass(slots=True)
class Line:
    """One fault with the trials that tried it."""

    fault: Fault
    trials: list[Trial] = field(default_factory=list)

    @property
    def result(self) -> Result:
        outcomes = {trial.outcome for trial in self.trials}
        if "failed" in outcomes:
            return Result(self.fault.harm.value)
        # A trial that was skipped is none: the part that it needs was not there.
        return Result.SURVIVED if "passed" in outcomes else Result.NOT_TESTED

    def count(self, outcome: str) -> int:
        return sum(trial.outcome == outcome for trial in self.trials)


def board(trials: Iterable[Trial], only: Sequence[str] = ()) -> list[Line]:
    """A line for each fault, in order, or for those of `only`. Raises KeyError for an unknown
    number, in `only` or on a test."""
    lines = {fault.number: Line(fault) for fault in FAULTS}
    for trial in trials:
        for number in trial.faults:
            lines[number].trials.append(trial)
    return [lines[number] for number in only] if only else list(lines.values())


def totals(lines: Iterable[Line]) -> Mapping[str, int]:
    counts = dict.fromkeys((str(result) for result in Result), 0)
    for line in lines:
        counts[line.result] += 1
    return counts


def is_ready(lines: Iterable[Line]) -> bool:
    """Whether a release may go: nothing failed, and every first one was survived."""
    return all(
        line.result is Result.SURVIVED
        or (line.result is Result.NOT_TESTED and not line.fault.first)
        for line in lines
    )
