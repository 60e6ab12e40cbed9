"""Vast.ai, POST /api/v0/bundles/: offers of single hosts, some of which split their machine.

gpu_ram is MiB of each GPU, cpu_ram MiB of the whole host. dph_base is the machine without disk,
dph_total with the disk that was asked for, so only the first is a property of the machine. The id
of an offer changes whenever its host is rented; machine and count name it for longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
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
from marketplace.catalog.reading.labels import Attribute as A
from marketplace.catalog.reading.names import Aliases


def vast(aliases: Aliases) -> ApiAdapter:
    return ApiAdapter(_offers, aliases=aliases)


def _offers(answers: Sequence[Any]) -> Iterator[Read]:
    for answer in answers:
        items = answer.get("offers") if isinstance(answer, dict) else answer
        yield from each_offer(objects(items), _offer, name="id")


def _offer(item: Json) -> Iterator[Offer]:
    count = whole(item, "num_gpus")
    machine = word(item, "machine_id") or word(item, "id")
    price = positive(item, "dph_base") or positive(item, "dph_total")
    yield Offer(
        sku=f"{machine}-{count or 'unknown'}x" if machine else "",
        title=f"{count}x {word(item, 'gpu_name')}" if count else word(item, "gpu_name"),
        raw=item,
        texts={
            A.GPU: word(item, "gpu_name"),
            A.GPU_COUNT: str(count or ""),
            A.VRAM: with_unit(positive(item, "gpu_ram"), "MiB"),
            A.VCPU: with_unit(_cores(item), "vCPU"),
            A.RAM: with_unit(_ram_share(item), "MiB"),
            A.DISK: with_unit(positive(item, "disk_space"), "GB"),
            A.LINK: _link(item),
            A.AVAILABILITY: _stock(item),
        },
        rates=(
            *rate(price, Basis.MACHINE, words=f"dph_base {price}, disk is billed apart"),
            *rate(positive(item, "min_bid"), Basis.MACHINE, Purchase.SPOT, words="min_bid"),
        ),
        region=", ".join(filter(None, map(str.strip, word(item, "geolocation").split(",")))),
    )


def _cores(item: Json) -> Decimal | None:
    """The offer's share of the host; a host of unknown size has no known share."""
    cores = positive(item, "cpu_cores_effective")
    return Decimal(int(cores)) if cores and int(cores) else None


def _ram_share(item: Json) -> Decimal | None:
    ram, cores = positive(item, "cpu_ram"), positive(item, "cpu_cores")
    effective = positive(item, "cpu_cores_effective")
    if ram is None or cores is None or effective is None:
        return None
    return Decimal(int(ram * min(effective / cores, Decimal(1))))


def _link(item: Json) -> str:
    """bw_nvlink is what the host measured; zero also stands for "not measured"."""
    return "NVLink" if positive(item, "bw_nvlink") else ""


def _stock(item: Json) -> str:
    if item.get("rented") is True or item.get("rentable") is False:
        return "sold out"
    return "available" if item.get("rentable") is True else ""
