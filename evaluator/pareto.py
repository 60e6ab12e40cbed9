"""Candidates that no other beats in cost, time and evidence at once: what there is to weigh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from evaluator.candidates import Candidate
from evaluator.facts import Grade
from evaluator.outlook import Outlook


@dataclass(frozen=True, slots=True)
class Merits:
    """Money and time at the slow end, None where not known, and the grade of the weakest fact.

    Money is to the end of a job, or of a million tokens; time is hours to the end, or seconds per
    token of a server. Candidates of one workload have the same ones.
    """

    money: Decimal | None
    time: float | None
    evidence: Grade

    def beats(self, other: Merits) -> bool:
        """Nowhere worse, and somewhere better. What is not known beats nothing there."""
        return beats(self.ends, other.ends)

    @property
    def ends(self) -> tuple[float, ...]:
        """The lower the better."""
        return (_lower(self.money), _lower(self.time), -self.evidence)


def beats(own: Sequence[float], other: Sequence[float]) -> bool:
    """Nowhere higher, and somewhere lower."""
    pairs = list(zip(own, other, strict=True))
    return all(one <= its for one, its in pairs) and any(one < its for one, its in pairs)


Thing = TypeVar("Thing")


def unbeaten(things: Sequence[Thing], ends: Callable[[Thing], Sequence[float]]) -> list[Thing]:
    """Those that no other beats, in the order given. Equal ones all stay."""
    held = [(one, ends(one)) for one in things]
    return [one for one, own in held if not any(beats(other, own) for _, other in held)]


def _lower(value: Decimal | float | None) -> float:
    return float("inf") if value is None else float(value)


def merits_of(candidate: Candidate) -> Merits:
    seen = candidate.outlook
    money, time = _money(seen), _time(seen)
    return Merits(money, time, candidate.plan.weakest.grade)


def _money(seen: Outlook | None) -> Decimal | None:
    if seen is None:
        return None
    whole = seen.cost or seen.per_million
    return whole.high if whole else None


def _time(seen: Outlook | None) -> float | None:
    if seen is None:
        return None
    spent = seen.hours or seen.tpot
    return float(spent.high) if spent else 1 / float(seen.rate.low)


def pareto(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Those that serve and that no other beats, in the order given. Equal ones all stay."""
    serving = [one for one in candidates if one.status.serves]
    return tuple(unbeaten(serving, lambda one: merits_of(one).ends))
