"""What a memory budget is made of: components, ranks, and how it is held against a GPU."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from evaluator.findings import Finding
from evaluator.ranges import Range, total
from evaluator.shares import WHOLE, Allowance


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
    """The budget of every GPU of one class: "every rank", a pipeline stage by its place, or tensor
    ranks other than the first, where an engine samples on rank 0 alone."""

    rank: str
    components: tuple[Component, ...]

    @property
    def bytes(self) -> Range:
        return total(component.bytes for component in self.components)

    def without(self, names: Collection[str]) -> Range:
        """Bytes of all components but the named ones."""
        return total(part.bytes for part in self.components if part.name not in names)

    def component(self, name: str) -> Component | None:
        return next((item for item in self.components if item.name == name), None)


ENDS = ("low", "typical", "high")


@dataclass(frozen=True, slots=True)
class Limit:
    """`needed` bytes have to stay within what is allowed of a card that the driver reports."""

    needed: Range
    allowance: Allowance

    def allowed(self, usable_bytes: int) -> int:
        return max(0, int(self.allowance.of(usable_bytes)))

    def share_of(self, usable_bytes: int) -> float:
        """What is allowed as a share of the card."""
        if self.allowance.left is None:
            return float(self.allowance.fraction)
        return self.allowed(usable_bytes) / max(1, usable_bytes)

    @property
    def asks(self) -> Range:
        """What a card has to report."""
        return Range(*(self.allowance.asks(getattr(self.needed, end)) for end in ENDS))

    def holds(self, usable_bytes: int) -> bool:
        """Whether even the high end stays inside."""
        return bool(self.needed.high <= self.allowed(usable_bytes))

    def missing(self, usable_bytes: int) -> int:
        return max(0, round(float(self.needed.typical)) - self.allowed(usable_bytes))


@dataclass(frozen=True, slots=True)
class Asked:
    """One limit in words: what has to stay within it, and `how` a card's size follows from that."""

    name: str
    needed: Range
    reports: Range
    how: str


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Budgets by rank class. `allowance` is what may be used of the reported memory.

    `outside` names components that need room on the card, but not inside that share. `ranks` is
    empty when the model's size is unknown; `findings` then says why.
    """

    ranks: tuple[RankBudget, ...]
    allowance: Allowance = WHOLE
    findings: tuple[Finding, ...] = ()
    outside: tuple[str, ...] = ()

    def limits(self, rank: RankBudget) -> tuple[Limit, ...]:
        """What must hold on a card: the engine's share holds its part, and the card holds all."""
        inside = Limit(rank.without(self.outside), self.allowance)
        return (inside, Limit(rank.bytes, WHOLE)) if self.outside else (inside,)

    def asked(self, rank: RankBudget) -> tuple[Asked, ...]:
        """What a card must report for a rank and why; nothing where that is just the sum."""
        limits = self.limits(rank)
        if len(limits) == 1 and limits[0].allowance == WHOLE:
            return ()
        there = [name for name in self.outside if rank.component(name)]
        apart = f"(all but {' and '.join(there).replace('_', ' ')})" if there else "all"
        told = (("in the engine's share", apart), ("on the whole card", "all"))
        return tuple(
            Asked(name, one.needed, one.asks, f"{what}{one.allowance.words}")
            for (name, what), one in zip(told, limits, strict=False)
        )

    def usable_for(self, rank: RankBudget) -> Range:
        """Memory that a card must report, by the limit that asks for most."""
        asked = [limit.asks for limit in self.limits(rank)]
        return Range(*(max(getattr(one, end) for one in asked) for end in ENDS))

    @property
    def binding(self) -> RankBudget | None:
        """The rank class that asks for the largest card in the typical case."""
        return max(self.ranks, key=lambda rank: self.usable_for(rank).typical, default=None)


class FitWord(StrEnum):
    FITS = "fits"
    TIGHT = "tight"
    DOES_NOT_FIT = "does_not_fit"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Fit:
    """`rank` is the class that decides: the one that misses most in the typical case, or where none
    does, whose high end reaches furthest. `needed` is what it needs inside `share` of the card,
    `allowed_bytes` that share of the usable memory, `missing_bytes` 0 where it fits."""

    word: FitWord
    rank: str = ""
    needed: Range | None = None
    allowed_bytes: int | None = None
    missing_bytes: int = 0
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Change:
    """One change that would admit the plan, alone. `words` is a sentence for the screen.

    `key` is the workload key or the degree that changes, `value` its new value as text.
    """

    key: str
    value: str
    words: str


LONGEST = 10**8
"""Tokens of a sequence that no model takes: where so many fit, length sets no limit."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the cache holds in the typical case beside everything else on a card.

    `tokens` in the cache of one replica, `sequences` of full length in all replicas, `longest` is
    the largest `max_model_len` with which the engine starts. All are 0 where the rest does not fit.
    `room` are the bytes that all else leaves for the cache on the tightest GPU, `each` those that
    one sequence takes of them.
    """

    tokens: int
    sequences: int
    longest: int
    room: int = 0
    each: int = 0

    @property
    def is_endless(self) -> bool:
        """Whether no length is too long, as with states of one size."""
        return self.longest >= LONGEST
