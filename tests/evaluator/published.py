"""Configs of families beside those of the presets, and their published numbers of parameters."""

from __future__ import annotations

from typing import Any


def config(
    architecture: str, hidden: int, layers: int, heads: int, vocab: int, **keys: Any
) -> dict[str, Any]:
    return {
        "architectures": [architecture],
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "vocab_size": vocab,
        **keys,
    }


def grouped(kv_heads: int, inner: int, **keys: Any) -> dict[str, Any]:
    return {"num_key_value_heads": kv_heads, "intermediate_size": inner, "head_dim": 128, **keys}


UNTIED = {"tie_word_embeddings": False}
DBRX_EXPERTS = {"ffn_hidden_size": 10_752, "moe_num_experts": 16, "moe_top_k": 4}
PUBLISHED: dict[str, tuple[dict[str, Any], int | float]] = {
    "OLMo 7B": (
        config("OlmoForCausalLM", 4096, 32, 32, 50_304, intermediate_size=11_008, **UNTIED),
        6_888_095_744,
    ),
    "MPT 7B": (
        {"architectures": ["MPTForCausalLM"], "d_model": 4096, "n_heads": 32, "n_layers": 32}
        | {"expansion_ratio": 4, "vocab_size": 50_432, "no_bias": True, "max_seq_len": 2048}
        | {"attn_config": {"alibi": True, "attn_type": "multihead_attention"}},
        6_649_286_656,
    ),
    "DBRX": (
        {"architectures": ["DbrxForCausalLM"], "d_model": 6144, "n_heads": 48, "n_layers": 40}
        | {"vocab_size": 100_352, "attn_config": {"kv_n_heads": 8, "clip_qkv": 8}, **UNTIED}
        | {"ffn_config": DBRX_EXPERTS},
        131_596_523_520,
    ),
    "GLM 4 9B 0414": (
        config("Glm4ForCausalLM", 4096, 40, 32, 151_552, attention_bias=True, **UNTIED)
        | grouped(2, 13_696),
        9_400_279_040,
    ),
    "ERNIE 4.5 21B": (
        config("Ernie4_5_MoeForCausalLM", 2560, 28, 20, 103_424, tie_word_embeddings=True)
        | grouped(4, 12_288, moe_intermediate_size=1536, moe_num_experts=64, moe_k=6)
        | {"moe_num_shared_experts": 2, "moe_layer_start_index": 1},
        21_825_437_888,
    ),
    "Hunyuan A13B": (
        config("HunYuanMoEV1ForCausalLM", 4096, 32, 32, 128_167, tie_word_embeddings=True)
        | {"num_key_value_heads": 8, "intermediate_size": 3072, "attention_head_dim": 128}
        | {"moe_intermediate_size": [3072] * 32, "num_experts": 64, "moe_topk": [8] * 32}
        | {"num_shared_expert": [1] * 32, "use_qk_norm": True},
        80_393_183_232,
    ),
    "MiniMax M2": (
        config("MiniMaxM2ForCausalLM", 3072, 62, 48, 200_064, attn_type_list=[1] * 62, **UNTIED)
        | grouped(8, 1536, num_local_experts=256, num_experts_per_tok=8, use_qk_norm=True)
        | {"qk_norm_type": "per_layer", "use_routing_bias": True},
        228.69e9,
    ),
    "EXAONE 4 32B": (
        config("Exaone4ForCausalLM", 5120, 64, 40, 102_400, **UNTIED)
        | grouped(8, 27_392, sliding_window=4096, sliding_window_pattern="LLLG"),
        32.0032e9,
    ),
    "EXAONE 3.5 7.8B": (
        config("ExaoneForCausalLM", 4096, 32, 32, 102_400, **UNTIED) | grouped(8, 14_336),
        7_818_448_896,
    ),
    "Seed OSS 36B": (
        config("SeedOssForCausalLM", 5120, 64, 80, 155_136, attention_bias=True, **UNTIED)
        | grouped(8, 27_648, attention_out_bias=False, mlp_bias=False),
        36_151_104_512,
    ),
    "Nemotron 4 340B": (
        config("NemotronForCausalLM", 18_432, 96, 96, 256_000, **UNTIED)
        | {"num_key_value_heads": 8, "intermediate_size": 73_728},
        341.03e9,
    ),
    "Baichuan 2 7B": (
        config("BaichuanForCausalLM", 4096, 32, 32, 125_696, intermediate_size=11_008, **UNTIED),
        7_505_973_248,
    ),
    "Ling lite": (
        config("BailingMoeForCausalLM", 2048, 28, 16, 126_464, **UNTIED)
        | grouped(4, 5632, moe_intermediate_size=1408, num_experts=64, num_experts_per_tok=6)
        | {"num_shared_experts": 2, "first_k_dense_replace": 0},
        16.802e9,
    ),
    "Apertus 8B": (
        config("ApertusForCausalLM", 4096, 32, 32, 131_072, qk_norm=True, **UNTIED)
        | grouped(8, 21_504, post_norm=False),
        8_053_338_176,
    ),
    "AFM 4.5B": (
        config("ArceeForCausalLM", 2560, 36, 20, 128_004, **UNTIED) | grouped(4, 18_432),
        4.619e9,
    ),
}
