"""Activations and logits of a training job on one GPU: an openly wide estimate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from evaluator.budgets import Component
from evaluator.jobs import Recompute, Schedule, TrainingJob
from evaluator.partition import RankClass, Stage, stage_of
from evaluator.plans import Plan
from evaluator.ranges import Number, Range, choose, choose_range, exact, larger, smaller
from evaluator.shapes import Feed, Layer, Mixer, ModelShape
from evaluator.sizes import Sizes, sizes_of

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


UNCOVERED = Range(0.7, 1.0, 1.5)
"""A model whose layers are not known, against plain blocks of its width: a guess."""
RECURRENT = Range(0.75, 1.0, 1.5)
"""A layer that keeps a state, against the tensors that its definition names: no log tells more."""


class Held(NamedTuple):
    """How many layers attend, keep a state, do either, have an MLP, have experts, and how many
    there are."""

    attend: Number
    recur: Number
    mix: Number
    dense: Number
    routed: Number
    layers: Number


def held_of(kinds: Sequence[tuple[Layer, Number]]) -> Held:
    return Held(
        attend=sum(count for kind, count in kinds if kind.attends),
        recur=sum(count for kind, count in kinds if kind.recurs),
        mix=sum(count for kind, count in kinds if kind.mixer is not Mixer.NONE),
        dense=sum(count for kind, count in kinds if kind.feed is Feed.DENSE),
        routed=sum(count for kind, count in kinds if kind.feed is Feed.ROUTED),
        layers=sum(count for _, count in kinds),
    )


def layer_bytes_per_token(sizes: Sizes, kind: Layer, job: TrainingJob, plan: Plan) -> Range:
    """Kept activations of one layer of a kind for one token, nothing computed twice."""
    if isinstance(plan.tp, np.ndarray) or isinstance(sizes.hidden, np.ndarray):
        return kept_bytes_per_token(sizes, held_of([(kind, 1)]), job, plan)
    return _layer_bytes(sizes, kind, job, plan.tp, plan.cp)


@lru_cache(maxsize=4096)
def _layer_bytes(sizes: Sizes, kind: Layer, job: TrainingJob, tp: int, cp: int) -> Range:
    """Of one plan: the other degrees divide no layer."""
    return kept_bytes_per_token(sizes, held_of([(kind, 1)]), job, Plan(tp=tp, cp=cp))


def kept_bytes_per_token(sizes: Sizes, held: Held, job: TrainingJob, plan: Plan) -> Range:
    """Kept activations of layers for one token, nothing computed twice."""
    ends = zip(_blocks(sizes, held, job, plan), _plain(sizes, job, plan), strict=True)
    least, typical, most = (
        choose(sizes.plain, plain * held.layers, block) for block, plain in ends
    )
    low = least * SPREAD.low * (FROZEN_LOW if job.lora else 1)
    states = RECURRENT.scaled(2 * sizes.recurrent * held.recur / plan.tp)
    scores = _scores(sizes, job, plan).scaled(held.attend)
    return Range(low, typical, most * SPREAD.high) + scores + states


Ends = tuple[Number, Number, Number]


def _blocks(sizes: Sizes, held: Held, job: TrainingJob, plan: Plan) -> Ends:
    """Tensors that blocks keep: 4 h around each of their norms, 4 a d + 4 k d of attention, and of
    a gated MLP 6 to 8 f bytes, of another 4 to 6 f."""
    halves = held.mix + held.dense + held.routed
    norms = 4 * halves * sizes.hidden / (plan.tp if job.sequence_parallel else 1)
    heads = 4 * (sizes.heads + sizes.kv_heads) * sizes.head_dim * held.attend
    inner = sizes.dense * held.dense + sizes.routed * held.routed
    least = heads + (4 + 2 * sizes.gated) * inner
    low, every = norms + least / plan.tp, norms + (least + 2 * inner) / plan.tp
    if not keeps_some_products(job):
        return low, every, every
    some = _some_products(sizes, held, job, plan)
    return some, (some + every) / 2, every


def keeps_some_products(job: TrainingJob) -> bool:
    """With fused attention there are no scores to compute again. Megatron then keeps all tensors;
    PyTorch's selective checkpointing the output of attention and every other product. Which of
    them is meant is not stated, so the range spans both."""
    return job.fused_attention and job.recompute is Recompute.SELECTIVE


def _some_products(sizes: Sizes, held: Held, job: TrainingJob, plan: Plan) -> Number:
    """The input of a block and its last product; queries, values and the output of attention; and
    the gate of the MLP (torchtitan, distributed/activation_checkpoint.py)."""
    halves = held.mix + held.dense + held.routed
    ends = 2 * halves * sizes.hidden / (plan.tp if job.sequence_parallel else 1)
    heads = (4 * sizes.heads + 2 * sizes.kv_heads) * sizes.head_dim * held.attend
    gates = 2 * (sizes.dense * held.dense + sizes.routed * held.routed)
    return ends + (heads + gates) / plan.tp


def _plain(sizes: Sizes, job: TrainingJob, plan: Plan) -> Ends:
    """A GPT block without its dropout masks, and with them."""
    whole = 0 if job.sequence_parallel else GPT_REPLICATED
    typical = sizes.hidden * (whole + (GPT_BYTES - whole) / plan.tp)
    return typical * GPT_UNMASKED / GPT_BYTES, typical, typical


def _scores(sizes: Sizes, job: TrainingJob, plan: Plan) -> Range:
    if job.fused_attention or job.recompute is not Recompute.NONE:
        return exact(0)
    cells = sizes.heads * job.seq_len / (plan.tp * plan.cp)
    usual = choose(sizes.gated, SCORES.low, SCORES.typical)
    return Range(SCORES.low, usual, SCORES.high).scaled(cells)


def micro_batches(job: TrainingJob, plan: Plan) -> Number:
    """Micro-batches per step and replica; enough to fill the pipeline where it is not stated."""
    if job.global_batch is None:
        return 2 * plan.pp if job.schedule is Schedule.ZERO_BUBBLE_2 else plan.pp
    return larger(1, -(-job.global_batch // (plan.dp * job.micro_batch)))


def in_flight(job: TrainingJob, plan: Plan, rank: RankClass) -> Number:
    """Micro-batches whose activations a stage holds; interleaved stages hold parts of them.

    1F1B and interleaved after arXiv 2104.04473, section 2.2, where the first stage holds
    p + (p - 1) / v; zero bubble after arXiv 2401.10241; GPipe holds all.
    """
    most, behind = micro_batches(job, plan), plan.pp - rank.stage
    if job.schedule is Schedule.GPIPE:
        return most
    if job.schedule is Schedule.ZERO_BUBBLE_2:
        return smaller(most, 2 * behind)
    chunks = 2 * (behind - 1) + (plan.virtual - 1) * plan.pp + 1
    return smaller(most, choose(plan.virtual > 1, chunks / plan.virtual, behind))


def tokens_per_rank(job: TrainingJob, plan: Plan) -> Number:
    """Tokens of one micro-batch on one GPU: context parallel ranks share the sequence."""
    return job.micro_batch * -(-job.seq_len // plan.cp)


def activations_bytes(stage: Stage, sizes: Sizes, job: TrainingJob, plan: Plan) -> Range:
    """Activations of one GPU at the peak of a step."""
    tokens, held = tokens_per_rank(job, plan), in_flight(job, plan, stage.rank)
    if not job.recompute.whole_layers:
        kept = kept_bytes_per_token(sizes, held_of(stage.kinds), job, plan)
        return kept.scaled(tokens * held)
    layers = [(layer_bytes_per_token(sizes, kind, job, plan), n) for kind, n in stage.kinds]
    waiting = 2 if job.recompute is Recompute.OFFLOAD else stage.rank.layers * held
    alive = _alive(_largest(layers), sizes, job, plan)
    return (_inputs(sizes, job, plan, waiting) + alive).scaled(tokens)


def _largest(layers: Iterable[tuple[Range, Number]]) -> Range:
    """The layer of a stage that keeps most."""
    most = exact(0.0)
    for each, count in layers:
        most = choose_range((count > 0) & (each.typical >= most.typical), each, most)
    return most


def activations_component(
    shape: ModelShape, job: TrainingJob, plan: Plan, rank: RankClass
) -> Component:
    sizes, stage = sizes_of(shape), stage_of(shape, rank)
    spread = exact(1) if shape.computable else UNCOVERED
    return Component(
        name="activations",
        bytes=activations_bytes(stage, sizes, job, plan).times(spread),
        formula=_formula(shape, job),
        inputs=(
            ("tokens per micro-batch", f"{tokens_per_rank(job, plan):,}"),
            ("layers on this rank", str(rank.layers)),
            ("micro-batches in flight", f"{in_flight(job, plan, rank):g}"),
            ("bytes per token and layer", _each(stage, sizes, job, plan)),
            ("recompute", job.recompute.value),
        ),
        source="arXiv 2205.05198, Table 2 and section 4.2; gated block: its kept tensors, ±25 %, "
        "and with selective recomputation what torchtitan keeps, benchmarks of 2024-12",
    )


def _each(stage: Stage, sizes: Sizes, job: TrainingJob, plan: Plan) -> str:
    kinds = [layer_bytes_per_token(sizes, kind, job, plan).typical for kind, _ in stage.kinds]
    return " or ".join(f"{size:,.0f}" for size in dict.fromkeys(kinds))


def _alive(layer: Range, sizes: Sizes, job: TrainingJob, plan: Plan) -> Range:
    """The layer that is computed again and differentiated, with the inputs it gathers."""
    gathers = (plan.tp > 1) & job.sequence_parallel
    whole = choose(gathers, GATHERED_SEQUENCE * sizes.hidden, 0)
    return layer.times(BACKWARD) + Range(0, whole, whole)


def _inputs(sizes: Sizes, job: TrainingJob, plan: Plan, layers: Number) -> Range:
    """What full recomputation keeps of each layer for one token: its input in 16 bits."""
    share = plan.tp if job.sequence_parallel else 1
    return SPREAD.scaled(2 * sizes.hidden * layers / share)


def _formula(shape: ModelShape, job: TrainingJob) -> str:
    if job.recompute.whole_layers:
        return "tokens x (2 h x layers x micro-batches in flight + one live layer x 1 to 2.5)"
    block = "8 h + 4 a d + 4 k d + 8 f" if shape.gated or shape.kinds else "34 h"
    if keeps_some_products(job) and (shape.gated or shape.kinds):
        block = f"{block}, at least 4 h + 4 a d + 2 k d + 2 f"
    block += ", or 2 bytes a number of layers with a state" if shape.recurrent else ""
    scores = "" if job.fused_attention else " + 2 to 5 a s"
    return f"tokens x layers x micro-batches in flight x ({block}{scores}) / tp"


def logits_bytes(sizes: Sizes, job: TrainingJob, plan: Plan) -> Range:
    """16-bit logits, their fp32 copy and gradient; a chunked loss keeps a fraction of it."""
    cells = tokens_per_rank(job, plan) * sizes.vocab / plan.tp
    return Range(1, 2, 4).scaled(cells) if job.chunked_loss else LOGITS.scaled(cells)


def logits_component(shape: ModelShape, job: TrainingJob, plan: Plan) -> Component:
    return Component(
        name="logits",
        bytes=logits_bytes(sizes_of(shape), job, plan),
        formula="tokens x vocabulary / tp x (2 + 4 + 2) bytes; chunked loss 2, eager fp32 loss 14",
        inputs=(
            ("tokens per micro-batch", f"{tokens_per_rank(job, plan):,}"),
            ("vocabulary", f"{shape.vocab:,}"),
            ("tp", str(plan.tp)),
        ),
        source="tensors of a cross-entropy loss; fused and chunked losses keep less",
    )
