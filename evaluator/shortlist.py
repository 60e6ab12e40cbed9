"""Many offerings: group by configuration, judge each once, join prices, rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from evaluator.budgets import FitWord
from evaluator.candidates import (
    Candidate,
    Offering,
    alike,
    candidate_of,
    in_wanted_region,
    place_of,
    unmet_need,
    why_not,
    with_findings,
    with_outlook,
)
from evaluator.economics import Terms, terms_of
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.verdict import ORDER, MachineVerdict, PlanVerdict, Status, judge_briefly, miss_of
from evaluator.workbook import Workbook

__all__ = ["Candidate", "Offering", "Shortlist", "rank", "shortlist", "with_outlooks"]


@dataclass(frozen=True, slots=True)
class Shortlist:
    """`rows` begins with row 0, the best single-GPU option, even where it does not serve.

    `rows` are ranked, `unranked` serve but have no comparable price, `near_misses` do not serve.
    Every offering is shown in one of the three or counted in `hidden` by reason.
    """

    total: int
    rows: tuple[Candidate, ...] = ()
    unranked: tuple[Candidate, ...] = ()
    near_misses: tuple[Candidate, ...] = ()
    hidden: Mapping[str, int] = field(default_factory=dict)
    currency: str = "USD"
    configurations: int = 0

    @property
    def shown(self) -> int:
        """Offerings shown in any part."""
        parts = (*self.rows, *self.unranked, *self.near_misses)
        return len({candidate.offering.key for candidate in parts})


def shortlist(
    workload: Workload,
    offerings: Sequence[Offering],
    machines: Mapping[str, Machine],
    limit: int = 20,
    now: datetime | None = None,
) -> Shortlist:
    """Judges each configuration of `offerings` once and ranks them.

    `machines` holds the machine of every configuration. Raises KeyError where one is missing.
    """
    wanted = dict.fromkeys(offering.configuration for offering in offerings)
    book = Workbook(workload)
    verdicts = {key: judge_briefly(book, machines[key]) for key in wanted}
    return with_outlooks(rank(workload, offerings, verdicts, limit, now), workload, machines)


def with_outlooks(
    found: Shortlist, workload: Workload, machines: Mapping[str, Machine]
) -> Shortlist:
    """Speed, hours and cost of the rows that serve; the rest of a catalog is never timed.

    A row whose machine is not given stays without.
    """

    def seen(rows: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        return tuple(
            with_outlook(row, workload, machine)
            if row.status.serves and (machine := machines.get(row.offering.configuration))
            else row
            for row in rows
        )

    return replace(found, rows=seen(found.rows), unranked=seen(found.unranked))


def rank(
    workload: Workload,
    offerings: Sequence[Offering],
    verdicts: Mapping[str, MachineVerdict],
    limit: int = 20,
    now: datetime | None = None,
) -> Shortlist:
    """Ranks offerings whose configurations are already judged, in an order free of the input's.

    Ready before conditional, what fits before what is tight, then lower cost per hour of all
    machines that the plan needs, then fewer GPUs, then provider, title, region and key. `now` lets
    findings name an age.
    """
    terms, hidden = terms_of(workload), Counter[str]()
    inside = [one for one in offerings if in_wanted_region(one, workload.needs)]
    hidden[OUTSIDE_REGIONS] += len(offerings) - len(inside)
    candidates = list(_candidates(workload, inside, verdicts, terms, hidden))
    single = _best_single(candidates, terms)
    parts = _Parts.of(single, candidates, limit)
    _count_hidden(hidden, candidates, parts)
    return Shortlist(
        total=len(offerings),
        rows=tuple(replace(with_findings(row, now), rank=at) for at, row in enumerate(parts.rows)),
        unranked=tuple(with_findings(one, now) for one in parts.unranked),
        near_misses=tuple(with_findings(one, now) for one in parts.near),
        hidden={reason: count for reason, count in hidden.items() if count},
        currency=terms.currency,
        configurations=len({offering.configuration for offering in offerings}),
    )


NOTHING_JUDGED = "no plan could be judged"
OUTSIDE_REGIONS = "they are outside the wanted regions"
SAME_ELSEWHERE = "the same machine is shown at the same price in another place"
BEYOND_LIMIT = "they rank below those shown"
NEAR_MISSES = 5


def _candidates(
    workload: Workload,
    offerings: Iterable[Offering],
    verdicts: Mapping[str, MachineVerdict],
    terms: Terms,
    hidden: Counter[str],
) -> Iterator[Candidate]:
    """One candidate for each group of like offerings; excluded groups are counted in `hidden`."""
    chosen: dict[str, PlanVerdict | None] = {}
    for group in alike(offerings):
        key = group[0].configuration
        verdict = verdicts[key]
        if key not in chosen:
            chosen[key] = verdict.best or verdict.nearest
        plan = chosen[key]
        if plan is None:
            hidden[NOTHING_JUDGED] += len(group)
            continue
        candidate = candidate_of(group, verdict, plan, terms)
        unmet = unmet_need(candidate, workload.needs, terms)
        if unmet:
            hidden[unmet] += len(group)
        else:
            yield candidate


def _best_single(candidates: Sequence[Candidate], terms: Terms) -> Candidate | None:
    """The first in order among plans on one GPU; where none serves, the one that misses least.

    One with a comparable price comes before a firmer one whose cost nobody can say.
    """
    singles = [(one, plan) for one in candidates if (plan := one.machine.single)]
    serving = [_on_one_gpu(one, plan, terms) for one, plan in singles if plan.status.serves]
    held = [one for one in serving if one.status.serves]
    if held:
        return min(held, key=lambda one: (not one.rate.ranked, _order(one)))
    least = min((miss_of(plan) for _, plan in singles), default=None)
    nearest = (_on_one_gpu(one, plan, terms) for one, plan in singles if miss_of(plan) == least)
    return min(nearest, key=_nearness, default=None)


def _on_one_gpu(candidate: Candidate, plan: PlanVerdict, terms: Terms) -> Candidate:
    if candidate.plan is plan:
        return candidate
    group = (candidate.offering, *candidate.alike)
    return candidate_of(group, candidate.machine, plan, terms)


def _order(one: Candidate) -> tuple[object, ...]:
    """Lower is better. Candidates without a comparable price come after all that have one.

    Predictions rank by their pessimistic end: a tight plan may not hold, so it follows those of
    its status that fit.
    """
    cost = (one.cost_per_hour or 0) if one.rate.ranked else 0
    tight = one.plan.fit.word is FitWord.TIGHT
    place = place_of(one.offering)
    return (ORDER[one.status], not one.rate.ranked, tight, cost, one.plan.plan.gpus, place)


def _nearness(one: Candidate) -> tuple[object, ...]:
    """What is known to miss by fewest bytes first; what cannot be judged comes last."""
    return (one.status is Status.UNKNOWN, one.plan.fit.missing_bytes, _order(one))


@dataclass(frozen=True, slots=True)
class _Parts:
    rows: list[Candidate]
    unranked: list[Candidate]
    near: list[Candidate]

    @classmethod
    def of(cls, single: Candidate | None, candidates: Sequence[Candidate], limit: int) -> _Parts:
        others = [one for one in candidates if single is None or not _same(one, single)]
        serving = sorted((one for one in others if one.status.serves), key=_order)
        missing = sorted((one for one in others if not one.status.serves), key=_nearness)
        rows = [one for one in (single, *serving) if one and (one is single or one.rate.ranked)]
        unranked = [one for one in serving if not one.rate.ranked]
        return cls(rows[:limit], unranked[:limit], missing[:NEAR_MISSES])

    @property
    def keys(self) -> set[str]:
        return {one.offering.key for one in (*self.rows, *self.unranked, *self.near)}


def _same(one: Candidate, other: Candidate) -> bool:
    return one.offering.key == other.offering.key and one.plan.plan == other.plan.plan


def _count_hidden(hidden: Counter[str], candidates: Sequence[Candidate], parts: _Parts) -> None:
    """Every offering that no part shows, under the first reason that holds."""
    shown = parts.keys
    for one in candidates:
        if one.offering.key in shown:
            hidden[SAME_ELSEWHERE] += len(one.alike)
            continue
        reason = BEYOND_LIMIT if one.status.serves else why_not(one)
        hidden[reason] += 1 + len(one.alike)
