"""Lambda, GET /api/v1/instance-types: types by name, prices in cents, regions with capacity.

The GPU stands only in a text such as "8x H100 (80 GB SXM5)". Regions are those that have the type
now: a type without one is sold out and its region is unknown.
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
from marketplace.catalog.reading.labels import Attribute as A
from marketplace.catalog.reading.names import Aliases


def lambda_cloud(aliases: Aliases) -> ApiAdapter:
    return ApiAdapter(_offers, aliases=aliases)


def _offers(answers: Sequence[Any]) -> Iterator[Read]:
    for answer in answers:
        data = answer.get("data") if isinstance(answer, dict) else None
        types = list(data.values()) if isinstance(data, dict) else data
        yield from each_offer(objects(types), _in_regions, name="name")


def _in_regions(item: Json) -> Iterator[Offer]:
    kind = item.get("instance_type")
    machine = kind if isinstance(kind, dict) else item
    regions = [word(one, "name") for one in objects(item.get("regions_with_capacity_available"))]
    for region in filter(None, regions):
        yield _offer(machine, region, "available")
    if not any(regions):
        yield _offer(machine, "", "sold out")


def _offer(machine: Json, region: str, stock: str) -> Offer:
    cents = positive(machine, "price_cents_per_hour")
    specs = machine.get("specs")
    specs = specs if isinstance(specs, dict) else {}
    return Offer(
        sku=word(machine, "name"),
        title=word(machine, "description") or word(machine, "gpu_description"),
        raw=machine,
        texts={
            A.GPU: word(machine, "gpu_description"),
            A.GPU_COUNT: str(whole(specs, "gpus") or ""),
            A.VCPU: with_unit(positive(specs, "vcpus"), "vCPU"),
            A.RAM: with_unit(positive(specs, "memory_gib"), "GiB"),
            A.DISK: with_unit(positive(specs, "storage_gib"), "GiB"),
            A.AVAILABILITY: stock,
        },
        rates=rate(cents and cents / Decimal(100), Basis.MACHINE, words=f"{cents} cents per hour"),
        region=region,
    )
