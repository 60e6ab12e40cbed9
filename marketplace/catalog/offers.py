"""From rates as printed to the prices of one machine, and what stays doubtful about them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from evaluator.findings import Code, Finding, finding
from evaluator.prices import Basis, Purchase, Quote, TimeUnit
from marketplace.catalog.reading import rates
from marketplace.catalog.reading.labels import Attribute as A
from marketplace.catalog.reading.money import Locale, read_currency, read_declared_currency
from marketplace.catalog.reading.prices import Rate, Role, read_rates
from marketplace.catalog.records import Cell, Record
from marketplace.catalog.text import bounded

LOWEST, HIGHEST = Decimal("0.000001"), Decimal(10) ** 10
"""Outside of this an amount is a slip of the pen, whatever it buys."""

_HOURLY = frozenset({TimeUnit.SECOND, TimeUnit.HOUR, TimeUnit.DAY})


@dataclass(frozen=True, slots=True)
class PriceContext:
    """What notes, captions and fields say of all prices under them."""

    currency: str | None = None
    unit: TimeUnit | None = None
    basis: Basis = Basis.UNKNOWN
    taxed: bool = False
    words: str = ""


NO_CONTEXT = PriceContext()


@dataclass(frozen=True, slots=True)
class Offers:
    """Prices of one machine. `refusal` says why the whole row is not believed."""

    quotes: tuple[Quote, ...] = ()
    findings: tuple[Finding, ...] = ()
    refusal: Finding | None = None


# --- what is said of all prices

_SPEAKS_OF_PRICES = re.compile(
    r"\b(?:prices?|rates?|pricing|amounts|preise?|prix|dollars?|tarifs?|ceny|all\scosts)\b|[$€£₹]\s?/",
    re.I,
)
_SOME_ONLY = re.compile(
    r"\b(?:marked|labelled|labeled|where|some|unless|with\san?|from|starting|may)\b", re.I
)


def read_context(notes: Iterable[str]) -> PriceContext:
    """The first note that says something wins. "Rates marked /GPU" speaks of some prices only."""
    context = PriceContext()
    for note in notes:
        for sentence in re.split(r"(?<=[.;!])\s", bounded(note)):
            if _SPEAKS_OF_PRICES.search(sentence) and not _SOME_ONLY.search(sentence):
                context = joined(context, _read_sentence(sentence))
    return context


def _read_sentence(sentence: str) -> PriceContext:
    return PriceContext(
        read_declared_currency(sentence),
        rates.read_unit(sentence) if re.search(r"\bper\b|/|ly\b|pro\b|par\b", sentence) else None,
        rates.read_basis(sentence),
        rates.includes_tax(sentence) is True,
        sentence[:160],
    )


def joined(first: PriceContext, second: PriceContext) -> PriceContext:
    """What the first says, and of the second only what the first leaves open."""
    return PriceContext(
        first.currency or second.currency,
        first.unit or second.unit,
        first.basis if first.basis is not Basis.UNKNOWN else second.basis,
        first.taxed or second.taxed,
        first.words or second.words,
    )


def context_of(record: Record, page: PriceContext) -> PriceContext:
    """Fields of the record itself, then its notes, then the page's."""
    fields = PriceContext(
        next((one for cell in record.of(A.CURRENCY) if (one := read_currency(cell.text))), None),
        next((one for cell in record.of(A.UNIT) if (one := rates.read_unit(cell.text))), None),
        _first_basis(_field_basis(cell.text) for cell in record.of(A.BASIS, A.UNIT)),
    )
    return joined(joined(fields, read_context(record.notes)), page)


def _first_basis(read: Iterable[Basis]) -> Basis:
    return next((one for one in read if one is not Basis.UNKNOWN), Basis.UNKNOWN)


def _field_basis(text: str) -> Basis:
    """A field that holds nothing but the basis: "instance", "per_gpu", "GPU"."""
    words = bounded(text).lower().replace("_", " ")
    read = rates.read_basis(words)
    return read if read is not Basis.UNKNOWN else rates.read_basis(f"per {words}")


# --- rates of one record


def read_offers(record: Record, context: PriceContext) -> list[Rate]:
    """Every rate of the record with the context filled in."""
    here = context_of(record, context)
    locale = Locale(record.language, here.currency)
    found = [rate for cell in record.cells for rate in _rates_of(cell, locale)]
    tenure = next((rates.read_tenure(cell.text) for cell in record.of(A.PURCHASE)), None)
    return [_in_context(rate, here, tenure) for rate in _own_units(found)]


def _rates_of(cell: Cell, locale: Locale) -> list[Rate]:
    if cell.attribute is A.PRICE:
        return read_rates(cell.text, cell.label, locale, bare=True)
    if cell.attribute in (None, A.TITLE, A.BASIS, A.PURCHASE, A.UNIT, A.URL):
        return read_rates(cell.text, "", locale)
    return []


def _own_units(found: list[Rate]) -> list[Rate]:
    """A rate per GPU without unit repeats its neighbour's: "$11.92/hr" beside "$1.49 per GPU"."""
    units = {rate.unit for rate in found if rate.unit and rate.role is Role.RATE}
    if len(units) != 1:
        return found
    unit = next(iter(units))
    return [
        replace(rate, unit=unit)
        if rate.unit is None and rate.role is Role.RATE and rate.basis is not Basis.UNKNOWN
        else rate
        for rate in found
    ]


def _in_context(rate: Rate, here: PriceContext, tenure: rates.Tenure | None) -> Rate:
    if tenure and not rate.purchase_stated:
        rate = replace(rate, purchase=tenure.purchase, term=rate.term or tenure.term)
    return replace(
        rate,
        unit=rate.unit or here.unit,
        basis=rate.basis if rate.basis is not Basis.UNKNOWN else here.basis,
        currency=rate.currency or (None if rate.ambiguous_currency else here.currency),
        taxed=rate.taxed or (here.taxed and rates.includes_tax(rate.words) is not False),
    )


# --- one price for each way to buy

Group = tuple[Purchase, str, TimeUnit | None]


def settle(found: Sequence[Rate], gpu_count: int | None, nodes: int = 1) -> Offers:
    """The prices that the rates make together, or the contradiction that none of them survives."""
    found = [_of_all_nodes(rate, nodes) for rate in found]
    usable = [rate for rate in found if rate.role is Role.RATE and rate.amount != 0]
    usable = usable or [rate for rate in found if rate.role is Role.DERIVED and rate.amount != 0]
    for rate in usable:
        if not LOWEST <= rate.amount <= HIGHEST:
            value = f"{rate.amount} ({rate.words})"
            expected = f"{LOWEST} to {HIGHEST}"
            return Offers(
                refusal=finding(
                    Code.VALUE_OUT_OF_RANGE, field="price", value=value, expected=expected
                )
            )
    groups: dict[Group, list[Rate]] = {}
    for rate in usable:
        groups.setdefault((rate.purchase, rate.term, rate.unit), []).append(rate)
    chosen, findings = [], []
    for group in groups.values():
        kept, doubt, refusal = _one_price(group, gpu_count)
        if refusal:
            return Offers(refusal=refusal)
        chosen.append(_with_basis(kept, gpu_count))
        findings.extend(doubt)
    return _offers(chosen, findings, gpu_count)


def _one_price(
    group: list[Rate], gpu_count: int | None
) -> tuple[Rate, list[Finding], Finding | None]:
    """One way to buy, printed once or more often: whole machine, per GPU, tiers."""
    whole = [rate for rate in group if rate.basis is not Basis.GPU]
    each = [rate for rate in group if rate.basis is Basis.GPU]
    if whole and each and (gpu_count or 0) > 1:
        return _compare(whole, each[0], gpu_count or 1)
    pool = whole or each
    best = _dearest_tier(pool)
    rivals = {rate.amount for rate in pool if not rate.tiered} - {best.amount}
    if rivals and not best.tiered:
        words = ", ".join(str(amount) for amount in sorted({*rivals, best.amount}))
        return best, [finding(Code.CONFLICTING_VALUES, words=f"prices {words}")], None
    stated = next((rate for rate in pool if rate.basis is not Basis.UNKNOWN), best)
    return (
        replace(best, basis=best.basis if best.basis is not Basis.UNKNOWN else stated.basis),
        [],
        None,
    )


def _dearest_tier(pool: list[Rate]) -> Rate:
    """An introductory or volume rate ends: the dearest tier is what a long run pays."""
    tiers = [rate for rate in pool if rate.tiered]
    return max(tiers, key=lambda rate: rate.amount) if tiers else pool[0]


def _compare(
    whole: list[Rate], each: Rate, gpu_count: int
) -> tuple[Rate, list[Finding], Finding | None]:
    """A rate per GPU proves or refutes the machine's rate, up to the rounding of its last digit."""
    product = each.amount * gpu_count
    rounding = Decimal(1).scaleb(int(each.amount.as_tuple().exponent)) * gpu_count
    for rate in whole:
        if abs(rate.amount - product) <= max(rounding, product / 200):
            return replace(rate, basis=Basis.MACHINE), [], None
    if any(rate.amount == each.amount for rate in whole):
        return each, [], None
    words = f"{whole[0].amount} per machine is not {gpu_count} x {each.amount} = {product}"
    return each, [], finding(Code.CONFLICTING_VALUES, words=words)


def _of_all_nodes(rate: Rate, nodes: int) -> Rate:
    """A node's rate counts once for each node of the rental; its words stay as printed."""
    if nodes > 1 and rate.per_node and rate.basis is Basis.MACHINE:
        return replace(rate, amount=rate.amount * nodes, words=f"{nodes} nodes, each {rate.words}")
    return rate


def _with_basis(rate: Rate, gpu_count: int | None) -> Rate:
    """One GPU is the machine."""
    if gpu_count == 1 and rate.basis is Basis.UNKNOWN:
        return replace(rate, basis=Basis.MACHINE)
    return rate


def _offers(chosen: list[Rate], findings: list[Finding], gpu_count: int | None) -> Offers:
    priced = [rate for rate in chosen if rate.unit is not None]
    unpriced = [rate for rate in chosen if rate.unit is None]
    findings = [
        *findings,
        *(one for rate in priced for one in _doubts(rate, gpu_count)),
        *(finding(Code.UNIT_UNKNOWN, words=rate.words[:120]) for rate in unpriced),
        *_gaps(priced),
    ]
    return Offers(tuple(_quotes(priced)), tuple(dict.fromkeys(findings)))


def _quotes(priced: list[Rate]) -> Iterator[Quote]:
    """Hourly and monthly rates of one purchase are two prices: the longer unit is its own term."""
    seen: set[tuple[Purchase, str]] = set()
    for rate in sorted(priced, key=lambda one: _UNIT_ORDER.index(one.unit) if one.unit else 9):
        term = rate.term
        if (rate.purchase, term) in seen and rate.unit:
            term = f"{term} by the {rate.unit.value}".strip()
        seen.add((rate.purchase, term))
        if rate.unit:
            yield Quote(
                rate.amount, rate.currency, rate.unit, rate.basis, rate.purchase, term, rate.words
            )


_UNIT_ORDER = [
    TimeUnit.HOUR,
    TimeUnit.SECOND,
    TimeUnit.DAY,
    TimeUnit.WEEK,
    TimeUnit.MONTH,
    TimeUnit.TERM,
]


def _doubts(rate: Rate, gpu_count: int | None) -> Iterator[Finding]:
    words = rate.words[:120]
    if rate.basis is Basis.UNKNOWN:
        count = gpu_count or "several"
        yield finding(Code.BASIS_UNKNOWN, price=words, gpu_count=count)
    if rate.lowest:
        yield finding(Code.PRICE_FROM, words=words)
    if rate.taxed:
        yield finding(Code.TAX_INCLUDED, words=words)
    if rate.tiered:
        yield finding(Code.TIERED_PRICE, words=words)
    if rate.ambiguous_amount:
        yield finding(Code.AMOUNT_AMBIGUOUS, words=words)
    if rate.ambiguous_currency and rate.currency is None:
        yield finding(Code.CURRENCY_AMBIGUOUS, words=words)
    elif rate.currency is None:
        yield finding(Code.CURRENCY_UNKNOWN, amount=rate.amount)


def _gaps(priced: list[Rate]) -> Iterator[Finding]:
    if not priced:
        yield finding(Code.PRICE_MISSING)
        return
    if not any(rate.purchase is Purchase.ON_DEMAND for rate in priced):
        kinds = " and ".join(sorted({rate.purchase.value for rate in priced}))
        yield finding(Code.NO_ON_DEMAND_PRICE, purchase=kinds)
    if not any(rate.unit in _HOURLY for rate in priced) and priced[0].unit:
        yield finding(Code.NOT_HOURLY, unit=priced[0].unit.value)
