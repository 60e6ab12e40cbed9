"""Which matrices LoRA adapters stand on, and what one layer of a kind takes of them."""

from __future__ import annotations

from evaluator.jobs import Lora
from evaluator.shapes import Attention, DeltaNet, Feed, Layer, ModelShape


def finds_nothing(shape: ModelShape, lora: Lora) -> bool:
    """Whether a model whose parts are known has none of the targets in any layer."""
    kinds = shape.distinct_kinds if shape.computable else set()
    return bool(kinds) and not any(adapters_in_layer(shape, lora, kind) for kind in kinds)


def adapters_in_layer(shape: ModelShape, lora: Lora, kind: Layer) -> int:
    """Adapter parameters of one layer of a kind. A layer without attention has none of its
    projections."""
    return lora.rank * sum(_sides(shape, target, kind) for target in lora.targets)


def _sides(shape: ModelShape, target: str, kind: Layer) -> int:
    """Inputs plus outputs of one target, summed over the experts of a layer."""
    if target in ("gate_proj", "up_proj", "down_proj"):
        return _mlp_sides(shape, target, kind.feed)
    if target in ("in_proj", "out_proj"):
        return _recurrent_sides(shape, target) if kind.recurs else 0
    if not kind.attends:
        return 0
    outputs = _attention_sides(shape.attention)[target]
    return shape.hidden + outputs if outputs else 0


def _recurrent_sides(shape: ModelShape, target: str) -> int:
    """One projection in, to all that the layer mixes and its gate, and one out of its channels."""
    mixer = shape.recurrent
    if isinstance(mixer, DeltaNet):
        return shape.hidden + mixer.values + (mixer.mixed if target == "in_proj" else 0)
    if mixer is None:
        return 0
    wide = mixer.inner + mixer.shared + mixer.heads if target == "in_proj" else 0
    return shape.hidden + mixer.inner + wide


def _attention_sides(attention: Attention) -> dict[str, int]:
    """The side of each matrix that is not the hidden size; 0 where a model has no such matrix.

    Latent attention has no `k_proj` and `v_proj`, and no `q_proj` where queries are compressed.
    """
    queries, keys = attention.heads * attention.head_dim, attention.kv_heads * attention.head_dim
    latent, asked = attention.latent, queries * (1 + attention.output_gate)
    if latent is None:
        return {"q_proj": asked, "o_proj": queries, "k_proj": keys, "v_proj": keys}
    whole = 0 if latent.q_rank else attention.heads * (latent.nope_dim + latent.rope_dim)
    return {"q_proj": whole, "o_proj": attention.heads * latent.value_dim, "k_proj": 0, "v_proj": 0}


def _mlp_sides(shape: ModelShape, target: str, feed: Feed) -> int:
    if feed is Feed.NONE or (target == "gate_proj" and not shape.gated):
        return 0
    experts = shape.experts
    if experts is None or feed is Feed.DENSE:
        return shape.hidden + shape.mlp_size
    shared = shape.hidden + experts.shared_size if experts.shared_size else 0
    return experts.count * ((experts.latent or shape.hidden) + experts.size) + shared
