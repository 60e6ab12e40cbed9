"""torchtitan's command for a training plan."""

from __future__ import annotations

from evaluator.jobs import Offload, Recompute, Schedule
from evaluator.launch.sheet import EngineLaunch
from evaluator.launch.shell import Raw, Value
from evaluator.launch.training import Training, launched, torchrun

TITAN_VERSION = "0.2, in a checkout of its repository"
TITAN_SOURCE = "pytorch/torchtitan, torchtitan/config/job_config.py"
TITAN_CONFIGS = {
    f"Llama-3.1-{size}": f"torchtitan/models/llama3/train_configs/llama3_{size.lower()}.toml"
    for size in ("8B", "70B", "405B")
}
"""Its own files for models that are named in a workload: flavour, tokenizer and data."""
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
    return launched(training, engine, _titan_refuses(training), _titan)


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
    """A pipeline splits the local batch into its micro-batches; else they are accumulated. Stages
    are told to hold equal shares, as the plan assumes: by itself it spares the first and last."""
    job, plan = training.job, training.plan
    held = training.rounds if plan.pp > 1 else 1
    schedule = "Interleaved1F1B" if plan.virtual > 1 else TITAN_SCHEDULES[job.schedule]
    layers = training.workload.model.layers // (plan.pp * plan.virtual)
    return {
        "--job.config_file": TITAN_CONFIGS.get(training.workload.model.name, Raw('"$CONFIG"')),
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
        "--parallelism.pipeline_parallel_layers_per_stage": layers if plan.pp > 1 else None,
        "--parallelism.pipeline_parallel_first_stage_less_layers": 0 if plan.pp > 1 else None,
        "--parallelism.pipeline_parallel_last_stage_less_layers": 0 if plan.pp > 1 else None,
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
