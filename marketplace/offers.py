"""All current listings as the evaluator's offers: columns of the shelf, and the prices in force."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import lru_cache
from typing import Any

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet, TextField
from django.db.models.functions import Cast
from django.utils import timezone

from evaluator.hardware import Column
from evaluator.machine import Availability, Machine
from evaluator.offer_table import Coded, OfferTable
from marketplace.fleets import forget_fleet
from marketplace.in_force import InForce, forget_prices, in_force
from marketplace.listings import doubts_in, own_facts
from marketplace.locks import PRICE, lock_in, with_lock
from marketplace.machines import HARDWARE, is_ambiguous, machine_of, plain_machine
from marketplace.models import Fact, Listing
from marketplace.shelf import forget_shelf
from marketplace.stock import Stock
from marketplace.words import Words

NOTHING = "{}"
"""The text of corrections where there are none."""


def offers_on(stock: Stock) -> tuple[OfferTable, dict[str, Machine]]:
    """What is offered now, and the machine of every configuration: the very table of the last time
    where listings and prices say the same.
    """
    table = _table(stock, in_force(), timezone.now().date())  # locks end with a day
    named = table.configuration
    return table, machines_on(stock, (named.values[at] for at in np.unique(named.number)))


@lru_cache(maxsize=1)
def _table(held: Stock, prices: InForce, day: date) -> OfferTable:
    rows = np.flatnonzero(~held.gone & (held.words["configuration"].number >= 0))
    rows = rows[_by_place(held, rows)]
    quotes, asker = _quotes(held, rows, prices)
    said = {name: _texts(held.words[name]).at_rows(rows) for name in AS_THEY_ARE}
    quantity = held.numbers["quantity"][rows]
    return OfferTable(
        key=held.keys[rows],
        provider=_texts(held.words["provider_name"]).at_rows(rows),
        title=_titles(held, rows),
        availability=_texts(held.words["availability"]).at_rows(rows).read_as(Availability),
        quantity=Coded.of(np.nan_to_num(quantity, nan=-1).tolist()).read_as(_whole),
        findings=_texts(held.words["findings"]).at_rows(rows).read_as(doubts_in),
        seen=held.numbers["seen"][rows],
        quotes=quotes,
        asker=asker,
        **said,
    )


AS_THEY_ARE = ("configuration", "region", "zone", "url")


def _texts(words: Words) -> Coded:
    """What is not known is an empty text."""
    unknown = words.number < 0
    if not unknown.any():
        return Coded(words.names, words.number)
    return Coded((*words.names, ""), np.where(unknown, len(words.names), words.number))


def _whole(number: float) -> int | None:
    return None if number < 0 else int(number)


def _titles(held: Stock, rows: Column) -> Coded:
    """The provider's own name where a listing has no title."""
    titles = _texts(held.words["title"]).at_rows(rows)
    if "" not in titles.values:
        return titles
    names = _texts(held.words["sku"]).at_rows(rows)
    return Coded.of(title or name for title, name in zip(titles.each(), names.each(), strict=True))


# --- in the order of their place


def _by_place(held: Stock, rows: Column) -> Column:
    """As `evaluator.offers.place_of` puts them."""
    named = [_texts(held.words[name]).at_rows(rows) for name in ("zone", "region")]
    named += [_titles(held, rows), _texts(held.words["provider_name"]).at_rows(rows)]
    keys = np.argsort(np.argsort(held.keys[rows].astype(np.str_)))
    return np.lexsort([keys, *map(_rank, named)])


def _rank(column: Coded) -> Column:
    """The place of each row's text among all."""
    place = np.empty(len(column.values), dtype=np.int64)
    place[sorted(range(len(place)), key=column.values.__getitem__)] = np.arange(len(place))
    return place[column.number]


# --- prices


def _quotes(held: Stock, rows: Column, prices: InForce) -> tuple[Coded, Column]:
    """All prices in force, those of one offer together, and the offer of each."""
    listing, quotes = prices.listings, prices.quotes
    place = np.full(len(held.keys), -1)
    place[rows] = np.arange(len(rows))
    at = np.searchsorted(held.keys, listing).clip(max=len(held.keys) - 1)
    asker = np.where(held.keys[at] == listing, place[at], -1) if len(place) else listing * 0 - 1
    order = np.argsort(asker, kind="stable")[np.count_nonzero(asker < 0) :]
    return _with_locks(held, rows, quotes.at_rows(order), asker[order])


def _with_locks(held: Stock, rows: Column, quotes: Coded, asker: Column) -> tuple[Coded, Column]:
    """The same with locked prices in place of all on-demand ones."""
    changed = {
        row: with_lock([quotes.at(at) for at in _those_of(asker, row)], corrections)
        for row, corrections in _locked(held.words["corrections"], rows)
    }
    if not changed:
        return quotes, asker
    left = ~np.isin(asker, list(changed))
    askers = np.append(asker[left], np.repeat(list(changed), list(map(len, changed.values()))))
    order = np.argsort(askers, kind="stable")
    extra = (quote for those in changed.values() for quote in those)
    return quotes.at_rows(left).followed_by(extra).at_rows(order), askers[order]


def _those_of(asker: Column, row: int) -> range:
    return range(*np.searchsorted(asker, [row, row + 1]).tolist())


def _locked(corrections: Words, rows: Column) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Rows under a lock on their price."""
    read = [{} if text == NOTHING else json.loads(text) for text in corrections.names]
    holds = np.array([*(lock_in(one, PRICE) is not None for one in read), False], dtype=bool)
    number = corrections.number[rows]
    return ((row, read[number[row]]) for row in np.flatnonzero(holds[number]).tolist())


# --- machines


def machines_on(held: Stock, wanted: Iterable[str]) -> dict[str, Machine]:
    """By configuration of what is offered. Any listing of one stands for all: the evaluator treats
    them alike. One that has gone does not: what is known of it may have expired since.
    """
    words, offered = held.words["configuration"], np.flatnonzero(~held.gone)
    numbers, firsts = np.unique(words.number[offered], return_index=True)
    first = dict(zip(numbers.tolist(), held.keys[offered[firsts]].tolist(), strict=True))
    number = {name: at for at, name in enumerate(words.names)}
    keys = {first[number[name]]: name for name in wanted}
    found = dict(_plain(Listing.objects.filter(pk__in=keys)))
    others = Listing.objects.filter(pk__in=keys.keys() - found.keys())
    found |= {row.pk: machine_of(row) for row in others.prefetch_related(own_facts())}
    return {keys[key]: machine for key, machine in found.items()}


def _plain(rows: QuerySet[Listing]) -> Iterator[tuple[int, Machine]]:
    """Those of which the catalog's word is all that is known."""
    facts = Fact.objects.filter(listing=OuterRef("pk"), evidence=None)
    plain = rows.filter(~Exists(facts), corrections={}).order_by()
    text = Cast("findings", TextField())
    for key, doubts, *hardware in plain.values_list("pk", text, *HARDWARE):
        yield key, plain_machine(tuple(hardware), _is_ambiguous(doubts))


@lru_cache(maxsize=1024)
def _is_ambiguous(findings: str) -> bool:
    return is_ambiguous(json.loads(findings))


def forget_catalog() -> None:
    """As a process that has just begun."""
    forget_shelf()
    forget_fleet()
    forget_prices()
    _table.cache_clear()
    plain_machine.cache_clear()
