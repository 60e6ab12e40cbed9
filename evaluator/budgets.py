"""What a memory budget is made of: components, ranks, and how it is held against a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evaluator.findings import Finding
from evaluator.ranges import Range, total


@dataclass(frozen=True, slots=True)
class Component:
    """One line of a budget in bytes, with the formula, its inputs and their source."""

    name: str
    bytes: Range
    formula: str
    inputs: tuple[tuple[str, str], ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class RankBudget:
    """The budget of every GPU of one class: "every rank", or a pipeline stage by its place."""

    rank: str
    components: tuple[Component, ...]

    @property
    def bytes(self) -> Range:
        return total(component.bytes for component in self.components)

    def component(self, name: str) -> Component | None:
        return next((item for item in self.components if item.name == name), None)


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Budgets by rank class. `utilization` is the share of the reported memory that may be used.

    `ranks` is empty when the model's size is unknown; `findings` then says why.
    """

    ranks: tuple[RankBudget, ...]
    utilization: float = 1.0
    findings: tuple[Finding, ...] = ()

    @property
    def binding(self) -> RankBudget | None:
        """The rank class that needs most: the one which decides the fit."""
        return max(self.ranks, key=lambda rank: rank.bytes.typical, default=None)


class FitWord(StrEnum):
    FITS = "fits"
    TIGHT = "tight"
    DOES_NOT_FIT = "does_not_fit"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Fit:
    """`allowed_bytes` is utilization times usable memory; `missing_bytes` is 0 where it fits."""

    word: FitWord
    rank: str = ""
    needed: Range | None = None
    allowed_bytes: int | None = None
    missing_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """One change that would admit the plan, alone. `words` is a sentence for the screen.

    `key` is the workload key or the degree that changes, `value` its new value as text.
    """

    key: str
    value: str
    words: str
