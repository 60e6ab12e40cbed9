"""Engines, schedules, experts and host memory: what each changes in a budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.activations import in_flight
from evaluator.configs import read_model
from evaluator.engines import Share, engine, engines, is_listed
from evaluator.facts import declared
from evaluator.fields import InvalidWorkload
from evaluator.findings import Code
from evaluator.host import HostItem, HostWord, host_items
from evaluator.jobs import Schedule, ServingJob, TrainingJob, Workload
from evaluator.kv_cache import bytes_per_token, cache_sizes, state_bytes
from evaluator.machine import Machine
from evaluator.memory import (
    budget,
    cache_tokens,
    fit,
    longest_start,
    max_concurrent_sequences,
)
from evaluator.models import preset, presets
from evaluator.parameters import others, total_params
from evaluator.partition import params_of, rank_classes, stage_of
from evaluator.plans import Plan
from evaluator.ranges import Range
from evaluator.shapes import Recurrence
from evaluator.shares import WHOLE
from evaluator.states import host_bytes
from evaluator.units import GB, GIB
from evaluator.workload import parse_workload

ONE = Plan()


def serving(model: str = "llama-3.1-8b", **keys: Any) -> Workload:
    return parse_workload({"task": "serve", "model": {"preset": model}, **keys})


def training(model: str = "llama-3.1-8b", **keys: Any) -> Workload:
    return parse_workload({"task": "train", "model": {"preset": model}, **keys})


def part(workload: Workload, plan: Plan, name: str) -> Range:
    component = budget(workload, plan).ranks[0].component(name)
    assert component is not None
    return component.bytes


# --- engines


@pytest.mark.parametrize(
    ("version", "since"),
    [("", (0, 8)), ("0.7.x", (0,)), ("0.11.0", (0, 8)), ("0.21", (0, 21)), ("1.0", (0, 21))],
)
def test_a_version_is_read_to_its_range(version: str, since: tuple[int, ...]) -> None:
    assert engine("vllm", version).since == since


def test_every_engine_tells_its_source_and_grows_with_its_ranks() -> None:
    for versions in engines().values():
        for one in versions:
            assert one.sources
            sizes = [one.beside(ranks).typical for ranks in (1, 2, 3, 4, 8)]
            assert sizes == sorted(sizes)


def test_an_engine_that_is_not_listed_is_judged_as_vllm() -> None:
    assert engine("pegainfer").name == "vllm"
    assert not is_listed("pegainfer")


def test_graphs_lie_outside_the_share_before_0_21() -> None:
    jobs = (serving(engine_version=one, memory_utilization=0.9) for one in ("0.11", "0.21"))
    old, new = (budget(job, ONE) for job in jobs)
    assert (old.outside, new.outside) == (("cuda_graphs",), ())
    usable = int(new.usable_for(new.ranks[0]).typical)
    assert fit(old, usable).allowed_bytes == fit(new, usable).allowed_bytes
    needed = [fit(one, usable).needed for one in (old, new)]
    assert needed[0]
    assert needed[1]
    assert needed[0].typical < needed[1].typical


def test_a_static_fraction_holds_weights_and_cache_only() -> None:
    memory = budget(serving(engine="sglang", memory_utilization=0.3), ONE)
    verdict = fit(memory, 80 * GIB)
    assert verdict.needed == memory.ranks[0].without(memory.outside)
    assert verdict.share == 0.3


def test_a_share_of_the_free_memory_leaves_the_rest_of_it_unused() -> None:
    runs = serving(engine="tensorrt-llm", memory_utilization=0.8, concurrency=8)
    cache, reserve = part(runs, ONE, "kv_cache"), part(runs, ONE, "cache_reserve")
    assert engine("trtllm").share is Share.FREE
    assert reserve.typical == pytest.approx(cache.typical / 4)
    assert budget(runs, ONE).allowance == WHOLE


def test_adapters_and_a_draft_take_room_of_their_own() -> None:
    served = serving(lora={"rank": 16}, adapters=4, draft_params=10**9)
    assert part(served, ONE, "lora_buffers").typical == 4 * 2 * 13_631_488
    assert part(served, Plan(tp=2), "draft_model").typical == 1 * GB


def test_a_shared_prefix_is_a_range_and_its_high_end_spares_nothing() -> None:
    alone = part(serving(concurrency=10), ONE, "kv_cache")
    shared = part(serving(concurrency=10, prefix_share={"low": 0, "high": 0.5}), ONE, "kv_cache")
    assert shared.high == alone.high
    assert shared.low == pytest.approx(alone.low * 0.55)


@pytest.mark.parametrize("share", [{"low": 0.5}, {"low": 0.6, "high": 0.5}, {"low": 0, "high": 2}])
def test_a_shared_prefix_without_two_shares_in_order_is_refused(share: dict[str, float]) -> None:
    with pytest.raises(InvalidWorkload, match="prefix_share"):
        serving(prefix_share=share)


# --- capacity


def test_the_longest_start_is_the_last_length_that_fits() -> None:
    job = serving("qwen2.5-7b", max_num_seqs=8)
    longest = longest_start(job, ONE, 24 * GIB)
    assert longest
    words = [
        fit(budget(replace(job, serving=_limited(job, length)), ONE), 24 * GIB).word
        for length in (longest, longest + 16)
    ]
    assert words[0] != "does_not_fit" == words[1]


def _limited(job: Workload, length: int) -> Any:
    assert job.serving is not None
    return replace(job.serving, max_model_len=length)


def test_a_cache_holds_its_sequences_as_tokens() -> None:
    job = serving(input_tokens=4096, output_tokens=0)
    tokens = cache_tokens(job, ONE, 80 * GIB)
    most = max_concurrent_sequences(job, ONE, 80 * GIB)
    assert tokens
    assert most
    assert most == tokens // 4096
    assert tokens % 16 == 0


def test_nothing_starts_where_the_weights_do_not_fit() -> None:
    assert longest_start(serving("llama-3.1-70b"), ONE, 24 * GIB) == 0


# --- schedules


@pytest.mark.parametrize(
    ("schedule", "virtual", "first", "last"),
    [
        (Schedule.GPIPE, 1, 32, 32),
        (Schedule.ONE_F_ONE_B, 1, 4, 1),
        (Schedule.ONE_F_ONE_B, 2, 5.5, 2.5),
        (Schedule.ZERO_BUBBLE_1, 1, 4, 1),
        (Schedule.ZERO_BUBBLE_2, 1, 8, 2),
    ],
)
def test_a_schedule_holds_its_micro_batches(
    schedule: Schedule, virtual: int, first: float, last: float
) -> None:
    plan, shape = Plan(pp=4, virtual=virtual), preset("llama-3.1-70b")
    job = TrainingJob(global_batch=32, schedule=schedule)
    ranks = rank_classes(shape, plan)
    assert [in_flight(job, plan, rank) for rank in (ranks[0], ranks[-1])] == [first, last]


def test_context_ranks_divide_activations_and_logits() -> None:
    alone, shared = (budget(training(), plan).ranks[0] for plan in (ONE, Plan(cp=2)))
    for name in ("activations", "logits"):
        whole, half = alone.component(name), shared.component(name)
        assert whole
        assert half
        assert half.bytes.typical * 2 == whole.bytes.typical


# --- experts


def test_expert_ranks_divide_the_experts_and_nothing_else() -> None:
    shape = preset("qwen3-30b-a3b")
    held = stage_of(shape, rank_classes(shape, ONE)[0])
    experts, others = params_of(held, ONE)
    assert params_of(held, Plan(ep=8, dp=8)) == (experts / 8, others)
    assert params_of(held, Plan(ep=8, etp=2, dp=8)) == (experts / 16, others)


def test_experts_on_their_own_rank_are_not_sharded_again() -> None:
    plan = Plan(dp=8, shard=8, ep=8)
    job = training("qwen3-30b-a3b", zero_stage=1)
    shape = preset("qwen3-30b-a3b")
    experts, others = params_of(stage_of(shape, rank_classes(shape, plan)[0]), plan)
    states = part(job, plan, "model_states").typical
    assert states == pytest.approx(experts * 16 + others * (4 + 12 / 8))


# --- offload


def test_offloaded_states_leave_the_gpu_and_ask_for_host_memory() -> None:
    job = training(offload="optimizer")
    assert part(job, ONE, "model_states").typical == 4 * 8_030_261_248
    assert host_bytes(job, Plan(dp=8, shard=8)) == 14 * 8_030_261_248
    assert host_bytes(training(), ONE) == 0


def test_offloaded_parameters_leave_the_layers_at_hand() -> None:
    rank = budget(training(offload="params"), ONE).ranks[0]
    states, gathered = rank.component("model_states"), rank.component("gathered_layers")
    assert states
    assert gathered
    assert states.bytes.high == 0 < gathered.bytes.low


@pytest.mark.parametrize(
    ("ram", "word"), [(64 * GB, HostWord.FAIL), (256 * GB, HostWord.PASS), (None, HostWord.UNKNOWN)]
)
def test_the_host_is_asked_for_what_is_offloaded(ram: int | None, word: HostWord) -> None:
    item = _ram(training(offload="params"), Machine(ram_bytes=declared(ram)))
    assert item.word is word
    assert "The job keeps 128 GB in it." in item.reason


def _ram(workload: Workload, machine: Machine) -> HostItem:
    items = host_items(workload, ONE, machine, 16 * GB)
    return next(item for item in items if item.name == "host RAM")


# --- what must hold for every plan

SLUGS = st.sampled_from([slug for slug in presets() if preset(slug).computable])
DIVIDED = ("weights", "kv_cache", "activations", "logits", "model_states", "gathered_layers")


@given(SLUGS, st.sampled_from((1, 2, 4, 8)), st.booleans())
def test_more_tensor_ranks_never_raise_what_is_divided(slug: str, tp: int, serve: bool) -> None:
    job = serving(slug) if serve else training(slug)
    narrow, wide = (budget(job, Plan(tp=degree)).ranks[0] for degree in (tp, 2 * tp))
    for name in DIVIDED:
        lesser, greater = wide.component(name), narrow.component(name)
        if lesser and greater:
            assert lesser.bytes.typical <= greater.bytes.typical, name


@given(SLUGS, st.sampled_from((1, 2, 4)), st.sampled_from((1, 2, 4)))
def test_the_ranks_together_hold_at_least_the_whole_states(slug: str, tp: int, pp: int) -> None:
    plan, job = Plan(tp=tp, pp=pp), training(slug)
    whole = part(job, ONE, "model_states").typical
    shape = preset(slug)
    ranks = list(rank_classes(shape, plan))
    heaviest = max(part_of(job, plan, index) for index in range(len(ranks)))
    assert heaviest * tp * pp >= whole * 0.999999


def part_of(workload: Workload, plan: Plan, stage: int) -> float:
    component = budget(workload, plan).ranks[stage].component("model_states")
    assert component is not None
    return float(component.bytes.typical)


# --- layers that keep a state

QWEN_35: dict[str, Any] = {
    "architectures": ["Qwen3_5MoeForConditionalGeneration"],
    "hidden_size": 4096,
    "num_hidden_layers": 60,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "intermediate_size": 1024,
    "vocab_size": 248_320,
    "full_attention_interval": 4,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 64,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "total_params": 397_000_000_000,
}


def test_linear_layers_keep_a_state_and_no_tokens() -> None:
    shape, findings = read_model(QWEN_35)
    assert shape.cached_layers == 15
    assert shape.recurrence == Recurrence(layers=45, elements=1_085_440)
    assert not findings or shape.given_params


def test_states_and_tokens_take_what_a_log_says() -> None:
    shape, _ = read_model(QWEN_35)
    plan, job = Plan(tp=2), ServingJob(max_model_len=None)
    rank = rank_classes(shape, plan)[0]
    states = state_bytes(cache_sizes(shape, job), plan, rank)
    assert 82 * states / GIB == pytest.approx(7.42, rel=0.01)
    assert 580_364 * bytes_per_token(shape, job, plan, rank) / GIB == pytest.approx(8.30, rel=0.01)


def test_a_state_space_model_counts_its_layers_in_its_pattern() -> None:
    shape, _ = read_model(
        {
            "architectures": ["NemotronHForCausalLM"],
            "hidden_size": 4096,
            "num_hidden_layers": 4,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "intermediate_size": 21504,
            "vocab_size": 131072,
            "hybrid_override_pattern": "M-M*",
            "mamba_num_heads": 128,
            "mamba_head_dim": 64,
            "ssm_state_size": 128,
            "n_groups": 8,
            "conv_kernel": 4,
            "total_params": 8_000_000_000,
        }
    )
    assert shape.cached_layers == 1
    assert shape.recurrence == Recurrence(2, 8192 * 128 + 3 * (8192 + 2 * 8 * 128))


# --- towers

SIGLIP = {
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "patch_size": 14,
    "image_size": 896,
}


def test_a_vision_tower_counts_where_its_sizes_are_given() -> None:
    text = {
        "hidden_size": 2560,
        "num_hidden_layers": 34,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "intermediate_size": 10240,
        "vocab_size": 262208,
    }
    named = {"architectures": ["Gemma3ForConditionalGeneration"]}
    shape, _ = read_model({**named, "text_config": text, "vision_config": SIGLIP})
    assert shape.computable
    assert others(shape) == pytest.approx(417e6 + 1152 * 2560, rel=0.005)
    assert total_params(shape) == pytest.approx(4.30e9, rel=0.005)


def test_a_tower_without_its_sizes_asks_for_a_count() -> None:
    llava = {"architectures": ["LlamaForCausalLM"], "vision_config": {"depth": 32}}
    sizes = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32}
    rest = {"intermediate_size": 11008, "vocab_size": 32000}
    shape, findings = read_model({**llava, **sizes, **rest})
    assert not shape.computable
    assert next(one.code for one in findings) is Code.ARCHITECTURE_UNKNOWN
