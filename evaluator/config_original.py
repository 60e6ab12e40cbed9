"""Configs of the original Mamba repository, read as those of the transformers library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluator.fields import Fields

PLAIN_KEYS = ("vocab_size", "total_params", "name", "source")
WIDE = 10**7
SSM_KEYS = frozenset({"layer", "dt_rank", "bias", "conv_bias", "chunk_size"}) | {
    *("d_state", "d_conv", "expand", "headdim", "ngroups")
}
SIZES: Mapping[str, Mapping[str, int]] = {
    "MambaForCausalLM": {"d_state": 16, "d_conv": 4, "expand": 2},
    "Mamba2ForCausalLM": {"d_state": 128, "d_conv": 4, "expand": 2, "headdim": 64, "ngroups": 1},
}
"""Defaults of the layers, state-spaces/mamba, mamba_ssm/modules/mamba_simple.py and mamba2.py."""
LAYERS = {"Mamba1": "MambaForCausalLM", "Mamba2": "Mamba2ForCausalLM"}


def translated(document: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """The same document where it is no such config, or has layers beside those of Mamba."""
    table = document.get("ssm_cfg")
    named = document.get("architectures") or document.get("model_type")
    mixed = document.get("attn_layer_idx") or document.get("d_intermediate")
    if not isinstance(table, Mapping) or named or mixed or "d_model" not in document:
        return document
    keys, ssm = Fields(document, path), Fields(table, f"{path}.ssm_cfg")
    layer = LAYERS.get(ssm.text("layer") or "Mamba1")
    if layer is None or not set(map(str, table)) <= SSM_KEYS:
        return document
    known = {key: document[key] for key in PLAIN_KEYS if key in document}
    return known | _whole(keys) | _sizes(ssm, layer, keys.integer("d_model", 1, WIDE) or 1)


def _whole(keys: Fields) -> dict[str, Any]:
    tied = keys.flag("tie_embeddings")
    found = {
        "hidden_size": keys.raw("d_model"),
        "num_hidden_layers": keys.raw("n_layer"),
        "tie_word_embeddings": tied is not False,
    }
    vocab = keys.integer("vocab_size", 1, WIDE)
    multiple = keys.integer("pad_vocab_size_multiple", 1, WIDE) or 8
    return found | ({"padded_vocab_size": -(-vocab // multiple) * multiple} if vocab else {})


def _sizes(ssm: Fields, layer: str, hidden: int) -> dict[str, Any]:
    usual = SIZES[layer]
    size = {key: ssm.integer(key, 1, WIDE) or default for key, default in usual.items()}
    rank = ssm.raw("dt_rank")
    found: dict[str, Any] = {
        "architectures": [layer],
        "state_size": size["d_state"],
        "conv_kernel": size["d_conv"],
        "expand": size["expand"],
        "time_step_rank": "auto" if rank is None else rank,
        "use_bias": ssm.flag("bias") is True,
        "use_conv_bias": ssm.flag("conv_bias") is not False,
    }
    if "headdim" not in size:
        return found
    heads = size["expand"] * hidden // size["headdim"]
    return found | {"head_dim": size["headdim"], "num_heads": heads, "n_groups": size["ngroups"]}
