"""Prime Intellect, GET /api/v1/availability/gpus: offers of many clouds, priced per machine.

gpuMemory is not said to be each or total and has been both, so the known sizes decide. vCPU and
RAM are the default share of a machine that may take more. A price that varies is a sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evaluator.prices import Basis, Purchase
from marketplace.catalog.adapters.api import (
    ApiAdapter,
    Json,
    Offer,
    Rate,
    Read,
    each_offer,
    objects,
    positive,
    rate,
    whole,
    with_unit,
    word,
)
from marketplace.catalog.normalise import LeftOut
from marketplace.catalog.reading.labels import Attribute as A
from marketplace.catalog.reading.names import Aliases


def prime_intellect(aliases: Aliases) -> ApiAdapter:
    return ApiAdapter(_offers, aliases=aliases)


def _offers(answers: Sequence[Any]) -> Iterator[Read]:
    for answer in answers:
        yield from each_offer(_items(answer), _offer, name="cloudId")


def _items(answer: Any) -> Iterator[Json]:
    """A list under "items", or lists by the name of the GPU."""
    if isinstance(answer, dict) and "items" not in answer:
        for held in answer.values():
            yield from objects(held)
    else:
        yield from objects(answer.get("items") if isinstance(answer, dict) else answer)


def _offer(item: Json) -> Iterator[Offer | LeftOut]:
    gpu, count = word(item, "gpuType").replace("_", " "), whole(item, "gpuCount")
    if gpu.lower() in ("", "cpu node"):
        yield LeftOut("no GPU named")
        return
    cloud = word(item, "cloudId")
    yield Offer(
        sku=f"{word(item, 'provider')}/{cloud}" if cloud else "",
        title=f"{count}x {gpu}" if count else gpu,
        raw=item,
        texts={
            A.GPU: gpu,
            A.GPU_COUNT: str(count or ""),
            A.VRAM: with_unit(positive(item, "gpuMemory"), "GB"),
            A.FORM_FACTOR: word(item, "socket"),
            A.VCPU: with_unit(positive(item, "vcpu", "defaultCount"), "vCPU"),
            A.RAM: with_unit(positive(item, "memory", "defaultCount"), "GB"),
            A.DISK: with_unit(positive(item, "disk", "defaultCount"), "GB"),
            A.AVAILABILITY: _STOCK.get(word(item, "stockStatus").lower(), ""),
        },
        rates=_rates(item),
        region=word(item, "region") or word(item, "country"),
        currency=word(item, "prices", "currency").upper() or None,
        vram_label="gpu memory",
    )


def _rates(item: Json) -> tuple[Rate, ...]:
    """A spot offer is an offer of its own and names no on-demand price."""
    spot = item.get("isSpot") is True
    purchase = Purchase.SPOT if spot else Purchase.ON_DEMAND
    varies = item["prices"].get("isVariable") if isinstance(item.get("prices"), dict) else None
    words = "sampled: the price varies" if varies is True else ""
    return rate(positive(item, "prices", "onDemand"), Basis.MACHINE, purchase, words=words)


_STOCK = {
    "available": "available", "high": "available", "medium": "available", "low": "limited",
    "unavailable": "sold out", "out of stock": "sold out",
}  # fmt: skip
