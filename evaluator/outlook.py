"""What a plan on a machine promises at a price: speed, hours, money, deadline, and what is open.

Every figure is a range. Words of a verdict follow the end that is worse for the reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from evaluator.jobs import ServingJob, TrainingJob, Workload
from evaluator.machine import Machine
from evaluator.plans import Plan
from evaluator.prices import TimeUnit
from evaluator.ranges import Range
from evaluator.spending import (
    MILLION,
    Cost,
    DeadlineVerdict,
    InTime,
    cost_of,
    cost_per_million,
    goodput,
    hours_for,
    meets,
    wall_hours,
)
from evaluator.timing import ServingTimes, times_of

BILLED_HOURS = {
    TimeUnit.SECOND: Decimal(1) / 3600,
    TimeUnit.HOUR: Decimal(1),
    TimeUnit.DAY: Decimal(24),
}
"""Hours of one billing unit. A rate by the second is paid by the second."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """`rate` in tokens/s of all GPUs: trained ones, or output at the wanted concurrency.

    `ttft` and `tpot` in seconds are of a serving plan, `hours` and `cost` of a job with a known
    end, `per_million` is the price of 10^6 tokens while busy. `conditional` is True where a link
    that is not known decides: then the ranges are spans.
    """

    rate: Range
    ttft: Range | None = None
    tpot: Range | None = None
    hours: Range | None = None
    cost: Cost | None = None
    per_million: Cost | None = None
    deadline: DeadlineVerdict | None = None
    missed: tuple[str, ...] = ()
    dominating: str = ""
    widest: str = ""
    conditional: bool = False

    @property
    def late(self) -> bool:
        return self.deadline is not None and self.deadline.word is InTime.NO

    @property
    def keeps_promises(self) -> bool:
        """Whether the deadline and every target hold even at the slow end."""
        return not self.missed and (self.deadline is None or self.deadline.word is InTime.YES)


@dataclass(frozen=True, slots=True)
class Price:
    """All rentals for one hour, and the unit by which they are billed."""

    per_hour: Decimal
    unit: TimeUnit = TimeUnit.HOUR


def outlook_of(
    workload: Workload, plan: Plan, machine: Machine, price: Price | None = None
) -> Outlook | None:
    """None where the plan cannot be timed: an unknown card, model or memory, or no fit."""
    times = times_of(workload, plan, machine)
    if times is None:
        return None
    if isinstance(times, ServingTimes):
        return _served(workload.serving or ServingJob(), times, price)
    hours = _hours(workload.training, plan, times.value)
    limit = workload.training.deadline_hours if workload.training else None
    return Outlook(
        rate=times.value,
        hours=hours,
        cost=_cost(hours, price),
        per_million=_per_million(times.value, price),
        deadline=meets(limit, hours) if hours and limit is not None else None,
        dominating=times.dominating,
        widest=times.widest,
        conditional=times.conditional,
    )


def _served(job: ServingJob, times: ServingTimes, price: Price | None) -> Outlook:
    return Outlook(
        rate=times.rate.value,
        ttft=times.ttft.value,
        tpot=times.tpot.value,
        per_million=_per_million(times.rate.value, price),
        missed=missed_targets(job, times),
        dominating=times.rate.dominating,
        widest=times.rate.widest,
        conditional=times.rate.conditional,
    )


def missed_targets(job: ServingJob, times: ServingTimes) -> tuple[str, ...]:
    """Targets that the slow end misses, in words."""
    found = []
    for name, limit, value in (
        ("time to the first token", job.ttft_ms, times.ttft.value),
        ("time per token", job.tpot_ms, times.tpot.value),
    ):
        if limit is not None and value.high * 1000 > limit:
            found.append(f"{name}: up to {value.high * 1000:,.0f} ms instead of {limit:g} ms")
    wanted, rate = job.tokens_per_s, times.rate.value
    if wanted is not None and rate.low < wanted:
        found.append(f"rate: {rate.low:,.0f} tokens/s or more instead of {wanted:,.0f}")
    return tuple(found)


def _hours(job: TrainingJob | None, plan: Plan, rate: Range) -> Range | None:
    if job is None or job.tokens_to_train is None:
        return None
    return wall_hours(hours_for(job.tokens_to_train, rate), goodput(plan.nodes))


def _cost(hours: Range | None, price: Price | None) -> Cost | None:
    if hours is None or price is None or price.unit not in BILLED_HOURS:
        return None
    return cost_of(hours, price.per_hour, BILLED_HOURS[price.unit])


def _per_million(rate: Range, price: Price | None) -> Cost | None:
    if price is None:
        return None
    ends = (rate.high, rate.typical, rate.low)
    return Cost(*(cost_per_million(price.per_hour, end) for end in ends))


def words_of(outlook: Outlook, currency: str) -> str:
    """The outlook in one line, such as a table shows."""
    parts = [f"{_span(outlook.rate, 1, ',.0f')} tokens/s"]
    if outlook.ttft and outlook.tpot:
        parts.append(f"first token {_span(outlook.ttft, 1000, ',.0f')} ms")
        parts.append(f"then {_span(outlook.tpot, 1000, ',.1f')} ms each")
    if outlook.hours:
        parts.append(f"{_span(outlook.hours, 1, ',.1f')} hours")
    if outlook.cost:
        parts.append(f"{outlook.cost.low:,.0f}–{outlook.cost.high:,.0f} {currency} to finish")
    elif outlook.per_million:
        low, high = outlook.per_million.low, outlook.per_million.high
        parts.append(f"{low:,.2f}–{high:,.2f} {currency} per {MILLION:,} tokens")
    if outlook.deadline:
        parts.append(_deadline_words(outlook.deadline))
    return ", ".join(parts)


def _span(values: Range, factor: float, form: str) -> str:
    return f"{values.low * factor:{form}}–{values.high * factor:{form}}"


def _deadline_words(found: DeadlineVerdict) -> str:
    if found.word is InTime.YES:
        return f"in time with {found.slack_hours:,.0f} hours to spare"
    return f"{found.word} (up to {-found.slack_hours:,.0f} hours after the deadline)"
