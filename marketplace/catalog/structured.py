"""schema.org Product and Offer blocks (JSON-LD) as records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from evaluator.findings import Code, Finding, finding
from marketplace.catalog.identity import is_safe
from marketplace.catalog.reading.labels import Attribute
from marketplace.catalog.records import Cell, Origin, Record, labelled, slug_of
from marketplace.catalog.text import clean

_CODES = {
    "HUR": "hour", "DAY": "day", "WEE": "week", "MON": "month", "ANN": "year", "SEC": "second",
    "MIN": "minute", "E34": "GB", "E35": "TB", "4L": "MB", "E68": "TB", "GB": "GB", "2P": "KB",
    "AD": "bytes", "C62": "",
}  # fmt: skip
"""UN/CEFACT Recommendation 20 common codes: HUR hour, MON month, ANN year, E34 gigabyte."""
_PRODUCTS = frozenset({"Product", "Service", "IndividualProduct", "ProductModel", "SomeProducts"})
MAX_DEPTH = 12
MAX_RECORDS = 20_000


def read_structured(scripts: tuple[tuple[str, str], ...]) -> tuple[list[Record], list[Finding]]:
    """Products of every block, and a finding for each block that is no JSON."""
    records: list[Record] = []
    findings: list[Finding] = []
    for kind, text in scripts:
        if kind != "application/ld+json":
            continue
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            findings.append(finding(Code.MALFORMED_STRUCTURED_DATA, words=str(error)[:120]))
            continue
        for product in _products(data, 0):
            if len(records) < MAX_RECORDS:
                records.append(_record(product))
    return records, findings


def read_items(items: Iterable[dict[str, Any]]) -> list[Record]:
    """Products among the items of a page's microdata."""
    return [_record(product) for item in items for product in _products(item, 0)][:MAX_RECORDS]


def _products(data: Any, depth: int) -> Iterator[dict[str, Any]]:
    if depth > MAX_DEPTH:
        return
    if isinstance(data, list):
        for item in data:
            yield from _products(item, depth + 1)
    elif isinstance(data, dict):
        if _types(data) & _PRODUCTS:
            yield data
        for key in ("@graph", "itemListElement", "item", "mainEntity", "hasVariant", "itemOffered",
                    "hasOfferCatalog", "makesOffer", "hasPart", "about"):  # fmt: skip
            if key in data:
                yield from _products(data[key], depth + 1)


def _types(data: dict[str, Any]) -> set[str]:
    kinds = data.get("@type", ())
    names = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    return {str(name).rpartition("/")[2] for name in names}


def _record(product: dict[str, Any]) -> Record:
    name, url = _text(product.get("name")), _text(product.get("url"))
    sku = next(
        filter(
            None, (_text(product.get(key)) for key in ("sku", "productID", "mpn", "identifier"))
        ),
        url.rstrip("/").rpartition("/")[2] or slug_of(name),
    )
    return Record(
        sku=sku[:200], title=name, cells=tuple(_cells(product)), language="en",
        url=url if is_safe(url) else "", origin=Origin.STRUCTURED,
    )  # fmt: skip


def _cells(product: dict[str, Any]) -> Iterator[Cell]:
    if description := _text(product.get("description")):
        yield Cell(description)
    for one in _listed(product.get("additionalProperty")):
        label = _text(one.get("name")) or _text(one.get("propertyID"))
        unit = _text(one.get("unitText")) or _CODES.get(_text(one.get("unitCode")), "")
        value = " ".join(
            filter(None, (_text(one.get("value")), unit, _text(one.get("description"))))
        )
        if label and value:
            yield labelled(label, value)
    for offer in _listed(product.get("offers")):
        yield from _offer(offer)


def _offer(offer: dict[str, Any]) -> Iterator[Cell]:
    nested = _listed(offer.get("offers"))
    spans = "lowPrice" in offer and offer.get("lowPrice") != offer.get("highPrice")
    for one in nested:
        # Between a low and a high price each offer is one of several configurations.
        cells = _offer(one)
        yield from (cell for cell in cells if not spans or cell.attribute is not Attribute.PRICE)
    if not nested or spans:
        yield from _price(offer)
    if state := _text(offer.get("availability")):
        yield Cell(state, "availability", Attribute.AVAILABILITY)
    if region := _text(offer.get("areaServed")) or _text(offer.get("availableAtOrFrom")):
        yield Cell(region, "region", Attribute.REGION)


def _price(offer: dict[str, Any]) -> Iterator[Cell]:
    name = " ".join(filter(None, (_text(offer.get("name")), _text(offer.get("category")))))
    specifications = _listed(offer.get("priceSpecification")) or [offer]
    for one in specifications:
        low = one.get("lowPrice", one.get("minPrice", offer.get("lowPrice")))
        amount = _text(one.get("price", offer.get("price") if len(specifications) == 1 else None))
        currency = _text(one.get("priceCurrency")) or _text(offer.get("priceCurrency"))
        amount, mark = (amount, "") if amount else (_text(low), "from ")
        if amount and _is_number(amount):
            words = f"{mark}{currency} {amount}{_unit(one)}{_tax(one)}".strip()
            yield Cell(words, f"price {name} {_text(one.get('name'))}".strip(), Attribute.PRICE)


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).replace("-", "", 1).isdigit() and text.isascii()


def _unit(specification: dict[str, Any]) -> str:
    quantity = specification.get("referenceQuantity") or specification.get("eligibleDuration")
    holder = quantity if isinstance(quantity, dict) else specification
    code = _text(holder.get("unitCode")) or _text(specification.get("billingDuration"))
    words = _text(holder.get("unitText")).lower()[:60]
    unit = _CODES.get(code.upper()) or words
    # "per machine per hour" beside the code of an hour says what the code leaves open.
    more = f" {words}" if words.startswith("per ") and words != unit else ""
    return f" / {unit}{more}" if unit else ""


def _tax(specification: dict[str, Any]) -> str:
    return " incl. VAT" if specification.get("valueAddedTaxIncluded") is True else ""


def _listed(value: Any) -> list[dict[str, Any]]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items[:500] if isinstance(item, dict)]


def _text(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("name") or value.get("value") or value.get("@id")
    if isinstance(value, bool) or value is None or isinstance(value, (list, dict)):
        return ""
    return clean(str(value))[:2000]
