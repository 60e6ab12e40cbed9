"""Where the times of a plan come from: formula, terms, and every assumption with its source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from evaluator.calibration import Constant, constants, watched
from evaluator.estimates import Estimate, Setting
from evaluator.jobs import Workload
from evaluator.layouts import Layout, Links, layout_of
from evaluator.link_costs import Wire, family_of
from evaluator.machine import Machine
from evaluator.plans import Plan
from evaluator.ranges import Range
from evaluator.rentals import Rental, rental_of
from evaluator.timing import engine_on, serving_times, step_estimate, training_rate
from evaluator.token_time import Interactive
from evaluator.training_time import StepModel

SPREAD = (
    "Terms stand at typical values. For the ends each assumption is moved alone to its low and to "
    "its high end, and the moves, taken as independent, add in quadrature as logarithms."
)
FORMULAS = {
    "time to the first token": "wait for a slot + reading of the prompt + prompts ahead of it "
    "+ one decode step + handling of the request",
    "time per token": "one decode step + the prompts of others that are read meanwhile",
    "output rate": "requests that run × output tokens ÷ (time to the first token without a queue "
    "+ (output tokens - 1) × time per token), times the replicas",
    "optimizer step": "the sum of its terms",
    "trained tokens": "tokens of a step ÷ seconds of the step",
}
OF_LINKS = {
    "link": ("nvlink.", "pcie.", "xgmi."),
    "network between machines": ("network.",),
}
"""Times of exchanges rest on all constants of the links that may carry them."""
BUDGET = "the memory budget of this plan and what the driver reports"
PLAN = "the plan itself"
WORKED_OUT = {"memory left for the cache": BUDGET, "virtual stages": PLAN}
"""Assumptions that no constant states."""
OWN_UNITS = {
    "memory left for the cache": "bytes",
    "link": "s for an exchange",
    "network between machines": "s for an exchange",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One predicted figure with the formula that gives it."""

    name: str
    estimate: Estimate

    @property
    def formula(self) -> str:
        return FORMULAS[self.name]


@dataclass(frozen=True, slots=True)
class Assumption:
    """One value that is not known exactly, and the constants that state it."""

    name: str
    values: Range
    stated: tuple[Constant, ...]

    @property
    def source(self) -> str:
        return "" if self.stated else WORKED_OUT.get(self.name, PLAN)

    @property
    def unit(self) -> str:
        """Empty for a share or a factor."""
        if self.name in OWN_UNITS:
            return OWN_UNITS[self.name]
        unit = self.stated[0].unit if len(self.stated) == 1 else "1"
        return "" if unit == "1" else unit


@dataclass(frozen=True, slots=True)
class TimeSources:
    """`worlds` counts the links that the GPUs may have: over more than one, figures span them."""

    figures: tuple[Figure, ...]
    assumptions: tuple[Assumption, ...]
    worlds: int


def time_sources(workload: Workload, plan: Plan, machine: Machine) -> TimeSources | None:
    """None where the plan cannot be timed."""
    rental, layout = rental_of(machine, plan.nodes), layout_of(plan)
    if rental is None:
        return None
    figures = tuple(_figures(workload, layout, rental))
    if not figures:
        return None
    model = _model(workload, layout, rental, rental.worlds[0])
    return TimeSources(figures, _assumed(model), len(rental.worlds))


def _figures(workload: Workload, layout: Layout, rental: Rental) -> Iterator[Figure]:
    if workload.serving:
        times = serving_times(workload, layout, rental)
        if times:
            yield Figure("time to the first token", times.ttft)
            yield Figure("time per token", times.tpot)
            yield Figure("output rate", times.rate)
        return
    step = step_estimate(workload, layout, rental)
    rate = training_rate(workload, layout, rental)
    if step and rate:
        yield Figure("optimizer step", step)
        yield Figure("trained tokens", rate)


def _model(
    workload: Workload, layout: Layout, rental: Rental, links: Links
) -> Interactive | StepModel:
    if workload.training:
        return StepModel(workload.model, workload.training, layout, rental.device, links)
    engine = engine_on(workload, layout, rental, links)
    if engine is None:
        raise ValueError("a plan that was timed has an engine")
    return Interactive(engine, engine.job.concurrency / (layout.replicas * layout.data))


@dataclass(slots=True)
class _Noted(Setting):
    """Remembers the values of each assumption, and which constants were read for it."""

    read: list[str] = field(default_factory=list)
    values: dict[str, Range] = field(default_factory=dict)
    stated: dict[str, list[str]] = field(default_factory=dict)

    def take(self, name: str, values: Range) -> float:
        self.values[name] = values
        self.stated[name] = self.stated.get(name, []) + self.read
        self.read.clear()
        return getattr(values, self.end if name == self.moved else "typical")  # type: ignore[no-any-return]


def _assumed(model: Interactive | StepModel) -> tuple[Assumption, ...]:
    with watched() as read:
        setting = _Noted(read=read)
        model(setting)
    uncertain = {name: one for name, one in setting.values.items() if one.low < one.high}
    return tuple(
        Assumption(name, values, tuple(_stated(name, setting.stated[name], model)))
        for name, values in uncertain.items()
    )


def _stated(name: str, read: Sequence[str], model: Interactive | StepModel) -> Iterator[Constant]:
    """Of an exchange, by the kind of its link; of all else, what was read for it."""
    if name not in OF_LINKS:
        yield from (constants()[one] for one in dict.fromkeys(read))
        return
    links = model.links if isinstance(model, StepModel) else model.model.links
    on_wire = isinstance(links.wire, Wire) and family_of(links.wire)
    for key, constant in constants().items():
        if key.startswith(OF_LINKS[name]) and (name != "link" or key.startswith(f"{on_wire}.")):
            yield constant
