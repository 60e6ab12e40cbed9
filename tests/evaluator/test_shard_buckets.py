"""Buckets of ZeRO 1 and 2: the published default and its figure, and none where none is used."""

from __future__ import annotations

from typing import Any

import pytest

from evaluator.launch import launch_of
from evaluator.machine import LinkClass
from evaluator.memory import budget
from evaluator.plans import Plan
from evaluator.ranges import Range, exact
from evaluator.workload import InvalidWorkload, parse_workload
from tests.evaluator.machines import known, machine, train

SHARDED = Plan(dp=8, shard=8)
ON = machine("H100", form="SXM", gb=80, link=known(LinkClass.NVSWITCH))


def buckets(plan: Plan = SHARDED, **keys: Any) -> Range | None:
    document = {"task": "train", "model": {"preset": "llama-3.1-8b"}, **keys}
    found = budget(parse_workload(document), plan).ranks[0].component("shard_buckets")
    return found.bytes if found else None


@pytest.mark.parametrize("stage", [1, 2])
def test_the_default_bucket_takes_up_to_the_documented_nine_gigabytes(stage: int) -> None:
    assert buckets(zero_stage=stage, reduce_bucket_size=5 * 10**8) == Range(10**9, 2 * 10**9, 9e9)


def test_unstated_buckets_may_be_none_and_are_usually_two_of_200_million() -> None:
    assert buckets(zero_stage=2) == Range(0, 800_000_000, 9e9)


def test_a_framework_without_buckets_says_so() -> None:
    assert buckets(zero_stage=2, reduce_bucket_size=0) is None


def test_full_sharding_and_plain_replicas_have_none() -> None:
    assert buckets(zero_stage=3) is None
    assert buckets(Plan(dp=8), zero_stage=2) is None


def test_a_measured_bucket_outranks_the_estimate() -> None:
    assert buckets(zero_stage=1, pins={"shard_buckets": 7}) == exact(7)


@pytest.mark.parametrize("size", [-1, 1.5, "5e8", 10**12])
def test_a_bucket_is_a_number_of_elements(size: Any) -> None:
    with pytest.raises(InvalidWorkload, match="reduce_bucket_size"):
        buckets(reduce_bucket_size=size)


@pytest.mark.parametrize(("stated", "written"), [(None, 200_000_000), (5 * 10**7, 5 * 10**7)])
def test_the_command_asks_for_the_buckets_that_were_budgeted(stated: Any, written: int) -> None:
    keys = {} if stated is None else {"reduce_bucket_size": stated}
    sheet = launch_of(train(zero_stage=2, **keys), SHARDED, ON)
    deepspeed = next(one for one in sheet.engines if one.engine == "DeepSpeed")
    assert f'"reduce_bucket_size": {written},' in deepspeed.commands[0].text
    assert f'"allgather_bucket_size": {written}\n' in deepspeed.commands[0].text
