"""Model shapes and the parameters that follow from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluator.configs import read_model
from evaluator.fields import InvalidWorkload
from evaluator.findings import Code
from evaluator.models import preset, presets
from evaluator.parameters import active_params, computed_params, total_params
from evaluator.shapes import QkNorm

LLAMA_8B: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}
HYBRID = {**LLAMA_8B, "model_type": "qwen3_next", "linear_num_value_heads": 32}


@pytest.mark.parametrize(
    ("slug", "published"),
    [
        ("llama-3.1-8b", 8_030_261_248),
        ("llama-3.1-70b", 70_553_706_496),
        ("llama-3.1-405b", 405_853_388_800),
        ("llama-3.2-1b", 1_235_814_400),
        ("qwen2.5-7b", 7_615_616_512),
        ("qwen3-30b-a3b", 30_532_122_624),
        ("mixtral-8x7b-v0.1", 46_702_792_704),
        ("gpt-oss-120b", 116_829_156_672),
        ("gemma-2-9b", 9_241_705_984),
        ("phi-2", 2_779_683_840),
        ("phi-3.5-moe", 41_873_153_344),
        ("falcon-7b", 6_921_720_704),
        ("opt-125m", 125_239_296),
        ("deepseek-v3", 671_026_419_200),
    ],
)
def test_a_preset_has_its_published_number_of_parameters(slug: str, published: int) -> None:
    assert total_params(preset(slug)) == published


@pytest.mark.parametrize(
    ("slug", "billions"),
    [
        ("deepseek-v3", 37.6),
        ("qwen3-235b-a22b", 22.2),
        ("mixtral-8x7b-v0.1", 12.9),
        ("llama-4-scout-17b-16e", 17.2),
        ("llama-4-maverick-17b-128e", 17.2),
    ],
)
def test_a_mixture_uses_its_published_share_for_a_token(slug: str, billions: float) -> None:
    active = active_params(preset(slug))
    assert active is not None
    assert active / 1e9 == pytest.approx(billions, abs=0.06)


def test_gpt_oss_counts_5_13_billion_active_without_its_embedding() -> None:
    shape = preset("gpt-oss-120b")
    assert (active_params(shape) or 0) - shape.vocab * shape.hidden == pytest.approx(
        5.13e9, rel=0.002
    )


def test_a_dense_model_uses_all_of_its_parameters() -> None:
    shape = preset("llama-3.1-8b")
    assert active_params(shape) == total_params(shape)


@pytest.mark.parametrize("slug", presets())
def test_every_preset_can_be_computed_and_says_where_it_was_read(slug: str) -> None:
    shape = preset(slug)
    assert shape.computable
    assert shape.dimensioned
    assert shape.source
    assert computed_params(shape)


@pytest.mark.parametrize("slug", presets())
def test_no_key_of_a_preset_is_ignored(slug: str) -> None:
    assert read_model(presets()[slug].config)[1] == []


def test_an_unknown_preset_names_its_nearest_neighbours() -> None:
    with pytest.raises(InvalidWorkload, match=r"llama-3\.1-8b"):
        preset("llama-3.1-8")


@pytest.mark.shared
def test_shapes_agree_with_the_reference_up_to_biases_that_it_leaves_out(shared: Path) -> None:
    entries = json.loads((shared / "reference/model_configs.json").read_text("utf-8"))
    del entries["_about"]
    counts = {
        name: (computed_params(read_model(entry)[0]), entry["total_params_computed"])
        for name, entry in entries.items()
        if entry["total_params_computed"]
    }
    assert len(counts) > 60
    off = {name for name, (ours, theirs) in counts.items() if ours != theirs}
    assert off <= {"MiMo-7B-Base", "Phi-2"}
    assert all(ours == pytest.approx(theirs, rel=1e-4) for ours, theirs in counts.values())


@pytest.mark.shared
def test_what_cannot_be_computed_says_so(shared: Path) -> None:
    entries = json.loads((shared / "reference/model_configs.json").read_text("utf-8"))
    for name, entry in entries.items():
        if name != "_about" and entry["total_params_computed"] is None:
            shape, findings = read_model(entry)
            covered = bool(shape.kinds) or shape.architecture == "MiniMaxM2ForCausalLM"
            assert (computed_params(shape) is None) != covered, name
            unknown = Code.ARCHITECTURE_UNKNOWN in {one.code for one in findings}
            assert unknown == (total_params(shape) is None), name


def test_an_unknown_architecture_takes_the_count_that_is_given() -> None:
    assert total_params(read_model(HYBRID)[0]) is None
    assert total_params(read_model({**HYBRID, "total_params": 80_000_000_000})[0]) == 80 * 10**9


def test_a_count_above_the_text_model_is_kept_as_further_modules() -> None:
    shape, _ = read_model({**LLAMA_8B, "total_params": 9_000_000_000})
    assert total_params(shape) == 9_000_000_000
    assert computed_params(shape) == 8_030_261_248


def test_nested_text_keys_outrank_outer_ones() -> None:
    nested = {
        "architectures": ["Gemma3ForConditionalGeneration"],
        "hidden_size": 1,
        "text_config": {**presets()["gemma-3-4b"].config},
        "vision_config": {"hidden_size": 1152},
    }
    shape, findings = read_model(nested)
    assert total_params(shape) == 4_300_079_472
    assert computed_params(shape) == computed_params(preset("gemma-3-4b"))
    assert [one.code for one in findings] == [Code.MODEL_KEYS_IGNORED]
    assert "vision_config" in findings[0].sentence


@pytest.mark.parametrize(
    ("model_type", "tied", "qkv_bias", "norm"),
    [
        ("llama", False, False, QkNorm.NONE),
        ("qwen2", False, True, QkNorm.NONE),
        ("qwen3", False, False, QkNorm.HEAD),
        ("gemma3_text", True, False, QkNorm.HEAD),
        ("olmo2", False, False, QkNorm.FULL),
    ],
)
def test_a_family_fills_in_what_its_config_leaves_out(
    model_type: str, tied: bool, qkv_bias: bool, norm: QkNorm
) -> None:
    shape, _ = read_model({**LLAMA_8B, "model_type": model_type})
    assert (shape.tied, shape.attention.qkv_bias, shape.attention.qk_norm) == (tied, qkv_bias, norm)


def test_a_stated_key_outranks_the_family() -> None:
    shape, _ = read_model({**LLAMA_8B, "model_type": "gemma", "tie_word_embeddings": False})
    assert not shape.tied


def test_a_class_name_is_as_good_as_a_model_type() -> None:
    by_class = {**LLAMA_8B, "architectures": ["Qwen3MoeForCausalLM"]}
    del by_class["model_type"]
    assert read_model(by_class)[0].attention.qk_norm is QkNorm.HEAD


PUBLISHED: dict[str, tuple[int, dict[str, Any]]] = {
    "StarCoder2 3B": (
        3_030_371_328,
        {"model_type": "starcoder2", "hidden_size": 3072, "intermediate_size": 12288}
        | {"num_hidden_layers": 30, "num_attention_heads": 24, "num_key_value_heads": 2}
        | {"vocab_size": 49152, "use_bias": True, "sliding_window": 4096},
    ),
    "StarCoder": (
        15_517_456_384,
        {"model_type": "gpt_bigcode", "n_embd": 6144, "n_layer": 40, "n_head": 48}
        | {"n_inner": 24576, "n_positions": 8192, "vocab_size": 49152, "multi_query": True},
    ),
    "GPT-NeoX 20B": (
        20_554_567_680,
        {"model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576}
        | {"num_hidden_layers": 44, "num_attention_heads": 64, "vocab_size": 50432},
    ),
    "Command R": (
        34_980_831_232,
        {"model_type": "cohere", "hidden_size": 8192, "intermediate_size": 22528}
        | {"num_hidden_layers": 40, "num_attention_heads": 64, "vocab_size": 256_000},
    ),
    "OLMoE 1B-7B": (
        6_919_161_856,
        {"model_type": "olmoe", "hidden_size": 2048, "intermediate_size": 1024}
        | {"num_hidden_layers": 16, "num_attention_heads": 16, "vocab_size": 50304}
        | {"num_experts": 64, "num_experts_per_tok": 8},
    ),
    "Qwen1.5-MoE A2.7B": (
        14_315_784_192,
        {"model_type": "qwen2_moe", "hidden_size": 2048, "intermediate_size": 5632}
        | {"num_hidden_layers": 24, "num_attention_heads": 16, "vocab_size": 151_936}
        | {"num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408}
        | {"shared_expert_intermediate_size": 5632, "decoder_sparse_step": 1},
    ),
    "DeepSeek-V2": (
        235_741_434_880,
        {"model_type": "deepseek_v2", "hidden_size": 5120, "intermediate_size": 12288}
        | {"num_hidden_layers": 60, "num_attention_heads": 128, "vocab_size": 102_400}
        | {"n_routed_experts": 160, "n_shared_experts": 2, "num_experts_per_tok": 6}
        | {"moe_intermediate_size": 1536, "first_k_dense_replace": 1, "kv_lora_rank": 512}
        | {"q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64}
        | {"v_head_dim": 128},
    ),
    "StableLM 2 1.6B": (
        1_644_515_328,
        {"model_type": "stablelm", "hidden_size": 2048, "intermediate_size": 5632}
        | {"num_hidden_layers": 24, "num_attention_heads": 32, "vocab_size": 100_352}
        | {"use_qkv_bias": True},
    ),
}


PUBLISHED |= {
    "GPT-J 6B": (
        6_050_882_784,
        {"model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16, "n_positions": 2048}
        | {"vocab_size": 50400, "tie_word_embeddings": False},
    ),
    "BLOOM": (
        176_247_271_424,
        {"model_type": "bloom", "n_embed": 14336, "n_layer": 70, "num_attention_heads": 112}
        | {"vocab_size": 250_880},
    ),
    "Falcon RW 1B": (
        1_311_625_216,
        {"model_type": "falcon", "hidden_size": 2048, "num_hidden_layers": 24}
        | {"num_attention_heads": 32, "vocab_size": 50304, "bias": True}
        | {"parallel_attn": False, "multi_query": False},
    ),
    "Command R+": (
        103_810_674_688,
        {"model_type": "cohere", "hidden_size": 12288, "intermediate_size": 33792}
        | {"num_hidden_layers": 64, "num_attention_heads": 96, "num_key_value_heads": 8}
        | {"vocab_size": 256_000, "use_qk_norm": True},
    ),
    "DeepSeek-MoE 16B": (
        16_375_728_128,
        {"model_type": "deepseek", "hidden_size": 2048, "intermediate_size": 10944}
        | {"num_hidden_layers": 28, "num_attention_heads": 16, "vocab_size": 102_400}
        | {"n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6}
        | {"moe_intermediate_size": 1408, "first_k_dense_replace": 1},
    ),
    "Granite 3.1 1B-A400M": (
        1_334_628_352,
        {"model_type": "granitemoe", "hidden_size": 1024, "intermediate_size": 512}
        | {"num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 8}
        | {"vocab_size": 49155, "num_local_experts": 32, "num_experts_per_tok": 8}
        | {"tie_word_embeddings": True},
    ),
}


UNKNOWN: dict[str, dict[str, Any]] = {
    "a tower that is not counted": {**LLAMA_8B, "vision_config": {"hidden_size": 1024}},
    "a classifier": {**LLAMA_8B, "architectures": ["LlamaForSequenceClassification"]},
    "an embedder": {**LLAMA_8B, "architectures": ["LlamaModel"]},
    "a draft": {**LLAMA_8B, "architectures": ["LlamaForCausalLMEagle3"]},
    "sizes by layer": {**LLAMA_8B, "intermediate_size": [14336, 7168] * 16},
    "an encoder and a decoder": {**LLAMA_8B, "is_encoder_decoder": True},
    "a narrow embedding": {**LLAMA_8B, "model_type": "opt", "word_embed_proj_dim": 512},
}


@pytest.mark.parametrize("why", UNKNOWN)
def test_what_the_formulas_leave_out_is_unknown(why: str) -> None:
    shape, findings = read_model(UNKNOWN[why])
    assert total_params(shape) is None
    assert Code.ARCHITECTURE_UNKNOWN in {one.code for one in findings}


@pytest.mark.parametrize(
    "keys",
    [
        {"model_type": "jamba", "attn_layer_period": 8, "attn_layer_offset": 4},
        {"model_type": "chatglm", "multi_query_group_num": 2, "num_key_value_heads": None},
        {"model_type": "mpt2", "attn_config": {"alibi": True}, "num_key_value_heads": None},
        {"is_encoder_decoder": True},
        {"num_key_value_heads": [8, 4] * 16},
    ],
)
def test_a_count_does_not_make_an_unknown_cache_known(keys: dict[str, Any]) -> None:
    shape, _ = read_model({**LLAMA_8B, **keys, "total_params": 8_000_000_000})
    assert total_params(shape) == 8_000_000_000
    assert not shape.dimensioned


def test_a_plain_decoder_of_an_unlisted_family_keeps_its_cache() -> None:
    shape, _ = read_model({**LLAMA_8B, "model_type": "arctic", "total_params": 8_000_000_000})
    assert shape.dimensioned


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_pasted_config_gives_the_count_of_the_published_checkpoint(name: str) -> None:
    published, config = PUBLISHED[name]
    shape, findings = read_model(config)
    assert computed_params(shape) == published
    assert findings == []


def test_what_gemma_3_leaves_out_of_its_smallest_config_is_known() -> None:
    published = {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    }
    shape, findings = read_model(published)
    assert (shape.attention.heads, shape.attention.kv_heads, shape.attention.head_dim) == (
        8,
        4,
        256,
    )
    assert shape.vocab == 262_208
    assert findings == []


def test_gpt2_names_are_read() -> None:
    gpt2 = {
        "model_type": "gpt2",
        "n_embd": 768,
        "n_layer": 12,
        "n_head": 12,
        "n_inner": None,
        "n_positions": 1024,
        "vocab_size": 50257,
    }
    assert computed_params(read_model(gpt2)[0]) == 124_439_808


@pytest.mark.parametrize(
    ("slug", "layers", "tokens"),
    [
        ("gemma-3-27b", 52, 1024),
        ("gemma-2-9b", 21, 4096),
        ("gpt-oss-20b", 12, 128),
        ("mistral-7b-v0.1", 32, 4096),
        ("llama-4-scout-17b-16e", 36, 8192),
    ],
)
def test_window_layers_follow_the_family(slug: str, layers: int, tokens: int) -> None:
    window = preset(slug).window
    assert window is not None
    assert (window.layers, window.tokens) == (layers, tokens)


def test_a_window_that_is_switched_off_is_none() -> None:
    off = {**LLAMA_8B, "model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False}
    assert read_model(off)[0].window is None


def test_interleaved_experts_leave_every_second_layer_dense() -> None:
    experts = preset("llama-4-maverick-17b-128e").experts
    assert experts is not None
    assert experts.dense_layers == tuple(range(0, 48, 2))


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        ({"num_hidden_layers": -1}, "model.num_hidden_layers"),
        ({"num_hidden_layers": True}, "model.num_hidden_layers"),
        ({"hidden_size": "４０９６"}, "model.hidden_size"),
        ({"hidden_size": 4096.5}, "model.hidden_size"),
        ({"num_key_value_heads": 5}, "model.num_key_value_heads"),
        ({"num_attention_heads": 24, "num_key_value_heads": 8}, "model.num_attention_heads"),
        ({"intermediate_size": None}, "model.intermediate_size"),
        ({"total_params": 1e30}, "model.total_params"),
        ({"kv_lora_rank": 512}, "model.qk_rope_head_dim"),
        ({"layer_types": 7}, "model.layer_types"),
        ({"layer_type_counts": {"full_attention": "many"}}, "full_attention"),
        ({"num_experts": 8, "num_experts_per_tok": 9}, "model.num_experts_per_tok"),
    ],
)
def test_a_key_that_cannot_be_used_is_named(keys: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidWorkload) as refusal:
        read_model({**LLAMA_8B, **keys})
    assert field in str(refusal.value)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "negative layers": (
        {"num_hidden_layers": -32},
        "model.num_hidden_layers: read -32, expected a whole number from 1 to 1000",
    ),
    "1e30 parameters": (
        {"total_params": 1e30},
        "model.total_params: read 1e+30, expected a whole number from 1 to 1000000000000000",
    ),
    "query heads that do not divide": (
        {"num_attention_heads": 24, "num_key_value_heads": 8},
        "model.num_attention_heads: read 24, expected a divisor of hidden_size 4096, or head_dim",
    ),
    "KV heads that do not divide": (
        {"num_key_value_heads": 5},
        "model.num_key_value_heads: read 5, expected a divisor of the 32 attention heads",
    ),
    "a missing key": (
        {"intermediate_size": None},
        "model.intermediate_size: read nothing, expected the inner size of the MLP",
    ),
    "Unicode digits": (
        {"hidden_size": "４０９６"},
        r"model.hidden_size: read '\uff14\uff10\uff19\uff16', expected a whole number",
    ),
}


@pytest.mark.parametrize("why", BAD)
def test_bad_input_says_what_was_read_and_expected(why: str) -> None:
    keys, message = BAD[why]
    with pytest.raises(InvalidWorkload) as refusal:
        read_model({**LLAMA_8B, **keys})
    assert str(refusal.value).startswith(message)


def test_fifty_megabytes_of_text_in_one_key_are_refused_shortly() -> None:
    with pytest.raises(InvalidWorkload) as refusal:
        read_model({**LLAMA_8B, "model_type": "x" * 50_000_000})
    assert str(refusal.value).endswith("expected a text of at most 200 characters")
    assert len(str(refusal.value)) < 200


def test_a_file_of_megabytes_is_refused_by_its_number_of_keys() -> None:
    large = {f"key_{number}": number for number in range(100_000)}
    with pytest.raises(InvalidWorkload, match="keys', expected a config"):
        read_model({**LLAMA_8B, **large})


def test_a_tokenizer_config_is_told_from_a_model_config() -> None:
    with pytest.raises(InvalidWorkload, match="a tokenizer config"):
        read_model({"tokenizer_class": "LlamaTokenizer", "model_max_length": 131072})
