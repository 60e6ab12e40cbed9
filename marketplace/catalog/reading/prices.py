"""Price text of one listing: every amount with the words that belong to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from itertools import islice

from evaluator.prices import Basis, Purchase, TimeUnit
from marketplace.catalog.reading import rates
from marketplace.catalog.reading.money import (
    Locale,
    Money,
    find_bare_amounts,
    find_money,
    read_currency,
)
from marketplace.catalog.text import bounded

MOST_AMOUNTS = 40
"""More amounts than this in the text of one listing are no price list but bait."""


class Role(Enum):
    """What an amount is for. Only a RATE becomes a price."""

    RATE = "rate"
    CAP = "cap"
    DERIVED = "derived"
    OLD = "old"
    FEE = "fee"


@dataclass(frozen=True, slots=True)
class Rate:
    """One amount as printed. `unit` None is not stated; `words` is what was read."""

    amount: Decimal
    currency: str | None
    unit: TimeUnit | None
    basis: Basis
    purchase: Purchase
    term: str
    words: str
    role: Role = Role.RATE
    purchase_stated: bool = False
    per_node: bool = False
    lowest: bool = False
    taxed: bool = False
    tiered: bool = False
    ambiguous_amount: bool = False
    ambiguous_currency: bool = False


@dataclass(frozen=True, slots=True)
class _Piece:
    """One amount of a text with what stands before and after it."""

    money: Money
    before: str
    after: str


NO_LOCALE = Locale()


def read_rates(
    text: str,
    label: str = "",
    locale: Locale = NO_LOCALE,
    *,
    bare: bool = False,
) -> list[Rate]:
    """All rates in a text. `label` is the header or field name; `bare` admits numbers without sign.

    Amounts that are no rent (deposits, fees, prices per GB) come back with their role, so that a
    caller can say why they were not used.
    """
    text, label = bounded(text), bounded(label)
    pieces = _led_by_units(list(_pieces(text, _moneys(text, label, locale, bare))))
    ranged = _without_range_ends(pieces)
    leads = (
        bool(ranged) and _names_purchase(ranged[0].before) and not _names_purchase(ranged[-1].after)
    )
    found = [_rate(piece, text, label, leads) for piece in ranged]
    return _demote_echoes(_share_bases(_share_units(_only_real_tiers(found))), ranged)


def _only_real_tiers(found: list[Rate]) -> list[Rate]:
    """ "Setup, then $900 a month" has one rate: nothing changes with use."""
    rates_only = [rate for rate in found if rate.role is Role.RATE]
    if len(rates_only) > 1 or any(
        re.search(r"\bfirst\s\d|\bup\sto\s\d|\bafter\s", rate.words, re.I) for rate in found
    ):
        return found
    return [replace(rate, tiered=False) for rate in found]


def _share_bases(found: list[Rate]) -> list[Rate]:
    """ "Spot $17.50, on demand $24, per instance": one basis word serves the other purchases."""
    stated = [rate for rate in found if rate.role is Role.RATE and rate.basis is not Basis.UNKNOWN]
    if len({rate.basis for rate in stated}) != 1:
        return found
    bought = {(rate.purchase, rate.term) for rate in stated}
    return [
        replace(rate, basis=stated[0].basis)
        if rate.basis is Basis.UNKNOWN and (rate.purchase, rate.term) not in bought
        else rate
        for rate in found
    ]


def _moneys(text: str, label: str, locale: Locale, bare: bool) -> list[Money]:
    declared = _declared_by(label, locale)
    here = replace(locale, currency=declared) if declared else locale
    found = list(islice(find_money(text, here), MOST_AMOUNTS))
    if found or not bare:
        return found
    amounts = [one for one in find_bare_amounts(text, here) if not _counts_something(text, one)]
    return [_in_cents(one, label) for one in amounts[:1]]


def _declared_by(label: str, locale: Locale) -> str | None:
    """The currency of a header: "Price (EUR)", "$/hr". A bare "$" is as doubtful there as here."""
    named = read_currency(label)
    if named or "$" not in label:
        return named
    return next((money.currency for money in find_money("$1", locale)), None)


def _counts_something(text: str, money: Money) -> bool:
    """ "12 months", "8 x", "3 yr" inside a price cell count time or GPUs."""
    return bool(
        re.match(r"[-\s]{0,2}(?:months?|mo\b|y(?:ea)?rs?\b|days?|hours?\s|gpus?|x\b|×|%)",
                 text[money.end :], re.I)
    )  # fmt: skip


def _in_cents(money: Money, label: str) -> Money:
    if re.search(r"\bcents?\b|\bminor\b", label, re.I):
        return replace(money, amount=money.amount / 100)
    if re.search(r"\bmicros?\b", label, re.I):
        return replace(money, amount=money.amount / 1_000_000)
    return money


def _pieces(text: str, moneys: list[Money]) -> Iterator[_Piece]:
    starts = [0, *(money.end for money in moneys)]
    ends = [*(money.start for money in moneys[1:]), len(text)]
    for money, start, end in zip(moneys, starts, ends, strict=False):
        yield _Piece(money, text[start : money.start], text[money.end : end])


_LEADING_UNIT = re.compile(
    r"\b(?:hourly|daily|weekly|monthly|yearly|annual(?:ly)?|per\s(?:hour|day|week|month|year)"
    r"|stündlich|täglich|monatlich|jährlich|mensuel|par\s(?:heure|mois)|por\s(?:hora|mes)|al\smese?)"
    r"\s?:?\s*$",
    re.I,
)


def _led_by_units(pieces: list[_Piece]) -> list[_Piece]:
    """ "Hourly $14, monthly $9,000": the word before an amount is its own, not its neighbour's."""
    leads = [_LEADING_UNIT.search(piece.before) for piece in pieces]
    if len(pieces) < 2 or not all(leads):
        return pieces
    taken = [len(lead[0]) for lead in leads[1:] if lead] + [0]
    return [
        replace(piece, after=piece.after[: len(piece.after) - length])
        for piece, length in zip(pieces, taken, strict=True)
    ]


_TO = re.compile(r"^\s*(?:[-–—~]|to|bis|à|until|and)\s*$", re.I)
_OPEN_RANGE = re.compile(r"^\s*(?:[-–—]\s*\d|\+(?!\s*\w))")


def _without_range_ends(pieces: list[_Piece]) -> list[_Piece]:
    """ "$1.90 to $3.20 per hour" keeps its low end, marked "from", with the words of the high."""
    kept: list[_Piece] = []
    for piece in pieces:
        between = piece.before
        if kept and _TO.match(between) and piece.money.amount > kept[-1].money.amount:
            kept[-1] = replace(kept[-1], before=kept[-1].before + " from", after=piece.after)
        elif _OPEN_RANGE.match(piece.after):
            kept.append(replace(piece, before=piece.before + " from"))
        else:
            kept.append(piece)
    return kept


def _names_purchase(text: str) -> bool:
    tenure = rates.read_tenure(text)
    return tenure.stated or bool(tenure.term)


def _rate(piece: _Piece, text: str, label: str, leads: bool) -> Rate:
    money = piece.money
    unit = _unit(piece, label)
    tenure = _tenure(piece, label, leads)
    purchase, term, unit = _booking(tenure, unit)
    amount = money.amount
    if unit is None and rates.per_minute(piece.after or label):
        amount, unit = amount * rates.MINUTES_PER_HOUR, TimeUnit.HOUR
    amount, unsure = _regrouped(money, amount, unit)
    return Rate(
        amount, money.currency, unit, _basis(piece, label), purchase, term,
        words=" ".join(f"{label} {text}".split())[:200],
        role=_role(piece),
        purchase_stated=tenure.stated or bool(tenure.term),
        per_node=rates.says_per_node(piece.after) or rates.says_per_node(label),
        lowest=_is_lowest(piece, label, text),
        taxed=bool(rates.includes_tax(piece.after)) or bool(rates.includes_tax(label)),
        tiered=rates.is_tiered(text),
        ambiguous_amount=unsure,
        ambiguous_currency=money.ambiguous_currency,
    )  # fmt: skip


def _unit(piece: _Piece, label: str) -> TimeUnit | None:
    return (
        rates.read_joined_unit(piece.after)
        or rates.read_unit(piece.after)
        or rates.read_unit(piece.before)
        or rates.read_unit(label)
    )


def _basis(piece: _Piece, label: str) -> Basis:
    if re.search(r"\d\s?[x×]\s?$", piece.before):
        return Basis.GPU
    for words in (piece.after, label, piece.before):
        basis = rates.read_basis(words)
        if basis is not Basis.UNKNOWN:
            return basis
    return Basis.UNKNOWN


def _tenure(piece: _Piece, label: str, leads: bool) -> rates.Tenure:
    """Words before an amount name its purchase when the text begins with such words."""
    near = re.split(r"\(?\b(?:save|saving|discount)\b", piece.before if leads else piece.after)[0]
    for words in (near, label):
        tenure = rates.read_tenure(words)
        if tenure.stated or tenure.term:
            return tenure
    return rates.Tenure(Purchase.ON_DEMAND, stated=False)


def _booking(tenure: rates.Tenure, unit: TimeUnit | None) -> tuple[Purchase, str, TimeUnit | None]:
    """A term beside an hourly rate is a reservation; a term beside no unit is a lump sum."""
    if unit is TimeUnit.TERM:
        return tenure.purchase, tenure.term or "1 year", unit
    if tenure.term and unit is None:
        return tenure.purchase, tenure.term, TimeUnit.TERM
    if tenure.term and tenure.purchase is Purchase.ON_DEMAND and not tenure.stated:
        return Purchase.RESERVED, tenure.term, unit
    return tenure.purchase, tenure.term, unit


_LONG = frozenset({TimeUnit.DAY, TimeUnit.WEEK, TimeUnit.MONTH, TimeUnit.TERM})


def _regrouped(money: Money, amount: Decimal, unit: TimeUnit | None) -> tuple[Decimal, bool]:
    """ "$2.990 a month" is hardly 2.99: three digits after a point group thousands there."""
    exponent = amount.as_tuple().exponent
    looks_grouped = re.search(r"(?<![\d.,])[1-9]\d{0,2}\.\d{3}(?!\d)", money.words)
    if unit in _LONG and exponent == -3 and looks_grouped:
        return amount * 1000, True
    return amount, money.ambiguous_amount


def _role(piece: _Piece) -> Role:
    before, after = piece.before, piece.after
    if rates.is_no_rate(before, after):
        return Role.FEE
    if rates.is_old(before):
        return Role.OLD
    if rates.is_cap(before):
        return Role.CAP
    return Role.DERIVED if rates.is_derived(before) else Role.RATE


def _is_lowest(piece: _Piece, label: str, text: str) -> bool:
    return rates.is_from(piece.before) or rates.says_from(label) or rates.is_configured(text)


def _share_units(found: list[Rate]) -> list[Rate]:
    """ "$2.99 on demand, $1.40 spot per hour": one unit word serves prices of other purchases."""
    stated = [rate for rate in found if rate.role is Role.RATE and rate.unit]
    if len({rate.unit for rate in stated}) != 1:
        return found
    bought = {(rate.purchase, rate.term) for rate in stated}
    return [
        replace(rate, unit=stated[0].unit)
        if rate.unit is None and (rate.purchase, rate.term) not in bought
        else rate
        for rate in found
    ]


def _demote_echoes(found: list[Rate], pieces: list[_Piece]) -> list[Rate]:
    """ "$2407.80/mo ($3.583/hr)": an amount in brackets in another unit repeats the first."""
    settled: list[Rate] = []
    for rate, piece in zip(found, pieces, strict=True):
        bracket = piece.before.rstrip().endswith(("(", "["))
        first = settled[0] if settled else None
        echoes = (
            first
            and first.role is Role.RATE
            and bracket
            and first.unit
            and rate.unit
            and rate.unit is not first.unit
        )
        settled.append(replace(rate, role=Role.DERIVED) if echoes else rate)
    return settled
