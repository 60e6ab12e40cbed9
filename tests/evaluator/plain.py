"""The shortlist listing by listing, in plain objects: slow, and short enough to be seen right.

It knows nothing of kinds, cases or columns; the fast way must give the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from math import ceil
from typing import Any

from evaluator.bills import BILLED_HOURS
from evaluator.budgets import FitWord
from evaluator.candidates import Candidate, candidate_of
from evaluator.economics import Terms, terms_of
from evaluator.host import AVAILABILITY, failures
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.offers import Offering, place_of
from evaluator.outlook import Outlook, Price, outlook_of
from evaluator.rules import Goal, Rule, rule_of
from evaluator.verdict import ORDER, MachineVerdict, PlanVerdict, Status, judge_briefly, miss_of
from evaluator.workbook import Workbook

Shown = tuple[str, str, str, str, int]
"""Key, plan, narrowest plan, status, how many others are alike."""


def sameness(one: Offering) -> Hashable:
    """Equal for offers that differ in nothing but their place and the time they were seen."""
    codes = tuple(found.code for found in one.findings)
    said = (one.provider, one.title, one.configuration, one.availability, one.quantity)
    return (*said, one.quotes, codes)


@dataclass
class Machines:
    """Verdicts and outlooks of one workload, kept by machine and plan."""

    workload: Workload
    machines: Mapping[str, Machine]
    verdicts: dict[str, MachineVerdict] = field(default_factory=dict)
    outlooks: dict[Hashable, Outlook | None] = field(default_factory=dict)

    @cached_property
    def book(self) -> Workbook:
        return Workbook(self.workload)

    def verdict(self, key: str) -> MachineVerdict:
        if key not in self.verdicts:
            self.verdicts[key] = judge_briefly(self.book, self.machines[key])
        return self.verdicts[key]

    def outlook(self, key: str, plan: PlanVerdict, price: Price | None = None) -> Outlook | None:
        asked = (key, plan.plan, price)
        if asked not in self.outlooks:
            machine = self.machines[key]
            self.outlooks[asked] = outlook_of(self.workload, plan.plan, machine, price)
        return self.outlooks[asked]


@dataclass
class Plain:
    rows: list[Shown]
    unranked: list[Shown]
    near: list[Shown]
    hidden: dict[str, int]


def plain_shortlist(held: Machines, offerings: Iterable[Offering], limit: int) -> Plain:
    return _Table(held, list(offerings)).shortlist(limit)


class _Table:
    def __init__(self, held: Machines, offerings: list[Offering]) -> None:
        self.held, self.workload = held, held.workload
        self.rule: Rule = rule_of(self.workload)
        self.terms: Terms = terms_of(self.workload)
        self.hidden: Counter[str] = Counter()
        inside = [one for one in offerings if self._in_region(one)]
        self.hidden["they are outside the wanted regions"] += len(offerings) - len(inside)
        self.groups = self._alike(inside)
        self.candidates = [one for group in self.groups if (one := self._candidate(group))]

    def _in_region(self, one: Offering) -> bool:
        wanted = {region.casefold() for region in self.workload.needs.regions}
        return not wanted or bool(wanted & {one.region.casefold(), one.zone.casefold()})

    def _alike(self, offerings: list[Offering]) -> list[list[Offering]]:
        groups: dict[Hashable, list[Offering]] = defaultdict(list)
        for one in offerings:
            groups[sameness(one)].append(one)
        return [sorted(group, key=place_of) for group in groups.values()]

    # --- one candidate

    def _candidate(self, group: list[Offering]) -> Candidate | None:
        verdict = self.held.verdict(group[0].configuration)
        least, limit = self.workload.needs.min_grade, self.workload.needs.max_price_per_hour
        serving = [one for one in verdict.plans if one.status.serves]
        known = [one for one in serving if least is None or one.weakest.grade >= least]
        pool = known or serving or ([verdict.nearest] if verdict.nearest else [])
        if not pool:
            return self._hide("no plan could be judged", group)
        if least is not None and all(one.weakest.grade < least for one in pool):
            return self._hide(f"less is known of them than {least.word}", group)
        made = candidate_of(group, verdict, self._best(group[0].configuration, pool), self.terms)
        if not made.status.serves:
            made = candidate_of(group, verdict, min(pool, key=_firmness), self.terms)
        cost = made.cost_per_hour
        if limit is not None and made.rate.ranked and cost is not None and cost > limit:
            return self._hide(f"they cost more than {limit} {self.terms.currency} per hour", group)
        return made

    def _hide(self, reason: str, group: list[Offering]) -> None:
        self.hidden[reason] += len(group)

    def _best(self, key: str, pool: list[PlanVerdict]) -> PlanVerdict:
        return min(pool, key=lambda one: (*_firmness(one), *self._effort(key, one)))

    def _effort(self, key: str, plan: PlanVerdict) -> tuple[int, float]:
        if not plan.status.serves or not self.rule.timed:
            return (0, 0.0)
        found = self.held.outlook(key, plan)
        promise = self._promise(found)
        if self.rule.goal is Goal.FINISH:
            return (promise, found.hours.high if found and found.hours else 0.0)
        tokens = self.rule.goal is Goal.TOKENS and found
        return (promise, 1 / found.rate.low if tokens and found else 0.0)

    def _promise(self, found: Outlook | None) -> int:
        if found is None or (self.rule.goal is Goal.FINISH and found.hours is None):
            return 2
        return 1 if self.rule.promised and not found.keeps_promises else 0

    # --- order

    def _order(self, one: Candidate) -> tuple[Any, ...]:
        promise, money = self._money(one)
        tight = one.plan.fit.word is FitWord.TIGHT
        firmness = (ORDER[one.status], not one.rate.ranked, tight)
        return (*firmness, promise, money, one.plan.plan.gpus, place_of(one.offering))

    def _money(self, one: Candidate) -> tuple[int, float]:
        cost = round(float(one.rate.per_hour or 0), 9) if one.rate.ranked else 0.0
        cost = round(cost * one.rentals, 9)
        if not one.status.serves or not self.rule.timed:
            return (0, cost)
        quote = one.rate.quote if one.rate.ranked else None
        price = Price(Decimal(1), quote.unit, quote.purchase) if quote else None
        found = self.held.outlook(one.offering.configuration, one.plan, price)
        promise = self._promise(found)
        if found is None or promise == 2 or self.rule.goal is Goal.HOUR:
            return (promise, cost)
        if self.rule.goal is Goal.TOKENS:
            return (promise, round(cost / (found.rate.low * 3600) * 10**6, 9))
        assert found.hours is not None
        unit = float(BILLED_HOURS[quote.unit]) if quote else 1.0
        return (promise, round(ceil(found.hours.high / unit) * unit * cost, 9))

    def _nearness(self, one: Candidate) -> tuple[Any, ...]:
        return (one.status is Status.UNKNOWN, one.plan.fit.missing_bytes, self._order(one))

    # --- the parts

    def _single(self) -> Candidate | None:
        singles = [(one, plan) for one in self.candidates if (plan := one.machine.single)]
        serving = [self._with(one, plan) for one, plan in singles if plan.status.serves]
        held = [one for one in serving if one.status.serves]
        if held:
            return min(held, key=lambda one: (not one.rate.ranked, self._order(one)))
        least = min((miss_of(plan) for _, plan in singles), default=None)
        nearest = [self._with(one, plan) for one, plan in singles if miss_of(plan) == least]
        return min(nearest, key=self._nearness, default=None)

    def _with(self, one: Candidate, plan: PlanVerdict) -> Candidate:
        return candidate_of((one.offering, *one.alike), one.machine, plan, self.terms)

    def shortlist(self, limit: int) -> Plain:
        single = self._single()
        others = [
            one for one in self.candidates if not single or _identity(one) != _identity(single)
        ]
        serving = sorted((one for one in others if one.status.serves), key=self._order)
        missing = sorted((one for one in others if not one.status.serves), key=self._nearness)[:5]
        rows = [*([single] if single else []), *(one for one in serving if one.rate.ranked)][:limit]
        unranked = [one for one in serving if not one.rate.ranked][:limit]
        self._count({one.offering.key for one in (*rows, *unranked, *missing)})
        parts = ([self._shown(one) for one in part] for part in (rows, unranked, missing))
        return Plain(*parts, hidden={why: count for why, count in self.hidden.items() if count})

    def _count(self, shown: set[str]) -> None:
        for one in self.candidates:
            if one.offering.key in shown:
                why = "the same machine is shown at the same price in another place"
                self.hidden[why] += len(one.alike)
            else:
                why = "they rank below those shown" if one.status.serves else _why_not(one)
                self.hidden[why] += 1 + len(one.alike)

    def _shown(self, one: Candidate) -> Shown:
        return (
            one.offering.key,
            one.plan.plan.key,
            one.status.value,
            str(one.rate),
            len(one.alike),
        )


def _firmness(one: PlanVerdict) -> tuple[int, bool]:
    return (ORDER[one.status], one.fit.word is FitWord.TIGHT)


def _identity(one: Candidate) -> tuple[str, object]:
    return (one.offering.key, one.plan.plan)


def _why_not(one: Candidate) -> str:
    failed = failures(one.host)
    if one.plan.fit.word is FitWord.DOES_NOT_FIT:
        return "the workload does not fit"
    if one.plan.link.word.stops:
        return f"the link is {one.plan.link.word}"
    if not failed:
        return "the memory per GPU is not known"
    if failed[0].name == AVAILABILITY:
        return "they are sold out, or fewer are offered than are needed"
    return f"the check of {failed[0].name} fails"
