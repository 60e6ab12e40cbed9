"""What a step waits for from outside the GPU: host memory, the host's optimizer, storage."""

from __future__ import annotations

import pytest

from evaluator.estimates import Estimate, Setting
from evaluator.feeds import host_bytes, host_seconds, starved_seconds
from evaluator.jobs import Offload, Recompute, TrainingJob, Workload
from evaluator.layouts import Layout
from evaluator.machine import LinkClass
from evaluator.timing import step_estimate
from evaluator.units import TB
from tests.evaluator.cards import H100, rental, trained

SWITCHED = rental(H100, LinkClass.NVSWITCH)
SHARDED = Layout(data=8, shard=8)


def step(job: Workload, layout: Layout = SHARDED) -> Estimate:
    found = step_estimate(job, layout, SWITCHED)
    assert found is not None
    return found


def test_an_offloaded_optimizer_moves_a_gradient_down_and_a_parameter_up() -> None:
    """ZeRO-Offload: 2 + 2 bytes a parameter and step, however many micro-batches there are."""
    job = TrainingJob(offload=Offload.OPTIMIZER)
    assert host_bytes(job, 1e9, 1e9, rounds=8, inputs=0) == 4e9


def test_offloaded_parameters_come_twice_for_every_micro_batch() -> None:
    job = TrainingJob(offload=Offload.PARAMS)
    assert host_bytes(job, 1e9, 1e9, rounds=1, inputs=0) == 4e9 + 4e9
    assert host_bytes(job, 1e9, 1e9, rounds=3, inputs=0) == 4e9 + 3 * 4e9 + 2 * 2e9


def test_layer_inputs_in_host_memory_go_down_and_come_up() -> None:
    job = TrainingJob(recompute=Recompute.OFFLOAD)
    assert host_bytes(job, 1e9, 1e9, rounds=2, inputs=1e6) == 2 * 2 * 1e6 * 2


def test_nothing_in_host_memory_costs_nothing() -> None:
    assert host_bytes(TrainingJob(), 1e9, 1e9, rounds=4, inputs=1e6) == 0
    assert host_seconds(0, 1, Setting()) == 0
    assert (
        not {"traffic with host memory", "optimizer on the host"}
        & dict(step(trained()).terms).keys()
    )


@pytest.mark.parametrize("where", [Offload.OPTIMIZER, Offload.PARAMS])
def test_states_in_host_memory_make_a_step_longer_and_say_why(where: Offload) -> None:
    plain, moved = step(trained(global_batch=8)), step(trained(global_batch=8, offload=where))
    assert moved.value.typical > plain.value.typical
    assert "optimizer on the host" in dict(moved.terms)
    assert "optimizer" not in dict(moved.terms)
    assert moved.widest in {"optimizer on the host", "link to host memory"}


def test_more_micro_batches_hide_more_of_an_offloaded_optimizer() -> None:
    def loss(batch: int) -> float:
        plain, moved = (
            step(trained(global_batch=batch, offload=where)).value.typical
            for where in (Offload.NONE, Offload.OPTIMIZER)
        )
        return moved / plain

    assert loss(64) < loss(8)


def test_layers_that_are_computed_again_from_host_memory_cost_the_forward_pass_too() -> None:
    full, moved = (step(trained(recompute=one)) for one in (Recompute.FULL, Recompute.OFFLOAD))
    assert moved.value.typical >= full.value.typical
    assert moved.value.low > step(trained()).value.low


def test_images_may_starve_a_gpu_and_text_does_not() -> None:
    """10 TB for 10^9 tokens are 10 kB a token: 5 GB a step of 524,288 tokens, 3.5 s at 1.5 GB/s."""
    job = TrainingJob(tokens_to_train=10**9, dataset_bytes=10 * TB)
    found = starved_seconds(job, 524_288, 1, 1.0, Setting())
    assert found == pytest.approx(524_288 * 10_000 / 1.5e9 - 1.0)
    assert starved_seconds(job, 524_288, 1, 9.0, Setting()) == 0
    text = TrainingJob(tokens_to_train=10**9, dataset_bytes=4 * 10**9)
    assert starved_seconds(text, 524_288, 1, 0.5, Setting()) == 0
    assert starved_seconds(TrainingJob(), 524_288, 1, 0.0, Setting()) == 0
    starved = step(trained(global_batch=8, tokens_to_train=10**9, dataset_bytes=100 * TB))
    assert starved.terms[0][0] == "data from storage"
