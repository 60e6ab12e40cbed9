"""The numbers of a model that the formulas of cache and activations take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from evaluator.parameters import others
from evaluator.ranges import Number
from evaluator.shapes import ModelShape


@dataclass(frozen=True, slots=True)
class Sizes:
    """Each field is a number of one model, or an array with one number for each model.

    `dense` and `routed` are the inner sizes that a token passes in a layer without and with
    experts, all of its experts together; `widest` is the larger of those that occur. `beyond` are
    parameters beside the text model.
    """

    hidden: Number
    vocab: Number
    heads: Number
    kv_heads: Number
    head_dim: Number
    gated: Number
    dense: Number
    routed: Number
    widest: Number
    beyond: Number


@lru_cache(maxsize=1024)
def sizes_of(shape: ModelShape) -> Sizes:
    attention, routed = shape.attention, mlp_width(shape, routed=True)
    dense_occurs = shape.experts is None or bool(shape.experts.dense_layers)
    return Sizes(
        hidden=shape.hidden,
        vocab=shape.vocab,
        heads=attention.heads,
        kv_heads=attention.kv_heads,
        head_dim=attention.head_dim,
        gated=shape.gated,
        dense=shape.mlp_size,
        routed=routed,
        widest=max(routed, shape.mlp_size) if dense_occurs else routed,
        beyond=others(shape),
    )


def mlp_width(shape: ModelShape, routed: bool) -> int:
    """Inner size that one token passes in a layer: all of its experts together."""
    experts = shape.experts
    if experts is None or not routed:
        return shape.mlp_size
    return experts.active * experts.size + experts.shared_size
