"""Prices that changed more than prices do: a comma that moved, a month read as an hour.

Such a row is set aside and its last good price stays, until a person has looked at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from evaluator.findings import Code, Finding, finding
from evaluator.prices import Basis, Purchase
from marketplace.models import Listing, Price, Source
from marketplace.sync.prices import Rate

JUMP = 4
"""Times the price before, or a part of it. A sale halves a price; a slip moves it tenfold."""

FAR = 5
"""Times the middle of what other sources ask per GPU and hour for the same model, or a part."""

BEYOND = 3
"""Times the dearest of the others, or a part of the cheapest. Old cards are really sold at prices
that differ twentyfold, so the middle alone would set aside true ones."""

ENOUGH_OTHERS = 4
"""Other sources before what they ask says anything. A source that lists a machine in each of its
regions has one vote."""

Terms = tuple[str, str, str]
"""Unit, basis and currency of a price."""

Amount = tuple[Decimal | None, str]


def terms_of(prices: Iterable[Rate]) -> frozenset[Terms]:
    """Of the on-demand prices. What is not said is ""."""
    return frozenset(
        _terms(price.unit, price.basis, price.currency)
        for price in prices
        if price.purchase == Purchase.ON_DEMAND
    )


def _terms(unit: str, basis: str, currency: str) -> Terms:
    return (unit, "" if basis == Basis.UNKNOWN else basis, currency)


def standing_terms(keys: Iterable[int]) -> dict[int, frozenset[Terms]]:
    """What the listings of these keys say now."""
    found: dict[int, set[Terms]] = {}
    prices = Price.objects.filter(
        listing__in=keys, superseded_at=None, purchase=Purchase.ON_DEMAND.value
    )
    for key, *terms in prices.order_by().values_list("listing_id", "unit", "basis", "currency"):
        found.setdefault(key, set()).add(_terms(*terms))
    return {key: frozenset(terms) for key, terms in found.items()}


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What other sources ask per GPU and hour for a model: lowest, middle and highest vote."""

    low: Decimal
    middle: Decimal
    high: Decimal

    def holds(self, rate: Decimal) -> bool:
        near_middle = self.middle / FAR <= rate <= self.middle * FAR
        return near_middle or self.low / BEYOND <= rate <= self.high * BEYOND


def asked_elsewhere(
    source: Source, models: Iterable[str | None]
) -> dict[tuple[str, str], Elsewhere]:
    """By GPU model and currency, where enough other sources offer the model."""
    others = Listing.objects.filter(
        gone_at=None, gpu_count__gt=0, machine_hour_amount__gt=0, gpu_model__in=set(models) - {None}
    ).exclude(source=source)
    rates: dict[tuple[str, str], dict[int, list[Decimal]]] = {}
    columns = ("gpu_model", "machine_hour_currency", "source", "machine_hour_amount", "gpu_count")
    for model, currency, whose, amount, count in others.order_by().values_list(*columns):
        by_source = rates.setdefault((model, currency), {})
        by_source.setdefault(whose, []).append(amount / count)
    votes = {key: [median(asked) for asked in found.values()] for key, found in rates.items()}
    return {
        key: Elsewhere(min(found), median(found), max(found))
        for key, found in votes.items()
        if len(found) >= ENOUGH_OTHERS
    }


class Doubts:
    """Doubts about the prices of one source's rows, looked up for some rows at a time."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._terms: dict[int, frozenset[Terms]] = {}
        self._models: set[str | None] = set()
        self._others: dict[tuple[str, str], Elsewhere] = {}

    def look_up(self, rows: Sequence[Listing]) -> None:
        """Two queries at most: models that were asked about are not asked about again."""
        self._terms = standing_terms([row.pk for row in rows if row.pk])
        models = {row.gpu_model for row in rows} - self._models
        if models:
            self._models |= models
            self._others |= asked_elsewhere(self._source, models)

    def of(self, row: Listing, prices: Sequence[Rate], before: Amount) -> Finding | None:
        return jump(row, prices, before, self._terms.get(row.pk, frozenset()), self._others)


def jump(
    listing: Listing,
    prices: Sequence[Rate],
    before: Amount,
    terms: frozenset[Terms],
    others: Mapping[tuple[str, str], Elsewhere],
) -> Finding | None:
    """Why the new price of a row is not believed, or None.

    `before` and `terms` are those that stand; `listing` has its new amount.
    """
    now: Amount = (listing.machine_hour_amount, listing.machine_hour_currency)
    if now == before and now[0] is not None:
        return None
    return (
        _changed_terms(listing, terms, terms_of(prices))
        or _jumped(before, now)
        or _outlying(listing, now, others)
    )


def _changed_terms(
    listing: Listing, before: frozenset[Terms], now: frozenset[Terms]
) -> Finding | None:
    if listing.gpu_count == 1:
        # The machine is its one GPU, so the two bases mean the same.
        before, now = _of_one_gpu(before), _of_one_gpu(now)
    if not before or not now or any(_agree(one, other) for one in before for other in now):
        return None
    return finding(Code.PRICE_TERMS_CHANGED, before=_words(before), now=_words(now))


def _agree(one: Terms, other: Terms) -> bool:
    """What one of them leaves open is no change."""
    return all(a == b or not a or not b for a, b in zip(one, other, strict=True))


def _of_one_gpu(terms: frozenset[Terms]) -> frozenset[Terms]:
    return frozenset((unit, Basis.MACHINE.value, currency) for unit, _, currency in terms)


def _words(terms: frozenset[Terms]) -> str:
    told = (
        f"{currency or 'no currency'} per {basis or 'machine or GPU'} and {unit}"
        for unit, basis, currency in sorted(terms)
    )
    return " or ".join(told)


def _jumped(before: Amount, now: Amount) -> Finding | None:
    if not before[0] or not now[0] or before[1] != now[1]:
        return None
    if before[0] / JUMP < now[0] < before[0] * JUMP:
        return None
    return finding(Code.PRICE_JUMPED, before=_money(before), now=_money(now))


def _outlying(
    listing: Listing, now: Amount, others: Mapping[tuple[str, str], Elsewhere]
) -> Finding | None:
    amount, currency = now
    asked = others.get((listing.gpu_model or "", currency))
    if amount is None or asked is None or not listing.gpu_count:
        return None
    rate = amount / listing.gpu_count
    if asked.holds(rate):
        return None
    return finding(
        Code.PRICE_OUTLYING,
        now=_money((rate, currency)),
        middle=_money((asked.middle, currency)),
        gpu_model=listing.gpu_model,
    )


def _money(amount: Amount) -> str:
    return f"{(amount[0] or 0):.4f} {amount[1]}"
