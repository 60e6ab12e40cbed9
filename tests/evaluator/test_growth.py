"""The table of what more GPUs bring: rows, money, hours, and what is not clamped."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import pytest

from evaluator.bills import Price
from evaluator.facts import Fact, Grade
from evaluator.growth import Growth, counts_of, growth
from evaluator.machine import LinkClass, Machine
from evaluator.outlook import outlook_of
from tests.evaluator.cards import L40S, served, trained
from tests.evaluator.test_scaling import machine

HOURLY = Decimal("2.50")


def apart(gpus: int) -> Decimal:
    """GPUs that are rented one by one."""
    return HOURLY * gpus


def whole(_: int) -> Decimal:
    """A machine of eight that is rented whole."""
    return HOURLY * 8


@pytest.mark.parametrize(
    ("gpus", "counts"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8])]
)
def test_counts_are_powers_of_two_and_the_whole_machine(gpus: int, counts: list[int]) -> None:
    assert counts_of(gpus) == counts


def test_a_job_that_ends_has_hours_and_cost_in_every_row() -> None:
    job = trained(global_batch=64, tokens_to_train=10**9)
    table = growth(job, machine(), apart)
    assert [row.gpus for row in table.rows] == [4, 8]
    few, many = (row.step for row in table.rows)
    assert few.hours is not None
    assert many.hours is not None
    assert few.hours.typical > 1.5 * many.hours.typical
    assert few.cost is not None
    assert few.cost.typical % Decimal("10.00") == 0  # whole hours of 4 GPUs at 2.50
    assert many.saved_hour is not None


def test_hours_and_money_are_those_of_the_bill_of_the_same_plan() -> None:
    """With start, download and verification, as a shortlist tells them."""
    job, of = trained(global_batch=64, tokens_to_train=10**9), machine()
    for row in growth(job, of, apart).rows:
        found = outlook_of(job, row.plan, of, Price(apart(row.gpus)))
        assert found is not None
        assert row.step.hours == found.hours
        assert row.step.cost == found.cost
        assert row.step.hours is not None
        assert row.step.hours.low > 10**9 / row.step.rate.high / 3600 + 0.5


def test_a_machine_that_is_rented_whole_costs_the_same_for_fewer_gpus() -> None:
    job = trained(global_batch=64)
    by_gpu, at_once = (growth(job, machine(), price).rows for price in (apart, whole))
    few, many = (row.step.per_million for row in at_once)
    assert few is not None
    assert many is not None
    assert few.typical > Decimal("1.5") * many.typical
    half = by_gpu[0].step.per_million
    assert half is not None
    assert half.typical == pytest.approx(few.typical / 2)


def test_without_a_price_there_is_no_money() -> None:
    row = growth(trained(global_batch=64, tokens_to_train=10**9), machine()).rows[-1].step
    assert (row.cost, row.per_million, row.saved_hour) == (None, None, None)
    assert row.hours is not None


def test_work_that_grows_with_the_gpus_keeps_its_rate_per_gpu() -> None:
    job = served("llama-3.1-8b", "bf16", concurrency=16, input_tokens=512, output_tokens=256)
    table = growth(job, machine())
    assert [row.gpus for row in table.rows] == [1, 2, 4, 8]
    last = table.rows[-1]
    assert last.grown_efficiency is not None
    assert last.grown_efficiency > 0.9
    assert last.gain.efficiency < 0.9
    assert table.weak is not None
    assert table.strong is not None
    assert table.weak.amdahl < table.strong.amdahl


def test_more_memory_brings_more_than_its_share() -> None:
    """A 70B in fp8 leaves one H100 hardly a cache; two make several times as much."""
    job = served(input_tokens=128, output_tokens=2048, concurrency=24)
    roomy = replace(
        machine(),
        usable_bytes_per_gpu=Fact(84 * 10**9, grade=Grade.DECLARED, source="a page"),
    )
    table = growth(job, roomy)
    first, second = table.rows[:2]
    assert second.gain.efficiency > 0.5
    assert second.gain.marginal == pytest.approx(
        (second.step.rate.low - first.step.rate.low) / (second.gpus - first.gpus)
        / (first.step.rate.low / first.gpus)
    )  # fmt: skip


@pytest.mark.parametrize("users", [1, 64])
def test_added_gpus_pay_exactly_where_the_low_end_rises(users: int) -> None:
    declared = {"grade": Grade.DECLARED, "source": "a page"}
    slow = Machine(
        specs=(L40S,),
        gpu_count=Fact(8, **declared),
        usable_bytes_per_gpu=Fact(L40S.usable_bytes, **declared),
        link=Fact(LinkClass.P2P_DISABLED, **declared),
    )
    rows = growth(served(concurrency=users, input_tokens=128, output_tokens=128), slow).rows
    assert len(rows) > 1
    for before, row in pairwise(rows):
        assert row.gain.pays == (row.step.rate.low > before.step.rate.low)


def test_several_machines_follow_with_their_network_named() -> None:
    joined = replace(machine(), inter_node=Fact("InfiniBand NDR", grade=Grade.DECLARED, source="p"))
    table = growth(trained(global_batch=64), joined, most_machines=2)
    assert [(row.gpus, row.plan.nodes) for row in table.rows] == [(4, 1), (8, 1), (16, 2)]
    assert 0.5 < table.rows[-1].gain.efficiency < 1.1


def test_where_nothing_fits_there_is_no_row() -> None:
    small = replace(
        machine(), usable_bytes_per_gpu=Fact(10**9, grade=Grade.DECLARED, source="a page")
    )
    assert growth(trained(), small) == Growth((), None, None)
