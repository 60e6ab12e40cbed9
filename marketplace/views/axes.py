"""What time and cost mean for a workload: to finish where it has an end, else for tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evaluator.candidates import Candidate
from evaluator.jobs import Workload
from evaluator.ranges import Range
from evaluator.spending import Cost
from evaluator.units import SECONDS_PER_HOUR
from marketplace.cost_scatter import CostScatter, Spot, cost_scatter

BILLION = 10**9
MILLISECONDS = 1000


@dataclass(frozen=True, slots=True)
class Axes:
    """Names and units of both axes. `job` says that the workload has a known end."""

    time: str
    time_unit: str
    cost: str
    cost_unit: str
    job: bool = False

    @property
    def time_title(self) -> str:
        return f"{self.time}, {self.time_unit}"

    @property
    def cost_title(self) -> str:
        return f"{self.cost}, {self.cost_unit}"

    def time_of(self, one: Candidate) -> Range | None:
        """In `time_unit`; None where the plan was not timed."""
        outlook = one.outlook
        if outlook is None:
            return None
        if self.job:
            return outlook.hours
        if outlook.tpot:
            return _scaled(outlook.tpot, MILLISECONDS)
        return _hours_for(BILLION, outlook.rate)

    def column_of(self, key: str) -> tuple[str, float] | None:
        """The column of a ranking that holds an axis' slow or dear end, and what scales it."""
        if key == "cost":
            return ("finish" if self.job else "per_million", 1.0)
        if key != "time":
            return None
        return self.timed_by

    @property
    def timed_by(self) -> tuple[str, float]:
        if self.job:
            return ("hours", 1.0)
        return ("token", MILLISECONDS) if self.time_unit == "ms" else ("per_token", BILLION)

    def cost_of(self, one: Candidate) -> Cost | None:
        """In `cost_unit`; None without a comparable price."""
        if one.outlook is None:
            return None
        return one.outlook.cost if self.job else one.outlook.per_million


def axes_of(workload: Workload, currency: str) -> Axes:
    training = workload.training
    if training is not None and training.tokens_to_train is not None:
        return Axes("Time to finish", "hours", "Cost to finish", currency, job=True)
    per_million = f"{currency} per 1,000,000 tokens"
    if training is not None:
        return Axes("Time", "hours for 1,000,000,000 tokens", "Cost of tokens", per_million)
    return Axes("Time per token", "ms", "Cost of tokens", per_million)


def scatter_of(candidates: Iterable[Candidate], axes: Axes) -> CostScatter | None:
    return cost_scatter(_spots(candidates, axes), axes.time_unit, axes.cost_unit)


def _spots(candidates: Iterable[Candidate], axes: Axes) -> Iterator[Spot]:
    for one in candidates:
        time, cost = axes.time_of(one), axes.cost_of(one)
        if time is not None and cost is not None and one.status.serves:
            yield Spot(
                label=f"#{one.rank}",
                name=f"{one.offering.title}, {one.offering.provider}, {one.plan.plan.label}",
                grade=one.plan.weakest.grade.word,
                time=time,
                cost=Range(*map(float, (cost.low, cost.typical, cost.high))),
            )


def _scaled(values: Range, factor: float) -> Range:
    return Range(values.low * factor, values.typical * factor, values.high * factor)


def _hours_for(tokens: int, rate: Range) -> Range:
    ends = (rate.high, rate.typical, rate.low)
    return Range(*(tokens / (end * SECONDS_PER_HOUR) for end in ends))
