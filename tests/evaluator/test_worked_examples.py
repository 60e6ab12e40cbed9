"""The worked examples of communication, compute and inference speed, with their numbers.

What is not here stands beside the function that it is about: bus factors, FSDP and tensor traffic
in `test_collectives`; switched and PCIe tables in `test_link_costs`; FLOPs and crossover batches in
`test_flops`; scaling in `test_scaling`; queues in `test_queueing`; users of one machine in
`test_timing`.
"""

from __future__ import annotations

import pytest

from evaluator.calibration import figure
from evaluator.collectives import traffic
from evaluator.engine_load import EngineModel
from evaluator.estimates import Result, Setting, estimate
from evaluator.exchanges import Operation, bus_factor
from evaluator.flops import published_flops
from evaluator.gpus import GpuSpec
from evaluator.jobs import Schedule, Workload
from evaluator.layouts import Layout
from evaluator.link_costs import Fabric, Group, busbw_range, seconds
from evaluator.machine import LinkClass
from evaluator.plans import Plan
from evaluator.ranges import Range
from evaluator.rentals import Rental
from evaluator.timing import engine_on, offline_rate, serving_times, step_estimate
from evaluator.token_time import decode_terms
from evaluator.training_time import StepModel, bubble, compute_seconds, efficiency
from evaluator.units import GB, MIB
from tests.evaluator.cards import (
    A100,
    B200,
    H100,
    H200,
    L40S,
    card,
    device,
    rental,
    served,
    trained,
    wire,
)
from tests.evaluator.machines import train

REDUCE = Operation.ALL_REDUCE
RTX = card("rtx-pro-6000-server")
SWITCHED = rental(H100, LinkClass.NVSWITCH)


def holds(found: Range | None, value: float) -> bool:
    return found is not None and found.low <= value <= found.high


# --- C1: what a collective costs


@pytest.mark.parametrize(
    ("spec", "kind", "gpus", "microseconds"),
    [
        (A100, LinkClass.NVSWITCH, 2, 10), (A100, LinkClass.NVSWITCH, 4, 15),
        (A100, LinkClass.NVSWITCH, 8, 23), (H100, LinkClass.NVSWITCH, 2, 6),
        (H100, LinkClass.NVSWITCH, 4, 10), (H100, LinkClass.NVSWITCH, 8, 16),
        (B200, LinkClass.NVSWITCH, 2, 10), (B200, LinkClass.NVSWITCH, 4, 15),
        (B200, LinkClass.NVSWITCH, 8, 25), (RTX, LinkClass.PCIE, 2, 6),
        (RTX, LinkClass.PCIE, 4, 13), (RTX, LinkClass.PCIE, 8, 25),
        (L40S, LinkClass.PCIE, 2, 8), (L40S, LinkClass.PCIE, 4, 12), (L40S, LinkClass.PCIE, 8, 23),
    ],
)  # fmt: skip
def test_measured_latencies_of_tiny_all_reduces(
    spec: GpuSpec, kind: LinkClass, gpus: int, microseconds: float
) -> None:
    assert holds(seconds(REDUCE, Group(gpus, 1, wire(kind, spec)), 8), microseconds * 1e-6)


@pytest.mark.parametrize(("gpus", "gb_per_s"), [(2, 38.6), (4, 26.4), (8, 24.7)])
def test_measured_all_reduces_over_pcie_5(gpus: int, gb_per_s: float) -> None:
    found = busbw_range(REDUCE, wire(LinkClass.PCIE, RTX), gpus, 1, None, 512 * MIB)
    assert holds(found, gb_per_s * GB)


@pytest.mark.parametrize(("gpus", "milliseconds"), [(2, 0.060), (4, 0.36), (8, 0.58)])
def test_one_mebibyte_over_the_pcie_of_l40s(gpus: int, milliseconds: float) -> None:
    """The engines' own kernels took so long; 4 GPUs were the worst against the class."""
    found = seconds(REDUCE, Group(gpus, 1, wire(LinkClass.PCIE, L40S)), MIB)
    assert holds(found, milliseconds * 1e-3)


def test_hierarchical_all_reduce_of_four_machines_of_b200() -> None:
    """4 GiB over 50 GB/s a GPU: 16.1 ms between machines alone, 26.3 ms one after the other."""
    size = 4 * 2**30
    between = float(bus_factor(REDUCE, 4)) * size / 8 / (50 * GB)
    inside = float(bus_factor(REDUCE, 8)) * size / (737 * GB)
    assert between == pytest.approx(16.1e-3, rel=0.005)
    assert between + inside == pytest.approx(26.3e-3, rel=0.005)
    found = seconds(REDUCE, Group(32, 4, wire(LinkClass.NVSWITCH, B200), Fabric(50 * GB)), size)
    assert holds(found, 22.05e-3)


# --- C2: bytes of a step


@pytest.mark.parametrize(("gb_per_s", "spent"), [(330, 0.13), (25, 1.7), (1.45, 29)])
def test_fsdp_of_an_8b_over_eight_moves_42_gb_in(gb_per_s: float, spent: float) -> None:
    moved = sum(one.sent_bytes for one in traffic(train(), Plan(dp=8, shard=8)))
    assert moved == pytest.approx(42.2e9, rel=0.002)
    assert moved / (gb_per_s * GB) == pytest.approx(spent, rel=0.02)


def test_compute_beside_it_takes_about_two_and_a_half_seconds() -> None:
    """2 x 8192 tokens a GPU at 400 TFLOPS, and in our own range for the same step."""
    job = trained(micro_batch=2, global_batch=16)
    flops = published_flops(job.model, 8192, causal=False, recomputed=False)
    assert flops is not None
    assert flops * 16384 / 400e12 == pytest.approx(2.5, rel=0.01)
    found = step_estimate(job, Layout(data=8, shard=8), SWITCHED)
    assert found is not None
    assert holds(found.value, 2.5)


def test_a_layer_of_70b_over_eight_waits_for_a_fast_and_for_a_slow_link() -> None:
    """320 all-reduces of 134 MB: 0.17 s at 445 GB/s, 5.8 s at 13 GB/s, beside 0.80 s of compute."""
    (found,) = traffic(train("llama-3.1-70b", seq_len=8192), Plan(tp=8))
    assert (found.calls, round(found.message_bytes / 1e6)) == (320, 134)
    assert found.sent_bytes / (445 * GB) == pytest.approx(0.17, rel=0.01)
    assert found.sent_bytes / (13 * GB) == pytest.approx(5.8, rel=0.01)
    job = trained("llama-3.1-70b", global_batch=1)
    assert job.training is not None
    on = SWITCHED
    model = StepModel(job.model, job.training, Layout(tensor=8), on.device, on.worlds[0])
    computed = sum(compute_seconds(model, Setting()).values())
    assert computed == pytest.approx(0.80, rel=0.15)


# --- D2: model FLOPs utilisation that was seen


def utilisation(job: Workload, layout: Layout, on: Rental, arithmetic: str = "bf16") -> Range:
    """Model FLOPs in the full convention over what all peaks could do in a step."""
    step = step_estimate(job, layout, on, arithmetic)
    seq_len, batch = job.training.seq_len, job.training.global_batch  # type: ignore[union-attr]
    flops = published_flops(job.model, seq_len, causal=False, recomputed=False)
    assert step is not None
    assert flops is not None
    whole = flops * seq_len * (batch or 1) / (on.device.rate(arithmetic)[1] * layout.gpus)
    return Range(whole / step.value.high, whole / step.value.typical, whole / step.value.low)


@pytest.mark.parametrize(
    ("spec", "arithmetic", "model", "least", "most"),
    [
        (A100, "bf16", "llama-3.1-8b", 0.43, 0.60),
        (H100, "bf16", "llama-3.1-8b", 0.32, 0.49),
        (H100, "bf16", "llama-3.1-70b", 0.32, 0.49),
        (H100, "fp8", "llama-3.1-70b", 0.37, 0.42),
        (H100, "fp8", "llama-3.1-8b", 0.14, 0.29),
    ],
)
def test_sharded_training_is_predicted_near_the_utilisation_that_was_seen(
    spec: GpuSpec, arithmetic: str, model: str, least: float, most: float
) -> None:
    job = trained(model, global_batch=64, seq_len=4096)
    fabric = rental(spec, LinkClass.NVSWITCH, Fabric(50 * GB))
    found = utilisation(job, Layout(data=64, shard=64, nodes=8), fabric, arithmetic)
    assert found.low <= most
    assert found.high >= least


def test_narrow_models_reach_less_of_the_peak() -> None:
    """e = e_inf h / (h + 600): 0.87 of the limit at 4096 channels, 0.95 at 12288."""
    assert pytest.approx(0.872, abs=0.001) == 4096 / (4096 + 600)
    narrow, wide = (
        utilisation(trained(model, global_batch=8, seq_len=2048), Layout(), SWITCHED).typical
        for model in ("llama-3.1-8b", "llama-3.1-70b")
    )
    assert 0.85 < narrow / wide < 1


def test_hopper_reaches_less_of_its_peak_than_ampere() -> None:
    """0.74 and 0.55 where sharding hides all its traffic; a little more where some of it shows."""
    ampere, hopper = (efficiency(device(one), "half", sharded=True) for one in (A100, H100))
    assert ampere.typical == pytest.approx(0.74, rel=0.06)
    assert hopper.typical == pytest.approx(0.55, rel=0.03)


# --- D3: bubbles


def bubble_of(rounds: int, virtual: int, schedule: Schedule = Schedule.ONE_F_ONE_B) -> float:
    job = trained(global_batch=rounds, schedule=schedule)
    layout = Layout(stages=8, virtual=virtual)
    model = StepModel(job.model, job.training, layout, SWITCHED.device, SWITCHED.worlds[0])  # type: ignore[arg-type]
    return bubble(model, Setting())


@pytest.mark.parametrize(
    ("rounds", "virtual", "idle", "efficient"),
    [(32, 1, 0.219, 0.821), (32, 4, 0.055, 0.948), (8, 1, 0.875, 0.533)],
)
def test_bubbles_and_what_they_leave(
    rounds: int, virtual: int, idle: float, efficient: float
) -> None:
    found = bubble_of(rounds, virtual)
    assert found == pytest.approx(idle, abs=0.001)
    assert 1 / (1 + found) == pytest.approx(efficient, abs=0.001)


def test_zero_bubble_schedules_idle_a_third_and_not_at_all() -> None:
    plain = bubble_of(32, 1)
    assert bubble_of(32, 1, Schedule.ZERO_BUBBLE_1) == pytest.approx(plain / 3)
    assert bubble_of(32, 1, Schedule.ZERO_BUBBLE_2) == 0
    assert bubble_of(32, 1, Schedule.GPIPE) == plain


# --- E2: one H200 with all requests queued


def engine(job: Workload, layout: Layout, on: Rental) -> EngineModel:
    found = engine_on(job, layout, on, on.worlds[0])
    assert found is not None
    return found


def test_a_70b_on_one_h200_decodes_344_sequences_in_76_ms() -> None:
    """76 ms a step, 4258 tokens/s by the formula, 4166 measured."""
    job, on = served(input_tokens=128, output_tokens=2048), rental(H200)
    one = engine(job, Layout(), on)
    step = estimate(lambda setting: Result(sum(decode_terms(one, setting, 344).values())), "s")
    assert holds(step.value, 0.076)
    rate = offline_rate(job, Layout(), on)
    assert rate is not None
    assert holds(rate.value, 4258)
    assert holds(rate.value, 4166)


# --- E3: one token over several GPUs


def test_two_tensor_ranks_read_half_of_the_weights_each() -> None:
    """35.3 GB at 2.35e12 B/s are 15.0 ms; 160 all-reduces of 6 us are 1.0 ms; host 1 to 2 ms."""
    assert pytest.approx(15.0e-3, rel=0.005) == 35.3e9 / 2.35e12
    terms = decode_terms(engine(served(), Layout(tensor=2), SWITCHED), Setting(), 1)
    assert terms["reading weights"] == pytest.approx(15.0e-3, rel=0.03)
    assert terms["exchange"] == pytest.approx(1.0e-3, rel=0.05)
    assert 1e-3 <= terms["host"] <= 2e-3
    assert 17e-3 <= sum(terms.values()) <= 18.6e-3


def test_two_stages_read_them_one_after_the_other() -> None:
    """15.0 + about 0.01 for a hop of 16 KiB + 15.0 + host: 31 ms for the same user."""
    terms = decode_terms(engine(served(), Layout(stages=2), SWITCHED), Setting(), 1)
    assert terms["reading weights"] == pytest.approx(30.0e-3, rel=0.05)
    assert terms["hops"] == pytest.approx(0.01e-3, abs=0.01e-3)
    assert 30e-3 <= sum(terms.values()) <= 33e-3


def test_a_second_user_fills_the_idle_stage() -> None:
    one, two = (
        serving_times(served(concurrency=users, input_tokens=16), Layout(stages=2), SWITCHED)
        for users in (1, 2)
    )
    assert one is not None
    assert two is not None
    assert two.rate.value.typical / one.rate.value.typical == pytest.approx(2, rel=0.05)


@pytest.mark.parametrize(("gpus", "weights", "whole"), [(2, 58, 68), (4, 29, 87), (8, 14.6, 108)])
def test_batch_64_on_l40s_reads_less_and_waits_more(
    gpus: int, weights: float, whole: float
) -> None:
    """58, 29 and 14.6 ms of weights at 0.70 of the bandwidth, with communication 68, 87 and 108."""
    on = rental(L40S, LinkClass.PCIE)
    one = engine(served(input_tokens=128, output_tokens=128), Layout(tensor=gpus), on)
    terms = decode_terms(one, Setting(), 64)
    at_share = terms["reading weights"] * figure("serving.memory_GDDR").typical / 0.70
    assert at_share == pytest.approx(weights * 1e-3, rel=0.06)
    step = estimate(lambda setting: Result(sum(decode_terms(one, setting, 64).values())), "s")
    assert holds(step.value, whole * 1e-3)


# --- E4: replicas or tensor parallel


QWEN = {"input_tokens": 128, "output_tokens": 128, "kv_dtype": "fp8"}


def test_eight_replicas_make_eight_times_as_much_and_eight_tensor_ranks_do_not() -> None:
    """Qwen3-30B in FP4 over PCIe 5 made 28.0 thousand tokens/s on one GPU, 1.41 times on eight."""
    job, on = served("qwen3-30b-a3b", "nvfp4", **QWEN), rental(RTX, LinkClass.PCIE)
    found = [offline_rate(job, layout, on) for layout in (Layout(), Layout(replicas=8))]
    tensor = offline_rate(job, Layout(tensor=8), on)
    assert found[0] is not None
    assert found[1] is not None
    assert tensor is not None
    assert holds(found[0].value, 28_000)
    assert found[1].value.typical == pytest.approx(8 * found[0].value.typical)
    assert tensor.value.high < 1.41 * found[0].value.typical


@pytest.mark.parametrize(("gpus", "rate"), [(1, 28_000), (2, 32_600), (4, 36_800)])
def test_small_experts_over_pcie_are_reached_by_less_than_two_all_reduces(
    gpus: int, rate: float
) -> None:
    """28.0, 32.6 and 36.8 thousand tokens/s: what slots carry of two all-reduces allows less."""
    job, on = served("qwen3-30b-a3b", "nvfp4", **QWEN), rental(RTX, LinkClass.PCIE)
    found = offline_rate(job, Layout(tensor=gpus), on)
    assert found is not None
    assert holds(found.value, rate)


def test_stages_over_pcie_scale_as_published() -> None:
    """70B in FP4, 1000/2000: 1594, 2993, 5274 and 6943 tokens/s on 1, 2, 4 and 8 stages."""
    job = served("llama-3.1-70b", "nvfp4", kv_dtype="fp8", input_tokens=1000, output_tokens=2000)
    on = rental(RTX, LinkClass.PCIE)
    found = [offline_rate(job, Layout(stages=stages), on) for stages in (1, 2, 4, 8)]
    values = [one.value for one in found if one]
    published = (1594, 2993, 5274, 6943)
    assert [holds(one, rate) for one, rate in zip(values, published, strict=True)] == [True] * 4
    gains = [one.typical / values[0].typical for one in values[1:]]
    for gain, seen in zip(gains, (1.88, 3.31, 4.36), strict=True):
        assert seen == pytest.approx(gain, rel=0.25)


# --- E5: users of two H100


@pytest.mark.parametrize(
    ("users", "formula", "measured"),
    [(1, 18.3, 18.6), (5, 21.6, 21.8), (25, 37.7, 38.8), (50, 57.9, 59.7), (87, 87.8, 92.9)],
)
def test_time_per_token_of_many_users(users: int, formula: float, measured: float) -> None:
    found = serving_times(served(concurrency=users), Layout(tensor=2), SWITCHED)
    assert found is not None
    assert holds(found.tpot.value, formula * 1e-3)
    assert holds(found.tpot.value, measured * 1e-3)


@pytest.mark.parametrize("users", [1, 5, 25, 50])
def test_littles_law_holds_below_saturation(users: int) -> None:
    """X = C x output / E2E within 2 %."""
    found = serving_times(served(concurrency=users), Layout(tensor=2), SWITCHED)
    assert found is not None
    whole = found.ttft.value.typical + 499 * found.tpot.value.typical
    assert found.rate.value.typical == pytest.approx(users * 500 / whole, rel=0.1)


@pytest.mark.parametrize(
    ("users", "seconds_waited"), [(100, 8.0), (150, 34.8), (200, 61.7), (250, 88.6)]
)
def test_users_beyond_the_slots_wait_as_measured(users: int, seconds_waited: float) -> None:
    found = serving_times(served(concurrency=users), Layout(tensor=2), SWITCHED)
    assert found is not None
    assert holds(found.ttft.value, seconds_waited)
