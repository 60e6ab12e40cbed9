"""RunPod, GraphQL gpuTypes: prices per GPU and hour, per tier, without a list of machines.

A machine is made for each GPU count that was asked for (x1, x2, ...). A null stockStatus says
that the count is not offered now; then CPU and RAM are null as well. The two tiers are different
machines: a community price never stands for a secure one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from evaluator.prices import Basis, Purchase
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
from marketplace.catalog.records import slug_of

COUNTS = (1, 2, 4, 8)
_PER_COUNT = " ".join(
    f"x{count}: lowestPrice(input: {{gpuCount: {count}}}) {{ minVcpu minMemory stockStatus }}"
    for count in COUNTS
)
QUERY = json.dumps(
    {
        "query": "query { gpuTypes { id displayName memoryInGb maxGpuCount secureCloud "
        "communityCloud securePrice communityPrice secureSpotPrice communitySpotPrice "
        f"oneMonthPrice {_PER_COUNT} }} }}"
    }
).encode()
"""The body of the request."""


def runpod(aliases: Aliases) -> ApiAdapter:
    return ApiAdapter(_offers, aliases=aliases)


def _offers(answers: Sequence[Any]) -> Iterator[Read]:
    for answer in answers:
        data = answer.get("data") if isinstance(answer, dict) else None
        items = data.get("gpuTypes") if isinstance(data, dict) else None
        yield from each_offer(objects(items), _machines, name="id")


def _machines(item: Json) -> Iterator[Offer | LeftOut]:
    most = whole(item, "maxGpuCount") or max(COUNTS)
    for count in COUNTS:
        lowest = item.get(f"x{count}")
        if count > most or not isinstance(lowest, dict):
            continue
        if not word(lowest, "stockStatus"):
            yield LeftOut("not offered now")
            continue
        yield from (
            _machine(item, lowest, count, tier)
            for tier in ("secure", "community")
            if item.get(f"{tier}Cloud") is True
        )


def _machine(item: Json, lowest: Json, count: int, tier: str) -> Offer:
    card = slug_of(word(item, "id"))
    return Offer(
        sku=f"{card}-{count}x-{tier}" if card else "",
        title=f"{count}x {word(item, 'displayName')} ({tier} cloud)",
        raw={**item, "count": count, "tier": tier},
        texts={
            A.GPU: word(item, "displayName"),
            A.GPU_COUNT: str(count),
            A.VRAM: with_unit(positive(item, "memoryInGb"), "GB"),
            A.VCPU: with_unit(positive(lowest, "minVcpu"), "vCPU"),
            A.RAM: with_unit(positive(lowest, "minMemory"), "GB"),
            A.AVAILABILITY: _STOCK.get(word(lowest, "stockStatus").lower(), ""),
        },
        rates=(
            *rate(positive(item, f"{tier}Price"), Basis.GPU),
            *rate(positive(item, f"{tier}SpotPrice"), Basis.GPU, Purchase.SPOT),
            *(
                rate(positive(item, "oneMonthPrice"), Basis.GPU, Purchase.RESERVED, "1 month")
                if tier == "secure"
                else ()
            ),
        ),
    )


_STOCK = {"high": "available", "medium": "available", "low": "limited"}
