"""Plans that deal out experts, cut sequences or wait for the host: timed at once as one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evaluator.estimates import Estimate
from evaluator.jobs import Offload, Recompute, Workload
from evaluator.machine import LinkClass
from evaluator.plans import Plan
from evaluator.ranges import Range
from evaluator.rentals import rental_of
from evaluator.timing import ServingTimes, times_of
from evaluator.timing_columns import RentalTable, plan_times
from tests.evaluator.machines import known, machine, serve, train

SWITCHED = machine("H100", form="SXM", gb=80, link=known(LinkClass.NVSWITCH))
MACHINES = [
    SWITCHED,
    machine("H100", form="SXM", gb=80),
    machine("L40S", link=LinkClass.PCIE_P2P),
    replace(SWITCHED, inter_node=known("InfiniBand NDR")),
    machine("MI300X"),
]


def offloaded(where: Offload, again: Recompute = Recompute.NONE) -> Workload:
    job = train(global_batch=64, tokens_to_train=10**10, dataset_bytes=10**15)
    assert job.training is not None
    return replace(job, training=replace(job.training, offload=where, recompute=again))


CASES = [
    (serve("qwen3-30b-a3b", concurrency=64), Plan(dp=8, ep=8)),
    (serve("qwen3-30b-a3b", concurrency=64), Plan(tp=2, dp=8, ep=16, nodes=2)),
    (serve(weights_format="fp8", concurrency=8), Plan(tp=2, pp=4)),
    (train("qwen3-30b-a3b", global_batch=64), Plan(dp=8, shard=8, ep=8)),
    (train("qwen3-30b-a3b", global_batch=64), Plan(tp=2, pp=2, virtual=2, dp=2, shard=2)),
    (train(seq_len=131_072, global_batch=8), Plan(cp=8, shard=8)),
    (train(global_batch=64), Plan(dp=16, shard=8, nodes=2)),
    (offloaded(Offload.OPTIMIZER), Plan(dp=8, shard=8)),
    (offloaded(Offload.PARAMS, Recompute.OFFLOAD), Plan(tp=2, dp=4, shard=4)),
]


def rate_of(found: Estimate | ServingTimes | None) -> Range | None:
    if found is None:
        return None
    return found.rate.value if isinstance(found, ServingTimes) else found.value


@pytest.mark.parametrize(("workload", "plan"), CASES, ids=lambda one: getattr(one, "key", ""))
def test_many_rentals_at_once_are_timed_as_each_alone(workload: Workload, plan: Plan) -> None:
    rentals = [rental for one in MACHINES if (rental := rental_of(one, plan.nodes))]
    assert len(rentals) == len(MACHINES)
    at_once = plan_times(workload, plan, RentalTable.of(rentals), np.arange(len(rentals)))
    timed = 0
    for place, one in enumerate(MACHINES):
        alone, among = rate_of(times_of(workload, plan, one)), rate_of(at_once.one(place))
        assert (alone is None) == (among is None)
        if alone and among:
            ends = (alone.low, alone.typical, alone.high)
            assert (among.low, among.typical, among.high) == pytest.approx(ends, rel=1e-9)
            timed += 1
    assert timed >= 3
