"""Commands of torchtitan, Megatron-LM and DeepSpeed for a training plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evaluator.jobs import Offload, Recompute, Schedule, TrainingJob, Workload
from evaluator.launch.sheet import Command, EngineLaunch
from evaluator.launch.shell import HEAD, NODE, Raw, Value, command, file_with, pinned, quoted
from evaluator.plans import Plan
from evaluator.shapes import ModelShape

TITAN_VERSION = "0.2"
TITAN_SOURCE = "pytorch/torchtitan, torchtitan/config/job_config.py"
MEGATRON_VERSION = "core 0.14 or newer"
MEGATRON_SOURCE = "NVIDIA/Megatron-LM, megatron/training/arguments.py"
DEEPSPEED_VERSION = "0.16.4 or newer, with trl 0.20 or newer"
DEEPSPEED_SOURCE = "deepspeed.ai: configuration, AutoTP training; TRL command line"
PORT = 29500
BENCHMARK_STEPS = 50


@dataclass(frozen=True, slots=True)
class Training:
    """What a training command needs to know. `order` are a machine's GPUs in the order of the
    ranks, `short` ends the job after the steps of a benchmark."""

    workload: Workload
    job: TrainingJob
    plan: Plan
    model: str
    order: tuple[int, ...] = ()
    short: bool = False

    @property
    def rounds(self) -> int:
        """Micro-batches of one data-parallel rank in a step."""
        ranks = self.plan.dp * self.job.micro_batch
        return max(1, (self.job.global_batch or ranks) // ranks)

    @property
    def global_batch(self) -> int:
        return self.job.global_batch or self.plan.dp * self.job.micro_batch

    @property
    def gpus_here(self) -> int:
        return self.plan.gpus // self.plan.nodes

    @property
    def copies(self) -> int:
        """Copies of the parameters among the data and context ranks."""
        return max(1, self.plan.dp * self.plan.cp // self.plan.shard)

    @property
    def steps(self) -> int:
        """Steps of the whole job, or of a benchmark where no end is given."""
        tokens = self.job.tokens_to_train
        if self.short or not tokens:
            return BENCHMARK_STEPS
        return -(-tokens // (self.global_batch * self.job.seq_len))


def _launch(
    training: Training,
    engine: EngineLaunch,
    refused: str,
    text_of: Callable[[Training], str],
) -> EngineLaunch:
    """The engine with its commands, or with the reason why it has none."""
    if refused:
        return replace(engine, unsupported=refused)
    where = "on each machine" if training.plan.nodes > 1 else "on the machine"
    short = text_of(replace(training, short=True))
    return replace(
        engine,
        commands=(Command(where, text_of(training)),),
        benchmark=(Command(where, short),),
    )


def torchrun(training: Training, *script: str, options: Mapping[str, Value]) -> str:
    """`torchrun` over all GPUs of the plan; machines find each other at machine 0."""
    plan = training.plan
    joined: list[str] = []
    if plan.nodes > 1:
        joined = ["--rdzv-backend", "c10d", "--rdzv-endpoint", Raw(f"{HEAD}:{PORT}")]
    else:
        joined = ["--standalone"]
    head = ("torchrun", "--nnodes", str(plan.nodes), *joined)
    words = (*head, "--nproc-per-node", str(training.gpus_here), *script)
    return pinned(training.order, command(*words, options=options))


# --- torchtitan

TITAN_SCHEDULES = {
    Schedule.GPIPE: "GPipe",
    Schedule.ONE_F_ONE_B: "1F1B",
    Schedule.ZERO_BUBBLE_1: "InterleavedZeroBubble",
    Schedule.ZERO_BUBBLE_2: "ZBVZeroBubble",
}
TITAN_RECOMPUTE = {
    Recompute.NONE: "none",
    Recompute.SELECTIVE: "selective",
    Recompute.FULL: "full",
}


def torchtitan(training: Training) -> EngineLaunch:
    engine = EngineLaunch("torchtitan", TITAN_VERSION, TITAN_SOURCE)
    return _launch(training, engine, _titan_refuses(training), _titan)


def _titan(training: Training) -> str:
    return torchrun(training, "-m", "torchtitan.train", options=_titan_options(training))


def _titan_refuses(training: Training) -> str:
    job, plan = training.job, training.plan
    if job.lora:
        return "It trains all parameters; leave out `lora`, or use DeepSpeed with TRL."
    if job.recompute not in TITAN_RECOMPUTE:
        return "It keeps layer inputs on the GPU; set `recompute` to full."
    if job.offload is Offload.OPTIMIZER:
        return "It offloads all states or none; set `offload` to params or none."
    if plan.ep > 1 and plan.etp not in (1, plan.tp):
        return f"Experts are divided by 1 or by the tensor degree; use an etp of {plan.tp}."
    return ""


def _titan_options(training: Training) -> dict[str, Value]:
    """A pipeline splits the local batch into its micro-batches; else they are accumulated."""
    job, plan = training.job, training.plan
    held = training.rounds if plan.pp > 1 else 1
    schedule = "Interleaved1F1B" if plan.virtual > 1 else TITAN_SCHEDULES[job.schedule]
    layers = training.workload.model.layers // (plan.pp * plan.virtual)
    return {
        "--job.config_file": Raw('"$CONFIG"'),
        "--training.steps": training.steps,
        "--training.seq_len": job.seq_len,
        "--training.local_batch_size": job.micro_batch * held,
        "--training.global_batch_size": training.global_batch,
        "--training.enable_cpu_offload": job.offload is Offload.PARAMS,
        "--parallelism.data_parallel_replicate_degree": training.copies,
        "--parallelism.data_parallel_shard_degree": max(1, plan.shard // plan.cp),
        "--parallelism.fsdp_reshard_after_forward": _reshard(training),
        "--parallelism.tensor_parallel_degree": plan.tp,
        "--parallelism.pipeline_parallel_degree": plan.pp,
        "--parallelism.pipeline_parallel_schedule": schedule if plan.pp > 1 else None,
        "--parallelism.pipeline_parallel_layers_per_stage": layers if plan.virtual > 1 else None,
        "--parallelism.pipeline_parallel_microbatch_size": job.micro_batch if plan.pp > 1 else None,
        "--parallelism.context_parallel_degree": plan.cp,
        "--parallelism.expert_parallel_degree": plan.ep if plan.ep > 1 else None,
        "--parallelism.expert_tensor_parallel_degree": plan.etp if plan.ep > 1 else None,
        "--activation_checkpoint.mode": TITAN_RECOMPUTE.get(job.recompute),
    }


def _reshard(training: Training) -> str | None:
    """Stage 3 frees a layer after its forward pass, stage 2 keeps it until the backward pass."""
    if training.plan.shard == 1:
        return None
    return "always" if training.job.zero_stage >= 3 else "never"


# --- Megatron-LM

MEGATRON_SHARDING = {1: "optim", 2: "optim_grads", 3: "optim_grads_params"}


def megatron(training: Training) -> EngineLaunch:
    engine = EngineLaunch("Megatron-LM", MEGATRON_VERSION, MEGATRON_SOURCE)
    return _launch(training, engine, _megatron_refuses(training), _megatron)


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


# --- DeepSpeed

CONFIG_FILE = "ds_config.json"


def deepspeed(training: Training) -> EngineLaunch:
    engine = EngineLaunch("DeepSpeed", DEEPSPEED_VERSION, DEEPSPEED_SOURCE)
    return _launch(training, engine, _deepspeed_refuses(training), _deepspeed)


def _deepspeed(training: Training) -> str:
    config = json.dumps(_deepspeed_config(training), indent=2).splitlines()
    return f"{file_with(CONFIG_FILE, config)}\n{_deepspeed_command(training)}"


def _deepspeed_refuses(training: Training) -> str:
    plan, job = training.plan, training.job
    split = {"pipeline stages": plan.pp, "context ranks": plan.cp, "expert ranks": plan.ep}
    named = next((name for name, degree in split.items() if degree > 1), "")
    if named:
        return f"Its trainer has no {named}; use a plan without them, or Megatron-LM."
    if plan.tp > 1 and plan.shard > 1 and job.zero_stage == 3:
        return "Its tensor parallelism joins ZeRO stages up to 2; set `zero_stage` to 2."
    if plan.shard > 1 and training.copies > 1:
        return f"It shards over all ranks: use a shard group of {plan.dp * plan.cp}."
    return ""


def _deepspeed_config(training: Training) -> dict[str, Any]:
    job, plan = training.job, training.plan
    zero: dict[str, Any] = {"stage": job.zero_stage if plan.shard > 1 else 0, "overlap_comm": True}
    if job.offload is not Offload.NONE:
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    if job.offload is Offload.PARAMS:
        zero["offload_param"] = {"device": "cpu", "pin_memory": True}
    config: dict[str, Any] = {
        "train_batch_size": training.global_batch,
        "train_micro_batch_size_per_gpu": job.micro_batch,
        "gradient_accumulation_steps": training.rounds,
        "bf16": {"enabled": job.precision.param_bytes == 2},
        "zero_optimization": zero,
        "wall_clock_breakdown": True,
    }
    return config | ({"tensor_parallel": {"autotp_size": plan.tp}} if plan.tp > 1 else {})


def _words(names: tuple[str, ...]) -> Raw:
    """Several values of one option, each of them quoted."""
    return Raw(" ".join(quoted(name) for name in names))


def _deepspeed_command(training: Training) -> str:
    plan, job = training.plan, training.job
    machines: list[str] = []
    if plan.nodes > 1:
        machines = ["--num_nodes", str(plan.nodes), "--no_ssh", "--node_rank", NODE]
        machines += ["--master_addr", HEAD, "--master_port", str(PORT), "--hostfile", "hostfile"]
    here = ["--num_gpus", str(training.gpus_here)]
    if training.order and not machines:
        here = ["--include", f"localhost:{','.join(map(str, training.order))}"]
    head = ("deepspeed", *machines, *here)
    lora = job.lora
    return command(
        *head,
        "--module",
        "trl.scripts.sft",
        options={
            "--deepspeed": CONFIG_FILE,
            "--model_name_or_path": training.model,
            "--dataset_name": Raw('"$DATASET"'),
            "--output_dir": "out",
            "--max_steps": training.steps,
            "--max_length": job.seq_len,
            "--packing": True,
            "--per_device_train_batch_size": job.micro_batch,
            "--gradient_accumulation_steps": training.rounds,
            "--gradient_checkpointing": str(job.recompute.whole_layers),
            "--bf16": job.precision.param_bytes == 2,
            "--use_peft": lora is not None,
            "--lora_r": lora.rank if lora else None,
            "--lora_target_modules": _words(lora.targets) if lora else None,
            "--load_in_4bit": training.workload.weights_format == "bnb-nf4" and lora is not None,
            "--include_num_input_tokens_seen": True,
            "--logging_steps": 1,
        },
    )
