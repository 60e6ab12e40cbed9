"""Megatron-LM's command for a training plan."""

from __future__ import annotations

from evaluator.jobs import Offload, Recompute, Schedule
from evaluator.launch.sheet import EngineLaunch
from evaluator.launch.shell import Value
from evaluator.launch.training import Training, launched, torchrun
from evaluator.plans import Plan
from evaluator.shapes import ModelShape, QkNorm

MEGATRON_VERSION = "core 0.14 or newer, in a checkout of its repository"
MEGATRON_SOURCE = "NVIDIA/Megatron-LM, megatron/training/arguments.py"
MEGATRON_SHARDING = {1: "optim", 2: "optim_grads", 3: "optim_grads_params"}


def megatron(training: Training) -> EngineLaunch:
    engine = EngineLaunch("Megatron-LM", MEGATRON_VERSION, MEGATRON_SOURCE)
    return launched(training, engine, _megatron_refuses(training), _megatron)


def _megatron(training: Training) -> str:
    model, plan = training.workload.model, training.plan
    options: dict[str, Value] = {
        **_megatron_degrees(training),
        **_megatron_sharding(training),
        **_megatron_batch(training),
        **_megatron_model(model),
        **_megatron_experts(model, plan),
    }
    return torchrun(training, "pretrain_gpt.py", options=options)


def _megatron_refuses(training: Training) -> str:
    job, model = training.job, training.workload.model
    if job.lora:
        return "`pretrain_gpt.py` trains all parameters; leave out `lora`, or use DeepSpeed."
    if not (model.computable and model.dimensioned):
        return "It is told every dimension of the model, and not all are known."
    if model.window or model.recurrence:
        return "Window and recurrent layers need a model specification of their own."
    if job.schedule is not Schedule.ONE_F_ONE_B:
        return "Its schedule is 1F1B, interleaved or not; set `schedule` to 1f1b."
    if job.offload is Offload.PARAMS or job.recompute is Recompute.OFFLOAD:
        return "Parameters and layer inputs stay on the GPU; set `offload` to optimizer or none."
    return ""


def _megatron_degrees(training: Training) -> dict[str, Value]:
    plan = training.plan
    return {
        "--tensor-model-parallel-size": plan.tp,
        "--pipeline-model-parallel-size": plan.pp,
        "--num-virtual-stages-per-pipeline-rank": plan.virtual if plan.virtual > 1 else None,
        "--context-parallel-size": plan.cp,
        "--sequence-parallel": plan.tp > 1 and training.job.sequence_parallel,
    }


def _megatron_sharding(training: Training) -> dict[str, Value]:
    """Stage 1 is its distributed optimizer, stages 2 and 3 are Megatron-FSDP."""
    plan, stage = training.plan, training.job.zero_stage
    if plan.shard == 1:
        return {"--overlap-grad-reduce": plan.dp > 1}
    fully = stage > 1
    return {
        "--use-distributed-optimizer": True,
        "--use-megatron-fsdp": fully,
        "--data-parallel-sharding-strategy": MEGATRON_SHARDING[stage] if fully else None,
        "--ckpt-format": "fsdp_dtensor" if fully else None,
        "--no-gradient-accumulation-fusion": fully,
        "--num-distributed-optimizer-instances": training.copies if training.copies > 1 else None,
        "--overlap-grad-reduce": True,
        "--overlap-param-gather": True,
        "--optimizer-cpu-offload": training.job.offload is Offload.OPTIMIZER,
    }


def _megatron_batch(training: Training) -> dict[str, Value]:
    job = training.job
    full = job.recompute is Recompute.FULL
    return {
        "--micro-batch-size": job.micro_batch,
        "--global-batch-size": training.global_batch,
        "--seq-length": job.seq_len,
        "--max-position-embeddings": job.seq_len,
        "--train-iters": training.steps,
        "--recompute-granularity": None if job.recompute is Recompute.NONE else job.recompute.value,
        "--recompute-method": "uniform" if full else None,
        "--recompute-num-layers": 1 if full else None,
        "--lr": "1e-4",
        "--bf16": job.precision.param_bytes == 2,
        "--attention-backend": "flash" if job.fused_attention else "unfused",
        "--mock-data": True,
        "--tokenizer-type": "NullTokenizer",
        "--log-interval": 1,
        "--log-throughput": True,
    }


def _megatron_model(model: ModelShape) -> dict[str, Value]:
    attention = model.attention
    grouped = attention.latent is None and attention.kv_heads < attention.heads
    return {
        "--num-layers": model.layers,
        "--hidden-size": model.hidden,
        "--ffn-hidden-size": model.mlp_size or None,
        "--num-attention-heads": attention.heads,
        "--kv-channels": attention.head_dim,
        "--group-query-attention": grouped,
        "--num-query-groups": attention.kv_heads if grouped else None,
        "--vocab-size": model.vocab,
        "--swiglu": model.gated,
        "--normalization": None if model.norms.bias else "RMSNorm",
        "--disable-bias-linear": not model.mlp_bias,
        "--add-qkv-bias": attention.qkv_bias,
        "--qk-layernorm": attention.qk_norm is not QkNorm.NONE or attention.latent is not None,
        "--position-embedding-type": "learned_absolute" if model.learned_positions else "rope",
        "--untie-embeddings-and-output-weights": not model.tied,
        **_megatron_latent(model),
    }


def _megatron_latent(model: ModelShape) -> dict[str, Value]:
    latent = model.attention.latent
    if latent is None:
        return {}
    return {
        "--multi-latent-attention": True,
        "--q-lora-rank": latent.q_rank,
        "--kv-lora-rank": latent.kv_rank,
        "--qk-head-dim": latent.nope_dim,
        "--qk-pos-emb-head-dim": latent.rope_dim,
        "--v-head-dim": latent.value_dim,
    }


def _megatron_experts(model: ModelShape, plan: Plan) -> dict[str, Value]:
    experts = model.experts
    if experts is None:
        return {}
    routed = [int(index not in experts.dense_layers) for index in range(model.layers)]
    return {
        "--num-experts": experts.count,
        "--moe-router-topk": experts.active,
        "--moe-ffn-hidden-size": experts.size,
        "--moe-layer-freq": str(routed) if experts.dense_layers else None,
        "--moe-shared-expert-intermediate-size": experts.shared_size or None,
        "--moe-grouped-gemm": True,
        "--moe-token-dispatcher-type": "alltoall",
        "--expert-model-parallel-size": plan.ep,
        "--expert-tensor-parallel-size": plan.etp if plan.ep > 1 else plan.tp,
    }
