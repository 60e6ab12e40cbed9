"""What must hold of every time, whatever the card, the model, the plan and the load."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evaluator.gpus import GpuSpec
from evaluator.jobs import Recompute, Workload
from evaluator.layouts import Layout
from evaluator.link_costs import Fabric, wire_of
from evaluator.machine import LinkClass
from evaluator.plans import Plan
from evaluator.ranges import Range
from evaluator.rentals import Rental, possible_kinds
from evaluator.timing import ServingTimes, serving_times, step_estimate, times_of
from evaluator.units import GB
from tests.evaluator.cards import card, rental, served, trained
from tests.evaluator.machines import known, machine
from tests.evaluator.test_timing import PLANS

CARDS = st.sampled_from(
    [
        card(name)
        for name in (
            "a100-sxm4-80", "b200-sxm-180", "gb300-288", "h100-sxm5-80", "h20-sxm5-96", "l40s",
            "mi300x", "mi355x", "rtx-3090", "rtx-4090", "rtx-pro-6000-server", "v100-sxm2-32",
        )
    ]
)  # fmt: skip
MODELS = st.sampled_from(
    ["llama-3.2-1b", "llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b-v0.1", "qwen3-30b-a3b",
     "deepseek-v2-lite", "gemma-3-27b"]
)  # fmt: skip
FORMATS = st.sampled_from(["bf16", "fp8", "int4", "nvfp4"])
ENGINES = st.sampled_from(["vllm", "sglang", "tensorrt-llm", "llama.cpp"])
SERVING = st.sampled_from(
    [
        Layout(),
        Layout(tensor=2),
        Layout(tensor=8),
        Layout(stages=4),
        Layout(tensor=2, stages=2),
        Layout(tensor=4, replicas=2),
        Layout(data=8, experts=8),
        Layout(tensor=8, stages=2, nodes=2),
    ]
)
TRAINING = st.sampled_from(
    [
        Layout(),
        Layout(tensor=4),
        Layout(data=8),
        Layout(data=8, shard=8),
        Layout(tensor=2, stages=4),
        Layout(context=4, data=2, shard=8),
        Layout(data=16, shard=8, nodes=2),
    ]
)
MANY = settings(max_examples=60, deadline=None)


def rented(spec: GpuSpec, kind: int) -> Rental:
    """With one of the links that the card's form permits, and a network."""
    kinds = [one for one in possible_kinds(spec) if wire_of(one, spec)]
    return rental(spec, kinds[kind % len(kinds)], Fabric(25.0 * GB))


def is_sound(value: Range) -> bool:
    return 0 < value.low <= value.typical <= value.high < inf


@given(CARDS, MODELS, FORMATS, ENGINES, SERVING, st.integers(1, 512), st.integers(0, 9))
@MANY
def test_every_time_is_a_range_above_zero(
    spec: GpuSpec, model: str, form: str, engine: str, layout: Layout, users: int, kind: int
) -> None:
    found = serving_times(
        served(model, form, concurrency=users, engine=engine), layout, rented(spec, kind)
    )
    assume(found is not None)
    assert found is not None
    assert all(is_sound(one.value) for one in (found.ttft, found.tpot, found.rate))


@given(CARDS, MODELS, FORMATS, SERVING, st.integers(1, 256), st.integers(2, 4), st.integers(0, 9))
@MANY
def test_more_users_below_saturation_make_more_and_wait_longer(
    spec: GpuSpec, model: str, form: str, layout: Layout, users: int, more: int, kind: int
) -> None:
    one, other = (
        serving_times(
            served(model, form, concurrency=count, max_num_seqs=1024, input_tokens=512),
            layout,
            rented(spec, kind),
        )
        for count in (users, users * more)
    )
    assume(one is not None and other is not None and users * more <= other.slots.low)
    assert one is not None
    assert other is not None
    assert other.rate.value.typical >= one.rate.value.typical * (1 - 1e-9)
    assert other.tpot.value.typical >= one.tpot.value.typical * (1 - 1e-9)
    assert other.ttft.value.typical >= one.ttft.value.typical * (1 - 1e-9)


@given(CARDS, FORMATS, SERVING, st.integers(1, 64), st.integers(0, 9))
@MANY
def test_a_larger_model_of_one_family_answers_later(
    spec: GpuSpec, form: str, layout: Layout, users: int, kind: int
) -> None:
    assume(layout.experts == 1)
    found = [
        serving_times(served(model, form, concurrency=users), layout, rented(spec, kind))
        for model in ("llama-3.1-8b", "llama-3.1-70b")
    ]
    small, large = found
    assume(small is not None and large is not None and users <= large.slots.typical)
    assert small is not None
    assert large is not None
    assert small.tpot.value.typical < large.tpot.value.typical
    assert small.ttft.value.typical < large.ttft.value.typical


@given(CARDS, SERVING, st.integers(64, 4096), st.integers(2, 8), st.integers(0, 9))
@MANY
def test_a_longer_prompt_delays_the_first_token(
    spec: GpuSpec, layout: Layout, tokens: int, more: int, kind: int
) -> None:
    short, long = (
        serving_times(
            served("mixtral-8x7b-v0.1", input_tokens=size, max_num_seqs=8),
            layout,
            rented(spec, kind),
        )
        for size in (tokens, tokens * more)
    )
    assume(short is not None and long is not None)
    assert short is not None
    assert long is not None
    assert short.ttft.value.typical < long.ttft.value.typical


def step_of(job: Workload, layout: Layout, on: Rental) -> float:
    found = step_estimate(job, layout, on)
    assert found is not None
    assert is_sound(found.value)
    return float(found.value.typical)


@given(CARDS, TRAINING, st.sampled_from([512, 2048, 8192, 65536]), st.integers(0, 9))
@MANY
def test_more_work_takes_longer_to_train(
    spec: GpuSpec, layout: Layout, tokens: int, kind: int
) -> None:
    """A larger model, repeated forward passes and twice the batch each add to a step."""
    on, plain = rented(spec, kind), trained(seq_len=tokens)
    assert plain.training is not None
    whole = replace(plain.training, recompute=Recompute.FULL)
    twice = replace(plain.training, global_batch=128)
    larger = [
        trained("llama-3.1-70b", seq_len=tokens),
        replace(plain, training=whole),
        replace(plain, training=twice),
    ]
    first = step_of(plain, layout, on)
    assert all(step_of(one, layout, on) > first for one in larger)


KNOWING = {
    LinkClass.PCIE: LinkClass.PCIE_P2P,
    None: LinkClass.PCIE,
}
"""What is known of a path through slots, and what more may be read of the machine."""


@given(st.sampled_from(["H100", "L40S", "RTX 4090", "A100"]), st.sampled_from(PLANS))
@MANY
def test_knowing_more_of_a_slot_never_widens_a_range(model: str, plan: Plan) -> None:
    workload = served(concurrency=16) if plan.dp == 1 else trained()
    for before, after in KNOWING.items():
        wide, narrow = (
            times_of(workload, plan, machine(model, link=known(kind) if kind else None))
            for kind in (before, after)
        )
        if wide is None or narrow is None:
            continue
        one, other = (
            found.rate if isinstance(found, ServingTimes) else found for found in (wide, narrow)
        )
        assert one.value.low <= other.value.low * (1 + 1e-9)
        assert other.value.high / other.value.low <= one.value.high / one.value.low * (1 + 1e-9)
