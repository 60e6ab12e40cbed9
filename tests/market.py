"""Invented markets for benchmarks, each the same for the same seed: offers and their machines."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from evaluator.facts import UNKNOWN, Fact, declared
from evaluator.gpus import GpuSpec, specs
from evaluator.machine import Availability, LinkClass, Machine
from evaluator.offers import Offering
from evaluator.prices import Basis, Purchase, Quote, TimeUnit

GB = 10**9
SEED = 20_261_130
PROVIDERS, TYPES, REGIONS = 9, 160, 24
COUNTS = (1, 1, 2, 4, 8, 8)
STATED = (None, None, None, LinkClass.NVSWITCH, LinkClass.NVLINK, LinkClass.PCIE)
NETWORKS = (None, None, "ib_ndr", "EFA 3200 Gb/s", "100 GbE")


@dataclass(frozen=True)
class Market:
    """Offers, and the machine of every configuration."""

    offers: list[Offering]
    machines: dict[str, Machine]


def cards() -> list[GpuSpec]:
    return [spec for spec in specs() if spec.usable_bytes and spec.dense_tflops]


def cloud(count: int, seed: int = SEED) -> Market:
    """Providers that sell few types in many regions: of 100,000 offers about 1.4 % are distinct."""
    by = random.Random(seed)
    known = cards()
    kinds = [(number % PROVIDERS, _machine(by, known)) for number in range(PROVIDERS * TYPES)]
    machines = {machine.fingerprint(): machine for _, machine in kinds}
    sold = [(provider, machine.fingerprint(), _price(by, machine)) for provider, machine in kinds]
    offers = [_offer(by, number, *by.choice(sold)) for number in range(count)]
    return Market(offers, machines)


def peers(count: int, seed: int = SEED) -> Market:
    """People who rent out their own machines: every one is another."""
    by, known = random.Random(seed), cards()
    machines: dict[str, Machine] = {}
    offers = []
    for number in range(count):
        machine = replace(
            _machine(by, known),
            ram_bytes=declared(by.randrange(8, 2000) * GB + number),
            vcpus=declared(by.randrange(2, 257)),
        )
        key = machine.fingerprint()
        machines[key] = machine
        offers.append(_offer(by, number, by.randrange(PROVIDERS), key, _price(by, machine)))
    return Market(offers, machines)


def _machine(by: random.Random, known: Sequence[GpuSpec]) -> Machine:
    spec, count = by.choice(known), by.choice(COUNTS)
    link: Fact[LinkClass] = declared(by.choice(STATED)) if count > 1 else UNKNOWN
    return Machine(
        gpu_model=declared(spec.model),
        specs=(spec,),
        gpu_count=declared(count),
        usable_bytes_per_gpu=declared((spec.usable_bytes or 0) // spec.devices),
        form_factor=declared(spec.form_factor),
        link=link,
        inter_node=declared(by.choice(NETWORKS)) if count == 8 else UNKNOWN,
        vcpus=declared(count * by.choice((4, 8, 12, 24))),
        ram_bytes=declared(count * by.choice((32, 64, 128, 256)) * GB),
        local_storage_bytes=declared(by.choice((500, 2000, 8000, 30_000)) * GB),
    )


def _price(by: random.Random, machine: Machine) -> Decimal:
    """A few dollars per GPU and hour, by the memory of the card."""
    count, size = machine.gpu_count.value or 1, machine.usable_bytes_per_gpu.value or 0
    return Decimal(round(count * (0.1 + size / GB / 40) * by.uniform(0.6, 1.8), 2)).quantize(
        Decimal("0.01")
    )


def _offer(by: random.Random, number: int, provider: int, key: str, price: Decimal) -> Offering:
    spot = by.random() < 0.4
    amount = (price * Decimal(round(by.uniform(0.9, 1.1), 3))).quantize(Decimal("0.0001"))
    kind = Purchase.SPOT if spot else Purchase.ON_DEMAND
    return Offering(
        key=str(number),
        configuration=key,
        provider=f"provider {provider}",
        title=f"type {key[:6]}",
        region=f"region {by.randrange(REGIONS)}",
        quotes=(Quote(amount, "USD", TimeUnit.HOUR, Basis.MACHINE, kind),),
        availability=by.choice((Availability.AVAILABLE, Availability.UNKNOWN)),
    )
