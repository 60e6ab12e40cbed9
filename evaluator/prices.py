"""A price has five parts: amount, currency, time unit, basis, purchase model with its term."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from evaluator.units import HOURS_PER_DAY, HOURS_PER_MONTH, HOURS_PER_WEEK, SECONDS_PER_HOUR


class TimeUnit(StrEnum):
    SECOND = "second"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    TERM = "term"


class Basis(StrEnum):
    """What one price buys. UNKNOWN is a reading, never a default to MACHINE."""

    MACHINE = "machine"
    GPU = "gpu"
    UNKNOWN = "unknown"


class Purchase(StrEnum):
    ON_DEMAND = "on_demand"
    SPOT = "spot"
    RESERVED = "reserved"


HOURS_IN: dict[TimeUnit, Decimal] = {
    TimeUnit.SECOND: Decimal(1) / SECONDS_PER_HOUR,
    TimeUnit.HOUR: Decimal(1),
    TimeUnit.DAY: HOURS_PER_DAY,
    TimeUnit.WEEK: HOURS_PER_WEEK,
    TimeUnit.MONTH: HOURS_PER_MONTH,
}


@dataclass(frozen=True, slots=True)
class Quote:
    """A price in its five parts. `currency` None is unknown; `words` is what was printed."""

    amount: Decimal
    currency: str | None
    unit: TimeUnit
    basis: Basis
    purchase: Purchase = Purchase.ON_DEMAND
    term: str = ""
    words: str = ""


def machine_per_hour(quote: Quote, gpu_count: int | None) -> Decimal | None:
    """What one whole rental costs for an hour, in the quote's currency.

    `gpu_count` counts every GPU of the rental. None where the rate does not say so: basis or
    count unknown, or a lump sum for a term.
    """
    hours = HOURS_IN.get(quote.unit)
    if hours is None or quote.basis is Basis.UNKNOWN:
        return None
    if quote.basis is Basis.GPU and not gpu_count:
        return None
    share = gpu_count if quote.basis is Basis.GPU and gpu_count else 1
    return quote.amount * share / hours
