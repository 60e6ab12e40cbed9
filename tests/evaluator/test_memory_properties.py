"""What must hold of every budget: dense models, experts, latent attention and hybrids alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.activations import activations_component
from evaluator.jobs import Recompute, ServingJob, TrainingJob, Workload
from evaluator.kv_cache import sequence_bytes
from evaluator.memory import budget
from evaluator.models import preset
from evaluator.parameters import computed_params, others, total_params
from evaluator.partition import params_of, rank_classes, stage_of, stages_of
from evaluator.plans import Plan
from evaluator.ranges import Range
from evaluator.shapes import ModelShape
from evaluator.states import states_bytes
from evaluator.workload import parse_workload
from tests.evaluator.hybrids import SHAPES as HYBRIDS

ENDS = ("low", "typical", "high")
SHAPES: Mapping[str, ModelShape] = {
    **{
        slug: preset(slug)
        for slug in (
            "llama-3.1-8b",
            "gemma-2-9b",
            "gpt-oss-20b",
            "mixtral-8x7b-v0.1",
            "deepseek-v3",
            "llama-4-scout-17b-16e",
            "opt-13b",
        )
    },
    **HYBRIDS,
}
SERVING: dict[str, Any] = {"task": "serve", "model": {"preset": "llama-3.1-8b"}}
JOBS = {
    "serve": SERVING,
    "serve sglang": SERVING | {"engine": "sglang", "weights_format": "fp8"},
    "serve with adapters": SERVING | {"lora": {}, "draft_params": 10**9, "engine": "tensorrt-llm"},
    "train": SERVING | {"task": "train"},
    "train unfused": SERVING | {"task": "train", "attention": "unfused", "zero_stage": 1},
    "recompute": SERVING | {"task": "train", "recompute": "full", "zero_stage": 2},
    "finetune": SERVING | {"task": "finetune", "lora": {}, "weights_format": "bnb-nf4"},
}
few = settings(max_examples=50, deadline=None)
NAMES = st.sampled_from(list(SHAPES))
TASKS = st.sampled_from(list(JOBS))
DEGREE = st.sampled_from((1, 2, 4, 8))
WORKLOADS = {name: parse_workload(document) for name, document in JOBS.items()}


def workload(task: str, name: str) -> Workload:
    return replace(WORKLOADS[task], model=SHAPES[name])


def longer(job: Workload, tokens: int, requests: int) -> Workload:
    if job.serving:
        return replace(job, serving=replace(job.serving, input_tokens=tokens, concurrency=requests))
    assert job.training is not None
    return replace(job, training=replace(job.training, seq_len=tokens, micro_batch=requests))


def parts(job: Workload, plan: Plan) -> list[Mapping[str, Range]]:
    return [{one.name: one.bytes for one in rank.components} for rank in budget(job, plan).ranks]


def below(lesser: Range, greater: Range) -> bool:
    """In all three ends, up to rounding."""
    return all(getattr(lesser, end) <= getattr(greater, end) * (1 + 1e-12) for end in ENDS)


PLANS = st.builds(
    lambda tp, pp, dp, sharded, cp: Plan(tp=tp, pp=pp, dp=dp, shard=dp if sharded else 1, cp=cp),
    DEGREE,
    st.sampled_from((1, 2, 4)),
    DEGREE,
    st.booleans(),
    st.sampled_from((1, 2)),
)


@few
@given(TASKS, NAMES, PLANS, st.integers(16, 40_000), st.integers(0, 40_000), st.integers(1, 64))
def test_no_component_falls_with_length(
    task: str, name: str, plan: Plan, tokens: int, more: int, requests: int
) -> None:
    job = workload(task, name)
    small, large = longer(job, tokens, requests), longer(job, tokens + more, requests)
    for lesser, greater in zip(parts(small, plan), parts(large, plan), strict=True):
        assert all(below(lesser[part], greater[part]) for part in lesser)


@few
@given(TASKS, NAMES, PLANS, st.integers(16, 20_000), st.integers(1, 300), st.integers(1, 300))
def test_no_component_falls_with_the_batch(
    task: str, name: str, plan: Plan, tokens: int, requests: int, more: int
) -> None:
    job = workload(task, name)
    small, large = longer(job, tokens, requests), longer(job, tokens, requests + more)
    for lesser, greater in zip(parts(small, plan), parts(large, plan), strict=True):
        assert all(below(lesser[part], greater[part]) for part in lesser)


@few
@given(TASKS, NAMES, st.integers(1, 150), st.integers(1, 50), DEGREE)
def test_no_component_falls_with_layers(
    task: str, name: str, layers: int, more: int, tp: int
) -> None:
    """On one stage: of several the boundaries move, and with them the heavy layers of a hybrid. A
    stated total would leave less to a tower, the deeper the text model is."""
    job = workload(task, name)
    job = replace(job, model=replace(job.model, given_params=None))
    fewer, deeper = (
        parts(replace(job, model=replace(job.model, layers=count)), Plan(tp=tp))[0]
        for count in (layers, layers + more)
    )
    assert all(below(fewer[part], deeper[part]) for part in fewer)


UNDIVIDED = frozenset({"communicators", "overhead", "tower_profile"})
"""What an engine holds besides may grow with the ranks; all else is divided, or whole on each."""


@few
@given(TASKS, NAMES, PLANS, st.sampled_from(("fp8", "bf16")))
def test_more_tensor_ranks_raise_no_component_that_is_divided(
    task: str, name: str, plan: Plan, form: str
) -> None:
    job = workload(task, name)
    job = replace(job, weights_format=form) if job.serving else job
    narrow, wide = parts(job, plan), parts(job, replace(plan, tp=2 * plan.tp))
    for few, many in zip(narrow, wide, strict=True):
        assert all(below(many[part], few[part]) for part in few.keys() - UNDIVIDED)


@few
@given(NAMES, DEGREE, st.sampled_from((1, 2, 3, 4, 7)), DEGREE, st.sampled_from((1, 2)), DEGREE)
def test_all_ranks_together_hold_at_least_the_model(
    name: str, tp: int, pp: int, ep: int, etp: int, cp: int
) -> None:
    """Experts lie on `ep` times `etp` ranks where they are divided, else on the tensor ranks."""
    shape, plan = SHAPES[name], Plan(tp=tp, pp=pp, ep=ep, etp=etp, cp=cp)
    divided = ep * etp if ep > 1 else tp
    held = 0
    for rank in stages_of(shape, plan):
        experts, others = params_of(stage_of(shape, rank), plan)
        held += cp * (experts * divided + others * tp)
    assert held >= cp * (computed_params(shape) or 0) > 0


@few
@given(NAMES, DEGREE, st.sampled_from((1, 2, 3, 4)), DEGREE)
def test_all_shards_together_hold_the_states_of_the_model(
    name: str, tp: int, pp: int, dp: int
) -> None:
    shape, plan = SHAPES[name], Plan(tp=tp, pp=pp, dp=dp, shard=dp)
    job, beyond = TrainingJob(zero_stage=3), others(shape)
    held = sum(
        states_bytes(params_of(stage_of(shape, rank), plan), rank, beyond, job, job.precision, plan)
        for rank in stages_of(shape, plan)
    )
    assert tp * dp * held >= 16 * (total_params(shape) or 0) * (1 - 1e-9)


@few
@given(NAMES, DEGREE, st.integers(1, 50_000))
def test_tensor_ranks_together_cache_at_least_the_whole_sequence(
    name: str, tp: int, tokens: int
) -> None:
    shape, job = SHAPES[name], ServingJob()
    one = rank_classes(shape, Plan())[0]
    whole = sequence_bytes(shape, job, Plan(), one, tokens)
    assert tp * sequence_bytes(shape, job, Plan(tp=tp), one, tokens) >= whole


@few
@given(NAMES, st.sampled_from((2, 3, 4, 8)), st.integers(1, 9000), st.sampled_from(Recompute))
def test_context_ranks_together_keep_at_least_the_whole_sequence(
    name: str, cp: int, tokens: int, recompute: Recompute
) -> None:
    shape, job = SHAPES[name], TrainingJob(seq_len=tokens, recompute=recompute)
    one = rank_classes(shape, Plan())[0]
    whole = activations_component(shape, job, Plan(), one).bytes
    shared = activations_component(shape, job, Plan(cp=cp), one).bytes
    assert below(whole, shared.scaled(cp))
    assert below(shared, whole)
