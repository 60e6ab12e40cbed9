"""What was run on the machines of a listing and of its class, and how far the figures spread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.db.models import Prefetch, Q

from evaluator.connections import from_plain, rate_for
from evaluator.exchanges import BANDWIDTH_ABOVE, Operation
from evaluator.facts import Grade, declared
from evaluator.link_costs import busbw_range
from evaluator.links import words_of
from evaluator.machine import LinkClass, Machine
from evaluator.ranges import Range
from evaluator.rentals import rental_of
from evaluator.units import GIB
from marketplace.evidence import Viewer, evidence_visible_to
from marketplace.models import Evidence, Fact, Listing

MOST_RUNS = 100
LARGE_MESSAGE = GIB
"""Where bandwidth alone decides; benchmarks are kept by their largest sizes."""


@dataclass(frozen=True, slots=True)
class Run:
    """One look at one machine. `rate` in bytes/s, one direction; None where none was measured.

    `predicted` is the span of every link that the machine may have, before anyone looked.
    """

    evidence: Evidence
    here: bool
    link: str
    rate: int | None
    predicted: Range | None

    @property
    def inside(self) -> bool | None:
        """Whether the measured rate lies in the predicted span. None where one is missing."""
        if self.rate is None or self.predicted is None:
            return None
        return bool(self.predicted.low <= self.rate <= self.predicted.high)


@dataclass(frozen=True, slots=True)
class Spread:
    """Measured rates in bytes/s over `count` runs."""

    count: int
    low: int
    middle: float
    high: int

    @property
    def factor(self) -> float:
        return self.high / self.low


SHOWN = ("link", "link_bytes_per_s", "topology")


def looks_at(listing: Listing, viewer: Viewer) -> list[Evidence]:
    """What a viewer may see of the listing and of all of the same configuration, newest first."""
    alike = Q(listing=listing)
    if listing.configuration:
        alike |= Q(listing__configuration=listing.configuration)
    shown = Fact.objects.filter(name__in=SHOWN, grade__gte=Grade.MEASURED)
    rows = evidence_visible_to(viewer).filter(alike).defer("cleaned_text")
    held = rows.prefetch_related(Prefetch("facts", shown, to_attr="shown"), "figures")
    return list(held[:MOST_RUNS])


def runs_of(listing: Listing, machine: Machine, looks: Iterable[Evidence]) -> list[Run]:
    """`machine` is the listing's as its catalog declares it."""
    spans: dict[str, Range | None] = {}
    found = []
    for row in looks:
        facts = {fact.name: fact.value for fact in row.shown}  # type: ignore[attr-defined]
        link = str(facts.get("link", ""))
        if link not in spans:
            spans[link] = predicted_rate(machine, link)
        found.append(
            Run(
                evidence=row,
                here=row.listing_id == listing.pk,
                link=words_of(LinkClass(link)) if link else "",
                rate=_rate(facts, machine.gpu_count.value or 0),
                predicted=spans[link],
            )
        )
    return found


def _rate(facts: Mapping[str, Any], gpus: int) -> int | None:
    """Of all GPUs at a large message. A benchmark without a matrix beside it does not say how many
    GPUs the machine has: the catalog's count tells whether all of them took part."""
    told: int | None = facts.get("link_bytes_per_s")
    if told or "topology" not in facts:
        return told
    try:
        rate = rate_for(from_plain(facts["topology"]), gpus)
    except (KeyError, TypeError, ValueError):
        return None
    return rate.bytes_per_s if rate and rate.message_bytes >= BANDWIDTH_ABOVE else None


def predicted_rate(machine: Machine, link: str = "") -> Range | None:
    """Bus bandwidth of a large all-reduce over all GPUs; on `link` where a look showed it.

    None where the card, the count or the rate of a link is not known.
    """
    gpus = machine.gpu_count.value or 0
    kinds = SEEN_AS.get(link, (link,)) if link else ()
    machines = [_joined_by(machine, LinkClass(kind)) for kind in kinds] or [machine]
    rentals = [rental_of(one) for one in machines]
    if gpus < 2 or not all(rentals):
        return None
    rates = [
        busbw_range(Operation.ALL_REDUCE, links.wire, gpus, 1, None, LARGE_MESSAGE)
        for rental in rentals
        if rental
        for links in rental.worlds
    ]
    known = [rate for rate in rates if rate]
    if len(known) < len(rates):
        return None
    middle = sorted(rate.typical for rate in known)[len(known) // 2]
    return Range(min(rate.low for rate in known), middle, max(rate.high for rate in known))


SEEN_AS: Mapping[str, tuple[str, ...]] = {
    LinkClass.NVLINK.value: (LinkClass.NVLINK.value, LinkClass.NVSWITCH.value)
}
"""A matrix counts the lanes of a pair; whether a switch stands between them it does not say."""


def _joined_by(machine: Machine, link: LinkClass) -> Machine:
    return Machine(
        gpu_model=machine.gpu_model,
        specs=machine.specs,
        gpu_count=machine.gpu_count,
        usable_bytes_per_gpu=machine.usable_bytes_per_gpu,
        link=declared(link, "a look at one machine"),
    )


def spread_of(runs: Sequence[Run]) -> Spread | None:
    """None where no run measured a rate."""
    rates = [run.rate for run in runs if run.rate]
    if not rates:
        return None
    return Spread(len(rates), min(rates), median(rates), max(rates))
