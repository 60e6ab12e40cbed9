"""What each added GPU costs and saves: one job, or a million tokens, on more and more GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from evaluator.bills import BILLED_HOURS, Job, Price, bill_of, spent_on
from evaluator.prices import TimeUnit
from evaluator.ranges import Range
from evaluator.scaling import Point
from evaluator.spending import (
    Cost,
    cost_of,
    cost_per_million,
    cost_ratio,
    goodput,
    hours_for,
    wall_hours,
)

PerHour = Callable[[int], Decimal | None]
"""What so many GPUs cost for an hour; None where nobody says."""
JobOf = Callable[[Point], Job]
"""What is billed of a plan, with what comes before and beside its work."""


@dataclass(frozen=True, slots=True)
class Step:
    """One row: so many GPUs. `hours` and `cost` are of a job with an end.

    It is held against the fastest row before it, typical ends: what is worse than fewer GPUs is no
    step to start from. `ratio` is the cost of the job at one price per GPU, and `here` that of a
    token at what so many GPUs cost, None where nobody says. `saved_hour` is what each hour that the
    added GPUs save costs: negative where they pay for themselves, None where they save none or
    nobody states a price.
    """

    gpus: int
    rate: Range
    hours: Range | None = None
    cost: Cost | None = None
    per_million: Cost | None = None
    ratio: float | None = None
    saved_hour: Decimal | None = None
    here: float | None = None

    @property
    def words(self) -> str:
        if self.ratio is None:
            return "the fewest GPUs that hold it"
        if self.saved_hour is None:
            return "no hour is saved" if self.hours else self._of_a_token(self.ratio)
        if self.saved_hour <= 0:
            return "faster and no dearer"
        return f"each saved hour costs {self.saved_hour:,.2f}"

    def _of_a_token(self, ratio: float) -> str:
        """A machine that is rented whole costs the same either way."""
        by_gpu = f"{ratio:.2f} times where each GPU is paid"
        if self.here is None:
            return f"a token costs {by_gpu}"
        if abs(self.here - ratio) < SAME:
            return f"a token costs {self.here:.2f} times"
        return f"a token costs {self.here:.2f} times; {by_gpu}"


SAME = 0.005
"""Two ratios that read alike."""


def marginal_table(
    points: Sequence[Point],
    tokens: int | None,
    per_hour: PerHour,
    unit: TimeUnit = TimeUnit.HOUR,
    job_of: JobOf | None = None,
) -> tuple[Step, ...]:
    """Rows in the order of GPUs. `tokens` None is a server; `per_hour` prices a number of GPUs.

    Hours and cost are of the work alone, or all that is billed for it where `job_of` tells what.
    """
    ordered = sorted(points, key=lambda point: point.gpus)
    rows = []
    for point in ordered:
        price = _price(per_hour(point.gpus), unit)
        rows.append(_row(point, price, _ending(point, tokens, price, job_of)))
    return tuple(_each_against_the_fastest(rows))


def _each_against_the_fastest(rows: Iterable[Step]) -> Iterator[Step]:
    fastest = None
    for row in rows:
        yield _against(fastest, row) if fastest else row
        if fastest is None or row.rate.typical > fastest.rate.typical:
            fastest = row


def _price(per_hour: Decimal | None, unit: TimeUnit) -> Price | None:
    return Price(per_hour, unit) if per_hour else None


Ending = tuple[Range | None, Cost | None]
"""Hours and cost of a job that has an end."""


def _ending(point: Point, tokens: int | None, price: Price | None, job_of: JobOf | None) -> Ending:
    if tokens is None:
        return None, None
    if job_of is None:
        hours = wall_hours(hours_for(tokens, point.rate), goodput(point.plan.nodes))
        return hours, cost_of(hours, price.per_hour, BILLED_HOURS[price.unit]) if price else None
    job = job_of(point)
    return spent_on(job).rented, bill_of(job, price).total if price else None


def _row(point: Point, price: Price | None, ending: Ending) -> Step:
    ends = (point.rate.high, point.rate.typical, point.rate.low)
    each = Cost(*(cost_per_million(price.per_hour, end) for end in ends)) if price else None
    return Step(point.gpus, point.rate, *ending, per_million=each)


def _against(before: Step, row: Step) -> Step:
    """The row with what it adds to one before it."""
    ratio = cost_ratio((before.gpus, before.rate.typical), (row.gpus, row.rate.typical))
    here = None
    if before.per_million and row.per_million and before.per_million.typical:
        here = float(row.per_million.typical / before.per_million.typical)
    return replace(row, ratio=ratio, saved_hour=_saved(before, row), here=here)


def _saved(before: Step, row: Step) -> Decimal | None:
    if not (before.hours and row.hours and before.cost and row.cost):
        return None
    return cost_of_saved_hour(
        (before.cost.typical, before.hours.typical), (row.cost.typical, row.hours.typical)
    )


def cost_of_saved_hour(
    before: tuple[Decimal, float], after: tuple[Decimal, float]
) -> Decimal | None:
    """(cost after - cost before) / (hours before - hours after). None where no hour is saved."""
    saved = before[1] - after[1]
    return (after[0] - before[0]) / Decimal(str(saved)) if saved > 0 else None
