"""Shadeform, GET /v1/instances/types: machines of many clouds, prices in cents per machine.

`interconnect` names the form ("pcie", "sxm5"), not the link; `nvlink` says whether there is one.
The cloud is part of the id: the same name stands for other machines at another cloud.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from evaluator.prices import Basis
from marketplace.catalog.adapters.api import (
    ApiAdapter,
    Json,
    Offer,
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


def shadeform(aliases: Aliases) -> ApiAdapter:
    return ApiAdapter(_offers, aliases=aliases)


def _offers(answers: Sequence[Any]) -> Iterator[Read]:
    for answer in answers:
        items = answer.get("instance_types") if isinstance(answer, dict) else answer
        yield from each_offer(objects(items), _in_regions, name="cloud_instance_type")


def _in_regions(item: Json) -> Iterator[Offer | LeftOut]:
    shape = item.get("configuration")
    shape = shape if isinstance(shape, dict) else {}
    if word(shape, "num_gpus") == "0":
        yield LeftOut("no GPU named")
        return
    places = list(objects(item.get("availability")))
    for place in places or [{}]:
        yield _offer(item, shape, place)


def _offer(item: Json, shape: Json, place: Json) -> Offer:
    count, cents = whole(shape, "num_gpus"), positive(item, "hourly_price")
    gpu, kind = word(shape, "gpu_type"), word(item, "cloud_instance_type")
    return Offer(
        sku=f"{word(item, 'cloud')}/{kind}" if kind else "",
        title=f"{count}x {gpu}" if count and gpu else gpu,
        raw={**item, "availability": place},
        texts={
            A.GPU: gpu,
            A.GPU_COUNT: str(count or ""),
            A.VRAM: with_unit(positive(shape, "vram_per_gpu_in_gb"), "GB"),
            A.FORM_FACTOR: word(shape, "interconnect").upper(),
            A.LINK: "NVLink" if shape.get("nvlink") is True else "",
            A.VCPU: with_unit(positive(shape, "vcpus"), "vCPU"),
            A.RAM: with_unit(positive(shape, "memory_in_gb"), "GB"),
            A.DISK: with_unit(positive(shape, "storage_in_gb"), "GB"),
            A.AVAILABILITY: _stock(place),
        },
        rates=rate(cents and cents / Decimal(100), Basis.MACHINE, words=f"{cents} cents per hour"),
        region=word(place, "region"),
    )


def _stock(place: Json) -> str:
    known = {True: "available", False: "sold out"}
    value = place.get("available")
    return known[value] if isinstance(value, bool) else ""
