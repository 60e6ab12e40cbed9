"""Reading workload files: what is accepted, what is assumed, what is refused and how."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.facts import Grade
from evaluator.fields import InvalidWorkload
from evaluator.findings import Code
from evaluator.jobs import Lora, Precision, Recompute, Task, Workload
from evaluator.models import presets
from evaluator.workload import parse_workload, workload_presets
from tests.evaluator.machines import train

SERVE: dict[str, Any] = {"task": "serve", "model": {"preset": "llama-3.1-8b"}}
TRAIN: dict[str, Any] = {"task": "train", "model": {"preset": "llama-3.1-8b"}}

EVERY_KEY: dict[str, Any] = {
    "name": "everything",
    "model": {"preset": "llama-3.1-8b"},
    "weights_format": "bf16",
    "kv_dtype": "fp8",
    "engine": "vllm",
    "engine_version": "0.11.0",
    "max_model_len": 8192,
    "max_num_seqs": 64,
    "max_num_batched_tokens": 4096,
    "memory_utilization": 0.95,
    "pins": {"activations": 2_000_000_000},
    "input_tokens": 1000,
    "output_tokens": 100,
    "concurrency": 16,
    "arrival_rate": 2.5,
    "targets": {"ttft_ms": 500, "tpot_ms": 30, "tokens_per_s": 1000},
    "optimizer": "adamw",
    "precision": "bf16",
    "global_batch": 64,
    "micro_batch": 2,
    "seq_len": 2048,
    "recompute": "selective",
    "lora": {"rank": 8, "alpha": 16, "targets": ["q_proj", "v_proj"]},
    "offload": "none",
    "tokens_to_train": 10**9,
    "deadline_hours": 24,
    "budget": {"amount": 99.9, "currency": "USD"},
    "dataset_bytes": 10**12,
    "checkpoint_bytes": 10**11,
    "needs": {"regions": ["eu"], "max_price_per_hour": 10, "spot": False, "min_grade": "declared"},
}


def refusal(document: Any) -> str:
    with pytest.raises(InvalidWorkload) as caught:
        parse_workload(document)
    return str(caught.value)


def outcome(document: Any) -> str:
    """The fingerprint of what was read, or the words of the refusal."""
    try:
        return f"read as {parse_workload(document).fingerprint()}"
    except InvalidWorkload as refused:
        return str(refused)


def assumed(workload: Workload) -> dict[str, str]:
    return {one.key: one.value for one in workload.assumptions}


@pytest.mark.parametrize("slug", workload_presets())
def test_every_preset_is_read(slug: str) -> None:
    workload = parse_workload(workload_presets()[slug])
    assert (workload.serving is None) != (workload.training is None)
    assert workload.name


def test_the_presets_are_the_three_that_a_first_run_shows() -> None:
    tasks = [document["task"] for document in workload_presets().values()]
    assert tasks == ["serve", "finetune", "train"]


@pytest.mark.parametrize("task", list(Task))
def test_every_documented_key_is_accepted(task: Task) -> None:
    workload = parse_workload({**EVERY_KEY, "task": task.value})
    assert workload.budget_amount == Decimal("99.9")
    assert workload.needs.min_grade is Grade.DECLARED
    assert workload.needs.max_price_per_hour == Decimal(10)


def test_a_key_of_the_other_kind_of_job_is_said_to_be_unused() -> None:
    assert assumed(parse_workload({**SERVE, "seq_len": 4096}))["seq_len"] == "not used"


def test_a_training_job_carries_what_the_file_says() -> None:
    job = parse_workload({**EVERY_KEY, "task": "finetune"}).training
    assert job is not None
    assert job.precision == Precision(2, 2, 0, 4)
    assert job.lora == Lora(rank=8, targets=("q_proj", "v_proj"))
    assert job.recompute is Recompute.SELECTIVE


def test_a_precision_may_be_four_byte_counts() -> None:
    counts = {"param_bytes": 2, "grad_bytes": 4, "master_bytes": 4, "optimizer_bytes": 8}
    job = parse_workload({**TRAIN, "precision": counts}).training
    assert job is not None
    assert job.precision.bytes_per_param == 18


def test_what_is_left_out_is_listed_as_assumed_with_a_reason() -> None:
    workload = parse_workload(SERVE)
    assert assumed(workload)["memory_utilization"] == "0.9"
    assert assumed(workload)["weights_format"] == "bf16"
    assert all(one.reason for one in workload.assumptions)


def test_what_is_stated_is_not_assumed() -> None:
    assert "concurrency" not in assumed(parse_workload({**SERVE, "concurrency": 4}))


@pytest.mark.parametrize("longest", [1, 2, 100, 1279, 1280, 100_000])
def test_assumed_lengths_stay_within_a_stated_limit(longest: int) -> None:
    job = parse_workload({**SERVE, "max_model_len": longest}).serving
    assert job is not None
    assert job.sequence_tokens <= longest


def test_a_quantised_checkpoint_sets_the_format() -> None:
    deepseek = {"task": "serve", "model": {"preset": "deepseek-v3"}}
    assert parse_workload(deepseek).weights_format == "fp8"


def test_what_is_trained_has_16_bits_whatever_the_checkpoint_has() -> None:
    assert parse_workload({"task": "train", "model": {"preset": "deepseek-v3"}}).training


def test_an_unfamiliar_quantisation_has_to_be_named() -> None:
    config = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = {**config, "intermediate_size": 128, "vocab_size": 100}
    quantised = {**model, "quantization_config": {"quant_method": "aqlm"}}
    assert "aqlm" in refusal({"task": "serve", "model": quantised})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"colour": "red"}, "unknown keys 'colour'"),
        ({"task": "dance"}, "task: read 'dance', expected one of serve, train, finetune"),
        ({"concurrency": 0}, "concurrency: read 0, expected a whole number from 1"),
        ({"concurrency": "３２"}, "concurrency: read '\\uff13\\uff12', expected a whole number"),
        ({"concurrency": True}, "concurrency: read True, expected a whole number"),
        ({"concurrency": 10**400}, "concurrency: read a number of about 400 digits"),
        ({"memory_utilization": float("nan")}, "memory_utilization: read nan"),
        ({"memory_utilization": 1.5}, "expected a number above 0.01, at most 1"),
        ({"arrival_rate": 10**400}, "arrival_rate: read a number of about 400 digits"),
        ({"weights_format": "int3"}, "weights_format: read 'int3', expected one of bf16"),
        ({"kv_dtype": ["fp8"]}, "kv_dtype: read a list of 1"),
        (
            {"max_model_len": 100, "input_tokens": 101},
            "at least input_tokens + output_tokens = 101",
        ),
        ({"model": None}, "model: read nothing"),
        ({"model": "llama"}, "model: read 'llama', expected an object"),
        ({"model": {"preset": "llama-3.1-8b", "hidden_size": 1}}, "unknown keys 'hidden_size'"),
        ({"model": {"preset": "gpt-9"}}, "model.preset: read 'gpt-9', expected a known model"),
        ({"pins": {"everything": 5}}, "pins: read unknown keys 'everything'"),
        ({"pins": {"logits": 5}}, "pins: read unknown keys 'logits'"),
        ({"pins": {"weights": -5}}, "pins.weights: read -5"),
        ({"budget": {"amount": 5}}, "budget.currency: read nothing"),
        ({"budget": {"amount": 5, "currency": "usd"}}, "three capital letters, such as USD"),
        ({"needs": {"min_grade": "sure"}}, "needs.min_grade: read 'sure'"),
        ({"needs": {"regions": "eu"}}, "needs.regions: read 'eu', expected a list"),
        ({"targets": {"ttft": 3}}, "targets: read unknown keys 'ttft'"),
        ({"name": "x" * 100_000}, "expected a text of at most 200 characters"),
    ],
)
def test_a_refusal_says_what_was_read_and_what_was_expected(
    change: dict[str, Any], words: str
) -> None:
    said = refusal({**SERVE, **change})
    assert words in said
    assert len(said) < 2000


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"optimizer": "lion"}, "optimizer: read 'lion', expected one of adamw"),
        ({"precision": "fp4"}, "precision: read 'fp4', expected one of mixed"),
        ({"precision": {"param_bytes": 2}}, "precision.grad_bytes: read nothing"),
        ({"recompute": "some"}, "recompute: read 'some', expected one of none, selective, full"),
        ({"weights_format": "fp8"}, "or a frozen base with lora"),
        ({"lora": {"targets": ["head"]}}, "lora.targets"),
        ({"lora": {"rank": 0}}, "lora.rank: read 0"),
        ({"global_batch": 1, "micro_batch": 2}, "global_batch: read 1, expected a whole number"),
    ],
)
def test_a_training_key_is_refused_by_name(change: dict[str, Any], words: str) -> None:
    assert words in refusal({**TRAIN, **change})


@pytest.mark.parametrize("document", [None, [], "text", 5, [SERVE]])
def test_what_is_no_object_is_refused_as_a_whole(document: Any) -> None:
    assert "the document" in refusal(document)


def test_an_unknown_architecture_is_a_finding_and_no_error() -> None:
    model = {"architectures": ["MambaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2}
    findings = parse_workload({"task": "serve", "model": model}).findings
    assert Code.ARCHITECTURE_UNKNOWN in {one.code for one in findings}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


@given(st.sampled_from(list(Task)), st.dictionaries(st.sampled_from(list(EVERY_KEY)), JSON))
def test_whatever_stands_in_a_key_gives_a_workload_or_a_refusal(
    task: Task, keys: dict[str, Any]
) -> None:
    said = outcome({**SERVE, **keys, "task": task.value})
    assert said.startswith("read as") or ", expected " in said


CONFIG_KEYS = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "layer_types",
    "layer_type_counts",
    "text_config",
    "quantization_config",
    "architectures",
    "model_type",
    "mlp_only_layers",
    "num_experts",
    "kv_lora_rank",
    "sliding_window",
    "total_params",
)


@given(st.dictionaries(st.sampled_from(CONFIG_KEYS), JSON))
def test_whatever_stands_in_a_model_config_gives_a_workload_or_a_refusal(
    keys: dict[str, Any],
) -> None:
    sound = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = {**sound, "intermediate_size": 128, "vocab_size": 100, **keys}
    said = outcome({"task": "serve", "model": model})
    assert said.startswith("read as") or ", expected " in said


@pytest.mark.parametrize(
    "change",
    [
        {"name": "another"},
        {"needs": {"regions": ["eu"]}},
        {"budget": {"amount": 5, "currency": "USD"}},
    ],
)
def test_the_fingerprint_ignores_names_and_what_only_ranks(change: dict[str, Any]) -> None:
    assert parse_workload(SERVE).fingerprint() == parse_workload({**SERVE, **change}).fingerprint()


def test_the_fingerprint_is_the_same_in_another_process() -> None:
    script = (
        "from evaluator.workload import parse_workload as read, workload_presets as presets\n"
        "print([read(presets()[slug]).fingerprint() for slug in presets()])"
    )
    found = {
        subprocess.check_output(
            [sys.executable, "-c", script], text=True, env={"PYTHONHASHSEED": seed}
        )
        for seed in ("1", "2")
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"concurrency": 2},
        {"weights_format": "fp8"},
        {"pins": {"activations": 1}},
        {"model": {"preset": "llama-3.1-70b"}},
    ],
)
def test_the_fingerprint_changes_with_what_a_verdict_depends_on(change: dict[str, Any]) -> None:
    assert parse_workload(SERVE).fingerprint() != parse_workload({**SERVE, **change}).fingerprint()


def test_a_lone_surrogate_is_refused_where_it_stands() -> None:
    with pytest.raises(InvalidWorkload, match=r"^name: "):
        parse_workload({"task": "serve", "model": {"preset": "llama-3.1-8b"}, "name": "\ud800"})


def test_a_list_of_layers_may_not_be_nested() -> None:
    deep: list[Any] = []
    for _ in range(50_000):
        deep = [deep]
    with pytest.raises(InvalidWorkload, match=r"^model\.layer_types: "):
        parse_workload({"task": "serve", "model": {"hidden_size": 64, "layer_types": deep}})


def test_a_config_without_an_architecture_is_read_as_a_plain_decoder_and_says_so() -> None:
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = {**sizes, "intermediate_size": 128, "vocab_size": 100}
    workload = parse_workload({"task": "serve", "model": model})
    assert "model.architectures" in {one.key for one in workload.assumptions}


def _described(**weights: Any) -> dict[str, Any]:
    groups = {"group_0": {"targets": ["Linear"], "weights": weights}}
    return {"quant_method": "compressed-tensors", "config_groups": groups}


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"quant_method": "gptq", "bits": 4}, "gptq-int4"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 32}, "gptq-int4:g32"),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, "gptq-int4:channel"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "awq-int4:g128"),
        ({"quant_method": "awq", "w_bit": 4, "q_group_size": 64}, "awq-int4:g64"),
        ({"quant_method": "gptq", "bits": 8, "group_size": 32}, "gptq-int8:g32"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        (_described(type="float", num_bits=4, group_size=16), "nvfp4"),
        (_described(type="float", num_bits=8, strategy="channel"), "fp8"),
        (_described(type="int", num_bits=4, group_size=32), "int4:g32"),
        (_described(type="int", num_bits=4, strategy="channel"), "int4:channel"),
        (_described(type="int", num_bits=8), "int8"),
        ({"quant_method": "gptq", "bits": 8}, "gptq-int8"),
        (_described(type="int", num_bits=8, group_size=128), "int8:g128"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bnb-nf4"),
    ],
)
def test_the_bits_of_a_quantised_checkpoint_are_read(stated: Any, expected: str) -> None:
    model = {**dict(presets()["llama-3.1-8b"].config), "quantization_config": stated}
    assert parse_workload({"task": "serve", "model": model}).weights_format == expected


def test_bits_without_a_format_are_refused() -> None:
    quantised = {"quant_method": "gptq", "bits": 3}
    model = {**dict(presets()["llama-3.1-8b"].config), "quantization_config": quantised}
    with pytest.raises(InvalidWorkload, match="gptq of 3 bits"):
        parse_workload({"task": "serve", "model": model})


def test_a_stated_method_takes_the_groups_of_its_checkpoint() -> None:
    quantised = {"quant_method": "gptq", "bits": 4, "group_size": 32}
    model = {**dict(presets()["llama-3.1-8b"].config), "quantization_config": quantised}
    job = {"task": "serve", "model": model, "weights_format": "gptq-int4"}
    assert parse_workload(job).weights_format == "gptq-int4:g32"


@pytest.mark.parametrize("size", [-2, 65_537, "32", True, "\uff13\uff12"])
def test_a_group_that_is_no_size_is_refused(size: Any) -> None:
    quantised = {"quant_method": "gptq", "bits": 4, "group_size": size}
    model = {**dict(presets()["llama-3.1-8b"].config), "quantization_config": quantised}
    with pytest.raises(InvalidWorkload, match=r"group_size: read .*, expected a whole number"):
        parse_workload({"task": "serve", "model": model})


def test_a_long_prompt_leaves_the_assumed_answer_as_it_is() -> None:
    job = parse_workload({**SERVE, "input_tokens": 4000}).serving
    assert job is not None
    assert (job.input_tokens, job.output_tokens) == (4000, 256)


def test_a_batch_is_a_whole_number_of_micro_batches() -> None:
    with pytest.raises(InvalidWorkload, match="global_batch: read 7, expected a multiple of"):
        train(global_batch=7, micro_batch=2)
    assert train(global_batch=8, micro_batch=2).training is not None
