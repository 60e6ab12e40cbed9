"""Offerings joined to verdicts: which plan, at what rate, on how many rentals, with what doubts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from evaluator.budgets import FitWord
from evaluator.economics import Rate, Terms, choose_rate, cost_per_hour, rentals_of
from evaluator.findings import Code, Finding, Severity, finding
from evaluator.host import AVAILABILITY, HostItem, failures, offer_items
from evaluator.jobs import Needs, Workload
from evaluator.machine import Availability, Machine
from evaluator.outlook import Outlook, Price, outlook_of
from evaluator.prices import Quote
from evaluator.topology import LinkWord
from evaluator.verdict import MachineVerdict, PlanVerdict, Status, status_of


@dataclass(frozen=True, slots=True)
class Offering:
    """What a catalog offers: a configuration under a name, at prices, seen at a time.

    `key` is the caller's own (a listing's primary key). `configuration` is the fingerprint of its
    machine. `quantity` counts rentals said to be free; None is unknown.
    """

    key: str
    configuration: str
    provider: str = ""
    title: str = ""
    region: str = ""
    zone: str = ""
    url: str = ""
    quotes: tuple[Quote, ...] = ()
    availability: Availability = Availability.UNKNOWN
    quantity: int | None = None
    seen_at: datetime | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """One plan on one offering. `rentals` is how many of it must be rented at once.

    `cost_per_hour` is for all rentals, in the currency of `rate.quote`; None when not derivable.
    `alike` are the same provider's offerings of the same configuration at the same prices, in
    other places. `outlook` is filled for what is shown. `rank` counts from 0 and is None for
    candidates that are not ranked.
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
    outlook: Outlook | None = None
    rank: int | None = None

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


def alike(offerings: Iterable[Offering]) -> list[list[Offering]]:
    """Offerings that differ in nothing but their place, together; each group in a fixed order."""
    groups: dict[Hashable, list[Offering]] = defaultdict(list)
    for offering in offerings:
        groups[_sameness(offering)].append(offering)
    return [sorted(group, key=place_of) for group in groups.values()]


def _sameness(one: Offering) -> Hashable:
    codes = tuple(found.code for found in one.findings)
    return (
        one.provider,
        one.title,
        one.configuration,
        one.quotes,
        one.availability,
        one.quantity,
        codes,
    )


def place_of(one: Offering) -> tuple[str, ...]:
    return (one.provider, one.title, one.region, one.zone, one.key)


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


WAITING = frozenset(
    {
        Availability.WAITLIST,
        Availability.PREORDER,
        Availability.LEAD_TIME,
        Availability.ON_REQUEST,
    }
)
"""The catalog itself says that it cannot be had now, and not when."""


def _offered(status: Status, offering: Offering) -> Status:
    """A machine that must be waited for is conditional at best: when it comes is not known."""
    waits = status is Status.READY and offering.availability in WAITING
    return Status.CONDITIONAL if waits else status


def with_outlook(candidate: Candidate, workload: Workload, machine: Machine) -> Candidate:
    """The candidate with its speed, hours and cost. A price that is not ranked makes no cost."""
    rate, cost = candidate.rate, candidate.cost_per_hour
    price = None
    if cost and rate.quote and rate.ranked:
        price = Price(cost, rate.quote.unit, rate.quote.purchase)
    return replace(candidate, outlook=outlook_of(workload, candidate.plan.plan, machine, price))


def in_wanted_region(offering: Offering, needs: Needs) -> bool:
    """Whether a region or zone is one of those named. Every place will do where none is."""
    wanted = {region.casefold() for region in needs.regions}
    return not wanted or bool(wanted & {offering.region.casefold(), offering.zone.casefold()})


def unmet_need(candidate: Candidate, needs: Needs, terms: Terms) -> str:
    """Why the workload's own needs exclude a candidate. Empty when they do not.

    An unknown price is not excluded; a wanted grade asks for knowledge, so it excludes.
    """
    cost, limit = candidate.cost_per_hour, needs.max_price_per_hour
    if needs.min_grade is not None and candidate.plan.weakest.grade < needs.min_grade:
        return f"less is known of them than {needs.min_grade.word}"
    if limit is not None and cost is not None and candidate.rate.ranked and cost > limit:
        return f"they cost more than {limit} {terms.currency} per hour"
    return ""


def why_not(candidate: Candidate) -> str:
    """In a few words, why a candidate does not serve. The first cause counts."""
    failed = failures(candidate.host)
    if candidate.plan.fit.word is FitWord.DOES_NOT_FIT:
        return "the workload does not fit"
    if candidate.plan.link.word.stops:
        return f"the link is {candidate.plan.link.word}"
    if not failed:
        return "the memory per GPU is not known"
    if failed[0].name == AVAILABILITY:
        return "they are sold out, or fewer are offered than are needed"
    return f"the check of {failed[0].name} fails"


def with_findings(candidate: Candidate, now: datetime | None = None) -> Candidate:
    """The candidate with the doubts of the catalog, the machine, the plan and the offer."""
    found = (
        *candidate.offering.findings,
        *candidate.machine.findings,
        *candidate.plan.findings,
        *_offer_findings(candidate, now),
    )
    return replace(candidate, findings=tuple(dict.fromkeys(found)))


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
