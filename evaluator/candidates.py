"""Offerings joined to verdicts: which plan, at what rate, on how many rentals, with what doubts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from evaluator.budgets import FitWord
from evaluator.economics import Rate, Terms, choose_rate, cost_per_hour, rentals_of
from evaluator.findings import Code, Finding, Severity, finding
from evaluator.fleet import WAITING
from evaluator.host import HostItem, failures, offer_items
from evaluator.jobs import Workload
from evaluator.machine import Availability, Machine
from evaluator.offers import Offering
from evaluator.outlook import Outlook, Price, outlook_of
from evaluator.prices import Purchase
from evaluator.topology import LinkWord
from evaluator.verdict import MachineVerdict, PlanVerdict, Status, size_words, status_of


@dataclass(frozen=True, slots=True)
class Candidate:
    """One plan on one offering. `rentals` is how many of it must be rented at once.

    `cost_per_hour` is for all rentals, in the currency of `rate.quote`; None when not derivable.
    `plan` is the best by the rule of the shortlist, `narrowest` the narrowest as firm as that one;
    where a deadline or targets are given, one that keeps them, if any does. `alike` are the same
    provider's offerings of the same configuration at the same prices, in other places. `rank`
    counts from 0 and is None for candidates that are not ranked.
    """

    offering: Offering
    machine: MachineVerdict
    plan: PlanVerdict
    status: Status
    rate: Rate
    rentals: int = 1
    cost_per_hour: Decimal | None = None
    host: tuple[HostItem, ...] = ()
    findings: tuple[Finding, ...] = ()
    alike: tuple[Offering, ...] = ()
    narrowest: PlanVerdict | None = None
    outlook: Outlook | None = None
    rank: int | None = None

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """What fails and by how much, a sentence each. Empty for what serves."""
        return () if self.status.serves else tuple(_shortfalls(self))

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Findings that may change the decision for this plan."""
        return tuple(one for one in self.findings if self._matters(one))

    @property
    def notes(self) -> tuple[Finding, ...]:
        """The other findings: a doubt about links that the plan does not use is one of them."""
        return tuple(one for one in self.findings if not self._matters(one))

    def _matters(self, found: Finding) -> bool:
        unused = self.plan.link.word is LinkWord.NOT_NEEDED and found.code in LINK_DOUBTS
        return found.severity >= Severity.WARNING and not unused


def _shortfalls(candidate: Candidate) -> Iterator[str]:
    fit, link = candidate.plan.fit, candidate.plan.link
    if fit.word is FitWord.UNKNOWN:
        yield "Memory per GPU or the size of the model is not known."
    if fit.missing_bytes and fit.allowed_bytes is not None and fit.needed is not None:
        needed, usable = size_words(fit.needed.typical), size_words(fit.allowed_bytes)
        yield f"{size_words(fit.missing_bytes)} too little: {needed} of {usable} per GPU."
    if link.word.stops:
        yield link.reason
    yield from (f"{item.name}: {item.reason}" for item in failures(candidate.host))


LINK_DOUBTS = frozenset(
    {
        Code.FORM_FACTOR_ONLY,
        Code.LINK_PAIRS_ONLY,
        Code.LINK_SCOPE_UNKNOWN,
        Code.IMPLAUSIBLE_LINK,
        Code.TOPOLOGY_NOT_VERIFIED,
    }
)
"""What a listing leaves open about the links between its GPUs."""


def candidate_of(
    group: Sequence[Offering], verdict: MachineVerdict, plan: PlanVerdict, terms: Terms
) -> Candidate:
    """A plan at the rate of a group of like offerings, with what the offer itself leaves open."""
    first, *others = group
    gpus = verdict.gpu_count * verdict.nodes if verdict.gpu_count else None
    rate = choose_rate(first.quotes, gpus, terms, first.findings)
    rentals = rentals_of(plan.plan, verdict.nodes)
    asked = offer_items(rate.quote, first.availability, first.quantity, rentals)
    return Candidate(
        offering=first,
        machine=verdict,
        plan=plan,
        status=_offered(status_of(plan.fit.word, plan.link.word, (*plan.host, *asked)), first),
        rate=rate,
        rentals=rentals,
        cost_per_hour=cost_per_hour(rate, rentals),
        host=(*plan.host, *asked),
        alike=tuple(others),
    )


def _offered(status: Status, offering: Offering) -> Status:
    """A machine that must be waited for is conditional at best: when it comes is not known."""
    waits = status is Status.READY and offering.availability in WAITING
    return Status.CONDITIONAL if waits else status


def price_of(candidate: Candidate) -> Price | None:
    """What all rentals cost. A price that is not ranked makes no cost."""
    rate, cost = candidate.rate, candidate.cost_per_hour
    if cost and rate.quote and rate.ranked:
        firm = _firm(candidate, rate.quote.currency)
        return Price(cost, rate.quote.unit, rate.quote.purchase, firm)
    return None


def with_outlook(candidate: Candidate, workload: Workload, machine: Machine) -> Candidate:
    """The candidate with its speed, hours and cost."""
    price, plan = price_of(candidate), candidate.plan.plan
    return replace(candidate, outlook=outlook_of(workload, plan, machine, price))


def _firm(candidate: Candidate, currency: str | None) -> Decimal | None:
    """What a row on spot capacity would cost on demand, where its catalog says so too."""
    quote, verdict = candidate.rate.quote, candidate.machine
    if quote is None or currency is None or quote.purchase is not Purchase.SPOT:
        return None
    gpus = verdict.gpu_count * verdict.nodes if verdict.gpu_count else None
    firm = choose_rate(candidate.offering.quotes, gpus, Terms(currency))
    return cost_per_hour(firm, candidate.rentals) if firm.ranked else None


def with_findings(candidate: Candidate, now: datetime | None = None) -> Candidate:
    """The candidate with all that is doubted of it."""
    return replace(candidate, findings=findings_on(candidate, now))


def findings_on(candidate: Candidate, now: datetime | None = None) -> tuple[Finding, ...]:
    """The doubts of the catalog, the machine, the plan and the offer, each once."""
    found = (
        *candidate.offering.findings,
        *candidate.machine.findings,
        *candidate.plan.findings,
        *_offer_findings(candidate, now),
    )
    return tuple(dict.fromkeys(found))


def _offer_findings(candidate: Candidate, now: datetime | None) -> Iterator[Finding]:
    offering, reason = candidate.offering, candidate.rate.not_ranked_because
    if reason:
        yield finding(Code.NOT_RANKED, reason=reason)
    if offering.availability not in (Availability.AVAILABLE, Availability.UNKNOWN):
        words = offering.availability.replace("_", " ")
        yield finding(Code.NOT_AVAILABLE, availability=words)
    if now and offering.seen_at:
        yield finding(Code.SNAPSHOT_NOT_RESERVATION, age=age_words(now - offering.seen_at))


def age_words(age: timedelta) -> str:
    """An age in its largest whole unit: "3 hours"."""
    minutes = max(0, int(age.total_seconds() // 60))
    for size, unit in ((1440, "day"), (60, "hour"), (1, "minute")):
        if minutes >= size:
            return f"{minutes // size} {unit}{'s' if minutes >= 2 * size else ''}"
    return "less than a minute"
