"""Plans that deal out experts, cut sequences or wait for the host: timed at once as one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evaluator.estimates import Estimate
from evaluator.jobs import Offload, Recompute, Workload
from evaluator.machine import LinkClass, Machine
from evaluator.plans import Plan, plans_of
from evaluator.ranges import Range
from evaluator.rentals import Rental, rental_of
from evaluator.timing import ServingTimes, times_of
from evaluator.timing_columns import Pairs, PairTimes, RentalTable, pair_times, rate_bounds
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


def rentals_of(nodes: int) -> list[Rental]:
    found = [rental for one in MACHINES if (rental := rental_of(one, nodes))]
    assert len(found) == len(MACHINES)
    return found


@pytest.mark.parametrize(("workload", "plan"), CASES, ids=lambda one: getattr(one, "key", ""))
def test_many_rentals_at_once_are_timed_as_each_alone(workload: Workload, plan: Plan) -> None:
    every = np.arange(len(MACHINES))
    pairs = Pairs([plan], RentalTable.of(rentals_of(plan.nodes)), 0 * every, every)
    ((rows, at_once),) = pair_times(workload, pairs)
    assert rows.tolist() == every.tolist()
    timed = [same_as_alone(workload, plan, one, at_once, at) for at, one in enumerate(MACHINES)]
    assert sum(timed) >= 3


def same_as_alone(
    workload: Workload, plan: Plan, one: Machine, at_once: PairTimes, at: int
) -> bool:
    """Whether it is timed at all."""
    alone, among = rate_of(times_of(workload, plan, one)), rate_of(at_once.one(at))
    assert (alone is None) == (among is None)
    if alone is None or among is None:
        return False
    ends = (alone.low, alone.typical, alone.high)
    assert (among.low, among.typical, among.high) == pytest.approx(ends, rel=1e-9)
    return True


JOBS = {
    "dense": train(global_batch=64),
    "experts": train("qwen3-30b-a3b", global_batch=64),
    "long": train(seq_len=131_072, global_batch=8),
    "adapters": train(lora={"rank": 8}),
    "offloaded": offloaded(Offload.PARAMS),
}


@pytest.mark.parametrize("name", list(JOBS))
def test_all_plans_of_a_job_at_once_are_timed_as_each_alone(name: str) -> None:
    """On one machine and on several; and none is faster than its bound."""
    job, machines = JOBS[name], len(MACHINES)
    plans = plans_of(job, 8, (1, 2)).plans
    assert len({(plan.tp > 1, plan.pp > 1, plan.shard > 1, plan.nodes) for plan in plans}) > 5
    table = RentalTable.of([*rentals_of(1), *rentals_of(2)])
    plan = np.repeat(np.arange(len(plans)), machines)
    rental = np.tile(np.arange(machines), len(plans))
    rental += machines * np.array([plans[number].nodes > 1 for number in plan])
    pairs = Pairs(plans, table, plan, rental)
    ((_, at_once),) = pair_times(job, pairs)
    timed = [
        same_as_alone(job, plans[number], MACHINES[at % machines], at_once, at)
        for at, number in enumerate(plan)
    ]
    assert sum(timed) > len(timed) / 2
    assert (at_once.slow_rate <= rate_bounds(job, pairs)).tolist() == timed
