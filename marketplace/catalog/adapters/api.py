"""Answers of provider interfaces: each offer becomes a record in words that say every unit.

An adapter of one provider only says which documented field means what. Units, known sizes, counts
and doubts are judged where those of pages are judged, so one set of rules holds for all sources.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from evaluator.findings import Code, Finding, finding
from evaluator.prices import Basis, Purchase, Quote, TimeUnit
from marketplace.catalog.adapters.page import without_repetitions
from marketplace.catalog.base import Batch, Entry, Page, Quarantined, UnreadablePage
from marketplace.catalog.normalise import LeftOut, Outcome, normalise
from marketplace.catalog.reading.labels import Attribute
from marketplace.catalog.reading.names import Aliases
from marketplace.catalog.records import Cell, Origin, Record
from marketplace.catalog.text import clean

HIGHEST_PRICE = Decimal(10) ** 6
LONGEST_RAW = 600

Json = dict[str, Any]


class RefusedOffer(ValueError):
    """A field that cannot be what it says; the row is set aside with the finding."""

    def __init__(self, reason: Finding) -> None:
        super().__init__(reason.sentence)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Rate:
    """A price per hour in the unit of its currency, as the interface documents it."""

    amount: Decimal
    basis: Basis
    purchase: Purchase = Purchase.ON_DEMAND
    term: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """One machine that an interface offers. `raw` is the part of the answer it was read from.

    `vram_label` leaves open what a memory figure counts, where the interface does.
    """

    sku: str
    title: str
    raw: Json
    texts: dict[Attribute, str] = field(default_factory=dict)
    rates: tuple[Rate, ...] = ()
    region: str = ""
    currency: str | None = "USD"
    vram_label: str = "vram per gpu"


Read = Offer | LeftOut | Quarantined
Offers = Callable[[Sequence[Any]], Iterator[Read]]


@dataclass(frozen=True, slots=True)
class ApiAdapter:
    """An `Adapter` for one provider's JSON. `offers` gets the answers of all pages, in order."""

    offers: Offers
    following: Callable[[Page, Any], str | None] = lambda _page, _answer: None
    aliases: Aliases = field(default_factory=dict)

    def next_page(self, page: Page) -> str | None:
        """The next address, where the interface has several. Raises UnreadablePage."""
        return self.following(page, answer_of(page))

    def read(self, pages: Sequence[Page]) -> Batch:
        """Every offer. Raises UnreadablePage for an answer that is not JSON or holds no offer."""
        outcomes = list(self._outcomes([answer_of(page) for page in pages]))
        left = [one.reason for one in outcomes if isinstance(one, LeftOut)]
        kept = [one for one in outcomes if not isinstance(one, LeftOut)]
        if not kept:
            detail = f"Offers: read 0 ({len(left)} left out), expected some."
            raise UnreadablePage(finding(Code.LAYOUT_CHANGED), detail)
        believed, repeated = without_repetitions(kept)
        return Batch(
            entries=tuple(one for one in believed if isinstance(one, Entry)),
            quarantined=tuple(one for one in believed if isinstance(one, Quarantined)),
            left_out={reason: left.count(reason) for reason in sorted(set(left))},
            findings=tuple(repeated),
        )

    def _outcomes(self, answers: Sequence[Any]) -> Iterator[Outcome]:
        for offer in self.offers(answers):
            yield outcome_of(offer, self.aliases) if isinstance(offer, Offer) else offer


def answer_of(page: Page) -> Any:
    """The parsed body. Raises UnreadablePage."""
    try:
        return json.loads(page.body.decode("utf-8-sig", "replace"), parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        detail = f"Read no JSON: {str(error)[:120]}"
        raise UnreadablePage(finding(Code.LAYOUT_CHANGED), detail) from error


def outcome_of(offer: Offer, aliases: Aliases) -> Outcome:
    """The offer's words as everywhere else, its prices as the interface documents them."""
    raw = raw_words(offer.raw)
    if not offer.sku:
        nameless = finding(Code.ROW_UNREADABLE, field="id", value="nothing", expected="a name")
        return Quarantined("", nameless, offer.region, words={"row": raw})
    try:
        quotes = tuple(_quotes(offer))
    except RefusedOffer as refused:
        return Quarantined(offer.sku, refused.reason, offer.region, words={"row": raw})
    outcome = normalise([_record(offer)], aliases=aliases)
    if isinstance(outcome, LeftOut):
        return outcome
    words = {**outcome.words, "row": raw}
    if isinstance(outcome, Quarantined):
        return replace(outcome, words=words)
    return replace(outcome, quotes=quotes, words=words, findings=_findings(outcome, quotes))


def _record(offer: Offer) -> Record:
    cells = tuple(
        Cell(clean(text), _label(attribute, offer), attribute)
        for attribute, text in offer.texts.items()
        if text
    )
    return Record(
        sku=clean(offer.sku)[:200],
        title=clean(offer.title or offer.sku)[:300],
        cells=cells,
        language="en",
        region=clean(offer.region)[:120],
        origin=Origin.STATE,
    )


def _label(attribute: Attribute, offer: Offer) -> str:
    return offer.vram_label if attribute is Attribute.VRAM else attribute.value


def _quotes(offer: Offer) -> Iterator[Quote]:
    for rate in offer.rates:
        if not 0 < rate.amount <= HIGHEST_PRICE:
            raise RefusedOffer(out_of_range("price", rate.amount, f"above 0, to {HIGHEST_PRICE}"))
        yield Quote(
            rate.amount, offer.currency, TimeUnit.HOUR, rate.basis, rate.purchase, rate.term,
            rate.words or f"{rate.amount} {offer.currency or ''} per {rate.basis.value} and hour",
        )  # fmt: skip


_ABOUT_PRICES = frozenset({Code.PRICE_MISSING, Code.NO_ON_DEMAND_PRICE})


def _findings(entry: Entry, quotes: tuple[Quote, ...]) -> tuple[Finding, ...]:
    """The record carried no prices, so what they leave open is said here."""
    others = [one for one in entry.findings if one.code not in _ABOUT_PRICES]
    if not quotes:
        others.append(finding(Code.PRICE_MISSING))
    elif not any(quote.purchase is Purchase.ON_DEMAND for quote in quotes):
        kinds = " and ".join(sorted({quote.purchase.value for quote in quotes}))
        others.append(finding(Code.NO_ON_DEMAND_PRICE, purchase=kinds))
    return tuple(dict.fromkeys(others))


# --- values of an answer


def objects(value: Any) -> Iterator[Json]:
    """The objects of a list; anything else holds none."""
    yield from (one for one in value if isinstance(one, dict)) if isinstance(value, list) else ()


def word(item: Json, *keys: str) -> str:
    """The text under a path of keys, "" where there is none."""
    value: Any = item
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return "" if value is None or isinstance(value, (dict, list, bool)) else clean(str(value))


def number(item: Json, *keys: str) -> Decimal | None:
    """A finite number, written as such or as a text; None where absent, empty or null.

    Raises RefusedOffer for anything else, and for a negative one.
    """
    text = word(item, *keys).replace(",", "")
    if not text:
        return None
    try:
        value = Decimal(text)
    except ArithmeticError:
        value = Decimal("NaN")
    if not value.is_finite() or value < 0 or value.adjusted() > 18:
        raise RefusedOffer(out_of_range(".".join(keys), text, "a number from 0"))
    return value


def positive(item: Json, *keys: str) -> Decimal | None:
    """A number above zero. Zero means "none" in every interface: nothing is free."""
    return number(item, *keys) or None


def whole(item: Json, *keys: str) -> int | None:
    """A count above zero. Raises RefusedOffer for a fraction."""
    value = positive(item, *keys)
    if value is not None and value != int(value):
        raise RefusedOffer(out_of_range(".".join(keys), value, "a whole number"))
    return None if value is None else int(value)


def with_unit(value: Decimal | None, unit: str) -> str:
    """A figure in the words that are read everywhere: 64.5 and "GiB" are "64.5 GiB"."""
    return "" if value is None else f"{value.normalize():f} {unit}"


def rate(
    amount: Decimal | None,
    basis: Basis,
    purchase: Purchase = Purchase.ON_DEMAND,
    term: str = "",
    words: str = "",
) -> tuple[Rate, ...]:
    """One rate, or none where the amount is absent."""
    return () if amount is None else (Rate(amount, basis, purchase, term, words),)


def out_of_range(name: str, value: object, expected: str) -> Finding:
    return finding(Code.VALUE_OUT_OF_RANGE, field=name, value=value, expected=expected)


def each_offer(
    items: Iterable[Json], read: Callable[[Json], Iterable[Offer | LeftOut]], *, name: str
) -> Iterator[Read]:
    """Row by row: one with an odd field is set aside alone. `name` is the key of its id."""
    for item in items:
        try:
            yield from list(read(item))
        except RefusedOffer as refused:
            yield Quarantined(word(item, name), refused.reason, words={"row": raw_words(item)})


def raw_words(item: Json) -> str:
    """The part of the answer as it came, for people who look at a doubtful row."""
    return json.dumps(item, default=str, ensure_ascii=False)[:LONGEST_RAW]
