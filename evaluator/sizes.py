"""The numbers of a model that the formulas of cache and activations take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from evaluator.parameters import others
from evaluator.ranges import Number
from evaluator.shapes import Feed, ModelShape


@dataclass(frozen=True, slots=True)
class Sizes:
    """Each field is a number of one model, or an array with one number for each model.

    `dense` and `routed` are the inner sizes that a token passes in a layer without and with
    experts, all of its experts together; `recurrent` are the numbers that a layer with a state
    computes of it. `widest` is the largest inner size that occurs. `plain` is True for blocks of
    GPT, `gated` for an MLP of three matrices. `beyond` are parameters beside the text model,
    `looked_up` those of an embedding that is no output head too.
    """

    hidden: Number
    vocab: Number
    heads: Number
    kv_heads: Number
    head_dim: Number
    gated: Number
    plain: Number
    dense: Number
    routed: Number
    recurrent: Number
    widest: Number
    beyond: Number
    looked_up: Number


@lru_cache(maxsize=1024)
def sizes_of(shape: ModelShape) -> Sizes:
    attention, recurrent = shape.attention, shape.recurrent.kept if shape.recurrent else 0
    return Sizes(
        hidden=shape.hidden,
        vocab=shape.vocab,
        heads=attention.heads,
        kv_heads=attention.kv_heads,
        head_dim=attention.head_dim,
        gated=shape.gated,
        plain=not (shape.gated or shape.kinds),
        dense=shape.mlp_size,
        routed=mlp_width(shape, Feed.ROUTED),
        recurrent=recurrent,
        widest=max(recurrent // MLP_NUMBERS, *(mlp_width(shape, feed) for feed in _feeds(shape))),
        beyond=others(shape),
        looked_up=0 if shape.tied else shape.vocab * shape.hidden,
    )


MLP_NUMBERS = 3
"""Numbers that a gated MLP computes of a token for each unit of its inner size."""


def _feeds(shape: ModelShape) -> set[Feed]:
    return {kind.feed for kind in shape.distinct_kinds} | {Feed.NONE}


def mlp_width(shape: ModelShape, feed: Feed) -> int:
    """Inner size that one token passes in a layer: all of its experts together."""
    experts = shape.experts
    if feed is Feed.ROUTED and experts:
        return experts.active * experts.size + experts.shared_size
    return 0 if feed is Feed.NONE else shape.mlp_size
