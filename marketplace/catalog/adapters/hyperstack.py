"""Hyperstack, GET /v1/core/flavors and /v1/pricebook: shapes in one answer, prices in another.

The price book gives US dollars per GPU and hour as texts, by the name of the GPU; a shape whose
GPU it does not name has no price. The disk of a shape is its root disk, `ephemeral` the local one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import urljoin, urlsplit

from evaluator.prices import Basis, Purchase
from marketplace.catalog.adapters.api import (
    ApiAdapter,
    Json,
    Offer,
    Read,
    RefusedOffer,
    each_offer,
    objects,
    positive,
    rate,
    whole,
    with_unit,
    word,
)
from marketplace.catalog.base import Page
from marketplace.catalog.normalise import LeftOut
from marketplace.catalog.reading.labels import Attribute as A
from marketplace.catalog.reading.names import Aliases

Prices = dict[str, Decimal]


def hyperstack(aliases: Aliases) -> ApiAdapter:
    return ApiAdapter(_offers, _following, aliases)


def _following(page: Page, _answer: Any) -> str | None:
    path = urlsplit(page.url).path
    return urljoin(page.url, "/v1/pricebook") if path.rstrip("/").endswith("/flavors") else None


def _offers(answers: Sequence[Any]) -> Iterator[Read]:
    prices = _prices(answers)
    for answer in answers:
        groups = answer.get("data") if isinstance(answer, dict) else None
        shapes = [shape for group in objects(groups) for shape in objects(group.get("flavors"))]
        yield from each_offer(shapes, lambda shape: _offer(shape, prices), name="name")


def _prices(answers: Sequence[Any]) -> Prices:
    """By the GPU's name. An entry that is no price is as good as none: the shapes stay."""
    found: Prices = {}
    for answer in answers:
        for item in objects(answer):
            try:
                value = positive(item, "value")
            except RefusedOffer:
                continue
            if value is not None:
                found[word(item, "name").lower()] = value
    return found


def _offer(shape: Json, prices: Prices) -> Iterator[Offer | LeftOut]:
    gpu, count = word(shape, "gpu"), whole(shape, "gpu_count")
    if not gpu or count is None:
        yield LeftOut("no GPU named")
        return
    spot = gpu.lower().endswith("-spot")
    purchase = Purchase.SPOT if spot else Purchase.ON_DEMAND
    yield Offer(
        sku=word(shape, "name"),
        title=f"{count}x {gpu}",
        raw=shape,
        texts={
            A.GPU: gpu,
            A.GPU_COUNT: str(count),
            A.VCPU: with_unit(positive(shape, "cpu"), "vCPU"),
            A.RAM: with_unit(positive(shape, "ram"), "GB"),
            A.DISK: with_unit(positive(shape, "ephemeral"), "GB"),
            A.AVAILABILITY: _stock(shape),
        },
        rates=rate(prices.get(gpu.lower()), Basis.GPU, purchase),
        region=word(shape, "region_name"),
    )


def _stock(shape: Json) -> str:
    """Null says nothing, neither yes nor no."""
    known = {True: "available", False: "sold out"}
    value = shape.get("stock_available")
    return known[value] if isinstance(value, bool) else ""
