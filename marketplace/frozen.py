"""A shortlist as it stood when somebody kept it, and what is different since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from decimal import Decimal

from evaluator.advice import as_published
from evaluator.candidates import Candidate
from evaluator.outlook import words_of
from evaluator.units import gib

Row = Mapping[str, str]
"""One candidate in the words that it was shown with: a later version cannot misread it."""

NOT_RANKED = "not ranked"
LEAST_MONEY = Decimal("0.0001")
"""What an hour costs may be a quotient without a last digit."""

SHOWN = {
    "rank": "rank",
    "status": "status",
    "plan": "plan",
    "memory": "memory per GPU",
    "hourly": "cost per hour",
    "outlook": "outlook",
    "availability": "availability",
    "evidence": "weakest evidence",
}
"""What may change, in the order in which it is said."""


@dataclass(frozen=True, slots=True)
class Changed:
    """One row of which something changed: (what, then, now) each."""

    row: Row
    pairs: tuple[tuple[str, str, str], ...]

    @property
    def moved_only(self) -> bool:
        """Whether nothing but its rank is another: one row that leaves moves all behind it."""
        return [name for name, _, _ in self.pairs] == [SHOWN["rank"]]


def freeze(candidate: Candidate) -> dict[str, str]:
    """Plain text of all that a row states, and when its listing was last seen."""
    offering, plan = candidate.offering, candidate.plan
    currency = (candidate.rate.quote and candidate.rate.quote.currency) or ""
    seen = offering.seen_at
    return {
        "key": offering.key,
        "plan_key": plan.plan.key,
        "title": offering.title,
        "provider": offering.provider,
        "place": " ".join(filter(None, (offering.region, offering.zone))),
        "machine": f"{candidate.machine.gpu_count or 'unknown'} × {candidate.machine.gpu_model}",
        "rank": NOT_RANKED if candidate.rank is None else str(candidate.rank),
        "status": candidate.status.value,
        "plan": plan.plan.label,
        "memory": _memory(candidate),
        "hourly": _money(candidate, currency),
        "outlook": words_of(candidate.outlook, currency) if candidate.outlook else "not timed",
        "availability": offering.availability.value.replace("_", " "),
        "evidence": f"{plan.weakest.fact}, {plan.weakest.grade.word}",
        "warnings": " ".join(one.sentence for one in candidate.warnings),
        "seen": f"{seen.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if seen else "",
    }


def _memory(candidate: Candidate) -> str:
    fit = candidate.plan.fit
    if fit.needed is None or not fit.allowed_bytes:
        return "unknown"
    low, typical, high = (gib(end) for end in (fit.needed.low, fit.needed.typical, fit.needed.high))
    needed = f"{typical:,.1f} ({low:,.1f}–{high:,.1f})"
    return f"{needed} of {gib(fit.allowed_bytes):,.1f} GiB"


def _money(candidate: Candidate, currency: str) -> str:
    cost = candidate.cost_per_hour
    if cost is None:
        return "not derivable"
    return f"{as_published(cost.quantize(LEAST_MONEY))} {currency}".strip()


def changes(kept: Sequence[Row], now: Iterable[Row], shown_now: Iterable[Row]) -> list[Changed]:
    """What became of the kept rows, and which rows are new among those shown.

    `now` holds every row of today's answer, `shown_now` as many as were kept.
    """
    today = {_identity(row): row for row in now}
    before = {_identity(row) for row in kept}
    found = [_since(row, today.get(_identity(row))) for row in kept]
    new = [
        Changed(row, (("new here", "–", _in_short(row)),))
        for row in shown_now
        if _identity(row) not in before
    ]
    return [*filter(None, found), *new]


def _identity(row: Row) -> tuple[str, str]:
    """A listing may stand in a shortlist twice, as row 0 and under its own plan."""
    return row["key"], str(row["rank"] == "0")


def _since(row: Row, today: Row | None) -> Changed | None:
    if today is None:
        return Changed(row, (("no longer in the answer", _in_short(row), "–"),))
    pairs = tuple(
        (words, row.get(name, ""), today[name])
        for name, words in SHOWN.items()
        if row.get(name, "") != today[name]
    )
    return Changed(row, pairs) if pairs else None


def _in_short(row: Row) -> str:
    rank = row["rank"]
    return (
        f"{rank if rank == NOT_RANKED else f'rank {rank}'}, {row.get('hourly', 'price not kept')}"
    )
