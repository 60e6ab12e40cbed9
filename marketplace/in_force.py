"""All prices in force. After a change only those that differ are read, as in `stock`."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from threading import Lock

import numpy as np
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from evaluator.offer_table import Coded
from evaluator.prices import Quote
from marketplace.bulk import FEW, Digest, columns_of, found_in, in_parts, parts_of, uncollected
from marketplace.listings import quote_of
from marketplace.models import Price
from marketplace.words import Column, Told

QUOTE = ("amount_text", "currency", "unit", "basis", "purchase", "term", "words")
AMOUNT = Cast("amount", TextField())
DIGEST = Digest("amount", "listing_id", *QUOTE[1:])
PLACES = Decimal("1e-8")
"""As prices are stored; a text of SQLite leaves out zeros at the end."""


@dataclass(frozen=True, slots=True, eq=False)
class InForce:
    """In the order in which they were written: the key, the listing and the quote of each.

    `joined` counts prices that were read since all were: quotes hold what stood there before.
    """

    keys: Column
    digests: Column
    listings: Column
    quotes: Coded
    joined: int = 0

    @classmethod
    def whole(cls) -> InForce:
        return _read([_standing()])

    @uncollected()
    def renewed(self) -> InForce:
        """As they stand now; the same where nothing differs."""
        if not len(self.keys):
            return InForce.whole()
        rows = _standing().annotate(digest=DIGEST)
        keys, digests = columns_of(rows, pk=np.int64, digest=np.int64)
        at, same = found_in((self.keys, self.digests), (keys, digests))
        new = keys[~same]
        if len(new) > len(self.keys) * FEW or self.joined + len(new) > len(keys):
            return InForce.whole()
        if len(keys) == len(self.keys) and not len(new):
            return self
        return self._with(
            at[same], _read([_standing().filter(pk__in=part) for part in in_parts(new)])
        )

    def _with(self, rows: Column, other: InForce) -> InForce:
        """Some of these among the others."""
        keys = np.append(self.keys[rows], other.keys)
        order = np.argsort(keys, kind="stable")
        return InForce(
            keys[order],
            np.append(self.digests[rows], other.digests)[order],
            np.append(self.listings[rows], other.listings)[order],
            self.quotes.at_rows(rows).followed_by(other.quotes.each()).at_rows(order),
            self.joined + len(other.keys),
        )


def _standing() -> QuerySet[Price]:
    return Price.objects.filter(superseded_at=None)


@uncollected()
def _read(queries: list[QuerySet[Price]]) -> InForce:
    keys, told = [np.empty((0, 3), dtype=np.int64)], Told()
    for query in queries:
        rows = query.order_by("pk").annotate(digest=DIGEST, amount_text=AMOUNT)
        for part in parts_of(rows.values_list("pk", "digest", "listing_id", *QUOTE)):
            key, digest, listing, *said = zip(*part, strict=True)
            keys.append(np.array([key, digest, listing], dtype=np.int64).T)
            told.add(zip(*said, strict=True))
    quotes = Coded(told.met, told.number).read_as(lambda said: _quote(*said))
    key, digest, listing = np.concatenate(keys).T
    return InForce(key, digest, listing, quotes)


def _quote(amount: str, *rest: str) -> Quote:
    return quote_of(Decimal(amount).quantize(PLACES), *rest)


_lock = Lock()
_held: list[InForce] = []


def in_force() -> InForce:
    """As they stand now."""
    with _lock:
        _held[:] = [_held[0].renewed() if _held else InForce.whole()]
        return _held[0]


def forget_prices() -> None:
    with _lock:
        _held.clear()
