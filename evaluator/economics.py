"""What a plan costs per hour on an offering: whole machines at a rate that says all five parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from evaluator.findings import Code, Finding
from evaluator.jobs import Workload
from evaluator.plans import Plan
from evaluator.prices import Basis, Purchase, Quote, TimeUnit, machine_per_hour

DEFAULT_CURRENCY = "USD"


@dataclass(frozen=True, slots=True)
class Rate:
    """The price that a candidate is shown with.

    `per_hour` is one whole rental for one hour in the quote's currency; None where the quote does
    not say so. `not_ranked_because` is empty exactly when the rate may be compared with others.
    """

    quote: Quote | None
    per_hour: Decimal | None
    not_ranked_because: str = ""

    @property
    def ranked(self) -> bool:
        return not self.not_ranked_because


@dataclass(frozen=True, slots=True)
class Terms:
    """What may be compared: one currency, and the purchase models that the workload accepts."""

    currency: str = DEFAULT_CURRENCY
    purchases: frozenset[Purchase] = frozenset({Purchase.ON_DEMAND})


def terms_of(workload: Workload) -> Terms:
    """Currencies are never converted: the budget's own counts. Spot counts where asked for."""
    spot = {Purchase.SPOT} if workload.needs.spot else set()
    return Terms(
        workload.budget_currency or DEFAULT_CURRENCY, frozenset({Purchase.ON_DEMAND, *spot})
    )


BY_THE_HOUR = frozenset({TimeUnit.SECOND, TimeUnit.HOUR, TimeUnit.DAY})
"""Units in which a machine can be taken for a short job. A month's rate is no hourly offer."""

DOUBTS = {
    Code.PRICE_FROM: "the price is a lowest price",
    Code.AMOUNT_AMBIGUOUS: "the amount can be read in two ways",
    Code.CURRENCY_AMBIGUOUS: "the currency is not certain",
}
"""Catalog findings that leave one of the five parts open."""


def choose_rate(
    quotes: Sequence[Quote],
    gpu_count: int | None,
    terms: Terms,
    findings: Iterable[Finding] = (),
) -> Rate:
    """The lowest comparable rate; else the quote that lacks least, with what it lacks.

    `gpu_count` counts every GPU of the rental.
    """
    doubt = next((DOUBTS[found.code] for found in findings if found.code in DOUBTS), "")
    rates = [_rate(quote, gpu_count, terms, doubt) for quote in quotes]
    comparable = [rate for rate in rates if rate.ranked]
    if comparable:
        return min(comparable, key=lambda rate: rate.per_hour or 0)
    return max(rates, key=_completeness, default=Rate(None, None, "no price is published"))


def _rate(quote: Quote, gpu_count: int | None, terms: Terms, doubt: str) -> Rate:
    per_hour = machine_per_hour(quote, gpu_count)
    return Rate(quote, per_hour, _obstacle(quote, per_hour, terms) or doubt)


def _obstacle(quote: Quote, per_hour: Decimal | None, terms: Terms) -> str:
    """The first part of the price that is missing or not asked for. Empty when none is."""
    if quote.basis is Basis.UNKNOWN:
        return "the rate may be per machine or per GPU"
    if not quote.currency:
        return "no currency is stated"
    if quote.purchase not in terms.purchases:
        return f"only a {quote.purchase.replace('_', '-')} price is published"
    if quote.unit not in BY_THE_HOUR:
        return f"it is booked by the {quote.unit}"
    if per_hour is None:
        return "the rate is per GPU and the number of GPUs is not known"
    if quote.currency != terms.currency:
        return f"it is priced in {quote.currency} and compared in {terms.currency}"
    return ""


def _completeness(rate: Rate) -> tuple[bool, bool, bool, Decimal]:
    """On-demand before others, then rates that have an hourly amount, then the lower one."""
    quote = rate.quote
    on_demand = quote is not None and quote.purchase is Purchase.ON_DEMAND
    hourly = quote is not None and quote.unit in BY_THE_HOUR
    return (on_demand, rate.per_hour is not None, hourly, -(rate.per_hour or Decimal(0)))


def rentals_of(plan: Plan, machines_per_rental: int) -> int:
    """Rentals that hold all machines of a plan. A started rental is paid whole."""
    return -(-plan.nodes // machines_per_rental)


def cost_per_hour(rate: Rate, rentals: int) -> Decimal | None:
    """All rentals for one hour, idle GPUs included, in the currency of the rate."""
    return None if rate.per_hour is None else rate.per_hour * rentals
