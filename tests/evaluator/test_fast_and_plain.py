"""The shortlist by columns equals the one listing by listing: order, plans, hidden counts."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest

from evaluator.candidates import Candidate
from evaluator.facts import UNKNOWN, Grade, declared
from evaluator.findings import Code, finding
from evaluator.fleet import Fleet
from evaluator.jobs import Workload
from evaluator.machine import Availability, Conflict, LinkClass, Machine
from evaluator.offers import Offering
from evaluator.prices import Basis, Purchase, Quote, TimeUnit
from evaluator.shortlist import shortlist
from tests.evaluator.machines import known, machine, measured, serve, train
from tests.evaluator.plain import Machines, Shown, plain_shortlist

GB = 10**9
CARDS = ["H100", "A100", "L4", "B200", "MI300X", "RTX 4090", "A40", "H200", "L40S", "P100"]


def some_machine(by: random.Random) -> Machine:
    """A machine with anything that a catalog or a paste may say, or leave out."""
    link = by.choice([None, None, *LinkClass, *map(measured, LinkClass)])
    rates = [UNKNOWN, UNKNOWN, known(10 * GB), known(200 * GB, Grade.BENCHMARKED)]
    made = machine(
        by.choice(CARDS),
        by.choice([1, 1, 2, 4, 8, 8, 3, 16, None]),
        link=link,
        nodes=by.choice([1, 1, 1, 2, 4]),
        fractional=by.random() < 0.05,
        vcpus=declared(by.choice([None, None, 1, 2, 4, 64])),
        ram_bytes=declared(by.choice([None, GB, 64 * GB, 1000 * GB])),
        local_storage_bytes=declared(by.choice([None, 10 * GB, 10_000 * GB])),
        persistent_storage=declared(by.choice([None, True, False])),
        inter_node=declared(by.choice([None, "ib_ndr", "25 GbE", "EFA 3200 Gb/s"])),
        link_bytes_per_s=by.choice(rates),
        pcie_generation=by.choice([UNKNOWN, UNKNOWN, declared(4)]),
        driver_version=declared(by.choice([None, None, "470.57", "535.104", "580.65.06"])),
        cuda_version=declared(by.choice([None, "12.4", "13.0"])),
        conflicts=by.choice([(), (), (Conflict("link", "measured pcie", "declared nvswitch"),)]),
    )
    return replace(made, usable_bytes_per_gpu=UNKNOWN) if by.random() < 0.1 else made


def some_quote(by: random.Random) -> Quote:
    return Quote(
        Decimal(by.choice(["0.01", "1.10", "2.50", "2.50", "7", "16.4", "900"])),
        by.choice(["USD", "USD", "USD", "EUR", None]),
        by.choice([TimeUnit.HOUR, TimeUnit.HOUR, TimeUnit.SECOND, TimeUnit.DAY, TimeUnit.MONTH]),
        by.choice([Basis.MACHINE, Basis.MACHINE, Basis.GPU, Basis.UNKNOWN]),
        by.choice([Purchase.ON_DEMAND, Purchase.ON_DEMAND, Purchase.SPOT, Purchase.RESERVED]),
    )


def some_offer(by: random.Random, number: int, configurations: Sequence[str]) -> Offering:
    doubts = [finding(Code.PRICE_FROM, words="from 1"), finding(Code.AVAILABILITY_UNKNOWN)]
    return Offering(
        key=str(number),
        configuration=by.choice(configurations),
        provider=by.choice(["Ridge", "Vale"]),
        title=by.choice(["one", "two"]),
        region=by.choice(["north", "South", ""]),
        zone=by.choice(["north-1", "Oslo", ""]),
        quotes=tuple(some_quote(by) for _ in range(by.choice([0, 1, 1, 1, 2, 3]))),
        availability=by.choice([Availability.AVAILABLE, *Availability]),
        quantity=by.choice([None, None, 0, 1, 2, 8]),
        findings=by.choice([(), (), (by.choice(doubts),)]),
    )


END = {"tokens_to_train": 10**9}
TARGETS = {"ttft_ms": 400, "tpot_ms": 30}
WORKLOADS: dict[str, Workload] = {
    "serve 8b": serve("llama-3.1-8b", concurrency=16),
    "serve 70b to targets": serve("llama-3.1-70b", concurrency=8, targets=TARGETS),
    "serve a stated rate": serve("llama-3.1-8b", targets={"tokens_per_s": 900}, concurrency=32),
    "serve on spot": serve("llama-3.1-8b", needs={"spot": True, "regions": ["north", "oslo"]}),
    "serve, firmly known": serve("llama-3.1-70b", needs={"min_grade": "measured"}),
    "serve cheaply": serve("llama-3.1-8b", needs={"max_price_per_hour": 2.5}),
    "train without an end": train("llama-3.1-8b"),
    "train in time": train("llama-3.1-8b", **END, deadline_hours=200, checkpoint_bytes=GB),
    "train on spot": train(
        "llama-3.1-8b",
        **END,
        deadline_hours=100,
        needs={"spot": True},
        costs={"reclaim_hours": 30, "minimum_hours": 2},
    ),
    "train from host memory": train("llama-3.1-8b", **END, offload="optimizer"),
    "fine-tune in euros": train(
        "llama-3.1-8b", lora={"rank": 8}, **END, budget={"amount": 900, "currency": "EUR"}
    ),
    "serve what hardly fits": serve("llama-3.1-405b"),
}


def shown(part: Sequence[Candidate]) -> list[Shown]:
    return [
        (one.offering.key, one.plan.plan.key, one.status.value, str(one.rate), len(one.alike))
        for one in part
    ]


@pytest.mark.parametrize("few", [None, 1], ids=["most at once", "lane by lane"])
@pytest.mark.parametrize("name", list(WORKLOADS))
def test_columns_and_single_listings_give_one_shortlist(
    name: str, few: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few lanes are timed before bounds tell whether another may still matter."""
    if few:
        monkeypatch.setattr(sys.modules["evaluator.shortlist"], "FEW", few)
    by, workload = random.Random(name), WORKLOADS[name]
    made = {one.fingerprint(): one for one in (some_machine(by) for _ in range(14))}
    held = Machines(workload, made)
    for size, limit in [(0, 5), (1, 1), (30, 7), (120, 20), (90, 1)]:
        offerings = [some_offer(by, number, list(made)) for number in range(size)]
        plain = plain_shortlist(held, offerings, limit)
        found = shortlist(workload, Fleet.of(offerings, made), limit)
        assert shown(found.rows) == plain.rows
        assert shown(found.unranked) == plain.unranked
        assert shown(found.near_misses) == plain.near
        assert found.hidden == plain.hidden
        assert found.shown + sum(found.hidden.values()) == found.total == size
