"""Configs in the words of MosaicML (MPT, DBRX), with sizes in nested tables, in today's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluator.fields import Fields

WIDE = 10**7
ATTENTION = {"kv_n_heads": "num_key_value_heads"}
FEED = {
    "ffn_hidden_size": "intermediate_size",
    "moe_num_experts": "num_local_experts",
    "moe_top_k": "num_experts_per_tok",
}
"""DBRX, transformers, configuration_dbrx.py."""


def unnested(document: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """The same document where it has no such tables. Their other keys change no size."""
    keys = Fields(document, path)
    attention, feed = (keys.raw(name) or {} for name in ("attn_config", "ffn_config"))
    mpt = keys.has("expansion_ratio") and keys.has("d_model")
    tables = isinstance(attention, Mapping) and isinstance(feed, Mapping)
    if not tables or not (mpt or feed or "kv_n_heads" in attention):
        return document
    plain = {key: value for key, value in document.items() if key not in TABLES}
    if mpt:
        return plain | _mpt(keys, Fields(attention, f"{path}.attn_config"))
    return plain | _renamed(attention, ATTENTION) | _renamed(feed, FEED)


TABLES = ("attn_config", "ffn_config", "expansion_ratio", "no_bias", "init_config")


def _renamed(table: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {new: table[old] for old, new in names.items() if table.get(old) is not None}


def _mpt(keys: Fields, attention: Fields) -> dict[str, Any]:
    """An MLP of `expansion_ratio` widths; a bias everywhere or nowhere; learned positions unless
    attention itself knows distances."""
    width = keys.integer("d_model", 1, WIDE) or 1
    ratio = keys.integer("expansion_ratio", 1, 64) or 4
    alibi = attention.flag("alibi") is True or keys.flag("learned_pos_emb") is False
    length = keys.integer("max_seq_len", 1, WIDE) or 0
    shared = {} if attention.raw("kv_n_heads") is None else _renamed(attention.document, ATTENTION)
    return shared | {
        "intermediate_size": ratio * width,
        "learned_positions": 0 if alibi else length,
        "linear_bias": keys.flag("no_bias") is False,
    }
