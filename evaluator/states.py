"""Model states of a training job on one GPU: parameters, gradients, optimizer, frozen base."""

from __future__ import annotations

from dataclasses import replace

from evaluator.adapters import adapter_params, adapter_params_on
from evaluator.budgets import Component
from evaluator.formats import WeightFormat, weight_format
from evaluator.jobs import Offload, Precision, TrainingJob, Workload
from evaluator.parameters import others, total_params
from evaluator.partition import (
    RankClass,
    largest_layer,
    params_of,
    params_on,
    rank_classes,
    stage_of,
)
from evaluator.plans import Plan
from evaluator.ranges import Number, Range, choose, choose_range, exact, larger
from evaluator.shapes import ModelShape
from evaluator.weights import UNCOVERED_SPREAD, weights_on

GATHERED_BYTES = 2
"""Sharded training computes in 16 bits: a gathered parameter takes 2 bytes."""
ZERO = "ZeRO, arXiv 1910.02054, sections 3.1 and 5"
SPREAD = Range(0.995, 1.0, 1.025)
"""Published totals have three digits; alignment and padding of flat buffers stay under 2.5 %."""
INTERLEAVED = Range(0.995, 1.05, 1.10)
"""With several stages on a rank each keeps buffers of its own: 6 % more in one Megatron log, which
set the typical value, and 9 % in another, which did not."""


def trainable_params(workload: Workload) -> int | None:
    """Parameters that receive gradients. None where the model's size is unknown."""
    job = workload.training
    if job is None:
        return 0
    return adapter_params(workload.model, job.lora) if job.lora else total_params(workload.model)


def sharded_bytes_per_param(precision: Precision, zero_stage: int, ranks: Number) -> Number:
    """Bytes per trained parameter when `ranks` share them (ZeRO, arXiv 1910.02054, section 5)."""
    shares = (
        (precision.param_bytes, 3),
        (precision.grad_bytes, 2),
        (precision.master_bytes, 1),
        (precision.optimizer_bytes, 1),
    )
    return sum(size / (ranks if zero_stage >= stage else 1) for size, stage in shares)


def local_count(shape: ModelShape, plan: Plan, rank: RankClass) -> float:
    """Parameters of the model on one GPU before sharding."""
    if not shape.computable:
        return (shape.given_params or 0) / (plan.tp * plan.pp)
    beyond = others(shape) / plan.tp if rank.has_embedding else 0
    return params_on(shape, rank, plan) + beyond


def on_device(job: TrainingJob) -> Precision:
    """Bytes per parameter that stay on the GPU; the others wait in host memory."""
    if job.offload is Offload.NONE:
        return job.precision
    if job.offload is Offload.PARAMS:
        return Precision(0, 0, 0, 0)
    return replace(job.precision, master_bytes=0, optimizer_bytes=0)


def states_bytes(
    local: tuple[Number, Number],
    rank: RankClass,
    beyond: Number,
    job: TrainingJob,
    precision: Precision,
    plan: Plan,
) -> Number:
    """Parameters, gradients and optimizer of a trained model on one GPU, at `precision`.

    `local` are the parameters of experts and all others. Experts are shared by other ranks than
    the rest, where the plan divides them.
    """
    experts, dense = local
    dense = dense + choose(rank.has_embedding, beyond / plan.tp, 0.0)
    each = sharded_bytes_per_param(precision, job.zero_stage, plan.shard)
    of_expert = sharded_bytes_per_param(precision, job.zero_stage, plan.expert_shard)
    return dense * each + experts * of_expert


def spread_states(size: Number, plan: Plan) -> Range:
    return choose_range(plan.virtual > 1, INTERLEAVED, SPREAD).scaled(size)


def _states_on(
    shape: ModelShape, job: TrainingJob, precision: Precision, plan: Plan, rank: RankClass
) -> float:
    """The same for a rank class; of a model whose parts are unknown an even share."""
    if shape.computable:
        local = params_of(stage_of(shape, rank), plan)
        return float(states_bytes(local, rank, others(shape), job, precision, plan))
    each = sharded_bytes_per_param(precision, job.zero_stage, plan.shard)
    return float(local_count(shape, plan, rank) * each)


def host_bytes(workload: Workload, plan: Plan) -> int | None:
    """Host memory of one machine for what is offloaded, over all of its GPUs.

    0 where nothing is offloaded, None where the size of the model is unknown. A copy of the
    gradients waits beside offloaded optimizer states (ZeRO-Offload, arXiv 2101.06840, section 3).
    """
    job, model = workload.training, workload.model
    if job is None or job.offload is Offload.NONE:
        return 0
    if total_params(model) is None:
        return None
    kept = _off_device(workload, job)
    most = max(_states_on(model, job, kept, plan, rank) for rank in rank_classes(model, plan))
    return round(most * plan.gpus / plan.nodes)


def _off_device(workload: Workload, job: TrainingJob) -> Precision:
    """Bytes per parameter in host memory. Of a frozen base only its weights; adapters are small."""
    if job.lora:
        form = weight_format(workload.weights_format)
        moved = form.bits.typical / 8 if form and job.offload is Offload.PARAMS else 0
        return Precision(moved, 0, 0, 0)
    return (
        replace(job.precision, param_bytes=0) if job.offload is Offload.OPTIMIZER else job.precision
    )


def states_component(
    workload: Workload, job: TrainingJob, form: WeightFormat, plan: Plan, rank: RankClass
) -> Component:
    """Frozen base (LoRA) or trained model, with what the optimizer keeps."""
    if job.lora:
        return _lora_component(workload, job, form, plan, rank)
    size = _states_on(workload.model, job, on_device(job), plan, rank)
    each = sharded_bytes_per_param(on_device(job), job.zero_stage, plan.shard)
    guessed = not workload.model.computable and plan.tp * plan.pp > 1
    return Component(
        name="model_states",
        bytes=spread_states(size, plan).times(UNCOVERED_SPREAD if guessed else exact(1)),
        formula="parameters on this rank x bytes per parameter, shared by the shard group",
        inputs=(
            ("parameters on this rank", f"{local_count(workload.model, plan, rank):,.0f}"),
            ("bytes per parameter", f"{each:g}"),
            *_sharing(job, plan),
        ),
        source=ZERO,
    )


def _sharing(job: TrainingJob, plan: Plan) -> tuple[tuple[str, str], ...]:
    stage = str(job.zero_stage) if plan.shard > 1 else "none"
    return (
        ("optimizer", job.optimizer),
        ("unsharded bytes per parameter", f"{job.precision.bytes_per_param:g}"),
        ("ZeRO stage", stage),
        ("shard ranks", str(plan.shard)),
        ("in host memory", job.offload.value),
    )


def lora_states(weights: Range, adapters: Number, job: TrainingJob, plan: Plan) -> Range:
    """The frozen base keeps its weights only; adapters pay for the optimizer."""
    shared = plan.shard if job.zero_stage == 3 else 1
    kept = 0 if job.offload is Offload.PARAMS else 1
    each = sharded_bytes_per_param(on_device(job), job.zero_stage, plan.shard)
    return weights.scaled(kept / shared) + exact(adapters * each)


def _lora_component(
    workload: Workload, job: TrainingJob, form: WeightFormat, plan: Plan, rank: RankClass
) -> Component:
    model = workload.model
    weights = weights_on(model, form, plan, rank)
    adapters = adapter_params_on(model, job.lora, plan, rank) if job.lora else 0
    each = sharded_bytes_per_param(on_device(job), job.zero_stage, plan.shard)
    return Component(
        name="model_states",
        bytes=lora_states(weights, adapters, job, plan),
        formula="frozen weights / shard ranks + adapter parameters x bytes per parameter",
        inputs=(
            ("frozen weights", f"{workload.weights_format}, {weights.typical:,.0f} bytes"),
            ("adapter parameters on this rank", f"{adapters:,.0f}"),
            ("LoRA rank", str(job.lora.rank if job.lora else 0)),
            ("bytes per adapter parameter", f"{each:g}"),
            *_sharing(job, plan),
        ),
        source=f"{ZERO}; LoRA, arXiv 2106.09685; {form.source}",
    )


def buckets_bytes(count: Number, job: TrainingJob, plan: Plan) -> Range:
    """A second copy of the gradients in buckets, where replicas reduce whole gradients."""
    if job.lora:
        return exact(0.0)
    whole = (plan.dp > 1) & (plan.shard == 1)
    return Range(0.0, 0.0, choose(whole, count * job.precision.grad_bytes, 0.0))


def buckets_component(
    workload: Workload, job: TrainingJob, plan: Plan, rank: RankClass
) -> Component | None:
    if plan.dp == 1 or plan.shard > 1 or job.lora:
        return None
    size = buckets_bytes(local_count(workload.model, plan, rank), job, plan)
    return Component(
        name="gradient_buckets",
        bytes=size,
        formula="0 where gradients are views of the buckets, else the size of the gradients",
        inputs=(("data parallel ranks", str(plan.dp)),),
        source="PyTorch DistributedDataParallel, gradient_as_bucket_view",
    )


COPIES = Range(1, 2, 9)
"""Buckets that DeepSpeed holds: one to reduce from, two where that overlaps with the backward pass,
and by its documentation 4.5 times the two for reducing and gathering."""
USUAL_BUCKET, DEFAULT_BUCKET = 2 * 10**8, 5 * 10**8
"""Elements: what published configurations ask for, and what counts where they ask for nothing."""


def shard_buckets_bytes(job: TrainingJob, plan: Plan) -> Range:
    """Buckets through which ZeRO 1 and 2 reduce gradients and gather parameters, in 16 bits.

    Where nothing is said of them, a framework may need none: Megatron reduces its gradients where
    they lie.
    """
    stated = job.bucket_elements
    usual = Range(0, COPIES.typical * USUAL_BUCKET, COPIES.high * DEFAULT_BUCKET)
    elements = usual if stated is None else COPIES.scaled(stated)
    held = (plan.shard > 1) & (job.zero_stage < 3)
    return choose_range(held, elements.scaled(GATHERED_BYTES), exact(0))


def shard_buckets_component(job: TrainingJob, plan: Plan) -> Component | None:
    size = shard_buckets_bytes(job, plan)
    if not size.high:
        return None
    stated = "not stated" if job.bucket_elements is None else f"{job.bucket_elements:,}"
    return Component(
        name="shard_buckets",
        bytes=size,
        formula="elements of a bucket x 2 bytes x 2 buckets; one without overlap, at most 9",
        inputs=(("reduce_bucket_size", stated), ("ZeRO stage", str(job.zero_stage))),
        source="DeepSpeed, stage_1_and_2.py: one or two buffers of reduce_bucket_size; "
        "its documentation: 4.5 x both buckets. Megatron and FSDP need none",
    )


def gathered_bytes(
    layer: Number,
    rank: RankClass,
    table: Number,
    job: TrainingJob,
    form: WeightFormat,
    plan: Plan,
) -> Range:
    """Layers that are whole for a moment: gathered by full sharding, or unpacked from 4 bits.

    `layer` are the parameters of the largest one on a GPU, `table` those of the embedding, the
    largest unit of some models. Without sharding nothing is prefetched, but a second layer may not
    yet be freed.
    """
    sharded = _shards(job, plan)
    layer = layer * GATHERED_BYTES
    holds = (rank.has_embedding | rank.has_head) & sharded
    whole = choose(holds, table * GATHERED_BYTES // plan.tp, 0)
    alone = Range(layer, layer, larger(2 * layer, 2 * whole))
    size = choose_range(sharded, alone, Range(layer, 2 * layer, 4 * layer))
    return choose_range(_gathers(job, form, plan), size, exact(0))


def prefetched_bytes(layer: Number, job: TrainingJob, plan: Plan) -> Range:
    """The next layer, gathered while the current one computes; at most with its gradients."""
    layer = layer * GATHERED_BYTES
    return choose_range(_shards(job, plan), Range(0 * layer, layer, 2 * layer), exact(0))


def _shards(job: TrainingJob, plan: Plan) -> Number:
    return ((plan.shard > 1) & (job.zero_stage == 3)) | (job.offload is Offload.PARAMS)


def _gathers(job: TrainingJob, form: WeightFormat, plan: Plan) -> Number:
    """Full sharding gathers, and a frozen base of few bits is unpacked."""
    unpacks = job.lora is not None and form.bits.typical < 16
    return _shards(job, plan) | unpacks


GATHERED = (
    "current layer in 16 bits; at most with its gradients, or the embedding with its",
    "ZeRO-3 and FSDP hold the current layer whole, ZeRO, arXiv 1910.02054, section 5",
)
UNPACKED = (
    "frozen layers unpacked into 16 bits: one, typically two until the first is freed, at most 4",
    "a product unpacks the weights of its layer, QLoRA, arXiv 2305.14314, section 3",
)
"""Formula and source of what is whole for a moment: gathered from its ranks, or out of few bits."""


def gathered_components(
    workload: Workload, job: TrainingJob, form: WeightFormat, plan: Plan, rank: RankClass
) -> tuple[Component, ...]:
    """The layer at hand and the one after it. Empty where layers are whole anyway."""
    model = workload.model
    if not model.computable or not _gathers(job, form, plan):
        return ()
    table = model.vocab * model.hidden
    layer = largest_layer(stage_of(model, rank), plan)
    words = f"{layer * GATHERED_BYTES:,}"
    inputs = (("bytes of the largest layer", words), ("shard ranks", str(plan.shard)))
    formula, source = GATHERED if _shards(job, plan) else UNPACKED
    at_hand = Component(
        name="gathered_layers",
        bytes=gathered_bytes(layer, rank, table, job, form, plan),
        formula=formula,
        inputs=inputs,
        source=source,
    )
    if not _shards(job, plan):
        return (at_hand,)
    ahead = Component(
        name="prefetched_layers",
        bytes=prefetched_bytes(layer, job, plan),
        formula="the next layer in 16 bits; none without prefetch, at most with its gradients",
        inputs=inputs,
        source="FSDP backward_prefetch and forward_prefetch; DeepSpeed stage3_prefetch_bucket_size",
    )
    return (at_hand, ahead)
