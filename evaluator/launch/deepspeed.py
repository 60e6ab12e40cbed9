"""DeepSpeed's configuration and command for a training plan, with TRL as the trainer."""

from __future__ import annotations

import json
from typing import Any

from evaluator.jobs import Offload
from evaluator.launch.sheet import EngineLaunch
from evaluator.launch.shell import HEAD, NODE, Raw, command, file_with, quoted
from evaluator.launch.training import PORT, Training, launched
from evaluator.states import USUAL_BUCKET

DEEPSPEED_VERSION = "0.16.4 or newer, with trl 0.20 or newer"
DEEPSPEED_SOURCE = "deepspeed.ai: configuration, AutoTP training; TRL command line"
CONFIG_FILE = "ds_config.json"


def deepspeed(training: Training) -> EngineLaunch:
    engine = EngineLaunch("DeepSpeed", DEEPSPEED_VERSION, DEEPSPEED_SOURCE)
    return launched(training, engine, _deepspeed_refuses(training), _deepspeed)


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
    if zero["stage"] in (1, 2):
        elements = job.bucket_elements or USUAL_BUCKET
        zero |= {"reduce_bucket_size": elements, "allgather_bucket_size": elements}
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
