"""Floating point operations of a model per token. A multiply-add counts as two.

Conventions: "full" counts attention over the whole sequence (12·l·h·s per trained token: Megatron,
PaLM, MosaicML), "causal" the half that a causal mask leaves. A published MFU names one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from evaluator.parameters import active_params, embedding, total_params
from evaluator.shapes import ModelShape

FORWARD_AND_BACKWARD = 3
FROZEN = 2
"""Forward and the gradient of the input: frozen weights get no gradient of their own."""


@dataclass(frozen=True, slots=True)
class TokenWork:
    """Forward FLOPs of one token: `matrices` in the format of the weights, `attention` in 16 bits.

    `attention` is causal, at the mean context of a sequence of the given length.
    """

    matrices: float
    attention: float


def active_of(shape: ModelShape) -> int | None:
    """Parameters that one token passes; those given by the user outrank rounded sums."""
    if shape.experts is None and shape.given_params:
        return shape.given_params
    return active_params(shape) or total_params(shape)


def attention_width(shape: ModelShape) -> int:
    """Channels in which scores are computed, all query heads together."""
    heads = shape.attention.heads * shape.attention.head_dim
    return heads or shape.hidden


@lru_cache(maxsize=4096)
def work_of(shape: ModelShape, sequence: int) -> TokenWork | None:
    """None where the number of parameters is not known. A look-up multiplies nothing."""
    active = active_of(shape)
    if active is None:
        return None
    looked_up = 0 if shape.tied else embedding(shape)[0].params
    return TokenWork(
        matrices=2.0 * max(active - looked_up, active // 2),
        attention=2.0 * attended(shape, sequence) * attention_width(shape),
    )


@lru_cache(maxsize=4096)
def pace_of(shape: ModelShape, work: TokenWork, stages: int) -> float:
    """Arithmetic of the busiest stage against an even share: most layers, or those and the head."""
    if stages == 1 or not shape.layers or not work.matrices:
        return 1.0
    head = min(2.0 * shape.vocab * shape.hidden, work.matrices / 2)
    layer = (work.matrices - head) / shape.layers
    most, least = -(-shape.layers // stages), shape.layers // stages
    return max(most * layer, least * layer + head) * stages / work.matrices


def attended(shape: ModelShape, sequence: int) -> float:
    """Tokens attended to, summed over layers; windows bound theirs."""
    layers = shape.layers if shape.cached_layers is None else shape.cached_layers
    if shape.window is None:
        return float(layers * sequence)
    near = min(sequence, 2 * shape.window.tokens)
    return float((layers - shape.window.layers) * sequence + shape.window.layers * near)


def published_flops(
    shape: ModelShape, sequence: int, *, causal: bool, recomputed: bool, lora: bool = False
) -> float | None:
    """FLOPs per trained token as published figures count them: 6·N and 12 or 6·l·h·s."""
    active = active_of(shape)
    if active is None:
        return None
    passes = (FROZEN if lora else FORWARD_AND_BACKWARD) + recomputed
    attention = (2.0 if causal else 4.0) * shape.layers * attention_width(shape) * sequence
    return passes * (2.0 * active + attention)


def step_flops(shape: ModelShape, sequences: int, sequence: int) -> float:
    """Megatron's closed form of one step with full recomputation (arXiv 2104.04473 eq. 3)."""
    layers, hidden = shape.layers, shape.hidden
    inside = 1 + sequence / (6 * hidden) + shape.vocab / (16 * layers * hidden)
    return 96.0 * sequences * sequence * layers * hidden**2 * inside
