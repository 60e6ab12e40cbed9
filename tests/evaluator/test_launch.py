"""Launch sheets: commands that run the plan that was judged, inert names, honest refusals."""

from __future__ import annotations

import json
import shlex
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from evaluator.findings import Code
from evaluator.jobs import Offload
from evaluator.launch import EngineLaunch, LaunchSheet, launch_of
from evaluator.launch.shell import command, safe_name
from evaluator.link_verdicts import LinkWord
from evaluator.machine import LinkClass
from evaluator.plans import Plan
from tests.evaluator.machines import LORA_8B, known, machine, preset, serve, train, with_shape
from tests.evaluator.topologies import joined

ON = machine("H100", form="SXM", gb=80, link=known(LinkClass.NVSWITCH))
JOINED = replace(ON, inter_node=known("InfiniBand NDR"))
EXPERTS = "qwen3-30b-a3b"


def engine(sheet: LaunchSheet, name: str) -> EngineLaunch:
    return next(one for one in sheet.engines if one.engine == name)


def options(text: str) -> dict[str, str]:
    """Every option of a command with its value, as a shell splits them."""
    words = shlex.split(text.replace("\\\n", " "))
    return {
        word: after if not after.startswith("--") else ""
        for word, after in zip(words, [*words[1:], "--"], strict=True)
        if word.startswith("--")
    }


def of(sheet: LaunchSheet, name: str, index: int = 0) -> dict[str, str]:
    return options(engine(sheet, name).commands[index].text)


# --- serving


def test_the_workloads_own_engine_comes_first() -> None:
    names = [one.engine for one in launch_of(serve(engine="sglang"), Plan(tp=4), ON).engines]
    assert names == ["SGLang", "vLLM"]
    assert launch_of(serve(), Plan(tp=4), ON).engines[0].engine == "vLLM"


def test_a_tensor_plan_of_replicas_is_one_server_with_data_parallel_copies() -> None:
    asked = serve(
        weights_format="fp8", kv_dtype="fp8", max_num_seqs=64, max_num_batched_tokens=4096
    )
    sheet = launch_of(asked, Plan(tp=2, replicas=4), ON)
    vllm = of(sheet, "vLLM")
    assert (vllm["--tensor-parallel-size"], vllm["--data-parallel-size"]) == ("2", "4")
    assert (vllm["--max-num-seqs"], vllm["--max-num-batched-tokens"]) == ("64", "4096")
    assert (vllm["--quantization"], vllm["--kv-cache-dtype"]) == ("fp8", "fp8")
    sglang = of(sheet, "SGLang")
    assert (sglang["--tp-size"], sglang["--dp-size"]) == ("2", "4")
    assert sglang["--kv-cache-dtype"] == "fp8_e4m3"


def test_replicas_of_a_model_with_experts_are_servers_of_their_own() -> None:
    commands = engine(launch_of(serve(EXPERTS), Plan(tp=2, replicas=2), ON), "vLLM").commands
    assert [one.text.split()[0] for one in commands] == [
        "CUDA_VISIBLE_DEVICES=0,1",
        "CUDA_VISIBLE_DEVICES=2,3",
    ]
    assert [options(one.text)["--port"] for one in commands] == ["8000", "8001"]


def test_attention_by_requests_and_shared_experts() -> None:
    sheet = launch_of(serve(EXPERTS), Plan(tp=2, dp=4, ep=8), ON)
    vllm, sglang = of(sheet, "vLLM"), of(sheet, "SGLang")
    assert vllm["--data-parallel-size"] == "4"
    assert "--enable-expert-parallel" in vllm
    assert (sglang["--tp-size"], sglang["--dp-size"], sglang["--ep-size"]) == ("8", "4", "8")
    assert "--enable-dp-attention" in sglang


def test_a_pipeline_over_machines_has_a_command_for_each_of_them() -> None:
    commands = engine(launch_of(serve(), Plan(tp=8, pp=2, nodes=2), JOINED), "vLLM").commands
    first, second = (options(one.text) for one in commands)
    assert (first["--node-rank"], second["--node-rank"]) == ("0", "1")
    assert "--headless" in second
    assert "--headless" not in first
    assert first["--master-addr"] == "$HEAD_ADDR"


def test_replicas_that_each_span_machines_are_launched_one_by_one() -> None:
    plan = Plan(tp=8, pp=2, replicas=2, nodes=4)
    for one in launch_of(serve(), plan, JOINED).engines:
        assert [command.where for command in one.commands] == [
            "on machine 0 of each replica",
            "on machine 1 of each replica",
        ]
        assert {options(command.text)["--nnodes"] for command in one.commands} == {"2"}


def test_replicas_with_stages_are_servers_of_their_own() -> None:
    sheet = launch_of(serve(weights_format="fp8"), Plan(tp=2, pp=2, replicas=2), ON)
    for one in sheet.engines:
        starts = [command.text.split()[0] for command in one.commands]
        assert starts == ["CUDA_VISIBLE_DEVICES=0,1,2,3", "CUDA_VISIBLE_DEVICES=4,5,6,7"]


def test_shared_experts_over_machines_name_their_first_rank() -> None:
    plan = Plan(tp=1, dp=16, ep=16, nodes=2)
    commands = engine(launch_of(serve(EXPERTS), plan, JOINED), "vLLM").commands
    second = options(commands[1].text)
    assert (second["--data-parallel-size-local"], second["--data-parallel-start-rank"]) == (
        "8",
        "8",
    )


def test_the_benchmark_asks_with_the_workloads_lengths_and_users() -> None:
    asked = serve(input_tokens=2000, output_tokens=300, concurrency=24)
    for one in launch_of(asked, Plan(tp=4), ON).engines:
        found = options(one.benchmark[0].text)
        assert (found["--random-input-len"], found["--random-output-len"]) == ("2000", "300")
        assert found["--max-concurrency"] == "24"


@pytest.mark.parametrize(
    ("plan", "option"),
    [
        (Plan(tp=4), "--port"),
        (Plan(tp=2, replicas=4), "--port"),
        (Plan(tp=2, pp=2, replicas=2), "--base-url"),
        (Plan(replicas=16, nodes=2), "--base-url"),
    ],
)
def test_a_benchmark_of_several_servers_asks_their_router(plan: Plan, option: str) -> None:
    for one in launch_of(serve("llama-3.1-8b"), plan, ON).engines:
        assert {"--port", "--base-url"} & options(one.benchmark[0].text).keys() == {option}


# --- training


def test_hybrid_sharding_has_copies_and_shards() -> None:
    sheet = launch_of(train(global_batch=32), Plan(dp=16, shard=8, nodes=2), JOINED)
    titan, megatron = of(sheet, "torchtitan"), of(sheet, "Megatron-LM")
    assert titan["--parallelism.data_parallel_replicate_degree"] == "2"
    assert titan["--parallelism.data_parallel_shard_degree"] == "8"
    assert titan["--nproc-per-node"] == "8"
    assert titan["--rdzv-endpoint"] == "$HEAD_ADDR:29500"
    assert megatron["--num-distributed-optimizer-instances"] == "2"
    assert "shard group of 16" in engine(sheet, "DeepSpeed").unsupported


def test_an_interleaved_pipeline_splits_the_local_batch() -> None:
    sheet = launch_of(train(global_batch=32), Plan(tp=2, pp=4, virtual=2), ON)
    titan = of(sheet, "torchtitan")
    assert titan["--parallelism.pipeline_parallel_schedule"] == "Interleaved1F1B"
    assert titan["--parallelism.pipeline_parallel_layers_per_stage"] == "4"
    assert titan["--parallelism.pipeline_parallel_last_stage_less_layers"] == "0"
    assert titan["--training.local_batch_size"] == "32"
    assert of(sheet, "Megatron-LM")["--num-virtual-stages-per-pipeline-rank"] == "2"


def test_context_ranks_are_counted_in_the_shard_group() -> None:
    sheet = launch_of(train(seq_len=131072), Plan(cp=4, dp=2, shard=8), ON)
    titan = of(sheet, "torchtitan")
    assert titan["--parallelism.context_parallel_degree"] == "4"
    assert titan["--parallelism.data_parallel_shard_degree"] == "2"
    assert of(sheet, "Megatron-LM")["--context-parallel-size"] == "4"
    assert "no context ranks" in engine(sheet, "DeepSpeed").unsupported


def test_experts_and_latent_attention_are_told_to_megatron() -> None:
    plan = Plan(tp=2, dp=4, ep=8)
    found = of(launch_of(train("deepseek-v3", global_batch=8), plan, ON), "Megatron-LM")
    assert (found["--num-experts"], found["--moe-router-topk"]) == ("256", "8")
    assert found["--kv-lora-rank"] == "512"
    assert found["--expert-model-parallel-size"] == "8"
    assert "--qk-layernorm" in found
    assert json.loads(found["--moe-layer-freq"])[:4] == [0, 0, 0, 1]


def test_lora_runs_where_adapters_are_known() -> None:
    sheet = launch_of(preset(LORA_8B), Plan(dp=8), ON)
    assert {one.engine for one in sheet.engines if one.unsupported} == {"torchtitan", "Megatron-LM"}
    text = engine(sheet, "DeepSpeed").commands[0].text
    config = json.loads(text.split("END_OF_FILE'\n")[1].split("\nEND_OF_FILE")[0])
    assert config["train_batch_size"] == 16
    assert config["gradient_accumulation_steps"] == 2
    assert "--use_peft" in text


def test_deepspeed_joins_tensor_ranks_and_stage_two_only() -> None:
    plan = Plan(tp=2, dp=4, shard=4)
    refused = engine(launch_of(train(zero_stage=3), plan, ON), "DeepSpeed")
    assert "zero_stage" in refused.unsupported
    assert engine(launch_of(train(zero_stage=2), plan, ON), "DeepSpeed").commands


def test_offloaded_states_reach_the_configuration() -> None:
    job = train()
    assert job.training is not None
    moved = replace(job, training=replace(job.training, offload=Offload.PARAMS))
    sheet = launch_of(moved, Plan(dp=8, shard=8), ON)
    assert "offload_param" in engine(sheet, "DeepSpeed").commands[0].text
    assert engine(sheet, "Megatron-LM").unsupported


def test_a_job_with_an_end_runs_all_its_steps_and_its_benchmark_only_fifty() -> None:
    sheet = launch_of(train(global_batch=64, seq_len=4096, tokens_to_train=10**9), Plan(dp=8), ON)
    for name in ("torchtitan", "Megatron-LM"):
        one = engine(sheet, name)
        key = {"torchtitan": "--training.steps", "Megatron-LM": "--train-iters"}[name]
        assert options(one.commands[0].text)[key] == str(-(-(10**9) // (64 * 4096)))
        assert options(one.benchmark[0].text)[key] == "50"


# --- what stands beside the commands


def test_a_sheet_names_memory_link_and_what_would_disprove_it() -> None:
    sheet = launch_of(serve(weights_format="fp8"), Plan(tp=4), ON)
    assert sheet.memory is not None
    assert sheet.memory.low < sheet.memory.high < (sheet.usable_bytes or 0)
    assert sheet.link.word is LinkWord.PROVEN
    assert "all-reduces" in sheet.link.need
    metrics = [one.metric for one in sheet.benchmark.predicted]
    assert metrics == ["output rate of all GPUs", "time to the first token", "time per token"]
    assert "outside" in sheet.benchmark.disproved_if


@pytest.mark.parametrize("workload", [serve(), train()], ids=["serve", "train"])
def test_the_rules_and_the_counters_are_those_that_were_asked_for(workload: Any) -> None:
    found = launch_of(workload, Plan(tp=8), ON).benchmark
    rules = " ".join(found.rules).lower()
    for word in ("checkpoint", "precision", "versions", "window", "as in production"):
        assert word in rules
    assert [one.name for one in found.counters] == [
        "throughput",
        "latency",
        "GPU utilisation",
        "memory",
        "link traffic",
        "CPU load",
        "storage stalls",
    ]


def test_a_plan_without_an_estimate_disproves_nothing() -> None:
    unknown = launch_of(serve(), Plan(tp=8), replace(ON, specs=()))
    assert unknown.benchmark.predicted == ()
    assert "Nothing is predicted" in unknown.benchmark.disproved_if


@pytest.mark.parametrize(
    ("workload", "plan"),
    [(serve(), Plan(tp=8, pp=2, nodes=2)), (train(), Plan(dp=16, shard=16, nodes=2))],
    ids=["serve", "train"],
)
def test_commands_over_an_unknown_network_are_given_only_when_asked_for(
    workload: Any, plan: Plan
) -> None:
    refused = launch_of(workload, plan, ON)
    assert refused.refusal is not None
    assert refused.refusal.code is Code.FABRIC_UNKNOWN
    assert refused.commands == ()
    assert all(one.benchmark == () for one in refused.engines)
    assert launch_of(workload, plan, ON, unknown_fabric=True).commands
    assert launch_of(workload, plan, JOINED).commands


def test_replicas_on_two_machines_need_no_network() -> None:
    sheet = launch_of(serve("llama-3.1-8b"), Plan(replicas=16, nodes=2), ON)
    assert sheet.refusal is None
    assert of(sheet, "vLLM")["--data-parallel-size"] == "8"


CROSSED = replace(
    ON, topology=known(joined("NV4", "PHB", "SYS", [(0, 5), (1, 3), (2, 7), (4, 6)], ("0",) * 8))
)


def test_ranks_lie_on_the_gpus_that_were_seen_to_belong_together() -> None:
    sheet = launch_of(serve(weights_format="fp8"), Plan(tp=2, replicas=4), CROSSED)
    assert sheet.link.groups
    order = ",".join(str(gpu) for group in sheet.link.groups for gpu in group)
    for one in sheet.engines:
        assert one.commands[0].text.startswith(f"CUDA_VISIBLE_DEVICES={order} ")
    training = launch_of(train(global_batch=8), Plan(tp=2, dp=4, shard=4), CROSSED)
    assert f"CUDA_VISIBLE_DEVICES={order} torchrun" in training.commands[0].text
    lora = launch_of(preset(LORA_8B), Plan(tp=2, dp=4), CROSSED)
    assert f"--include localhost:{order} " in engine(lora, "DeepSpeed").commands[0].text


def test_separate_replicas_take_a_group_each() -> None:
    sheet = launch_of(serve(EXPERTS), Plan(tp=2, replicas=4), CROSSED)
    starts = [one.text.split()[0] for one in engine(sheet, "vLLM").commands]
    pairs = [f"CUDA_VISIBLE_DEVICES={a},{b}" for a, b in sheet.link.groups]
    assert starts == pairs


def test_gpus_in_their_own_order_need_no_pin() -> None:
    text = launch_of(serve(weights_format="fp8"), Plan(tp=4), ON).commands[0].text
    assert "CUDA_VISIBLE_DEVICES" not in text


# --- names from outside


HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`",
    "a; touch pwned",
    "a' ; touch pwned ; '",
    'a" ; touch pwned ; "',
    "a\ntouch pwned",
    "a && touch pwned",
    "--help",
    "-rf /",
    "a\x1b]0;title\x07",
    "{a,b} * ? ~ !1",
    "END_OF_FILE",
]


SAY = """say() { for word; do printf '%s\\n' "$word"; done; }"""
"""Stands in for an engine: prints the words that it is given."""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_reaches_the_engine_as_one_word_and_runs_nothing(
    name: str,
    tmp_path: Any,
) -> None:
    for workload, plan in ((serve(), Plan(tp=8)), (preset(LORA_8B), Plan(dp=8))):
        for text in (one.text for one in launch_of(workload, plan, ON, model=name).commands):
            shown = text.replace("vllm serve", "say serve").replace("\ndeepspeed ", "\nsay ")
            ran = subprocess.run(
                ["/bin/sh", "-c", f"{SAY}\n{shown}"],
                cwd=tmp_path, capture_output=True, text=True, check=True,
            )  # fmt: skip
            assert safe_name(name) in ran.stdout.splitlines()
            assert {path.name for path in tmp_path.iterdir()} <= {"ds_config.json"}


def test_an_empty_name_still_gives_a_command() -> None:
    assert safe_name("\x00\n") == "MODEL"
    assert command("vllm", "serve", safe_name("")) == "vllm serve MODEL"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"weights_format": "gguf:Q4_K_M"}, "GGUF"),
        ({"kv_dtype": "int8"}, "not int8; set `kv_dtype` to fp8"),
    ],
)
def test_what_would_not_run_as_it_was_judged_gets_no_command(
    keys: dict[str, str], words: str
) -> None:
    sheet = launch_of(serve("llama-3.1-8b", **keys), Plan(), ON)
    assert sheet.commands == ()
    assert all(words in one.unsupported for one in sheet.engines)


# --- what a newcomer needs beside the command


def test_a_listed_model_is_named_as_engines_find_it() -> None:
    sheet = launch_of(serve("llama-3.1-8b"), Plan(), machine())
    assert "vllm serve meta-llama/Llama-3.1-8B " in sheet.commands[0].text
    assert not any(one.startswith("Put the path") for one in sheet.assumptions)


def test_a_model_of_ones_own_is_to_be_named_by_its_owner() -> None:
    job = with_shape(serve("llama-3.1-8b"), name="our-8b")
    sheet = launch_of(job, Plan(), machine())
    assert any(one.startswith("Put the path") for one in sheet.to_fill)


def test_a_server_takes_as_many_sequences_as_were_judged() -> None:
    one, two, stated = (
        launch_of(serve(concurrency=32, **keys), plan, machine()).commands[0].text
        for plan, keys in (
            (Plan(tp=2), {}),
            (Plan(tp=2, replicas=2), {}),
            (Plan(tp=2), {"max_num_seqs": 7}),
        )
    )
    assert "--max-num-seqs 32" in one
    assert "--max-num-seqs 16" in two
    assert "--max-num-seqs 7" in stated


def test_only_what_a_command_asks_for_is_to_be_filled_in() -> None:
    titan = launch_of(train("llama-3.1-70b"), Plan(dp=8, shard=8), machine())
    assert "train_configs/llama3_70b.toml" in titan.commands[0].text
    assert titan.to_fill == ()
    other = launch_of(train("qwen3-8b"), Plan(dp=8, shard=8), machine())
    assert [one.split()[0] for one in other.to_fill] == ["CONFIG"]
    two = launch_of(
        train("qwen3-8b"), Plan(dp=16, shard=16, nodes=2), machine(), unknown_fabric=True
    )
    assert {one.split()[0] for one in two.to_fill} == {"CONFIG", "HEAD_ADDR"}


@pytest.mark.parametrize(("nodes", "where"), [(1, "on the machine"), (2, "on machine 0")])
def test_the_benchmark_is_asked_for_where_the_engine_runs(nodes: int, where: str) -> None:
    plan = Plan(tp=8, pp=nodes, nodes=nodes)
    found = launch_of(serve("llama-3.1-8b"), plan, JOINED)
    places = {one.where for engine in found.engines for one in engine.benchmark}
    assert places == {f"{where}, from another shell"}
