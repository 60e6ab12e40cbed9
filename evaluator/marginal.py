"""What each added GPU costs and saves: one job, or a million tokens, on 1, 2, 4 and 8 GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from evaluator.bills import BILLED_HOURS
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.prices import TimeUnit
from evaluator.ranges import Range
from evaluator.scaling import Point, strong_curve
from evaluator.spending import (
    Cost,
    cost_of,
    cost_per_million,
    cost_ratio,
    goodput,
    hours_for,
    wall_hours,
)

COUNTS = (1, 2, 4, 8)
PerHour = Callable[[int], Decimal | None]
"""What so many GPUs cost for an hour; None where nobody says."""


@dataclass(frozen=True, slots=True)
class Step:
    """One row: so many GPUs. `hours` and `cost` are of a job with an end.

    `ratio` is the cost of the job against the row before, at one price per GPU. `saved_hour` is
    what each hour that the added GPUs save costs, typical ends: negative where they pay for
    themselves, None where they save none or nobody states a price.
    """

    gpus: int
    rate: Range
    hours: Range | None = None
    cost: Cost | None = None
    per_million: Cost | None = None
    ratio: float | None = None
    saved_hour: Decimal | None = None

    @property
    def words(self) -> str:
        if self.ratio is None:
            return "the fewest GPUs that hold it"
        if self.saved_hour is None:
            return "no hour is saved" if self.hours else f"a token costs {self.ratio:.2f} times"
        if self.saved_hour <= 0:
            return "faster and no dearer"
        return f"each saved hour costs {self.saved_hour:,.2f}"


def marginal_table(
    points: Sequence[Point], tokens: int | None, per_hour: PerHour, unit: TimeUnit = TimeUnit.HOUR
) -> tuple[Step, ...]:
    """Rows in the order of GPUs. `tokens` None is a server; `per_hour` prices a number of GPUs."""
    ordered = sorted(points, key=lambda point: point.gpus)
    rows = [_row(point, tokens, per_hour(point.gpus), unit) for point in ordered]
    return (*rows[:1], *(_against(before, row) for before, row in pairwise(rows)))


def _row(point: Point, tokens: int | None, per_hour: Decimal | None, unit: TimeUnit) -> Step:
    hours = None
    if tokens is not None:
        hours = wall_hours(hours_for(tokens, point.rate), goodput(point.plan.nodes))
    ends = (point.rate.high, point.rate.typical, point.rate.low)
    return Step(
        gpus=point.gpus,
        rate=point.rate,
        hours=hours,
        cost=cost_of(hours, per_hour, BILLED_HOURS[unit]) if hours and per_hour else None,
        per_million=Cost(*(cost_per_million(per_hour, end) for end in ends)) if per_hour else None,
    )


def _against(before: Step, row: Step) -> Step:
    """The row with what it adds to the one before it."""
    ratio = cost_ratio((before.gpus, before.rate.typical), (row.gpus, row.rate.typical))
    return Step(
        row.gpus, row.rate, row.hours, row.cost, row.per_million, ratio, _saved(before, row)
    )


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


def steps_of(
    workload: Workload, machine: Machine, per_hour: PerHour, counts: Iterable[int] = COUNTS
) -> tuple[Step, ...]:
    """The table of a machine, over the counts that it has. Empty where nothing can be timed."""
    held = machine.gpu_count.value or 0
    job = workload.training
    points = strong_curve(workload, machine, [count for count in counts if count <= held])
    return marginal_table(points, job.tokens_to_train if job else None, per_hour)
