"""What a catalog offers, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from evaluator.findings import Finding
from evaluator.machine import Availability
from evaluator.prices import Quote


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


def place_of(one: Offering) -> tuple[str, ...]:
    return (one.provider, one.title, one.region, one.zone, one.key)
