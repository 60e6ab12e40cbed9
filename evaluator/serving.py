"""The components of a serving budget."""

from __future__ import annotations

from evaluator.budgets import Component
from evaluator.formats import WeightFormat
from evaluator.jobs import ServingJob, Workload
from evaluator.kv_cache import kv_component, sequences_per_replica
from evaluator.partition import RankClass
from evaluator.plans import Plan
from evaluator.ranges import Range, exact
from evaluator.shapes import ModelShape
from evaluator.units import GIB
from evaluator.weights import weights_component

SAMPLER_BYTES = 38.5
"""Bytes per sequence and vocabulary entry of the sampler's buffers: an empirical fit to logged
profile peaks of vLLM (llm-d-planner's empirical results)."""
PREFILL_BYTES = 6
"""Bytes per token of a step and element of (inner size + hidden): the second empirical fit."""
PREFILL_TOKENS = Range(2048, 8192, 8192)
"""Tokens of one prefill step where not stated: vLLM's defaults on small and on large cards."""
LEAST_SEQUENCES_HIGH = 256
"""vLLM profiles with at least this many sequences unless `max_num_seqs` is stated."""
PEAK_SPREAD = Range(0.5, 1.0, 1.3)

ALONE = Range(0.05 * GIB, 0.15 * GIB, 1.8 * GIB)
WITH_COMMUNICATORS = Range(0.3 * GIB, 0.55 * GIB, 3.6 * GIB)
GRAPHS = Range(0.1 * GIB, 0.5 * GIB, 1.1 * GIB)


def serving_components(
    workload: Workload, job: ServingJob, form: WeightFormat, plan: Plan, rank: RankClass
) -> tuple[Component, ...]:
    """Weights, cache, activation peak, what the engine holds besides, captured graphs."""
    model = workload.model
    return (
        weights_component(model, workload.weights_format, form, plan, rank),
        kv_component(model, job, plan, rank),
        _activation_peak(model, job, plan, rank),
        _engine_overhead(plan),
        _cuda_graphs(),
    )


def _activation_peak(shape: ModelShape, job: ServingJob, plan: Plan, rank: RankClass) -> Component:
    """The larger of one prefill step and the sampler, which only the last stage runs."""
    sampler = _sampler(shape, job, plan) if rank.has_head else Range(0, 0, 0)
    prefill = _prefill(shape, job, plan)
    peak = Range(
        max(sampler.low, prefill.low) * PEAK_SPREAD.low,
        max(sampler.typical, prefill.typical),
        max(sampler.high, prefill.high) * PEAK_SPREAD.high,
    )
    return Component(
        name="activations",
        bytes=peak,
        formula="max(6 x step tokens x (inner / tp + hidden), 38.5 x sequences x vocabulary)",
        inputs=(
            ("step tokens", f"{job.max_num_batched_tokens or PREFILL_TOKENS.typical:,}"),
            ("sequences", str(job.max_num_seqs or sequences_per_replica(job, plan))),
            ("vocabulary", f"{shape.vocab:,}"),
            ("tp", str(plan.tp)),
        ),
        source="two empirical fits to logged profile peaks: llm-d-planner, vllm#10511",
    )


def _sampler(shape: ModelShape, job: ServingJob, plan: Plan) -> Range:
    """An engine profiles with `max_num_seqs`, whatever is asked of it later."""
    each = SAMPLER_BYTES * shape.vocab
    if job.max_num_seqs is not None:
        return exact(each * job.max_num_seqs)
    wanted = sequences_per_replica(job, plan)
    return Range(each * wanted, each * wanted, each * max(wanted, LEAST_SEQUENCES_HIGH))


def _prefill(shape: ModelShape, job: ServingJob, plan: Plan) -> Range:
    width = PREFILL_BYTES * (_inner(shape) / plan.tp + shape.hidden)
    stated = job.max_num_batched_tokens
    tokens = exact(stated) if stated else PREFILL_TOKENS
    return tokens.scaled(width)


def _inner(shape: ModelShape) -> int:
    """Inner size of the widest layer as one token sees it."""
    experts = shape.experts
    if experts is None:
        return shape.mlp_size
    routed = experts.active * experts.size + experts.shared_size
    return max(routed, shape.mlp_size) if experts.dense_layers else routed


def _engine_overhead(plan: Plan) -> Component:
    joined = plan.tp * plan.pp > 1
    return Component(
        name="engine_overhead",
        bytes=WITH_COMMUNICATORS if joined else ALONE,
        formula="CUDA context, libraries and, on several GPUs, communicators",
        inputs=(("GPUs of one replica", str(plan.tp * plan.pp)),),
        source="logs: 0.03 to 1.79 GiB alone, 0.54 to 3.58 at tp 2 (llm-d-planner, vllm#10511)",
    )


def _cuda_graphs() -> Component:
    return Component(
        name="cuda_graphs",
        bytes=GRAPHS,
        formula="captured decode graphs",
        source="vLLM logs: 0.09 to 1.03 GiB (llm-d-planner)",
    )
