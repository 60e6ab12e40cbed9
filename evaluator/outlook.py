"""What a plan on a machine promises at a price: speed, hours, money, deadline, and what is open.

Every figure is a range. Words of a verdict follow the end that is worse for the reader.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from evaluator.affordable import BudgetVerdict, Use, hours_bought, use_of, within
from evaluator.bills import Bill, Job, Price, bill_of, spent_on
from evaluator.estimates import Estimate
from evaluator.jobs import ServingJob, TrainingJob, Workload
from evaluator.layouts import layout_of
from evaluator.links import LINK_WORDS
from evaluator.machine import Machine
from evaluator.plans import Plan
from evaluator.queueing import BUSIEST, OpenLoop
from evaluator.ranges import Range
from evaluator.rentals import rental_of
from evaluator.spending import (
    MILLION,
    Cost,
    DeadlineVerdict,
    InTime,
    cost_per_million,
    goodput,
    hours_for,
    meets,
    wall_hours,
)
from evaluator.states import trainable_params
from evaluator.timing import ServingTimes, queue_of, times_of
from evaluator.weights import stored_bytes

__all__ = ["Outlook", "Price", "Times", "outlook_at", "outlook_of", "words_of"]


@dataclass(frozen=True, slots=True)
class Outlook:
    """`rate` in tokens/s of all GPUs: trained ones, or output at the wanted concurrency.

    `ttft` and `tpot` in seconds are of a serving plan. `hours` lead from the start of the rental to
    the end of a job that has one, `cost` is all of its bill. `per_million` is the price of 10^6
    tokens while busy, `per_million_used` at the share of time that `use` names. `bought_hours` is
    how long a budget keeps a server, `queue` that of one engine where the workload states how many
    requests arrive. `conditional` is True where a link that is not known decides:
    then the ranges are spans.
    """

    rate: Range
    ttft: Range | None = None
    tpot: Range | None = None
    hours: Range | None = None
    cost: Cost | None = None
    per_million: Cost | None = None
    per_million_used: Cost | None = None
    use: Use | None = None
    bill: Bill | None = None
    deadline: DeadlineVerdict | None = None
    budget: BudgetVerdict | None = None
    bought_hours: Decimal | None = None
    queue: OpenLoop | None = None
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


def outlook_of(
    workload: Workload, plan: Plan, machine: Machine, price: Price | None = None
) -> Outlook | None:
    """None where the plan cannot be timed: an unknown card, model or memory, or no fit."""
    return outlook_at(workload, plan, machine, times_of(workload, plan, machine), price)


Times = Estimate | ServingTimes


def outlook_at(
    workload: Workload, plan: Plan, machine: Machine, times: Times | None, price: Price | None
) -> Outlook | None:
    """The same from the times of the plan."""
    if times is None:
        return None
    if isinstance(times, ServingTimes):
        rate, seen = times.rate.value, _served(workload, times)
    else:
        rate, seen = times.value, _trained(times)
    seen = replace(seen, dominating=with_link(seen.dominating, plan, machine))
    job = job_on(workload, plan, machine, rate)
    bill = bill_of(job, price) if price else None
    use = use_of(workload, rate)
    return replace(
        _ending(seen, job, bill),
        per_million=_per_million(rate, price),
        use=use,
        per_million_used=_per_million(use.served(rate), price),
        bill=bill,
        budget=_budget(workload, bill),
        bought_hours=_bought(workload, bill, price),
        queue=_queue(workload, plan, machine),
    )


def _queue(workload: Workload, plan: Plan, machine: Machine) -> OpenLoop | None:
    if workload.serving is None or workload.serving.arrival_rate is None:
        return None
    rental = rental_of(machine, plan.nodes)
    return queue_of(workload, layout_of(plan), rental) if rental else None


def queue_words(loop: OpenLoop) -> str:
    """How busy an engine is at the arrivals, and how long requests wait for it."""
    if not loop.stable:
        return "More requests arrive than it serves: the queue grows without end"
    busy = f"At the arrival rate {loop.utilization:.0%} of its {loop.slots} places are taken"
    ninety_five, ninety_nine = loop.percentile(0.95), loop.percentile(0.99)
    if ninety_five is None or ninety_nine is None:
        return f"{busy}, more than {BUSIEST:.0%}: how long requests wait cannot be told"
    if not ninety_nine.high:
        return f"{busy}, and 99% of the requests wait for none"
    ends = (f"{_span(one, 1, ',.1f')} s" for one in (ninety_five, ninety_nine))
    return "{}; of the waits 95% end within {}, 99% within {}".format(busy, *ends)


EXCHANGES = {
    "exchange": "all-reduce",
    "prefill exchange": "all-reduce of prompts",
    "tensor parallel exchange": "all-reduce",
    "expert exchange": "all-to-all of experts",
    "context exchange": "passing of keys and values",
    "gradients and parameters": "traffic of gradients and parameters",
    "hops": "hops of the pipeline",
    "pipeline hops": "hops of the pipeline",
}
"""Terms that live on a link, by what they are."""


def with_link(words: str, plan: Plan, machine: Machine) -> str:
    """A dominating term with the link that it goes over, such as "all-reduce over an unknown link:
    84% of the time"; one that goes over none as it is.
    """
    name, _, share = words.partition(": ")
    if name not in EXCHANGES:
        return words
    link = machine.link.value
    over = LINK_WORDS[link] if link else "an unknown link"
    if plan.joins_machines:
        over += f" and {machine.inter_node.value or 'an unknown network'}"
    return f"{EXCHANGES[name]} over {over}: {share}"


def job_on(workload: Workload, plan: Plan, machine: Machine, rate: Range) -> Job:
    """What is billed of a plan that makes so many tokens/s."""
    return Job(
        workload=workload,
        machine=machine,
        work=_work(workload.training, plan, rate),
        weights_bytes=stored_bytes(workload),
        trained=trainable_params(workload),
        machines=plan.nodes,
    )


def _ending(seen: Outlook, job: Job, bill: Bill | None) -> Outlook:
    """With hours, cost and deadline, where the job has an end."""
    if job.work is None:
        return seen
    hours = bill.hours if bill else spent_on(job).rented
    limit = job.workload.training.deadline_hours if job.workload.training else None
    deadline = meets(limit, hours) if limit is not None else None
    return replace(seen, hours=hours, cost=bill.total if bill else None, deadline=deadline)


def _trained(times: Estimate) -> Outlook:
    return Outlook(
        rate=times.value,
        dominating=times.dominating,
        widest=times.widest,
        conditional=times.conditional,
    )


def _served(workload: Workload, times: ServingTimes) -> Outlook:
    return Outlook(
        rate=times.rate.value,
        ttft=times.ttft.value,
        tpot=times.tpot.value,
        missed=missed_targets(workload.serving or ServingJob(), times),
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


def _work(job: TrainingJob | None, plan: Plan, rate: Range) -> Range | None:
    if job is None or job.tokens_to_train is None:
        return None
    return wall_hours(hours_for(job.tokens_to_train, rate), goodput(plan.nodes))


def _budget(workload: Workload, bill: Bill | None) -> BudgetVerdict | None:
    """Of a job with an end. A server spends a budget hour by hour."""
    budget = workload.budget_amount
    return within(budget, bill) if budget is not None and bill and bill.ends else None


def _bought(workload: Workload, bill: Bill | None, price: Price | None) -> Decimal | None:
    budget = workload.budget_amount
    if budget is None or bill is None or price is None or bill.ends:
        return None
    return hours_bought(budget, bill, price.per_hour)


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
        parts.append(deadline_words(outlook.deadline))
    if outlook.budget:
        parts.append(outlook.budget.word)
    return ", ".join(parts)


def _span(values: Range, factor: float, form: str) -> str:
    return f"{values.low * factor:{form}}–{values.high * factor:{form}}"


def deadline_words(found: DeadlineVerdict) -> str:
    """Whether the deadline holds, and by how many hours."""
    if found.word is InTime.YES:
        return f"in time with {_hours(found.slack_hours)} to spare"
    return f"{found.word} (up to {_hours(-found.slack_hours)} after the deadline)"


def _hours(hours: float) -> str:
    told = f"{hours:,.0f}"
    return f"{told} hour" if told == "1" else f"{told} hours"
