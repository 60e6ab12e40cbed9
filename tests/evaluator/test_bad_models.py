"""What is pasted by mistake: each refusal names a field, what was read and what was expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from evaluator.fields import InvalidWorkload
from evaluator.models import presets
from evaluator.workload import parse_workload
from tests.evaluator.hybrids import ALL as HYBRIDS


def refusal(document: Any) -> str:
    with pytest.raises(InvalidWorkload) as refused:
        parse_workload(document)
    return str(refused.value)


def outcome(document: Any) -> str:
    try:
        return f"read as {parse_workload(document).fingerprint()}"
    except InvalidWorkload as refused:
        return str(refused)


@pytest.mark.parametrize(
    "missing", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"]
)
def test_a_size_that_a_known_family_lacks_is_asked_for_by_name(missing: str) -> None:
    model = {key: size for key, size in presets()["llama-3.1-8b"].config.items() if key != missing}
    said = refusal({"task": "serve", "model": model})
    assert said.startswith(f"model.{missing}: read nothing, expected a whole number")
    counted = {"task": "serve", "model": {**model, "total_params": 8 * 10**9}}
    assert parse_workload(counted).model.given_params == 8 * 10**9


@pytest.mark.parametrize(
    "file",
    [
        {"tokenizer_class": "LlamaTokenizer", "model_max_length": 4096},
        {"version": "1.0", "added_tokens": [], "truncation": None},
        {"bos_token_id": 1, "eos_token_id": 2, "temperature": 0.6},
        {"peft_type": "LORA", "r": 16, "base_model_name_or_path": "x"},
        {"metadata": {"total_size": 1}, "weight_map": {}},
        {"image_processor_type": "a", "size": {}},
    ],
)
def test_another_file_of_a_checkpoint_is_refused_as_a_whole(file: dict[str, Any]) -> None:
    said = refusal({"task": "serve", "model": file})
    assert said.startswith("model: read ")
    assert said.endswith(
        "expected a Hugging Face config.json with hidden_size and num_hidden_layers"
    )


LISTS: Mapping[str, Any] = {
    "layer_types": ["full_attention"] * 3,
    "layers_block_type": ["attention"] * 33,
    "hybrid_override_pattern": "M*",
    "layer_type_counts": {"full_attention": 30, "sliding_attention": 1},
}


@pytest.mark.parametrize("key", LISTS)
def test_a_list_of_other_layers_than_the_model_has_is_refused(key: str) -> None:
    """Three of 32 layers once stood for the cache of all."""
    model = {**presets()["llama-3.1-8b"].config, key: LISTS[key]}
    said = refusal({"task": "serve", "model": model})
    assert said.startswith(f"model.{key}: read '")
    assert said.endswith(" layers', expected num_hidden_layers, 32")


def test_layers_that_predict_further_may_be_listed_too() -> None:
    listed = {"layer_types": ["full_attention"] * 33, "num_nextn_predict_layers": 1}
    model = {**presets()["llama-3.1-8b"].config, **listed}
    assert parse_workload({"task": "serve", "model": model}).model.layers == 32


@pytest.mark.parametrize("part", ["text_config", "llm_config"])
def test_a_nested_part_that_is_no_object_is_refused(part: str) -> None:
    model = {**presets()["llama-3.1-8b"].config, part: "a text"}
    said = refusal({"task": "serve", "model": model})
    assert said == f"model.{part}: read 'a text', expected an object of keys and values"


BIG: Mapping[str, Any] = {
    "a text": {"model_type": "x" * 50_000_000},
    "a list of layers": {"layer_types": ["full_attention"] * 3_000_000},
    "a list of modules": {"quantization_config": {"ignore": ["a" * 100] * 500_000}},
}


@pytest.mark.parametrize("what", BIG)
def test_fifty_megabytes_are_refused_in_a_few_words(what: str) -> None:
    model = {**dict(presets()["llama-3.1-8b"].config), **BIG[what]}
    said = refusal({"task": "serve", "model": model})
    assert said.startswith("model.")
    assert ", expected a " in said
    assert len(said) < 250


@pytest.mark.parametrize("name", HYBRIDS)
@pytest.mark.parametrize("bad", [-1, 0, 1.5, 10**30, "auto", [], {}, True, "\u0663"])
def test_a_hybrid_with_a_strange_size_is_read_or_refused(name: str, bad: Any) -> None:
    for key in HYBRIDS[name]:
        said = outcome({"task": "serve", "model": {**HYBRIDS[name], key: bad}})
        assert said.startswith("read as") or ", expected " in said
