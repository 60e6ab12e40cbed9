"""Candidates that no other beats in cost, time and evidence at once: what there is to weigh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

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
        pairs = [
            (_lower(self.money), _lower(other.money)),
            (_lower(self.time), _lower(other.time)),
            (-self.evidence, -other.evidence),
        ]
        return all(own <= its for own, its in pairs) and any(own < its for own, its in pairs)


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
    held = [(one, merits_of(one)) for one in candidates if one.status.serves]
    return tuple(one for one, own in held if not any(other.beats(own) for _, other in held))
