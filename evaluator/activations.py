"""Activations and logits of a training job on one GPU: an openly wide estimate."""

from __future__ import annotations

from evaluator.budgets import Component
from evaluator.jobs import Recompute, TrainingJob
from evaluator.partition import RankClass, layer_groups
from evaluator.plans import Plan
from evaluator.ranges import Range, exact, total
from evaluator.shapes import ModelShape

SPREAD = Range(0.75, 1.0, 1.25)
"""Eager against compiled kernels move a Llama block by this much (seen, not derived)."""
NORM_COPIES = 8
"""Bytes per token and hidden element of fp32 norm copies that some implementations keep."""
FROZEN_LOW = 0.6
"""With a frozen base no input has to be kept for a weight gradient that is never computed."""
GPT_BYTES, GPT_REPLICATED = 34, 10
"""Korthikanti et al. (arXiv 2205.05198), Table 2: bytes per token and hidden element of a GPT
block without attention scores; 10 of them are on every rank without sequence parallelism."""
SCORE_BYTES = 5
"""The same table: 5 a s / h more per hidden element where attention scores are kept."""

LOGITS = Range(2, 8, 10)
"""Bytes per logit: 16-bit alone; with fp32 copy and 16-bit gradient; with fp32 gradient."""


def layer_bytes_per_token(shape: ModelShape, job: TrainingJob, plan: Plan, routed: bool) -> Range:
    """Kept activations of one layer for one token, nothing computed twice."""
    if shape.gated:
        low, typical, high = _gated(shape, plan, job, routed)
    else:
        low = typical = high = _plain(shape, plan, job)
    low, high = low * SPREAD.low, high * SPREAD.high
    scores = _scores(shape, job, plan)
    return Range(low * (FROZEN_LOW if job.lora else 1) + scores, typical + scores, high + scores)


def _gated(
    shape: ModelShape, plan: Plan, job: TrainingJob, routed: bool
) -> tuple[float, float, float]:
    """Tensors that a gated block keeps: 12 h + 4 k d + 6 to 8 f bytes, 8 h of it around norms."""
    keys = 4 * shape.attention.kv_heads * shape.attention.head_dim
    inner = mlp_width(shape, routed)
    divided = 4 * shape.hidden + keys
    norms = 8 * shape.hidden / (plan.tp if job.sequence_parallel else 1)
    low = norms + (divided + 6 * inner) / plan.tp
    typical = norms + (divided + 8 * inner) / plan.tp
    return low, typical, typical + NORM_COPIES * shape.hidden / 2 / plan.tp


def _plain(shape: ModelShape, plan: Plan, job: TrainingJob) -> float:
    whole = 0 if job.sequence_parallel else GPT_REPLICATED
    return shape.hidden * (whole + (GPT_BYTES - whole) / plan.tp)


def _scores(shape: ModelShape, job: TrainingJob, plan: Plan) -> float:
    if job.fused_attention or job.recompute is not Recompute.NONE:
        return 0
    return SCORE_BYTES * shape.attention.heads * job.seq_len / plan.tp


def mlp_width(shape: ModelShape, routed: bool) -> int:
    """Inner size that one token passes in a layer: all of its experts together."""
    experts = shape.experts
    if experts is None or not routed:
        return shape.mlp_size
    return experts.active * experts.size + experts.shared_size


def micro_batches(job: TrainingJob, plan: Plan) -> int:
    """Micro-batches per step and replica; enough to fill the pipeline where it is not stated."""
    if job.global_batch is None:
        return plan.pp
    return max(1, -(-job.global_batch // (plan.dp * job.micro_batch)))


def in_flight(job: TrainingJob, plan: Plan, rank: RankClass) -> int:
    """Micro-batches whose activations a stage holds under 1F1B (arXiv 2205.05198, 4.2.3)."""
    return min(micro_batches(job, plan), plan.pp - rank.stage)


def activations_component(
    shape: ModelShape, job: TrainingJob, plan: Plan, rank: RankClass
) -> Component:
    tokens = job.micro_batch * job.seq_len
    held = in_flight(job, plan, rank)
    layers = [
        (layer_bytes_per_token(shape, job, plan, group.routed), group.count)
        for group in layer_groups(shape, rank)
    ]
    each = total(layer.scaled(count) for layer, count in layers)
    if job.recompute is Recompute.FULL:
        alive = max((layer for layer, _ in layers), key=lambda one: one.typical, default=exact(0))
        size = (_inputs(shape, job, plan, rank.layers * held) + alive).scaled(tokens)
    else:
        size = each.scaled(tokens * held)
    return Component(
        name="activations",
        bytes=size,
        formula=_formula(shape, job),
        inputs=(
            ("tokens per micro-batch", f"{tokens:,}"),
            ("layers on this rank", str(rank.layers)),
            ("micro-batches in flight", str(held)),
            ("bytes per token and layer", f"{each.typical / max(1, rank.layers):,.0f}"),
            ("recompute", job.recompute.value),
        ),
        source="arXiv 2205.05198, Table 2 and section 4.2; gated block: its kept tensors, ±25 %",
    )


def _inputs(shape: ModelShape, job: TrainingJob, plan: Plan, layers: int) -> Range:
    """What full recomputation keeps of each layer for one token: its input in 16 bits."""
    share = plan.tp if job.sequence_parallel else 1
    inputs = 2 * shape.hidden * layers
    return Range(inputs / plan.tp, inputs / share, inputs)


def _formula(shape: ModelShape, job: TrainingJob) -> str:
    if job.recompute is Recompute.FULL:
        return "tokens x (2 h x layers x micro-batches in flight + one live layer)"
    block = "12 h + 4 k d + 8 f" if shape.gated else "34 h"
    scores = "" if job.fused_attention else " + 5 a s"
    return f"tokens x layers x micro-batches in flight x ({block}{scores}) / tp"


def logits_component(shape: ModelShape, job: TrainingJob, plan: Plan) -> Component:
    """16-bit logits, their fp32 copy and gradient; a chunked loss keeps a fraction of it."""
    cells = job.micro_batch * job.seq_len * shape.vocab / plan.tp
    size = Range(cells, 2 * cells, 4 * cells) if job.chunked_loss else LOGITS.scaled(cells)
    return Component(
        name="logits",
        bytes=size,
        formula="tokens x vocabulary / tp x (2 + 4 + 2) bytes; chunked loss 2, fp32 gradient 10",
        inputs=(
            ("tokens per micro-batch", f"{job.micro_batch * job.seq_len:,}"),
            ("vocabulary", f"{shape.vocab:,}"),
            ("tp", str(plan.tp)),
        ),
        source="tensors of a cross-entropy loss; fused and chunked losses keep less",
    )
