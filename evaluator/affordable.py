"""Whether money is enough: how busy a server is, a budget, one bigger GPU against several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from evaluator.bills import Bill
from evaluator.jobs import Workload
from evaluator.ranges import Range, exact
from evaluator.spending import affordable_ratio


@dataclass(frozen=True, slots=True)
class Use:
    """The share of the time in which a server is busy, and where that is from."""

    share: Range
    words: str

    def served(self, rate: Range) -> Range:
        """Tokens/s that are asked for: a faster server is busy for less of the time."""
        ends = (
            rate.low * self.share.high,
            rate.typical * self.share.typical,
            rate.high * self.share.low,
        )
        return Range(*sorted(ends))  # alike but for their last digit where arrivals set them


def use_of(workload: Workload, rate: Range) -> Use:
    """As stated; else from the arrival rate; else busy all the time, and said to be assumed."""
    job, given = workload.serving, workload.costs.utilisation
    if given is not None:
        return Use(exact(given), f"busy {given:.0%} of the time, as the workload states")
    if job is None or job.arrival_rate is None or not job.output_tokens:
        return Use(exact(1.0), "busy all the time")
    asked = job.arrival_rate * job.output_tokens
    share = Range(*(min(1.0, asked / end) for end in (rate.high, rate.typical, rate.low)))
    if share.low == 1:
        return Use(share, "busy all the time at the arrival rate")
    words = f"busy {share.low:.0%} to {share.high:.0%} of the time at the arrival rate"
    return Use(share, words)


class BudgetWord(StrEnum):
    """By the pessimistic end of the bill."""

    INSIDE = "inside the budget"
    MAY_EXCEED = "may exceed the budget"
    EXCEEDS = "exceeds the budget"


@dataclass(frozen=True, slots=True)
class BudgetVerdict:
    """`left` is what the high end of the bill leaves over; negative is missing.

    `open` are lines without a stated price, which come on top.
    """

    word: BudgetWord
    left: Decimal
    open: tuple[str, ...] = ()


def within(budget: Decimal, bill: Bill) -> BudgetVerdict:
    cost = bill.total
    if cost.high <= budget:
        word = BudgetWord.INSIDE
    else:
        word = BudgetWord.MAY_EXCEED if cost.low <= budget else BudgetWord.EXCEEDS
    return BudgetVerdict(word, budget - cost.high, bill.open)


def hours_bought(budget: Decimal, bill: Bill, per_hour: Decimal) -> Decimal:
    """Hours of serving that a budget pays for once the high end of all before them is paid."""
    return max(Decimal(0), budget - bill.total.high) / per_hour


def open_words(names: Iterable[str]) -> str:
    listed = " and ".join(names)
    return f"not counted, as nobody states them: {listed}" if listed else ""


@dataclass(frozen=True, slots=True)
class BreakEven:
    """One bigger GPU against `gpus` smaller ones, by the low ends of their rates in tokens/s.

    The big one wins below `big_below` per hour, in the currency of the small ones, or from
    `big_from` tokens/s at its own price; each is None where a price is not known. `ratio` is how
    many times the price of one small GPU it may cost.
    """

    gpus: int
    ratio: float
    big_below: Decimal | None
    big_from: float | None
    wins: bool | None


def break_even(
    big_rate: float,
    big_per_hour: Decimal | None,
    small_rate: float,
    small_per_hour: Decimal | None,
    gpus: int,
) -> BreakEven:
    """`small_rate` and `small_per_hour` are of all `gpus` smaller ones together.

    One big GPU wins where its price per token is lower: rate_big / rate_small < X_big / X_small.
    """
    below = from_rate = wins = None
    if small_per_hour is not None:
        below = small_per_hour * Decimal(str(big_rate / small_rate))
    if small_per_hour and big_per_hour is not None:
        from_rate = small_rate * float(big_per_hour / small_per_hour)
        wins = below is not None and big_per_hour < below
    return BreakEven(gpus, affordable_ratio(big_rate, small_rate, gpus), below, from_rate, wins)
