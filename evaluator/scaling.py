"""What more GPUs are worth: strong and weak curves, serial shares, marginal value.

Efficiencies are not held at 1: more memory can make more than twice the rate of twice the GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import sqrt

from evaluator.jobs import Workload
from evaluator.layouts import layout_of
from evaluator.machine import Machine
from evaluator.memory import FitWord, budget, fit
from evaluator.plans import Plan, plans_of
from evaluator.ranges import Range
from evaluator.rentals import Rental, rental_of
from evaluator.timing import serving_times, training_rate


@dataclass(frozen=True, slots=True)
class Point:
    """The fastest plan on so many GPUs. `rate` is tokens/s of all of them together."""

    plan: Plan
    rate: Range

    @property
    def gpus(self) -> int:
        return self.plan.gpus


def strong_efficiency(base: tuple[int, float], at: tuple[int, float]) -> float:
    """Rate per GPU at `at` against `base`, the same work on both. Pairs of GPUs and rate."""
    return at[1] * base[0] / (base[1] * at[0])


def weak_efficiency(base_seconds: float, seconds: float) -> float:
    """Constant work per GPU: time before over time after."""
    return base_seconds / seconds


def amdahl_speedup(serial: float, factor: float) -> float:
    """Speedup on `factor` times the GPUs where the share `serial` gains nothing."""
    return 1 / (serial + (1 - serial) / factor)


def amdahl_share(speedup: float, factor: float) -> float:
    """The serial share that explains a speedup. Below 0 where it is superlinear."""
    return (factor / speedup - 1) / (factor - 1)


def gustafson_speedup(serial: float, factor: float) -> float:
    return factor - serial * (factor - 1)


def gustafson_share(speedup: float, factor: float) -> float:
    return (factor - speedup) / (factor - 1)


def marginal_value(before: tuple[int, float], after: tuple[int, float], single: float) -> float:
    """GPUs' worth of rate that each added GPU brings. At 0 or less do not add them."""
    return (after[1] - before[1]) / ((after[0] - before[0]) * single)


@dataclass(frozen=True, slots=True)
class Fits:
    """Serial shares that explain a curve best, and the scatter of the pointwise ones."""

    amdahl: float
    gustafson: float
    scatter: float

    @property
    def explains(self) -> bool:
        """Whether one share says anything: it is a share, and the points agree on it."""
        return self.amdahl <= 1 and self.scatter <= MOST_SCATTER


MOST_SCATTER = 0.25


def fit_serial(pairs: Sequence[tuple[int, float]]) -> Fits | None:
    """Means over the points beyond the first. None for fewer than two points."""
    if len(pairs) < 2:
        return None
    base, *rest = sorted(pairs)
    found = [(rate / base[1], gpus / base[0]) for gpus, rate in rest]
    shares = [amdahl_share(speedup, factor) for speedup, factor in found]
    scaled = [gustafson_share(speedup, factor) for speedup, factor in found]
    mean = sum(shares) / len(shares)
    spread = sqrt(sum((share - mean) ** 2 for share in shares) / len(shares))
    return Fits(mean, sum(scaled) / len(scaled), spread)


@dataclass(frozen=True, slots=True)
class Gain:
    """One more step of a curve: to `point` from the fastest before it, by the low ends."""

    point: Point
    efficiency: float
    marginal: float

    @property
    def pays(self) -> bool:
        return self.marginal > 0


def gains(points: Sequence[Point]) -> list[Gain]:
    """Efficiency against the first point and worth of each added GPU, by the low ends."""
    if not points:
        return []
    ordered = sorted(points, key=lambda point: point.gpus)
    base = _pair(ordered[0])
    single, fastest, found = base[1] / base[0], base, []
    for point in ordered:
        at = _pair(point)
        worth = marginal_value(fastest, at, single) if at[0] > fastest[0] else 1.0
        found.append(Gain(point, strong_efficiency(base, at), worth))
        fastest = max(fastest, at, key=lambda pair: pair[1])
    return found


def _pair(point: Point) -> tuple[int, float]:
    return (point.gpus, point.rate.low)


def strong_curve(
    workload: Workload, machine: Machine, gpu_counts: Iterable[int], nodes: Iterable[int] = (1,)
) -> list[Point]:
    """The fastest plan that fits, by its low end, for each number of GPUs; the same work."""
    points = (
        _fastest(workload, machine, count, number) for number in nodes for count in gpu_counts
    )
    return [point for point in points if point]


def weak_curve(
    workload: Workload,
    machine: Machine,
    gpu_counts: Sequence[int],
    nodes: Iterable[int] = (1,),
    base: int | None = None,
) -> list[Point]:
    """As `strong_curve`, with the batch or the users grown in step with the GPUs: those of the
    workload are for `base` GPUs, by default the smallest count."""
    base = base or min(gpu_counts, default=1)
    return [
        point
        for number in nodes
        for count in gpu_counts
        if (point := _fastest(grown(workload, count * number, base), machine, count, number))
    ]


def grown(workload: Workload, gpus: int, base: int) -> Workload:
    """The workload with the same work per GPU as on `base` GPUs."""
    if workload.serving:
        users = workload.serving.concurrency * gpus // base
        return replace(workload, serving=replace(workload.serving, concurrency=max(1, users)))
    job = workload.training
    if job is None or job.global_batch is None:
        return workload
    batch = max(1, job.global_batch * gpus // base)
    return replace(workload, training=replace(job, global_batch=batch))


def _fastest(workload: Workload, machine: Machine, gpus: int, nodes: int) -> Point | None:
    rental = rental_of(machine, nodes)
    if rental is None:
        return None
    usable = machine.usable_bytes_per_gpu.value
    found = [
        Point(plan, rate)
        for plan in plans_of(workload, gpus, (nodes,)).plans
        if plan.gpus == gpus * nodes
        and fit(budget(workload, plan), usable).word is not FitWord.DOES_NOT_FIT
        and (rate := plan_rate(workload, plan, rental))
    ]
    return max(found, key=lambda point: point.rate.low, default=None)


def plan_rate(workload: Workload, plan: Plan, rental: Rental) -> Range | None:
    """Tokens/s of a plan: trained ones, or output of a closed loop at the wanted concurrency."""
    if workload.training:
        step = training_rate(workload, layout_of(plan), rental)
        return step.value if step else None
    times = serving_times(workload, layout_of(plan), rental)
    return times.rate.value if times else None
