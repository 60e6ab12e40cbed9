"""Hours and money of a job from a predicted rate: what it costs, when it ends, what is left over.

Rates of time are floats, money is Decimal. Verdicts take the low end of a rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum
from math import inf, sqrt

from evaluator.calibration import figure
from evaluator.ranges import Range
from evaluator.units import SECONDS_PER_HOUR

MILLION = 10**6
CENT = Decimal("0.01")
WHOLE_FROM = 100


def money(amount: Decimal) -> str:
    """Whole units from 100 on, else cents; below a cent as many digits as it takes to see it."""
    if abs(amount) >= WHOLE_FROM:
        return f"{amount:,.0f}"
    return f"{amount:,.2f}" if abs(amount) >= CENT or not amount else f"{amount:.2g}"


def hours_for(tokens: float, tokens_per_s: Range) -> Range:
    """Hours of work for so many tokens; the lowest rate takes longest."""
    ends = (tokens_per_s.high, tokens_per_s.typical, tokens_per_s.low)
    return Range(*(tokens / (rate * SECONDS_PER_HOUR) for rate in ends))


def goodput(machines: int) -> Range:
    """Share of the step rate that remains of a whole run, after stops, checkpoints and restarts."""
    return figure("run.one_machine" if machines == 1 else "run.many_machines")


def wall_hours(work: Range, share: Range, setup_hours: float = 0.0) -> Range:
    """Hours from start to end: the work over the goodput, and what comes before it."""
    return Range(
        setup_hours + work.low / share.high,
        setup_hours + work.typical / share.typical,
        setup_hours + work.high / share.low,
    )


def billed_hours(
    hours: float | Decimal, unit_hours: Decimal, least_hours: Decimal = Decimal(0)
) -> Decimal:
    """Hours that are paid: whole billing units, at least the minimum term."""
    units = (Decimal(str(hours)) / unit_hours).to_integral_value(ROUND_CEILING)
    return max(units * unit_hours, least_hours)


def machine_hours(hours: float, machines: int, unit_hours: Decimal) -> Decimal:
    """Paid hours of all machines together: each is billed in whole units of its own."""
    return billed_hours(hours, unit_hours) * machines


@dataclass(frozen=True, slots=True)
class Cost:
    """Money in the currency of the rate, by the ends of the hours."""

    low: Decimal
    typical: Decimal
    high: Decimal


def cost_of(
    hours: Range, rate_per_hour: Decimal, unit_hours: Decimal, least_hours: Decimal = Decimal(0)
) -> Cost:
    """What all rentals cost together; `rate_per_hour` is for all of them."""
    ends = (hours.low, hours.typical, hours.high)
    paid = [billed_hours(end, unit_hours, least_hours) * rate_per_hour for end in ends]
    return Cost(*(amount.quantize(CENT) for amount in paid))


def cost_per_million(rate_per_hour: Decimal, tokens_per_s: float) -> Decimal:
    """Money for 10^6 tokens while the machine is busy at that rate."""
    return rate_per_hour / Decimal(str(tokens_per_s * SECONDS_PER_HOUR)) * MILLION


class InTime(StrEnum):
    """Whether a deadline holds: at the low end of the rate, only at the typical one, or neither."""

    YES = "in time"
    LIKELY = "likely in time"
    NO = "too late"


@dataclass(frozen=True, slots=True)
class DeadlineVerdict:
    """`slack_hours` is what the low end of the rate leaves over; negative is too late."""

    word: InTime
    slack_hours: float


def meets(deadline_hours: float, hours: Range) -> DeadlineVerdict:
    slack = deadline_hours - hours.high
    if slack >= 0:
        return DeadlineVerdict(InTime.YES, slack)
    word = InTime.LIKELY if hours.typical <= deadline_hours else InTime.NO
    return DeadlineVerdict(word, slack)


def cost_ratio(before: tuple[int, float], after: tuple[int, float]) -> float:
    """Cost of one job on more GPUs against fewer, at one rate per GPU. Pairs of GPUs and rate."""
    return after[0] * before[1] / (before[0] * after[1])


def affordable_ratio(big_rate: float, small_rate: float, small_gpus: int) -> float:
    """How many times the price of one small GPU one big GPU may cost before it loses."""
    return big_rate * small_gpus / small_rate


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """Spot capacity that is taken away every `between_s` on average. Seconds.

    `saving_s` writes one checkpoint, `restart_s` brings the job back.
    """

    between_s: float
    saving_s: float
    restart_s: float

    @property
    def interval_s(self) -> float:
        """Young's checkpoint interval; valid where it is far below `between_s`."""
        return sqrt(2 * self.saving_s * self.between_s)

    @property
    def interval_for_availability_s(self) -> float:
        """The interval that keeps the longest share of useful time (arXiv 2410.18124)."""
        saving, whole = self.saving_s, self.between_s + self.restart_s
        return saving + sqrt(2 * whole * saving + saving**2)

    @property
    def overhead(self) -> float:
        """Share of the time spent on saving, lost work and restarts."""
        lost = (self.interval_s / 2 + self.restart_s) / self.between_s
        return self.saving_s / self.interval_s + lost

    @property
    def price_factor(self) -> float:
        """What a spot price is multiplied by to compare it with one that is not reclaimed."""
        return 1 / (1 - self.overhead)


def stay_needed_s(saving_s: float, restart_s: float, price_share: float) -> float:
    """Mean stay from which on capacity at this share of the firm price is no dearer than it.

    The overhead is sqrt(2 d / M) + R / M; it may reach 1 - share. Solved for x = 1 / sqrt(M), in a
    form that keeps its digits where R is small. Infinite where the price is not below the firm one.
    """
    spare = 1 - price_share
    if spare <= 0:
        return inf
    saving = sqrt(2 * saving_s)
    x = 2 * spare / (saving + sqrt(saving**2 + 4 * restart_s * spare))
    return 1 / x**2
