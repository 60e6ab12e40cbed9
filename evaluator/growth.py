"""What a machine type is worth with 1, 2, 4, 8 and more GPUs, then with more machines: a table.

Each row takes the fastest plan that fits, by its low end. Efficiencies are not held at 1: more
memory can bring more than its share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.plans import Plan
from evaluator.ranges import Range
from evaluator.scaling import (
    Fits,
    Gain,
    Point,
    fit_serial,
    gains,
    strong_curve,
    strong_efficiency,
    weak_curve,
)
from evaluator.spending import CENT, Cost, cost_of, cost_per_million, goodput, hours_for, wall_hours


@dataclass(frozen=True, slots=True)
class GrowthRow:
    """`rate` is tokens/s of all GPUs together at the same work, `grown_rate` at work that grew with
    the GPUs; None where nothing fits that.

    `efficiency` and `grown_efficiency` compare rates per GPU with the first row, `marginal` is how
    many GPUs of the first row each added GPU is worth. `hours` and `cost` are of a job with a known
    end, `per_million` the price of 10^6 tokens, `saved_hour` what each hour costs that this row
    saves against the one before; None where none is saved or no price is known.
    """

    plan: Plan
    gpus: int
    machines: int
    rate: Range
    efficiency: float
    marginal: float
    hours: Range | None = None
    cost: Cost | None = None
    per_million: Decimal | None = None
    saved_hour: Decimal | None = None
    grown_rate: Range | None = None
    grown_efficiency: float | None = None

    @property
    def pays(self) -> bool:
        """Whether the added GPUs bring anything at all."""
        return self.marginal > 0


@dataclass(frozen=True, slots=True)
class Growth:
    """Rows from few GPUs to many, with the serial shares that explain both curves best."""

    rows: tuple[GrowthRow, ...]
    strong: Fits | None
    weak: Fits | None


@dataclass(frozen=True, slots=True)
class GpuPrice:
    """One GPU for one hour, and the hours of a billing unit.

    `whole` is True where machines are rented whole, so that idle GPUs are paid too.
    """

    per_gpu_hour: Decimal
    unit_hours: Decimal = Decimal(1)
    whole: bool = True


def counts_of(gpus: int) -> list[int]:
    """1, 2, 4 and so on, and all GPUs of the machine."""
    powers = [1 << shift for shift in range(gpus.bit_length()) if 1 << shift <= gpus]
    return sorted({*powers, gpus})


def growth(
    workload: Workload, machine: Machine, price: GpuPrice | None = None, most_machines: int = 1
) -> Growth:
    """The table of a machine type; counts on which no plan fits have no row."""
    inside = machine.gpu_count.value or 1
    counts, nodes = counts_of(inside), range(2, most_machines + 1)
    strong = [*strong_curve(workload, machine, counts)]
    strong += strong_curve(workload, machine, [inside], nodes)
    grown = _grown(workload, machine, counts, nodes, strong)
    rows = tuple(_rows(workload, inside, gains(strong), grown, price))
    return Growth(rows, fit_serial(_pairs(strong)), fit_serial(_pairs(grown)))


def _grown(
    workload: Workload,
    machine: Machine,
    counts: Sequence[int],
    nodes: Sequence[int],
    strong: Sequence[Point],
) -> list[Point]:
    """The workload's own work is that of the smallest count on which it fits."""
    base = min((point.gpus for point in strong), default=1)
    inside = weak_curve(workload, machine, [one for one in counts if one >= base], base=base)
    return inside + weak_curve(workload, machine, counts[-1:], nodes, base=base)


def _pairs(points: Sequence[Point]) -> list[tuple[int, float]]:
    return [(point.gpus, point.rate.low) for point in points]


def _rows(
    workload: Workload,
    inside: int,
    found: Sequence[Gain],
    grown: Sequence[Point],
    price: GpuPrice | None,
) -> Iterator[GrowthRow]:
    by_gpus = {point.gpus: point for point in grown}
    base = min(grown, key=lambda point: point.gpus, default=None)
    before: GrowthRow | None = None
    for gain in found:
        wide = by_gpus.get(gain.point.gpus)
        before = _row(workload, inside, gain, price, before, wide, base)
        yield before


def _row(
    workload: Workload,
    inside: int,
    gain: Gain,
    price: GpuPrice | None,
    before: GrowthRow | None,
    wide: Point | None,
    base: Point | None,
) -> GrowthRow:
    point = gain.point
    hours = _hours(workload, point)
    per_hour = _per_hour(point, inside, price)
    cost = cost_of(hours, per_hour, price.unit_hours) if hours and price and per_hour else None
    return GrowthRow(
        plan=point.plan,
        gpus=point.gpus,
        machines=point.plan.nodes,
        rate=point.rate,
        efficiency=gain.efficiency,
        marginal=gain.marginal,
        hours=hours,
        cost=cost,
        per_million=cost_per_million(per_hour, point.rate.typical) if per_hour else None,
        saved_hour=_saved_hour(before, hours, cost),
        grown_rate=wide.rate if wide else None,
        grown_efficiency=_against(base, wide),
    )


def _against(base: Point | None, wide: Point | None) -> float | None:
    if base is None or wide is None:
        return None
    return strong_efficiency((base.gpus, base.rate.low), (wide.gpus, wide.rate.low))


def _hours(workload: Workload, point: Point) -> Range | None:
    job = workload.training
    if job is None or job.tokens_to_train is None:
        return None
    return wall_hours(hours_for(job.tokens_to_train, point.rate), goodput(point.plan.nodes))


def _per_hour(point: Point, inside: int, price: GpuPrice | None) -> Decimal | None:
    """Everything that is paid for an hour of the row."""
    if price is None:
        return None
    gpus = inside * point.plan.nodes if price.whole else point.gpus
    return price.per_gpu_hour * gpus


def _saved_hour(before: GrowthRow | None, hours: Range | None, cost: Cost | None) -> Decimal | None:
    """(cost after - cost before) / (hours before - hours after), by the typical values."""
    if before is None or before.hours is None or before.cost is None or not hours or not cost:
        return None
    saved = before.hours.typical - hours.typical
    if saved <= 0:
        return None
    return ((cost.typical - before.cost.typical) / Decimal(str(saved))).quantize(CENT)
