"""What each model family leaves out of its config.json: the defaults of its published classes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from evaluator.shapes import QkNorm


@dataclass(frozen=True, slots=True)
class Family:
    """Defaults where the config is silent. `qk_norm_form` is what a config that asks for query and
    key norms gets. `windows` names the rule for sliding-window layers.

    all        every layer, when `sliding_window` is set
    opt_in     only when `use_sliding_window` is true, from `max_window_layers` on
    alternate  every second layer, the first one included
    pattern    all but every n-th layer, n = `sliding_window_pattern` or `pattern`
    chunked    the same with `attention_chunk_size` in place of a window
    stated     only what `layer_types` or counts of layers say
    """

    tied: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: QkNorm = QkNorm.NONE
    qk_norm_form: QkNorm = QkNorm.HEAD
    norms_per_layer: int = 2
    parallel_shares_norm: bool = False
    embedding_norm: bool = False
    final_norm: bool = True
    norm_bias: bool = False
    gated: bool = True
    mlp_bias: bool = False
    head_bias: bool = False
    head_dim: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    vocab: int | None = None
    inner_multiple: int | None = None
    extra_positions: int | None = None
    windows: str = "stated"
    pattern: int = 6
    sinks: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    shared_gate: bool = False
    attention_bias_on_output: bool = True


PLAIN = Family()
_QWEN2 = Family(qkv_bias=True, attention_bias_on_output=False, windows="opt_in")
_QWEN3 = Family(qk_norm=QkNorm.HEAD, windows="opt_in")
_DELTA = Family(qk_norm=QkNorm.HEAD, shared_gate=True)
_MAMBA = Family(tied=True, norms_per_layer=1, heads=1)
_GEMMA = Family(tied=True, head_dim=256)
_GEMMA3 = replace(
    _GEMMA,
    norms_per_layer=4,
    qk_norm=QkNorm.HEAD,
    windows="pattern",
    pattern=6,
    heads=8,
    kv_heads=4,
    vocab=262_208,
)
_BIASED = Family(qkv_bias=True, output_bias=True, norm_bias=True, gated=False, mlp_bias=True)
_LEARNED = replace(_BIASED, tied=True, extra_positions=0)
_COHERE = Family(tied=True, norms_per_layer=1, qk_norm_form=QkNorm.FULL)
_OLMO2 = Family(qk_norm=QkNorm.FULL, qk_norm_form=QkNorm.FULL)

FAMILIES: Mapping[str, Family] = {
    "llama": PLAIN,
    "llama4": Family(windows="chunked", pattern=4),
    "mistral": Family(windows="all"),
    "mistral3": PLAIN,
    "ministral": PLAIN,
    "mixtral": Family(windows="all"),
    "qwen2": _QWEN2,
    "qwen25vl": _QWEN2,
    "qwen2vl": _QWEN2,
    "qwen2moe": replace(_QWEN2, shared_gate=True),
    "qwen3": _QWEN3,
    "qwen3moe": _QWEN3,
    "qwen3vl": _QWEN3,
    "qwen3vlmoe": _QWEN3,
    "qwen3next": _DELTA,
    "qwen35": _DELTA,
    "qwen35moe": _DELTA,
    "nemotronh": Family(gated=False, norms_per_layer=1),
    "jamba": PLAIN,
    "bamba": PLAIN,
    "granitemoehybrid": Family(tied=True),
    "mamba": _MAMBA,
    "mamba2": _MAMBA,
    "falconmamba": _MAMBA,
    "falconh1": PLAIN,
    "zamba2": Family(tied=True, gated=True, inner_multiple=4),
    "gemma": _GEMMA,
    "gemma2": replace(_GEMMA, norms_per_layer=4, windows="alternate"),
    "gemma3": _GEMMA3,
    "phi": replace(_BIASED, norms_per_layer=1, head_bias=True),
    "phi3": Family(windows="all"),
    "phimoe": Family(
        qkv_bias=True,
        output_bias=True,
        norm_bias=True,
        head_bias=True,
        windows="all",
    ),
    "deepseek": PLAIN,
    "deepseekv2": PLAIN,
    "deepseekv3": Family(router_bias=True),
    "kimik2": Family(router_bias=True),
    "gptoss": Family(
        qkv_bias=True,
        output_bias=True,
        sinks=True,
        router_bias=True,
        expert_bias=True,
        windows="alternate",
    ),
    "opt": replace(_LEARNED, extra_positions=2),
    "gpt2": replace(_LEARNED, inner_multiple=4),
    "gptneox": _BIASED,
    "gptj": Family(
        norms_per_layer=1,
        norm_bias=True,
        gated=False,
        mlp_bias=True,
        head_bias=True,
        inner_multiple=4,
    ),
    "bloom": replace(_BIASED, tied=True, embedding_norm=True, inner_multiple=4),
    "gptbigcode": replace(_LEARNED, kv_heads=1, inner_multiple=4),
    "starcoder2": replace(_BIASED, tied=True),
    "falcon": Family(tied=True, norm_bias=True, gated=False, norms_per_layer=1, inner_multiple=4),
    "cohere": _COHERE,
    "cohere2": replace(_COHERE, windows="pattern", pattern=4),
    "granite": PLAIN,
    "granitemoe": PLAIN,
    "olmo2": _OLMO2,
    "olmoe": _OLMO2,
    "internlm2": PLAIN,
    "internlm3": PLAIN,
    "mimo": replace(_QWEN2, attention_bias_on_output=False),
    "smollm3": Family(tied=True),
    "stablelm": Family(norm_bias=True, qk_norm_form=QkNorm.FULL, parallel_shares_norm=True),
    "glm": Family(qkv_bias=True, attention_bias_on_output=False),
    "glm4": Family(norms_per_layer=4, attention_bias_on_output=False),
    "exaone": PLAIN,
    "exaone4": Family(qk_norm=QkNorm.HEAD, windows="pattern", pattern=4),
    "seedoss": Family(attention_bias_on_output=False),
    "nemotron": Family(norm_bias=True, gated=False),
    "arcee": Family(gated=False),
    "apertus": Family(gated=False, qk_norm=QkNorm.HEAD),
    "baichuan": PLAIN,
    "olmo": Family(norms_per_layer=0, final_norm=False),
    "mpt": Family(tied=True, gated=False),
    "dbrx": PLAIN,
    "minimaxm2": Family(qk_norm=QkNorm.FULL, qk_norm_form=QkNorm.FULL, router_bias=True),
    "ernie45": Family(tied=True),
    "ernie45moe": Family(tied=True, router_bias=True),
    "hunyuanmoev1": Family(tied=True, qk_norm_form=QkNorm.HEAD),
    "hunyuandensev1": Family(tied=True, qk_norm_form=QkNorm.HEAD),
    "bailingmoe": PLAIN,
    "dots1": Family(qk_norm=QkNorm.HEAD, router_bias=True),
    "glm4moe": Family(attention_bias_on_output=False, router_bias=True),
}
"""Keyed by `family_key`. From the published configuration and modelling classes of each family
in the transformers library; a family that is not listed is not computed."""


def family_key(name: str) -> str:
    """ "Qwen3MoeForCausalLM", "qwen3_moe" and "qwen3_moe_text" are one family: "qwen3moe"."""
    plain = re.sub(r"(For[A-Z]\w*|Model|LMHeadModel)$", "", name)
    return re.sub(r"[^a-z0-9]", "", re.sub(r"_text$", "", plain.lower()))


STATE_KEYS = (
    "linear_num_value_heads",
    "linear_num_key_heads",
    "full_attention_interval",
    "mamba_d_state",
    "ssm_state_size",
    "mamba_d_conv",
    "hybrid_override_pattern",
)
"""Keys of layers that keep a state, which the formulas cover for some families only."""

UNCOVERED_KEYS = (
    "linear_attn_config",
    "ssm_cfg",
    "attn_type_list",
    "index_n_heads",
    "num_global_key_value_heads",
    "global_head_dim",
    "lru_width",
    "block_configs",
    "cross_attention_layers",
    "altup_num_inputs",
)
"""Keys of layers that the formulas do not cover: indexed, per-layer sizes, other mixers."""
