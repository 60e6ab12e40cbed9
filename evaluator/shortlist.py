"""Many offerings: group by configuration, judge each once, join prices, rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from evaluator.economics import Rate
from evaluator.findings import Finding
from evaluator.host import HostItem
from evaluator.jobs import Workload
from evaluator.machine import Availability, Machine
from evaluator.prices import Quote
from evaluator.verdict import MachineVerdict, PlanVerdict, Status


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
    `rank` counts from 0 and is None for candidates that are shown but not ranked.
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
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Shortlist:
    """`rows` begins with row 0, the best single-GPU option, even where it does not serve.

    Every offering is in `rows`, `unranked` or counted in `hidden` by reason:
    shown + hidden = total.
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
        return len({candidate.offering.key for candidate in (*self.rows, *self.unranked)})


def shortlist(
    workload: Workload,
    offerings: Sequence[Offering],
    machines: Mapping[str, Machine],
    limit: int = 20,
) -> Shortlist:
    """Judges each configuration of `offerings` once and ranks them.

    `machines` holds the machine of every configuration. Raises KeyError where one is missing.
    """
    raise NotImplementedError


def rank(
    workload: Workload,
    offerings: Sequence[Offering],
    verdicts: Mapping[str, MachineVerdict],
    limit: int = 20,
) -> Shortlist:
    """Ranks offerings whose configurations are already judged."""
    raise NotImplementedError
