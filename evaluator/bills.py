"""The all-in cost of a rental as named lines, each with what it assumes.

A line of which nobody states the price has no amount: it is open, never free. Amounts are not
rounded here, so the lines add up to the total exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal

from evaluator.calibration import constants, figure
from evaluator.first_step import FirstStep, checkpoint_range, first_step
from evaluator.jobs import Costs, Workload
from evaluator.machine import Machine
from evaluator.prices import Purchase, TimeUnit
from evaluator.ranges import Range, exact, total
from evaluator.spending import Cost, billed_hours
from evaluator.spot import Reclaims, reclaims_of
from evaluator.units import GB, HOURS_PER_MONTH, SECONDS_PER_HOUR, gb

BILLED_HOURS = {
    TimeUnit.SECOND: Decimal(1) / SECONDS_PER_HOUR,
    TimeUnit.HOUR: Decimal(1),
    TimeUnit.DAY: Decimal(24),
}
"""Hours of one billing unit. A rate by the second is paid by the second."""


@dataclass(frozen=True, slots=True)
class Price:
    """All rentals of a plan for one hour, and the unit by which they are billed.

    `firm_per_hour` is what the same rentals cost on demand, where that is known too.
    """

    per_hour: Decimal
    unit: TimeUnit = TimeUnit.HOUR
    purchase: Purchase = Purchase.ON_DEMAND
    firm_per_hour: Decimal | None = None

    @property
    def share(self) -> float | None:
        """Of the firm price."""
        firm = self.firm_per_hour
        return float(self.per_hour / firm) if firm else None


WORK, RESTARTS = "work", "restarts on spot capacity"
"""The lines of the job itself and of what spot capacity adds. All others come besides."""


@dataclass(frozen=True, slots=True)
class Line:
    """One part of a bill. `cost` None is not stated; `stated` is True where nothing is assumed."""

    name: str
    cost: Cost | None
    assumption: str
    stated: bool = False


@dataclass(frozen=True, slots=True)
class Bill:
    """`hours` lead from the start of the rental to the end of the job, or to the first request of
    a server, which has no end. `lines` add up to `total`, as far as they have an amount.
    """

    lines: tuple[Line, ...]
    hours: Range
    ends: bool

    @property
    def total(self) -> Cost:
        known = [line.cost for line in self.lines if line.cost]
        parts = ((one.low, one.typical, one.high) for one in known)
        low, typical, high = (sum(end, Decimal(0)) for end in zip(*parts, strict=True))
        return Cost(low, typical, high)

    @property
    def open(self) -> tuple[str, ...]:
        """Names of the lines that nobody states."""
        return tuple(line.name for line in self.lines if line.cost is None)


@dataclass(frozen=True, slots=True)
class Spent:
    """Hours of a rental by what they are for. `work` is None for a server, which has no end."""

    setup: Range
    fetched: Range
    verified: Range
    work: Range | None = None
    restarts: Range = field(default_factory=lambda: exact(0.0))

    @property
    def parts(self) -> tuple[Range, ...]:
        every = (self.setup, self.fetched, self.verified, self.restarts, self.work)
        return tuple(part for part in every if part is not None)

    @property
    def rented(self) -> Range:
        return total(self.parts)

    @property
    def exact_ends(self) -> tuple[Decimal, ...]:
        """Low, typical and high of all parts, summed as the lines of a bill are."""
        columns = zip(*((one.low, one.typical, one.high) for one in self.parts), strict=True)
        return tuple(sum(map(_decimal, column), Decimal(0)) for column in columns)


def _decimal(hours: float) -> Decimal:
    return Decimal(str(hours))


@dataclass(frozen=True, slots=True)
class Job:
    """What a plan makes of a workload on a machine: `work` hours with stops, None for a server.

    `weights_bytes` are the whole model's, `trained` the parameters that set the size of a
    checkpoint, `machines` how many the plan spans.
    """

    workload: Workload
    machine: Machine
    work: Range | None
    weights_bytes: int | None
    trained: int | None = None
    machines: int = 1

    @property
    def step(self) -> FirstStep | None:
        own = self.workload.costs.download_bytes_per_s
        return first_step(self.workload, self.machine, self.weights_bytes, own)

    @property
    def saved(self) -> Range | None:
        return checkpoint_range(self.workload, self.trained)


def spent_on(job: Job) -> Spent:
    """Hours from the start of the rental to the end of the job, or to a server's first request."""
    costs, step = job.workload.costs, job.step
    return Spent(
        setup=_stated(costs.setup_hours, "rent.setup"),
        fetched=step.hours if step else exact(0.0),
        verified=_stated(costs.verification_hours, "rent.verification"),
        work=job.work,
    )


def bill_of(job: Job, price: Price) -> Bill:
    """All lines of a job at a price."""
    costs, spent = job.workload.costs, spent_on(job)
    reclaims = _reclaims(costs, price, job.saved, spent, job.machines)
    if reclaims and reclaims.lost:
        spent = replace(spent, restarts=reclaims.lost)
    lines = (
        *_time_lines(costs, price, spent, job.step, job.machines, reclaims),
        _storage_line(job, spent),
        _egress_line(job.workload, job.saved),
    )
    return Bill(lines, spent.rented, ends=job.work is not None)


def _reclaims(
    costs: Costs, price: Price, saved: Range | None, spent: Spent, machines: int
) -> Reclaims | None:
    if price.purchase is not Purchase.SPOT or spent.work is None:
        return None
    restart = (spent.setup + spent.fetched).scaled(SECONDS_PER_HOUR)
    return reclaims_of(spent.work, costs.reclaim_hours, saved, restart, machines, price.share)


def _stated(hours: float | None, constant: str) -> Range:
    return figure(constant) if hours is None else exact(hours)


# --- machine time


def _time_lines(
    costs: Costs,
    price: Price,
    spent: Spent,
    step: FirstStep | None,
    machines: int,
    reclaims: Reclaims | None,
) -> Iterator[Line]:
    rate = price.per_hour
    if spent.work:
        yield Line(WORK, _money(spent.work, rate), _goodput_words(machines))
    if reclaims:
        cost = _money(reclaims.lost, rate) if reclaims.lost else None
        yield Line(RESTARTS, cost, reclaims.words)
    yield _user_line("start and installation", spent.setup, rate, costs.setup_hours, "rent.setup")
    if step:
        yield Line("download and loading", _money(spent.fetched, rate), step.words, step.stated)
    else:
        yield Line("download and loading", None, "the size of the weights is not known")
    given = costs.verification_hours
    yield _user_line("verification", spent.verified, rate, given, "rent.verification")
    if spent.work:
        yield _rounding_line(costs, price, spent.exact_ends)


def _goodput_words(machines: int) -> str:
    name = "run.one_machine" if machines == 1 else "run.many_machines"
    found = constants()[name]
    kept = f"{found.range.low:.0%} to {found.range.high:.0%}"
    return f"the run keeps {kept} of the step rate ({found.source})"


def _user_line(name: str, hours: Range, rate: Decimal, given: float | None, constant: str) -> Line:
    words = "as the workload states" if given is not None else constants()[constant].source
    return Line(name, _money(hours, rate), words, given is not None)


def _money(hours: Range, rate: Decimal) -> Cost:
    return Cost(*(_decimal(end) * rate for end in (hours.low, hours.typical, hours.high)))


def _rounding_line(costs: Costs, price: Price, used: tuple[Decimal, ...]) -> Line:
    """What whole billing units and a minimum term add to the hours that are used."""
    unit = costs.billing_unit_hours or BILLED_HOURS.get(price.unit, Decimal(1))
    least = costs.minimum_hours or Decimal(0)
    added = ((billed_hours(hours, unit, least) - hours) * price.per_hour for hours in used)
    return Line("rounding", Cost(*added), _rounding_words(costs, price), _is_stated(costs))


def _is_stated(costs: Costs) -> bool:
    return costs.billing_unit_hours is not None or costs.minimum_hours is not None


def _rounding_words(costs: Costs, price: Price) -> str:
    if _is_stated(costs):
        least = f", at least {costs.minimum_hours:f} h" if costs.minimum_hours else ""
        unit = costs.billing_unit_hours or BILLED_HOURS.get(price.unit, Decimal(1))
        return f"paid by the started {unit:f} h{least}, as the workload states"
    return f"a rate per {price.unit} is paid by the started {price.unit}; no minimum is stated"


# --- what is billed beside machine time


def besides(job: Job) -> tuple[float, float]:
    """What storage and egress add at the high end: per rented hour, and whatever the hours."""
    nothing = Spent(*(exact(0.0),) * 3)
    cost = [_high(_storage_line(job, replace(nothing, setup=exact(h)))) for h in (0.0, 1.0)]
    return cost[1] - cost[0], cost[0] + _high(_egress_line(job.workload, job.saved))


def _high(line: Line) -> float:
    return float(line.cost.high) if line.cost else 0.0


def _storage_line(job: Job, spent: Spent) -> Line:
    """Rented hours and the hours in which the machine is stopped; a month has 730."""
    costs, weights = job.workload.costs, job.weights_bytes
    name, rate, stopped = "storage", costs.storage_per_gb_month, costs.stopped_hours
    if rate is None:
        return Line(name, None, "nobody states its price, which goes on while a machine is stopped")
    if weights is None:
        return Line(name, None, "the size of the weights is not known")
    training = job.workload.training
    kept = weights + ((training.dataset_bytes or 0) if training else 0)
    held = exact(float(kept)) + (job.saved or exact(0.0))
    copies = Range(1, 1, job.machines)
    hours = spent.rented + exact(stopped or 0.0)
    months = hours.scaled(1 / float(HOURS_PER_MONTH))
    gigabytes = held.times(copies).scaled(1 / GB)
    idle = f"{stopped:g} h stopped" if stopped is not None else "never stopped"
    words = f"{gigabytes.typical:,.0f} GB at {rate:f} per GB and month, {idle}"
    return Line(name, _money(gigabytes.times(months), rate), words, stopped is not None)


def _egress_line(workload: Workload, saved: Range | None) -> Line:
    """What leaves at the end: the stated bytes, else one checkpoint. Answers are small."""
    name, rate, given = "egress", workload.costs.egress_per_gb, workload.costs.egress_bytes
    if rate is None:
        return Line(name, None, "nobody states the price of data that leave")
    leaves = exact(float(given)) if given is not None else saved or exact(0.0)
    words = f"{gb(leaves.typical):,.0f} GB leave at {rate:f} per GB"
    return Line(name, _money(leaves.scaled(1 / GB), rate), words, given is not None)
