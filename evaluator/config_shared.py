"""Zamba2: blocks of attention and an MLP that several layers share (arXiv 2411.15242).

Layers that share cannot be told apart as parts of one layer, so the whole is counted here, and how
ranks divide it stays an estimate.
"""

from __future__ import annotations

from dataclasses import replace

from evaluator.config_layers import MOST_LAYERS, MOST_WIDTH, listed, read_sizes
from evaluator.families import family_key
from evaluator.fields import Fields
from evaluator.parameters import recurrent_parts
from evaluator.shapes import ModelShape, Recurrence, StateSpace

SIZES = {
    "hidden": ("hidden_size",),
    "vocab": ("vocab_size",),
    "heads": ("num_attention_heads",),
    "state": ("mamba_d_state",),
    "kernel": ("mamba_d_conv",),
    "groups": ("mamba_ngroups",),
    "mamba_heads": ("n_mamba_heads",),
    "expand": ("mamba_expand",),
    "blocks": ("num_mem_blocks",),
    "rank": ("adapter_rank",),
}


FOLLOWING = (
    "attention_hidden_size",
    "hybrid_layer_ids",
    "kv_channels",
    "mamba_headdim",
    "num_query_groups",
    "use_mem_rope",
    "use_long_context",
    "use_shared_mlp_adapter",
)
"""Keys that follow from the sizes, or change no parameter: an MLP has its adapters in any case."""


def is_shared(architecture: str) -> bool:
    return family_key(architecture) == "zamba2"


def with_shared_blocks(keys: Fields, shape: ModelShape) -> ModelShape:
    """The shape with its count, its caches and its states; unchanged where a size is missing."""
    sizes, sharing = read_sizes(keys, SIZES), _sharing_layers(keys)
    layers = keys.integer("num_hidden_layers", 1, MOST_LAYERS)
    if not (sizes and sharing and layers) or keys.flag("add_bias_linear"):
        return shape
    inner = sizes["expand"] * sizes["hidden"]
    groups, heads = sizes["groups"], sizes["mamba_heads"]
    mamba = StateSpace(inner, sizes["state"], sizes["kernel"], groups, heads)
    kv_heads = shape.attention.kv_heads
    stated = keys.integer("head_dim", 1, MOST_WIDTH)
    each = stated or 2 * sizes["hidden"] // sizes["heads"]
    for name in FOLLOWING:
        keys.raw(name)
    counted = _params(keys, sizes, mamba, kv_heads * each, layers, sharing)
    return replace(
        shape,
        attention=replace(shape.attention, head_dim=each),
        given_params=shape.given_params or counted,
        cached_layers=sharing,
        recurrence=Recurrence(layers, mamba.elements),
        recurrent=mamba,
        dimensioned=True,
    )


def _sharing_layers(keys: Fields) -> int:
    """Layers that run a shared block before their own."""
    words = [str(word) for word in listed(keys, "layers_block_type")]
    return words.count("hybrid") or len(listed(keys, "hybrid_layer_ids"))


def _params(
    keys: Fields,
    sizes: dict[str, int],
    mamba: StateSpace,
    key_width: int,
    layers: int,
    sharing: int,
) -> int:
    """Every layer has a state; blocks attend to twice the width; each layer that shares has a
    projection and adapters of its own (transformers, modular_zamba2.py)."""
    hidden, rank = sizes["hidden"], sizes["rank"]
    wide = 2 * hidden
    inner = keys.integer("intermediate_size", 1, MOST_WIDTH) or 4 * hidden
    layer = sum(part.params for part in recurrent_parts(hidden, mamba)) + hidden
    block = wide * (wide + 2 * key_width) + wide * hidden + 3 * hidden * inner + wide + hidden
    adapters = rank * (hidden + 2 * inner)
    if keys.flag("use_shared_attention_adapter"):
        adapters += 3 * rank * 2 * wide
    own = sharing * (hidden * hidden + adapters)
    return layers * layer + sizes["blocks"] * block + own + sizes["vocab"] * hidden + hidden
