"""Layers of several kinds and vision towers: published totals, and unknown where a size lacks."""

from __future__ import annotations

from typing import Any

import pytest

from evaluator.configs import read_model
from evaluator.fields import InvalidWorkload
from evaluator.findings import Code
from evaluator.parameters import total_params

DELTA: dict[str, Any] = {
    "linear_num_key_heads": 16,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "full_attention_interval": 4,
    "head_dim": 256,
    "num_key_value_heads": 2,
}
QWEN_397B: dict[str, Any] = DELTA | {
    "architectures": ["Qwen3_5MoeForConditionalGeneration"],
    "hidden_size": 4096,
    "num_hidden_layers": 60,
    "num_attention_heads": 32,
    "moe_intermediate_size": 1024,
    "vocab_size": 248_320,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "shared_expert_intermediate_size": 1024,
    "linear_num_value_heads": 64,
}
QWEN_80B: dict[str, Any] = DELTA | {
    "architectures": ["Qwen3NextForCausalLM"],
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "num_attention_heads": 16,
    "intermediate_size": 5120,
    "moe_intermediate_size": 512,
    "vocab_size": 151_936,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "shared_expert_intermediate_size": 512,
    "linear_num_value_heads": 32,
}
NEMOTRON_8B: dict[str, Any] = {
    "architectures": ["NemotronHForCausalLM"],
    "hidden_size": 4096,
    "num_hidden_layers": 52,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 21_504,
    "vocab_size": 131_072,
    "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
    "mamba_num_heads": 128,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
}


@pytest.mark.parametrize(
    ("config", "billions"), [(QWEN_397B, 396.35), (QWEN_80B, 79.67), (NEMOTRON_8B, 8.10)]
)
def test_layers_of_two_kinds_give_the_published_total(
    config: dict[str, Any], billions: float
) -> None:
    shape, findings = read_model(config)
    assert round((total_params(shape) or 0) / 1e9, 2) == billions
    assert Code.ARCHITECTURE_UNKNOWN not in {one.code for one in findings}


@pytest.mark.parametrize(
    ("config", "changed"),
    [
        (QWEN_80B, {"linear_num_value_heads": None}),
        (QWEN_80B, {"full_attention_interval": None}),
        (QWEN_80B, {"attn_output_gate": False}),
        (NEMOTRON_8B, {"n_groups": None}),
        (NEMOTRON_8B, {"mlp_bias": True}),
        (NEMOTRON_8B, {"hybrid_override_pattern": "ME" * 26}),
        (NEMOTRON_8B, {"hybrid_override_pattern": "M?" * 26}),
        (NEMOTRON_8B, {"architectures": ["JambaForCausalLM"]}),
    ],
)
def test_a_hybrid_that_is_not_fully_described_asks_for_a_count(
    config: dict[str, Any], changed: dict[str, Any]
) -> None:
    shape, findings = read_model(config | changed)
    assert total_params(shape) is None
    assert Code.ARCHITECTURE_UNKNOWN in {one.code for one in findings}


def test_a_stated_count_outranks_the_sum_of_a_hybrid() -> None:
    shape, _ = read_model(QWEN_80B | {"total_params": 80_000_000_000})
    assert total_params(shape) == 80_000_000_000


# --- towers

TEXT: dict[str, Any] = {
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "intermediate_size": 18_944,
    "vocab_size": 152_064,
    "hidden_size": 3584,
    "tie_word_embeddings": False,
}
QWEN2_VL = {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "patch_size": 14, "hidden_size": 3584}
QWEN25_VL = {
    "depth": 32,
    "hidden_size": 1280,
    "intermediate_size": 3420,
    "patch_size": 14,
    "out_hidden_size": 3584,
}
QWEN3_VL = {
    "depth": 27,
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "patch_size": 16,
    "out_hidden_size": 4096,
    "num_position_embeddings": 2304,
    "deepstack_visual_indexes": [8, 16, 24],
}
TEXT_3: dict[str, Any] = TEXT | {
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 12_288,
    "vocab_size": 151_936,
    "hidden_size": 4096,
}


@pytest.mark.parametrize(
    ("name", "text", "tower", "published"),
    [
        ("Qwen2VLForConditionalGeneration", TEXT, QWEN2_VL, 8_291_375_616),
        ("Qwen2_5_VLForConditionalGeneration", TEXT, QWEN25_VL, 8_292_166_656),
        ("Qwen3VLForConditionalGeneration", TEXT_3, QWEN3_VL, 8_767_123_696),
    ],
)
def test_a_tower_and_its_text_model_give_the_published_total(
    name: str, text: dict[str, Any], tower: dict[str, Any], published: int
) -> None:
    shape, _ = read_model({"architectures": [name], **text, "vision_config": tower})
    assert shape.computable
    assert total_params(shape) == published


@pytest.mark.parametrize("missing", sorted(QWEN3_VL.keys() - {"out_hidden_size"}))
def test_a_tower_without_one_of_its_sizes_is_not_guessed(missing: str) -> None:
    tower = {key: size for key, size in QWEN3_VL.items() if key != missing}
    named = {"architectures": ["Qwen3VLForConditionalGeneration"]}
    shape, _ = read_model({**named, **TEXT_3, "vision_config": tower})
    assert total_params(shape) is None


# --- what joins a tower to its text model

CLIP = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "patch_size": 14,
    "image_size": 336,
}
PIXTRAL = CLIP | {"model_type": "pixtral", "image_size": 1540}
VICUNA = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 11_008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32_064,
}
MISTRAL = {
    "model_type": "mistral",
    "hidden_size": 5120,
    "intermediate_size": 32_768,
    "num_hidden_layers": 40,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 131_072,
}

INTERN = CLIP | {"model_type": "intern_vit_6b"}
SIGLIP = (
    CLIP
    | {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27}
    | {"image_size": 364}
)
QWEN_7B = TEXT | {"architectures": ["Qwen2ForCausalLM"], "vocab_size": 151_674}
LLAMA_8B = VICUNA | {"intermediate_size": 14_336, "num_key_value_heads": 8, "vocab_size": 128_259}


@pytest.mark.parametrize("ratio", [0, 1e-200, -1, "half"])
def test_a_ratio_that_joins_no_patches_is_refused(ratio: Any) -> None:
    config = {
        "architectures": ["InternVLChatModel"],
        "llm_config": QWEN_7B,
        "vision_config": INTERN,
    }
    with pytest.raises(InvalidWorkload, match="downsample_ratio"):
        read_model(config | {"downsample_ratio": ratio})


@pytest.mark.parametrize(
    ("outer", "text", "tower", "published"),
    [
        ("LlavaForConditionalGeneration", VICUNA, CLIP, 7_063_427_072),
        ("Mistral3ForConditionalGeneration", MISTRAL, PIXTRAL, 24_011_361_280),
        ("InternVLChatModel", QWEN_7B, INTERN | {"image_size": 448}, 7.944e9),
        ("Idefics3ForConditionalGeneration", LLAMA_8B, SIGLIP, 8.462e9),
    ],
)
def test_a_projection_is_that_of_the_class_of_the_whole_model(
    outer: str, text: dict[str, Any], tower: dict[str, Any], published: int
) -> None:
    shape, findings = read_model(
        {"architectures": [outer], "text_config": text, "vision_config": tower}
    )
    assert total_params(shape) == pytest.approx(published, rel=1e-4)
    assert findings == []
