"""Parameters of a model, part by part: what each holds, and how tensor parallelism divides it.

Formulas: attention, gated and plain MLP, experts and latent attention as in the models' own
definitions; latent attention after DeepSeek-V2 (arXiv 2405.04434, section 2.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from evaluator.shapes import Attention, Experts, Latent, ModelShape, QkNorm


class Split(StrEnum):
    """What one tensor-parallel rank holds of a part."""

    TENSOR = "tensor"
    """1/t of it."""
    KV_HEADS = "kv_heads"
    """Whole KV heads: at least one, so the share stops falling when t exceeds their number."""
    EXPERTS = "experts"
    """Whole experts where the plan divides them, else 1/t of each."""
    NONE = "none"
    """All of it."""


class Module(StrEnum):
    """Where a part sits; formats keep some of these in 16 bits."""

    EMBEDDING = "embed_tokens"
    HEAD = "lm_head"
    ATTENTION = "self_attn"
    MLP = "mlp"
    EXPERT = "experts"
    ROUTER = "gate"
    NORM = "norm"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Part:
    """`params` parameters of one kind. `active` is how many of them one token uses.

    `padded_axis` is the inner size of an expert, which some kernels round up.
    """

    module: Module
    params: int
    split: Split = Split.TENSOR
    active_share: float = 1.0
    padded_axis: int = 0

    @property
    def active(self) -> float:
        return self.params * self.active_share


def is_expert_layer(shape: ModelShape, index: int) -> bool:
    return shape.experts is not None and index not in shape.experts.dense_layers


@cache
def layer_parts(shape: ModelShape, routed: bool) -> tuple[Part, ...]:
    """The parts of one layer; `routed` layers hold experts instead of a dense MLP."""
    norms = shape.norms
    norm = Part(Module.NORM, norms.per_layer * shape.hidden * (1 + norms.bias), Split.NONE)
    mixing = _experts(shape, shape.experts) if routed and shape.experts else _dense(shape)
    return (*_attention(shape), *mixing, norm)


def embedding(shape: ModelShape) -> tuple[Part, ...]:
    """Token embedding, learned positions and a norm after them: the first stage."""
    norms, hidden = shape.norms, shape.hidden
    return (
        Part(Module.EMBEDDING, shape.vocab * hidden),
        Part(Module.EMBEDDING, shape.learned_positions * hidden, Split.NONE),
        Part(Module.NORM, norms.of_embedding * hidden * (1 + norms.bias), Split.NONE),
    )


def head(shape: ModelShape) -> tuple[Part, ...]:
    """Final norm and output head: the last stage. A tied head is the embedding itself."""
    norm = Part(Module.NORM, shape.hidden * (1 + shape.norms.bias), Split.NONE)
    matrix = 0 if shape.tied else shape.vocab * shape.hidden
    return (norm, Part(Module.HEAD, matrix + shape.vocab * shape.head_bias))


def further_prediction(shape: ModelShape) -> tuple[Part, ...]:
    """What joins a layer of further prediction to the model: a projection of two states to one
    and three norms (DeepSeek-V3, arXiv 2412.19437, section 2.2). The layer itself counts apart."""
    count, hidden = shape.predict_layers, shape.hidden
    if not count:
        return ()
    joined = Part(Module.MLP, 2 * hidden * hidden * count)
    return (joined, Part(Module.NORM, 3 * hidden * count, Split.NONE))


def others(shape: ModelShape) -> int:
    """Parameters that the user counts beyond the text model, such as a vision tower."""
    computed = computed_params(shape)
    if shape.given_params is None or computed is None:
        return 0
    return max(0, shape.given_params - computed)


@cache
def computed_params(shape: ModelShape) -> int | None:
    """The count that follows from the shape. None where the formulas do not cover it."""
    if not shape.computable:
        return None
    return sum(part.params * times for part, times in _all_parts(shape))


def total_params(shape: ModelShape) -> int | None:
    """All parameters, experts included. A count given by the user may add to the computed one."""
    computed = computed_params(shape)
    return shape.given_params if computed is None else computed + others(shape)


@cache
def expert_params(shape: ModelShape) -> int:
    """Parameters of all routed experts. 0 for a dense model or one of unknown parts."""
    if not shape.computable:
        return 0
    parts = _all_parts(shape)
    return sum(part.params * times for part, times in parts if part.module is Module.EXPERT)


def routed_layers(shape: ModelShape) -> int:
    """Layers that hold experts."""
    return sum(is_expert_layer(shape, index) for index in range(shape.layers))


def active_params(shape: ModelShape) -> int | None:
    """Parameters that one token passes through. The embedding counts, as in published figures."""
    if not shape.computable:
        return None if shape.experts else shape.given_params
    return round(sum(part.active * times for part, times in _all_parts(shape)))


def _all_parts(shape: ModelShape) -> list[tuple[Part, int]]:
    """Every part with the number of times it occurs."""
    routed = routed_layers(shape)
    kinds = ((True, routed), (False, shape.layers - routed))
    ends = [(part, 1) for part in (*embedding(shape), *head(shape))]
    return ends + [(part, times) for kind, times in kinds for part in layer_parts(shape, kind)]


def _attention(shape: ModelShape) -> tuple[Part, ...]:
    if shape.attention.latent:
        return _latent_attention(shape, shape.attention, shape.attention.latent)
    return _grouped_attention(shape, shape.attention)


def _grouped_attention(shape: ModelShape, attention: Attention) -> tuple[Part, ...]:
    queries, keys = attention.heads * attention.head_dim, attention.kv_heads * attention.head_dim
    hidden, bias = shape.hidden, int(attention.qkv_bias)
    sinks = attention.heads * attention.sinks
    return (
        Part(Module.ATTENTION, hidden * queries * 2 + bias * queries + sinks),
        Part(Module.ATTENTION, 2 * keys * (hidden + bias), Split.KV_HEADS),
        Part(Module.ATTENTION, hidden * attention.output_bias, Split.NONE),
        Part(Module.NORM, _qk_norm(attention, queries, keys), Split.NONE),
    )


def _qk_norm(attention: Attention, queries: int, keys: int) -> int:
    if attention.qk_norm is QkNorm.HEAD:
        return 2 * attention.head_dim
    return queries + keys if attention.qk_norm is QkNorm.FULL else 0


def _latent_attention(shape: ModelShape, attention: Attention, latent: Latent) -> tuple[Part, ...]:
    """The down projections and their norms are on every tensor-parallel rank."""
    heads, rank = attention.heads, latent.q_rank
    query = heads * (latent.nope_dim + latent.rope_dim)
    up = (rank or shape.hidden) * query + latent.kv_rank * heads * (
        latent.nope_dim + latent.value_dim
    )
    down = shape.hidden * ((rank or 0) + latent.kv_rank + latent.rope_dim)
    return (
        Part(Module.ATTENTION, up + heads * latent.value_dim * shape.hidden),
        Part(Module.ATTENTION, down, Split.NONE),
        Part(Module.NORM, latent.kv_rank + (rank or 0), Split.NONE),
    )


def _dense(shape: ModelShape) -> tuple[Part, ...]:
    matrices = 3 if shape.gated else 2
    size, hidden = shape.mlp_size, shape.hidden
    bias = (matrices - 1) * size + hidden if shape.mlp_bias else 0
    return (Part(Module.MLP, matrices * size * hidden + bias),)


def _experts(shape: ModelShape, experts: Experts) -> tuple[Part, ...]:
    matrices, hidden = 3 if shape.gated else 2, shape.hidden
    bias = (matrices - 1) * experts.size + hidden if experts.bias else 0
    each = matrices * experts.size * hidden + bias
    router = experts.count * (hidden + experts.router_bias) + hidden * experts.shared_gate
    return (
        Part(
            Module.EXPERT,
            experts.count * each,
            Split.EXPERTS,
            active_share=experts.active / experts.count,
            padded_axis=experts.size,
        ),
        Part(Module.MLP, matrices * experts.shared_size * hidden),
        Part(Module.ROUTER, router, Split.NONE),
    )
