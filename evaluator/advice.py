"""A candidate in five answers: what to rent, how to launch it, what it costs, when it ends, and
what to check first. Plain text, for a terminal, a page or a mail.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from evaluator.affordable import BudgetVerdict, BudgetWord, break_even
from evaluator.bills import RESTARTS, WORK, Bill
from evaluator.candidates import Candidate, age_words
from evaluator.facts import Grade
from evaluator.host import HostItem, HostWord, failures
from evaluator.jobs import Workload
from evaluator.launch import LaunchSheet, launch_of
from evaluator.machine import Availability, Machine
from evaluator.outlook import Outlook, deadline_words, queue_words
from evaluator.prices import Quote
from evaluator.ranges import Range
from evaluator.spending import CENT, MILLION, Cost, money
from evaluator.units import MIB


@dataclass(frozen=True, slots=True)
class Advice:
    """Five answers, each at least a sentence. `commands` is shell text, empty where none is."""

    rent: str
    launch: str
    commands: str
    cost: str
    ends: str
    check: str

    @property
    def answers(self) -> tuple[tuple[str, str], ...]:
        return (
            ("Rent", self.rent),
            ("Launch", self.launch),
            ("Cost", self.cost),
            ("Ends", self.ends),
            ("Check first", self.check),
        )

    @property
    def text(self) -> str:
        """All of it, the commands on lines of their own."""
        lines = [f"{name}: {words}" for name, words in self.answers]
        return "\n".join((*lines[:2], *self.commands.splitlines(), *lines[2:]))


def advice_of(
    workload: Workload,
    candidate: Candidate,
    machine: Machine | None,
    now: datetime | None = None,
    single: Candidate | None = None,
) -> Advice:
    """The five answers. `machine` gives the commands, `now` the dates; `single` is row 0, which a
    plan on several GPUs is held against.
    """
    sheet = launch_of(workload, candidate.plan.plan, machine) if machine else None
    return Advice(
        rent=" ".join(_rent(candidate, now)),
        launch=_launch(candidate, sheet),
        commands=_commands(sheet) if sheet and candidate.status.serves else "",
        cost=" ".join(_cost(candidate, single)),
        ends=_ends(candidate.outlook, now),
        check=" ".join(_check(candidate, machine)),
    )


# --- what to rent


def _rent(candidate: Candidate, now: datetime | None) -> Iterator[str]:
    offering, plan = candidate.offering, candidate.plan
    seller = offering.provider or "an unnamed provider"
    yield f"{_machines(candidate)} at {seller}, {_place(candidate)}."
    if candidate.rentals > 1:
        yield f"All {candidate.rentals} are needed at once."
    if plan.idle_gpus:
        yield f"{plan.idle_gpus} of its GPUs stay idle and are paid for."
    yield _price(candidate)
    seen = f", seen {age_words(now - offering.seen_at)} ago" if now and offering.seen_at else ""
    yield f"{_stock(offering.availability)}{seen}: a snapshot, not a reservation."
    if not candidate.status.serves:
        yield f"It does not serve as it stands: {'; '.join(_obstacles(candidate))}."


def _stock(availability: Availability) -> str:
    if availability is Availability.UNKNOWN:
        return "The catalog does not say whether it can be had"
    return f"The catalog says {availability.replace('_', ' ')}"


def _machines(candidate: Candidate) -> str:
    verdict = candidate.machine
    count = "an unknown number of" if verdict.gpu_count is None else f"{verdict.gpu_count}"
    each = f"{count} × {verdict.gpu_model or 'an unknown GPU'}"
    if verdict.nodes > 1:
        each = f"{verdict.nodes} machines of {each}"
    name = f" “{candidate.offering.title}”" if candidate.offering.title else ""
    return f"{candidate.rentals} ×{name} ({each})"


def _place(candidate: Candidate) -> str:
    offering, others = candidate.offering, len(candidate.alike)
    place = " ".join(filter(None, (offering.region, offering.zone))) or "region not stated"
    return place + (f" or {others} more place{'s' if others > 1 else ''}" if others else "")


def _price(candidate: Candidate) -> str:
    quote, cost = candidate.rate.quote, candidate.cost_per_hour
    if quote is None:
        return "No price is published."
    currency, doubt = quote.currency or "of an unknown currency", candidate.rate.not_ranked_because
    why = f" It is not comparable: {doubt}." if doubt else ""
    if cost is None:
        return f"Published: {as_published(quote.amount)} {currency} per {quote.unit}.{why}"
    return f"{money(cost)} {currency} per hour for all of it, {_terms(quote)}.{why}"


def _terms(quote: Quote) -> str:
    words = quote.purchase.replace("_", "-")
    return f"{words} for {quote.term}" if quote.term else words


def _obstacles(candidate: Candidate) -> Iterator[str]:
    """Each with what would mend it, where anything would."""
    if candidate.plan.fit.missing_bytes:
        yield candidate.plan.reasons[0].rstrip(".")
    if candidate.plan.link.word.stops:
        yield candidate.plan.link.reason.rstrip(".")
    yield from (_failed(item) for item in failures(candidate.host))
    if not candidate.plan.fit.missing_bytes and candidate.plan.fit.needed is None:
        yield "memory cannot be judged"


def _failed(item: HostItem) -> str:
    remedy = f" ({item.remedy.rstrip('.')})" if item.remedy else ""
    return f"{item.name}: {item.reason.rstrip('.')}{remedy}"


# --- how to launch it


def _launch(candidate: Candidate, sheet: LaunchSheet | None) -> str:
    plan = candidate.plan.plan.label
    if not candidate.status.serves:
        return f"{plan}. No command, as it does not serve. {_mended(candidate)}".rstrip()
    if sheet is None:
        return f"{plan}."
    if sheet.refusal:
        return f"{plan}. No command while it is open: {sheet.refusal.sentence}"
    engine = next((one for one in sheet.engines if one.commands), None)
    if engine is None:
        reasons = "; ".join(f"{one.engine}: {one.unsupported}" for one in sheet.engines)
        return f"{plan}. No engine here runs it: {reasons}"
    return " ".join((f"{plan}, with {engine.engine} {engine.version}.", *sheet.to_fill))


def _mended(candidate: Candidate) -> str:
    """The smallest change that would admit the plan."""
    changes = candidate.plan.changes
    return f"It would: {changes[0].words}" if changes else ""


def _commands(sheet: LaunchSheet) -> str:
    """Where to run it as a comment before each, so that all of it can be pasted."""
    return "\n".join(f"# {one.where}\n{one.text}" for one in sheet.commands)


# --- what it costs


def _cost(candidate: Candidate, single: Candidate | None) -> Iterator[str]:
    outlook, quote = candidate.outlook, candidate.rate.quote
    currency = (quote.currency or "") if quote else ""
    if outlook is None:
        yield "Not timed, so only the price of an hour is known."
        return
    if outlook.bill is None:
        yield "No comparable price, so no cost."
        return
    yield from _bill(outlook, outlook.bill, currency)
    if outlook.budget:
        yield budget_words(outlook.budget, currency)
    if outlook.bought_hours is not None:
        yield f"The budget keeps it for {outlook.bought_hours:,.0f} hours."
    yield from _against(candidate, single, currency)


def _bill(outlook: Outlook, bill: Bill, currency: str) -> Iterator[str]:
    if bill.ends:
        yield f"{span(bill.total)} {currency} in all, {money(bill.total.typical)} expected."
    else:
        yield from _per_token(outlook, currency)
        yield f"Before the first step {span(bill.total)} {currency}."
    parts = ", ".join(f"{line.name} {span(line.cost)}" for line in bill.lines if line.cost)
    yield f"Of that: {parts}."
    for line in bill.lines:
        if line.name in (WORK, RESTARTS):
            yield f"Assumed for {line.name}: {line.assumption}."
    if bill.open:
        yield f"Not counted, as nobody states a price: {' and '.join(bill.open)}."


def _per_token(outlook: Outlook, currency: str) -> Iterator[str]:
    cost, use = outlook.per_million_used, outlook.use
    if cost and use:
        yield f"{span(cost)} {currency} per {MILLION:,} tokens, {use.words}."


def budget_words(found: BudgetVerdict, currency: str) -> str:
    """The word of a budget with what is left or missing at the dear end."""
    over = f"; up to {money(-found.left)} {currency} are missing"
    left = f", {money(found.left)} {currency} to spare"
    beside = f", without {' and '.join(found.open)}" if found.open else ""
    tail = left if found.word is BudgetWord.INSIDE else over
    begin = "It is" if found.word is BudgetWord.INSIDE else "It"
    return f"{begin} {found.word}{tail}{beside}."


def _against(candidate: Candidate, single: Candidate | None, currency: str) -> Iterator[str]:
    """Row 0 as the bigger GPU: from which price on it would be the cheaper way."""
    mine, other = candidate.outlook, single.outlook if single else None
    gpus = candidate.plan.plan.gpus
    if single is None or single is candidate or not mine or not other or gpus == 1:
        return
    same = candidate.rate.ranked and single.rate.ranked
    price = single.cost_per_hour if same else None
    found = break_even(other.rate.low, price, mine.rate.low, candidate.cost_per_hour, gpus)
    if found.big_below is None:
        return
    verdict = {True: "is cheaper per token", False: "is dearer per token", None: "would win"}
    yield (
        f"One {single.machine.gpu_model} (row 0) {verdict[found.wins]}: it wins below "
        f"{money(found.big_below)} {currency} per hour."
    )


# --- when it ends


def _ends(outlook: Outlook | None, now: datetime | None) -> str:
    if outlook is None:
        return "Not timed."
    if outlook.hours is None:
        return _ready(outlook)
    words = f"{_hours(outlook.hours)} after the rental starts{_dates(outlook.hours, now)}."
    if outlook.deadline:
        words += f" The deadline: {deadline_words(outlook.deadline)}."
    return words + (f" Conditional: {outlook.widest}." if outlook.conditional else "")


def _ready(outlook: Outlook) -> str:
    """Of a server, or of a training whose end the workload does not state."""
    end = "Whenever you stop it" if outlook.ttft else "The workload states no tokens_to_train"
    if outlook.bill is None:
        return f"{end}."
    queue = f" {queue_words(outlook.queue)}." if outlook.queue else ""
    words = f"{end}; the first step comes {_hours(outlook.bill.hours)} after the rental starts."
    return words + queue


def _hours(hours: Range) -> str:
    return f"{_number(hours.low)} to {_number(hours.high)} hours"


def _number(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= PLAIN_FROM else f"{hours:.1f}"


PLAIN_FROM = 10
MOST_DAYS = 36_500
"""A date later than a century from now helps nobody, and calendars end."""


def _dates(hours: Range, now: datetime | None) -> str:
    if now is None or hours.high > MOST_DAYS * 24:
        return ""
    early, late = (now + timedelta(hours=float(end)) for end in (hours.low, hours.high))
    ends = f"{early:%a %Y-%m-%d %H:%M} and {late:%a %Y-%m-%d %H:%M} {now:%Z}".rstrip()
    return f": between {ends} if it starts now"


# --- what to check first


MEMORY, COUNT, NETWORK = "memory per GPU", "GPU count", "network between machines"
SETTLING = {
    MEMORY: "nvidia-smi --query-gpu=name,memory.total --format=csv",
    COUNT: "nvidia-smi -L",
    "link between GPUs": "nvidia-smi topo -m; nvidia-smi topo -p2p r",
    NETWORK: "all_reduce_perf -b 1G -e 8G -f 2 on two machines",
}
"""The command that raises the fact on which a candidate stands least firmly."""
SETTLING_AMD = {
    MEMORY: "rocm-smi --showmeminfo vram",
    COUNT: "rocm-smi --showtopo",
    "link between GPUs": "rocm-smi --showtopo; amd-smi topology",
    NETWORK: SETTLING[NETWORK],
}


def _check(candidate: Candidate, machine: Machine | None) -> Iterator[str]:
    """The weakest fact and its command, what the first hour costs, then what else is open."""
    weakest, command = candidate.plan.weakest, _command(candidate, machine)
    asks = f"run `{command}`" if command else "ask the provider for it"
    yield f"{weakest.fact}, {weakest.grade.word} so far: {asks}."
    if holds := _holds(candidate, machine):
        yield f"It holds with {holds.rstrip('.')}."
    cost, quote = candidate.cost_per_hour, candidate.rate.quote
    if cost is not None and quote and weakest.grade < Grade.BENCHMARKED:
        yield f"It takes at most an hour, {money(cost)} {quote.currency or ''}".rstrip() + "."
    unknown = [item.name for item in candidate.host if item.word is HostWord.UNKNOWN]
    if unknown:
        yield f"Not stated either: {', '.join(unknown)}."


def _command(candidate: Candidate, machine: Machine | None) -> str:
    fact, link = candidate.plan.weakest.fact, candidate.plan.link
    vendors = {spec.vendor for spec in machine.specs} if machine else set()
    if vendors and "NVIDIA" not in vendors:
        return SETTLING_AMD.get(fact, "") if vendors == {"AMD"} else ""
    if fact not in (MEMORY, COUNT) and link.settled_by:
        return link.settled_by
    return SETTLING.get(fact, "")


def _holds(candidate: Candidate, machine: Machine | None) -> str:
    """What the command has to show for the plan to stand."""
    fact, plan = candidate.plan.weakest.fact, candidate.plan
    count = candidate.machine.gpu_count
    if fact == MEMORY and plan.usable_bytes:
        where = "the GPU" if count == 1 else f"each of {count or 'all'} GPUs"
        return f"{plan.usable_bytes / MIB:,.0f} MiB or more on {where}"
    if fact == COUNT:
        least = candidate.plan.plan.gpus // candidate.plan.plan.nodes
        return f"{count or least} whole GPU{'s' if (count or least) > 1 else ''} or more"
    cleared = plan.link.cleared_by
    return cleared[:1].lower() + cleared[1:]


# --- money


def as_published(amount: Decimal) -> str:
    """Every digit that was read, none that the storage added, and cents at least."""
    cents = amount.quantize(CENT)
    return f"{cents:,.2f}" if cents == amount else f"{amount.normalize():,f}"


def span(cost: Cost | None) -> str:
    """Low to high; one figure where both read alike."""
    if cost is None:
        return "not stated"
    low, high = money(min(cost.low, cost.high)), money(max(cost.low, cost.high))
    return low if low == high else f"{low} to {high}"
