"""What every offer costs per hour, as columns: prices of one pattern share one judgement.

Whether a price may be compared, and what one unit of it makes per hour, depends on its pattern:
all its parts but the amount. `economics.choose_rate` judges each pattern once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from evaluator.bills import BILLED_HOURS
from evaluator.economics import DOUBTS, Rate, Terms, choose_rate
from evaluator.findings import Finding
from evaluator.hardware import Column
from evaluator.offer_table import OfferTable, together
from evaluator.prices import Purchase, Quote, TimeUnit

PRECISION = 9
"""Decimals of an hourly amount that an order looks at: a billionth of the currency's unit."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A price without its amount, on a rental of so many GPUs, under a doubt of the catalog."""

    quote: Quote
    gpus: int | None
    doubts: tuple[Finding, ...]

    def rate(self, terms: Terms) -> Rate:
        """What an amount of 1 makes."""
        return choose_rate((self.quote,), self.gpus, terms, self.doubts)


@dataclass(frozen=True, slots=True)
class Rates:
    """By offer: one rental for one hour in the currency of the terms, NaN where it has no
    comparable price; the hours by which it is billed; and whether it is of spot capacity.
    """

    per_hour: Column
    billed_hours: Column
    spot: Column

    @property
    def ranked(self) -> Column:
        return ~np.isnan(self.per_hour)


@dataclass(frozen=True, slots=True)
class Prices:
    """Every quote of every offer, those of one offer together: its offer, pattern and amount."""

    offers: int
    offer: Column
    pattern: Column
    amount: Column
    patterns: tuple[Pattern, ...]

    @classmethod
    def of(cls, table: OfferTable, gpus: Column) -> Prices:
        """`gpus` of the rental of each offer, 0 where that is not known."""
        quotes, asker = table.quotes, table.asker
        doubts = table.findings.alike(lambda held: tuple(one.code for one in _doubt(held)))
        alike = together([quotes.alike(_parts), gpus[asker], doubts[asker]])
        _, firsts, pattern = np.unique(alike, return_index=True, return_inverse=True)
        return cls(
            offers=len(table),
            offer=asker,
            pattern=pattern,
            amount=quotes.read(lambda quote: float(quote.amount), float),
            patterns=tuple(
                _pattern(quotes.at(at), int(gpus[asker[at]]), _doubt(table.findings.at(asker[at])))
                for at in firsts
            ),
        )

    def rates(self, terms: Terms) -> Rates:
        """The lowest comparable rate of each offer under the terms of a workload."""
        rates = [pattern.rate(terms) for pattern in self.patterns]
        factors = np.array([_factor(rate) for rate in rates] or [np.nan])
        billed = np.array([_billed(rate) for rate in rates] or [np.nan])
        spot = np.array([_is_spot(rate) for rate in rates] or [False])
        amounts = self.amount * factors[self.pattern] if len(self.amount) else self.amount
        return self._lowest(np.round(amounts, PRECISION), billed, spot)

    def _lowest(self, amounts: Column, billed: Column, spot: Column) -> Rates:
        """Of equal rates the one that is published first."""
        lowest, hours = np.full(self.offers, np.nan), np.full(self.offers, np.nan)
        reclaimed = np.zeros(self.offers, dtype=bool)
        known = np.flatnonzero(~np.isnan(amounts))
        order = known[np.lexsort((-known, -amounts[known]))]
        lowest[self.offer[order]] = amounts[order]
        hours[self.offer[order]] = billed[self.pattern[order]]
        reclaimed[self.offer[order]] = spot[self.pattern[order]]
        return Rates(lowest, hours, reclaimed)


def _doubt(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The first finding that leaves a part of the price open; its words do not matter here."""
    return next(((found,) for found in findings if found.code in DOUBTS), ())


def _parts(quote: Quote) -> Hashable:
    """All parts of a price but the amount and what was printed."""
    return (quote.currency, quote.unit, quote.basis, quote.purchase, quote.term)


def _pattern(quote: Quote, gpus: int, doubts: tuple[Finding, ...]) -> Pattern:
    return Pattern(replace(quote, amount=Decimal(1), words=""), gpus or None, doubts)


def _factor(rate: Rate) -> float:
    return float(rate.per_hour) if rate.ranked and rate.per_hour is not None else np.nan


def _is_spot(rate: Rate) -> bool:
    return rate.quote is not None and rate.quote.purchase is Purchase.SPOT


def _billed(rate: Rate) -> float:
    unit = rate.quote.unit if rate.quote else TimeUnit.HOUR
    return float(BILLED_HOURS.get(unit, Decimal(1)))
