"""Commands of vLLM and SGLang for a serving plan."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evaluator.jobs import ServingJob, Workload
from evaluator.kv_cache import sequences_per_replica
from evaluator.launch.sheet import Command, EngineLaunch
from evaluator.launch.shell import HEAD, ROUTER, Raw, Value, command, pinned
from evaluator.plans import Plan

VLLM_VERSION, VLLM_SOURCE = "0.12 or newer", "docs.vllm.ai: serve, data and expert parallel"
SGLANG_VERSION, SGLANG_SOURCE = "0.5 or newer", "docs.sglang.io: server arguments, bench serving"
VLLM_PORT, SGLANG_PORT = 8000, 30000
RPC_PORT, INIT_PORT = 13345, 5000
MADE_ON_LOADING = {"fp8": "fp8", "bnb-nf4": "bitsandbytes"}
"""Formats into which an engine turns a 16-bit checkpoint; all others need one of that format."""
VLLM_CACHE = {"fp8": "fp8", "fp8_e4m3": "fp8_e4m3", "fp8_e5m2": "fp8_e5m2"}
SGLANG_CACHE = {**VLLM_CACHE, "fp8": "fp8_e4m3"}
SIXTEEN_BITS = frozenset({"auto", "bf16", "fp16"})
DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
PROMPTS_PER_USER = 10
"""Requests of a benchmark for each user: long enough that filling and emptying hardly count."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What a serving command needs to know. `order` are a machine's GPUs in the order of the ranks,
    empty where nothing is known of their pairs."""

    workload: Workload
    job: ServingJob
    plan: Plan
    model: str
    order: tuple[int, ...] = ()

    @property
    def quantization(self) -> str | None:
        loaded = self.workload.model.checkpoint_format
        return None if loaded else MADE_ON_LOADING.get(self.workload.weights_format)

    @property
    def length(self) -> int:
        return self.job.max_model_len or self.job.sequence_tokens

    @property
    def apart(self) -> bool:
        """Whether replicas are separate servers: with experts a joint one would keep in step, and
        with stages not every engine has one."""
        joint = self.workload.model.experts is None and self.plan.pp == 1
        return self.plan.replicas > 1 and not joint

    def asked_at(self, port: int) -> dict[str, Value]:
        """Where a benchmark sends its requests: to the router of several servers, else to the one
        server."""
        several = self.plan.replicas > 1 and (self.apart or self.plan.nodes > 1)
        return {"--base-url": ROUTER} if several else {"--port": port}

    @property
    def one(self) -> Plan:
        """The plan of one replica that lies on several machines."""
        nodes = self.plan.nodes // self.plan.replicas
        return replace(self.plan, replicas=1, nodes=nodes)

    def at(self, node: int) -> str:
        """Where a command of an engine on several machines runs."""
        each = " of each replica" if self.plan.replicas > 1 else ""
        return f"on machine {node}{each}"

    @property
    def replicas_here(self) -> int:
        """Replicas on one machine, where none lies on several."""
        return max(1, self.plan.replicas // self.plan.nodes)


def refused(serving: Serving) -> str:
    """What neither engine runs as it was judged. Empty where both do."""
    job, form = serving.job, serving.workload.weights_format
    if form.startswith("gguf:"):
        return "GGUF files are for llama.cpp; set `weights_format` to one of safetensors."
    if job.kv_dtype not in SIXTEEN_BITS and job.kv_dtype not in VLLM_CACHE:
        return f"Its cache has 16 bits or fp8, not {job.kv_dtype}; set `kv_dtype` to fp8."
    if job.draft_params:
        return "A draft model needs settings of its own; leave out `draft_params`."
    return ""


def vllm(serving: Serving) -> EngineLaunch:
    engine = EngineLaunch("vLLM", VLLM_VERSION, VLLM_SOURCE, unsupported=refused(serving))
    if engine.unsupported:
        return engine
    benchmark = Command(_asked_from(serving), _vllm_benchmark(serving))
    return replace(engine, commands=_vllm_commands(serving), benchmark=(benchmark,))


def _asked_from(serving: Serving) -> str:
    which = "machine 0" if serving.plan.nodes > 1 else "the machine"
    return f"on {which}, from another shell"


def _vllm_commands(serving: Serving) -> tuple[Command, ...]:
    plan = serving.plan
    if plan.joins_machines:
        return _vllm_joined(serving)
    if serving.apart:
        return tuple(
            Command(
                f"{_everywhere(plan)}, replica {index}",
                _pinned(serving, index, _vllm(serving, {"--port": VLLM_PORT + index})),
            )
            for index in range(serving.replicas_here)
        )
    ranks = plan.dp * serving.replicas_here
    return (
        Command(_everywhere(plan), _vllm(serving, {"--data-parallel-size": _above_one(ranks)})),
    )


def _vllm_joined(serving: Serving) -> tuple[Command, ...]:
    """One engine over several machines: its data-parallel ranks, or its stages."""
    plan = serving.one
    return tuple(
        Command(serving.at(node), _vllm(serving, _vllm_node(plan, node)))
        for node in range(plan.nodes)
    )


def _vllm_node(plan: Plan, node: int) -> dict[str, Value]:
    if plan.dp == 1:
        return {
            "--nnodes": plan.nodes,
            "--node-rank": node,
            "--master-addr": HEAD,
            "--headless": node > 0,
        }
    local = plan.dp // plan.nodes
    return {
        "--data-parallel-size": plan.dp,
        "--data-parallel-size-local": local,
        "--data-parallel-start-rank": node * local if node else None,
        "--data-parallel-address": HEAD,
        "--data-parallel-rpc-port": RPC_PORT,
        "--headless": node > 0,
    }


def _vllm(serving: Serving, more: dict[str, Value]) -> str:
    job, plan = serving.job, serving.plan
    options: dict[str, Value] = {
        "--host": "127.0.0.1",
        "--tensor-parallel-size": _above_one(plan.tp),
        "--pipeline-parallel-size": _above_one(plan.pp),
        "--enable-expert-parallel": plan.ep > 1,
        "--max-model-len": serving.length,
        "--max-num-seqs": job.max_num_seqs or sequences_per_replica(job, plan),
        "--max-num-batched-tokens": job.max_num_batched_tokens,
        "--gpu-memory-utilization": job.memory_utilization,
        "--dtype": DTYPES.get(serving.workload.weights_format),
        "--quantization": serving.quantization,
        "--kv-cache-dtype": VLLM_CACHE.get(job.kv_dtype),
        "--enable-lora": job.lora is not None,
        "--max-lora-rank": job.lora.rank if job.lora else None,
        "--max-loras": job.adapters if job.lora else None,
    }
    return _on_gpus(serving, command("vllm", "serve", serving.model, options={**options, **more}))


def _vllm_benchmark(serving: Serving) -> str:
    job = serving.job
    users = job.concurrency
    return command(
        "vllm",
        "bench",
        "serve",
        options={
            "--model": serving.model,
            **serving.asked_at(VLLM_PORT),
            "--dataset-name": "random",
            "--random-input-len": job.input_tokens,
            "--random-output-len": job.output_tokens,
            "--ignore-eos": True,
            "--num-prompts": PROMPTS_PER_USER * users,
            "--max-concurrency": users,
            "--request-rate": job.arrival_rate,
            "--num-warmups": users,
            "--percentile-metrics": "ttft,tpot,itl,e2el",
            "--save-result": True,
        },
    )


def sglang(serving: Serving) -> EngineLaunch:
    engine = EngineLaunch("SGLang", SGLANG_VERSION, SGLANG_SOURCE, unsupported=refused(serving))
    if engine.unsupported:
        return engine
    benchmark = Command(_asked_from(serving), _sglang_benchmark(serving))
    return replace(engine, commands=_sglang_commands(serving), benchmark=(benchmark,))


def _sglang_commands(serving: Serving) -> tuple[Command, ...]:
    plan = serving.plan
    if plan.joins_machines:
        return tuple(
            Command(serving.at(node), _sglang(serving, _sglang_node(serving.one, node)))
            for node in range(serving.one.nodes)
        )
    if serving.apart:
        return tuple(
            Command(
                f"{_everywhere(plan)}, replica {index}",
                _pinned(serving, index, _sglang(serving, {"--port": SGLANG_PORT + index})),
            )
            for index in range(serving.replicas_here)
        )
    copies = {} if plan.dp > 1 else {"--dp-size": _above_one(serving.replicas_here)}
    return (Command(_everywhere(plan), _sglang(serving, {**copies})),)


def _sglang_node(plan: Plan, node: int) -> dict[str, Value]:
    address = Raw(f"{HEAD}:{INIT_PORT}")
    return {"--nnodes": plan.nodes, "--node-rank": node, "--dist-init-addr": address}


def _sglang(serving: Serving, more: dict[str, Value]) -> str:
    """With attention divided by requests, `--tp-size` counts all GPUs of the engine."""
    job, plan = serving.job, serving.plan
    options: dict[str, Value] = {
        "--model-path": serving.model,
        "--host": "127.0.0.1",
        "--tp-size": _above_one(plan.tp * plan.dp),
        "--pp-size": _above_one(plan.pp),
        "--enable-dp-attention": plan.dp > 1,
        "--dp-size": _above_one(plan.dp),
        "--ep-size": _above_one(plan.ep),
        "--context-length": serving.length,
        "--max-running-requests": job.max_num_seqs,
        "--chunked-prefill-size": job.max_num_batched_tokens,
        "--mem-fraction-static": job.memory_utilization if job.engine == "sglang" else None,
        "--dtype": DTYPES.get(serving.workload.weights_format),
        "--quantization": serving.quantization,
        "--kv-cache-dtype": SGLANG_CACHE.get(job.kv_dtype),
        "--enable-lora": job.lora is not None,
        "--max-lora-rank": job.lora.rank if job.lora else None,
        "--max-loras-per-batch": job.adapters if job.lora else None,
    }
    text = command("python", "-m", "sglang.launch_server", options={**options, **more})
    return _on_gpus(serving, text)


def _sglang_benchmark(serving: Serving) -> str:
    job = serving.job
    return command(
        "python",
        "-m",
        "sglang.bench_serving",
        options={
            "--backend": "sglang",
            "--model": serving.model,
            **serving.asked_at(SGLANG_PORT),
            "--dataset-name": "random",
            "--random-input-len": job.input_tokens,
            "--random-output-len": job.output_tokens,
            "--random-range-ratio": 1,
            "--num-prompts": PROMPTS_PER_USER * job.concurrency,
            "--max-concurrency": job.concurrency,
            "--request-rate": job.arrival_rate,
            "--warmup-requests": job.concurrency,
        },
    )


def _above_one(degree: int) -> int | None:
    return degree if degree > 1 else None


def _everywhere(plan: Plan) -> str:
    return f"on each of {plan.nodes} machines" if plan.nodes > 1 else "on the machine"


def _on_gpus(serving: Serving, text: str) -> str:
    """Separate replicas on one machine are pinned one by one."""
    by_one = serving.apart and not serving.plan.joins_machines
    return text if by_one else pinned(serving.order, text)


def _pinned(serving: Serving, index: int, text: str) -> str:
    """A replica on GPUs of its own."""
    each = serving.plan.gpus // serving.plan.replicas
    places = range(index * each, (index + 1) * each)
    gpus = ",".join(str(serving.order[at] if serving.order else at) for at in places)
    return f"CUDA_VISIBLE_DEVICES={gpus} {text}"
