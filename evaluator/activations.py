"""Activations and logits of a training job on one GPU: an openly wide estimate."""

from __future__ import annotations

from evaluator.budgets import Component
from evaluator.jobs import Recompute, Schedule, TrainingJob
from evaluator.partition import RankClass, layer_groups
from evaluator.plans import Plan
from evaluator.ranges import Range, exact, total
from evaluator.shapes import ModelShape

SPREAD = Range(0.92, 1.0, 1.15)
"""Eager against compiled kernels move a block by this much (seen, not derived)."""
BACKWARD = Range(1.0, 1.5, 2.5)
"""A layer in its backward pass: its activations, gradients of about half to all of them, and
copies in other formats."""
FROZEN_LOW = 0.6
"""With a frozen base no input has to be kept for a weight gradient that is never computed."""
GPT_BYTES, GPT_REPLICATED = 34, 10
"""Korthikanti et al. (arXiv 2205.05198), Table 2: bytes per token and hidden element of a GPT
block without attention scores; 10 of them are on every rank without sequence parallelism."""
SCORES = Range(2, 5, 5)
"""The same table: 5 a s / h more per hidden element where attention scores are kept: the softmax
in 2 bytes, and a dropout with its mask in 3. Gated models are trained without that dropout."""
GPT_UNMASKED = 31
"""The 34 bytes of a GPT block without its three dropout masks."""

LOGITS = Range(6, 8, 14)
"""Bytes per logit: 16-bit and fp32 copy (Megatron); with the 16-bit gradient; an eager fp32 loss,
whose backward pass holds 16-bit logits and three fp32 copies."""
GATHERED_SEQUENCE = 4
"""Bytes per token and hidden element: under sequence parallelism a rank gathers the inputs of
attention and MLP whole while the layer runs (arXiv 2205.05198, section 4.2.2)."""


def layer_bytes_per_token(shape: ModelShape, job: TrainingJob, plan: Plan, routed: bool) -> Range:
    """Kept activations of one layer for one token, nothing computed twice."""
    block = _gated if shape.gated else _plain
    least, typical = block(shape, plan, job, routed)
    low = least * SPREAD.low * (FROZEN_LOW if job.lora else 1)
    return Range(low, typical, typical * SPREAD.high) + _scores(shape, job, plan)


def _gated(shape: ModelShape, plan: Plan, job: TrainingJob, routed: bool) -> tuple[float, float]:
    """Tensors that a gated block keeps: 8 h around norms, 4 a d + 4 k d, and 6 to 8 f bytes."""
    attention = shape.attention
    heads = 4 * (attention.heads + attention.kv_heads) * attention.head_dim
    inner = mlp_width(shape, routed)
    norms = 8 * shape.hidden / (plan.tp if job.sequence_parallel else 1)
    return norms + (heads + 6 * inner) / plan.tp, norms + (heads + 8 * inner) / plan.tp


def _plain(shape: ModelShape, plan: Plan, job: TrainingJob, routed: bool) -> tuple[float, float]:
    """A GPT block with its dropout masks, and without."""
    whole = 0 if job.sequence_parallel else GPT_REPLICATED
    typical = shape.hidden * (whole + (GPT_BYTES - whole) / plan.tp)
    return typical * GPT_UNMASKED / GPT_BYTES, typical


def _scores(shape: ModelShape, job: TrainingJob, plan: Plan) -> Range:
    if job.fused_attention or job.recompute is not Recompute.NONE:
        return exact(0)
    cells = shape.attention.heads * job.seq_len / (plan.tp * plan.cp)
    usual = SCORES.low if shape.gated else SCORES.typical
    return Range(SCORES.low, usual, SCORES.high).scaled(cells)


def mlp_width(shape: ModelShape, routed: bool) -> int:
    """Inner size that one token passes in a layer: all of its experts together."""
    experts = shape.experts
    if experts is None or not routed:
        return shape.mlp_size
    return experts.active * experts.size + experts.shared_size


def micro_batches(job: TrainingJob, plan: Plan) -> int:
    """Micro-batches per step and replica; enough to fill the pipeline where it is not stated."""
    if job.global_batch is None:
        return 2 * plan.pp if job.schedule is Schedule.ZERO_BUBBLE_2 else plan.pp
    return max(1, -(-job.global_batch // (plan.dp * job.micro_batch)))


def in_flight(job: TrainingJob, plan: Plan, rank: RankClass) -> float:
    """Micro-batches whose activations a stage holds; interleaved stages hold parts of them.

    1F1B and interleaved after arXiv 2104.04473, section 2.2, where the first stage holds
    p + (p - 1) / v; zero bubble after arXiv 2401.10241; GPipe holds all.
    """
    most, behind = micro_batches(job, plan), plan.pp - rank.stage
    if job.schedule is Schedule.GPIPE:
        return most
    if job.schedule is Schedule.ZERO_BUBBLE_2:
        return min(most, 2 * behind)
    chunks = 2 * (behind - 1) + (plan.virtual - 1) * plan.pp + 1
    return min(most, behind if plan.virtual == 1 else chunks / plan.virtual)


def tokens_per_rank(job: TrainingJob, plan: Plan) -> int:
    """Tokens of one micro-batch on one GPU: context parallel ranks share the sequence."""
    return job.micro_batch * -(-job.seq_len // plan.cp)


def activations_component(
    shape: ModelShape, job: TrainingJob, plan: Plan, rank: RankClass
) -> Component:
    tokens, held = tokens_per_rank(job, plan), in_flight(job, plan, rank)
    layers = [
        (layer_bytes_per_token(shape, job, plan, group.routed), group.count)
        for group in layer_groups(shape, rank)
    ]
    each = total(layer.scaled(count) for layer, count in layers)
    if job.recompute.whole_layers:
        waiting = 2 if job.recompute is Recompute.OFFLOAD else rank.layers * held
        size = (_inputs(shape, job, plan, waiting) + _alive(shape, job, plan, layers)).scaled(
            tokens
        )
    else:
        size = each.scaled(tokens * held)
    return Component(
        name="activations",
        bytes=size,
        formula=_formula(shape, job),
        inputs=(
            ("tokens per micro-batch", f"{tokens:,}"),
            ("layers on this rank", str(rank.layers)),
            ("micro-batches in flight", f"{held:g}"),
            ("bytes per token and layer", f"{each.typical / max(1, rank.layers):,.0f}"),
            ("recompute", job.recompute.value),
        ),
        source="arXiv 2205.05198, Table 2 and section 4.2; gated block: its kept tensors, ±25 %",
    )


def _alive(
    shape: ModelShape, job: TrainingJob, plan: Plan, layers: list[tuple[Range, int]]
) -> Range:
    """The layer that is computed again and differentiated, with the inputs it gathers."""
    layer = max((one for one, _ in layers), key=lambda one: one.typical, default=exact(0))
    gathers = plan.tp > 1 and job.sequence_parallel
    whole = GATHERED_SEQUENCE * shape.hidden * gathers
    grown = Range(*(getattr(layer, end) * getattr(BACKWARD, end) for end in ENDS))
    return grown + Range(0, whole, whole)


ENDS = ("low", "typical", "high")


def _inputs(shape: ModelShape, job: TrainingJob, plan: Plan, layers: float) -> Range:
    """What full recomputation keeps of each layer for one token: its input in 16 bits."""
    share = plan.tp if job.sequence_parallel else 1
    inputs = 2 * shape.hidden * layers / share
    return SPREAD.scaled(inputs)


def _formula(shape: ModelShape, job: TrainingJob) -> str:
    if job.recompute.whole_layers:
        return "tokens x (2 h x layers x micro-batches in flight + one live layer x 1 to 2.5)"
    block = "8 h + 4 a d + 4 k d + 8 f" if shape.gated else "34 h"
    scores = "" if job.fused_attention else " + 2 to 5 a s"
    return f"tokens x layers x micro-batches in flight x ({block}{scores}) / tp"


def logits_component(shape: ModelShape, job: TrainingJob, plan: Plan) -> Component:
    """16-bit logits, their fp32 copy and gradient; a chunked loss keeps a fraction of it."""
    cells = tokens_per_rank(job, plan) * shape.vocab / plan.tp
    size = Range(cells, 2 * cells, 4 * cells) if job.chunked_loss else LOGITS.scaled(cells)
    return Component(
        name="logits",
        bytes=size,
        formula="tokens x vocabulary / tp x (2 + 4 + 2) bytes; chunked loss 2, eager fp32 loss 14",
        inputs=(
            ("tokens per micro-batch", f"{tokens_per_rank(job, plan):,}"),
            ("vocabulary", f"{shape.vocab:,}"),
            ("tp", str(plan.tp)),
        ),
        source="tensors of a cross-entropy loss; fused and chunked losses keep less",
    )
