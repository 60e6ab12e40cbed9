"""Queries over listings: what is offered now, with its current prices, in few round trips."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any

from django.db.models import Exists, OuterRef, Prefetch, QuerySet, TextField
from django.db.models.functions import Cast
from django.http import Http404

from evaluator.findings import Finding, recall
from evaluator.machine import Availability
from evaluator.offers import Offering
from evaluator.prices import Basis, Purchase, Quote, TimeUnit
from marketplace.locks import with_lock
from marketplace.models import Evidence, Fact, Listing, Price
from marketplace.models.evidence import HAS_EVIDENCE
from marketplace.prepared import Prepared


def current() -> QuerySet[Listing]:
    """Listings that their source still shows, with provider and source joined."""
    return Listing.objects.filter(gone_at__isnull=True).select_related("provider", "source")


def detailed() -> QuerySet[Listing]:
    """Any listing with all that its page shows: source, snapshot, prices, facts."""
    return _joined().prefetch_related(Prefetch("prices", _prices()), own_facts())


def own_facts() -> Prefetch[str]:
    """Facts of the listing itself. Those of the machines rented under it may be thousands."""
    return Prefetch("facts", queryset=_own_facts())


def _joined() -> QuerySet[Listing]:
    rows = Listing.objects.select_related("provider", "source", "seen_in").order_by()
    return rows.defer("seen_in__body", "seen_in__headers", "source__profile")


def _prices() -> QuerySet[Price]:
    return Price.objects.order_by("purchase", "term", "-first_seen")


def _own_facts() -> QuerySet[Fact]:
    return Fact.objects.filter(evidence=None).order_by("name", "-grade", "-as_of")


def detailed_or_404(key: int) -> Listing:
    """One listing as `detailed` gives it, for a page. It knows whether anybody brought evidence."""
    found = _ROW.rows(key)
    if not found:
        raise Http404(f"No listing has the key {key}.")
    (row,) = found
    _hold(row, "prices", _PRICES.rows(key))
    _hold(row, "facts", _FACTS.rows(key) if row.has_own_facts else [])  # type: ignore[attr-defined]
    return row


def _with_hints(key: int) -> QuerySet[Listing]:
    """Most listings have neither facts of their own nor evidence: then nothing more is asked."""
    own = Fact.objects.filter(listing=OuterRef("pk"), evidence=None)
    evidence = Evidence.objects.filter(listing=OuterRef("pk"))
    hints = {"has_own_facts": Exists(own), HAS_EVIDENCE: Exists(evidence)}
    return _joined().filter(pk=key).annotate(**hints)


_ROW = Prepared(_with_hints)
_PRICES = Prepared(lambda key: _prices().filter(listing=key))
_FACTS = Prepared(lambda key: _own_facts().filter(listing=key))


def _hold(row: Listing, name: str, found: list[Any]) -> None:
    """The related rows of that name, as if they had been prefetched."""
    held = getattr(row, name).all()
    held._result_cache, held._prefetch_done = found, True
    for one in found:
        one.listing = row
    row.__dict__.setdefault("_prefetched_objects_cache", {})[name] = held


def current_prices(listings: QuerySet[Any, Any] | Iterable[int]) -> QuerySet[Price]:
    """Prices that are in force for the listings, or for the listings of these keys."""
    return Price.objects.filter(listing__in=listings, superseded_at__isnull=True)


def offerings(listings: QuerySet[Listing]) -> list[Offering]:
    """The listings as the evaluator ranks them: two queries, however many there are."""
    keys = listings.order_by().values("pk")
    quotes = quotes_of(current_prices(keys).order_by("pk"))
    rows = listings.order_by().annotate(**AS_TEXT).values_list(*OFFERING_COLUMNS, *AS_TEXT)
    doubts, locks = cache(doubts_in), cache(json.loads)
    return [
        _offering(dict(zip(OFFERING_COLUMNS, said, strict=True)), quotes, doubts(one), locks(other))
        for *said, one, other in rows
    ]


def doubts_in(text: str) -> tuple[Finding, ...]:
    """The findings of a row, which is read as a text."""
    return tuple(map(recall, json.loads(text)))


def offering_of(row: Listing) -> Offering:
    """One listing that was read with its provider and prices."""
    in_force = sorted((one for one in row.prices.all() if not one.superseded_at), key=_key)
    quotes = tuple(
        quote_of(*(getattr(one, name) for name in QUOTE_COLUMNS[1:])) for one in in_force
    )
    said = {name: getattr(row, name) for name in OFFERING_COLUMNS if name != "provider__name"}
    said["provider__name"] = row.provider.name
    doubts = tuple(map(recall, row.findings))
    return _offering(said, {row.pk: quotes}, doubts, row.corrections)


def _key(row: Price) -> int:
    return row.pk


OFFERING_COLUMNS = (
    "pk",
    "configuration",
    "provider__name",
    "title",
    "sku",
    "region",
    "zone",
    "url",
    "availability",
    "quantity",
    "last_seen",
)
AS_TEXT = {f"{name}_text": Cast(name, TextField()) for name in ("findings", "corrections")}
"""What is nearly always the same in many rows, for each text of it to be read once."""
QUOTE_COLUMNS = ("listing_id", "amount", "currency", "unit", "basis", "purchase", "term", "words")


def _offering(
    row: Mapping[str, Any],
    quotes: Mapping[int, tuple[Quote, ...]],
    doubts: tuple[Finding, ...],
    corrections: Mapping[str, Any],
) -> Offering:
    return Offering(
        key=str(row["pk"]),
        configuration=row["configuration"],
        provider=row["provider__name"],
        title=row["title"] or row["sku"],
        region=row["region"],
        zone=row["zone"],
        url=row["url"],
        quotes=with_lock(quotes.get(row["pk"], ()), corrections),
        availability=Availability(row["availability"]),
        quantity=row["quantity"],
        seen_at=row["last_seen"],
        findings=doubts,
    )


def quotes_of(prices: QuerySet[Price]) -> dict[int, tuple[Quote, ...]]:
    """By the key of the listing, in the order of the prices."""
    found: dict[int, list[Quote]] = defaultdict(list)
    for row in prices.values_list(*QUOTE_COLUMNS):
        listing, *parts = row
        found[listing].append(quote_of(*parts))
    return {listing: tuple(held) for listing, held in found.items()}


def quote_of(
    amount: Decimal, currency: str, unit: str, basis: str, purchase: str, term: str, words: str
) -> Quote:
    return Quote(amount, currency or None, *_meant(unit, basis, purchase), term, words)


@cache
def _meant(unit: str, basis: str, purchase: str) -> tuple[TimeUnit, Basis, Purchase]:
    return TimeUnit(unit), Basis(basis), Purchase(purchase)
