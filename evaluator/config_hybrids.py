"""Parameters of models whose layers differ in kind: gated delta net and Mamba 2 beside attention.

Only families whose published classes fix every size are counted. All others ask for a count, since
a wrong one is worse than none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from evaluator.config_layers import MOST_WIDTH, recurrent_layers
from evaluator.families import family_key
from evaluator.fields import Fields
from evaluator.parameters import embedding, head, is_expert_layer, layer_parts
from evaluator.shapes import ModelShape

DELTA_FAMILIES = ("qwen3next", "qwen35", "qwen35moe")
PATTERN_FAMILY = "nemotronh"
DELTA_SIZES = (
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "linear_conv_kernel_dim",
)
MAMBA_SIZES = (
    "mamba_num_heads",
    "mamba_head_dim",
    "ssm_state_size",
    "n_groups",
    "conv_kernel",
    "intermediate_size",
)


def hybrid_params(keys: Fields, shape: ModelShape) -> int | None:
    """Parameters of the text model. None where the family is not covered or a size is missing."""
    family = family_key(shape.architecture)
    if family in DELTA_FAMILIES:
        return _delta_params(keys, shape)
    return _pattern_params(keys, shape) if family == PATTERN_FAMILY else None


def _sizes(keys: Fields, names: tuple[str, ...]) -> Mapping[str, int]:
    """Empty where one of them is not stated."""
    found = {name: keys.integer(name, 1, MOST_WIDTH) for name in names}
    whole = {name: size for name, size in found.items() if size is not None}
    return whole if len(whole) == len(names) else {}


def _delta_params(keys: Fields, shape: ModelShape) -> int | None:
    """Qwen3-Next and Qwen3.5: attention with a gate as wide as its queries in some layers, a gated
    delta net (arXiv 2412.06464) in the others; all have the same MLP or experts."""
    sizes, recurrent = _sizes(keys, DELTA_SIZES), recurrent_layers(keys, shape.layers)
    gateless = keys.flag("attn_output_gate") is False
    if not sizes or not recurrent or gateless or not (shape.experts or shape.mlp_size):
        return None
    attention = shape.attention
    gate = shape.hidden * attention.heads * attention.head_dim
    full = sum(part.params for part in layer_parts(shape, False)[:ATTENTION_PARTS]) + gate
    mixers = (shape.layers - recurrent) * full + recurrent * _delta_net(shape.hidden, sizes)
    return mixers + sum(_rest(shape, index) for index in range(shape.layers)) + _ends(shape)


ATTENTION_PARTS = 4
"""Grouped attention is the first parts of a layer; its MLP or experts and norms follow."""


def _rest(shape: ModelShape, index: int) -> int:
    parts = layer_parts(shape, is_expert_layer(shape, index))
    return sum(part.params for part in parts[ATTENTION_PARTS:])


def _delta_net(hidden: int, sizes: Mapping[str, int]) -> int:
    """Projections to queries, keys, values and gate, two numbers a head, a convolution without
    bias, a decay and its bias for each head, a norm of one head, and the output."""
    key_heads, heads, key_dim, value_dim, kernel = (sizes[name] for name in DELTA_SIZES)
    keys, values = key_heads * key_dim, heads * value_dim
    mixed = 2 * keys + values
    projections = hidden * (mixed + values + 2 * heads + values)
    return projections + mixed * kernel + 2 * heads + value_dim


def _pattern_params(keys: Fields, shape: ModelShape) -> int | None:
    """Nemotron-H (arXiv 2504.03624): each layer is a Mamba 2 mixer, attention or a plain MLP."""
    pattern = Counter(keys.text("hybrid_override_pattern", 1000) or "")
    named = keys.integer("head_dim", 1) or keys.integer("attention_head_dim", 1)
    sizes = _sizes(keys, MAMBA_SIZES)
    odd = set(pattern) - set("M*-") or pattern.total() != shape.layers
    if odd or not sizes or named is None or _is_biased(keys):
        return None
    attention, hidden = shape.attention, shape.hidden
    heads = attention.heads + attention.kv_heads
    kinds = {
        "M": _mamba(hidden, sizes, biased=keys.flag("use_conv_bias") is not False),
        "*": 2 * hidden * named * heads,
        "-": 2 * hidden * sizes["intermediate_size"],
    }
    mixers = sum(count * kinds[kind] for kind, count in pattern.items())
    return mixers + shape.layers * hidden + _ends(shape)


def _is_biased(keys: Fields) -> bool:
    names = ("mamba_proj_bias", "use_bias", "attention_bias", "mlp_bias")
    return bool([name for name in names if keys.flag(name)])


def _mamba(hidden: int, sizes: Mapping[str, int], *, biased: bool) -> int:
    """Mamba 2 (arXiv 2405.21060): one input projection, a convolution, three numbers a head."""
    heads = sizes["mamba_num_heads"]
    inner = heads * sizes["mamba_head_dim"]
    states = 2 * sizes["n_groups"] * sizes["ssm_state_size"]
    projections = hidden * (2 * inner + states + heads) + inner * hidden
    convolution = (inner + states) * (sizes["conv_kernel"] + biased)
    return projections + convolution + 3 * heads + inner


def _ends(shape: ModelShape) -> int:
    return sum(part.params for part in (*embedding(shape), *head(shape)))
