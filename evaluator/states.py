"""Model states of a training job on one GPU: parameters, gradients, optimizer, frozen base."""

from __future__ import annotations

from evaluator.adapters import adapter_params, adapter_params_on
from evaluator.budgets import Component
from evaluator.formats import WeightFormat
from evaluator.jobs import Precision, TrainingJob, Workload
from evaluator.parameters import others, total_params
from evaluator.partition import RankClass, largest_layer, params_on
from evaluator.plans import Plan
from evaluator.ranges import Range, exact
from evaluator.shapes import ModelShape
from evaluator.weights import weights_on

GATHERED_BYTES = 2
"""Sharded training computes in 16 bits: a gathered parameter takes 2 bytes."""
ZERO = "ZeRO, arXiv 1910.02054, sections 3.1 and 5"
SPREAD = Range(1.0, 1.0, 1.02)
"""Alignment and padding of flat buffers, which published totals show to be under 2 %."""


def trainable_params(workload: Workload) -> int | None:
    """Parameters that receive gradients. None where the model's size is unknown."""
    job = workload.training
    if job is None:
        return 0
    return adapter_params(workload.model, job.lora) if job.lora else total_params(workload.model)


def sharded_bytes_per_param(precision: Precision, zero_stage: int, ranks: int) -> float:
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
    return params_on(shape, rank, plan.tp) + beyond


def states_component(
    workload: Workload, job: TrainingJob, form: WeightFormat, plan: Plan, rank: RankClass
) -> Component:
    """Frozen base (LoRA) or trained model, with what the optimizer keeps."""
    if job.lora:
        return _lora_states(workload, job, form, plan, rank)
    count = local_count(workload.model, plan, rank)
    each = sharded_bytes_per_param(job.precision, job.zero_stage, plan.shard)
    return Component(
        name="model_states",
        bytes=SPREAD.scaled(count * each),
        formula="parameters on this rank x bytes per parameter, shared by the shard group",
        inputs=(
            ("parameters on this rank", f"{count:,.0f}"),
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
    )


def _lora_states(
    workload: Workload, job: TrainingJob, form: WeightFormat, plan: Plan, rank: RankClass
) -> Component:
    """The frozen base keeps its weights only; adapters pay for the optimizer."""
    model = workload.model
    shared = plan.shard if job.zero_stage == 3 else 1
    base = weights_on(model, form, plan, rank).scaled(1 / shared)
    adapters = adapter_params_on(model, job.lora, plan, rank) if job.lora else 0
    each = sharded_bytes_per_param(job.precision, job.zero_stage, plan.shard)
    return Component(
        name="model_states",
        bytes=base + exact(adapters * each),
        formula="frozen weights / shard ranks + adapter parameters x bytes per parameter",
        inputs=(
            ("frozen weights", f"{workload.weights_format}, {base.typical * shared:,.0f} bytes"),
            ("adapter parameters on this rank", f"{adapters:,.0f}"),
            ("LoRA rank", str(job.lora.rank if job.lora else 0)),
            ("bytes per adapter parameter", f"{each:g}"),
            *_sharing(job, plan),
        ),
        source=f"{ZERO}; LoRA, arXiv 2106.09685; {form.source}",
    )


def buckets_component(
    workload: Workload, job: TrainingJob, plan: Plan, rank: RankClass
) -> Component | None:
    """A second copy of the gradients in buckets, where replicas reduce whole gradients."""
    if plan.dp == 1 or plan.shard > 1 or job.lora:
        return None
    size = local_count(workload.model, plan, rank) * job.precision.grad_bytes
    return Component(
        name="gradient_buckets",
        bytes=Range(0, 0, size),
        formula="0 where gradients are views of the buckets, else the size of the gradients",
        inputs=(("data parallel ranks", str(plan.dp)),),
        source="PyTorch DistributedDataParallel, gradient_as_bucket_view",
    )


def gathered_component(
    workload: Workload, job: TrainingJob, form: WeightFormat, plan: Plan, rank: RankClass
) -> Component | None:
    """Layers that are whole for a moment: gathered by full sharding, or unpacked from 4 bits."""
    sharded = plan.shard > 1 and job.zero_stage == 3
    unpacked = job.lora is not None and form.bits.typical < 16
    model = workload.model
    if not (sharded or unpacked) or not model.computable:
        return None
    layer = largest_layer(model, rank, plan.tp) * GATHERED_BYTES
    table = _table_bytes(model, rank, plan) if sharded else 0
    return Component(
        name="gathered_layers",
        bytes=Range(layer, 2 * layer, max(4 * layer, 2 * layer + 2 * table)),
        formula="current and next layer in 16 bits; at most with their gradients or the embedding",
        inputs=(("bytes of the largest layer", f"{layer:,}"), ("shard ranks", str(plan.shard))),
        source="ZeRO-3 and FSDP hold the current and the prefetched layer whole",
    )


def _table_bytes(shape: ModelShape, rank: RankClass, plan: Plan) -> int:
    holds = rank.has_embedding or rank.has_head
    return shape.vocab * shape.hidden * GATHERED_BYTES // plan.tp if holds else 0
