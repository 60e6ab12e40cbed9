"""The shape of a decoder model and the parameters that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class QkNorm(StrEnum):
    NONE = "none"
    HEAD = "head"
    """One norm of head size for queries, one for keys (Qwen3, Gemma 3)."""
    FULL = "full"
    """Norms over all query and key channels (OLMo 2)."""


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): ranks and head sizes."""

    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int
    q_rank: int | None = None


@dataclass(frozen=True, slots=True)
class Attention:
    heads: int
    kv_heads: int
    head_dim: int
    latent: Latent | None = None
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: QkNorm = QkNorm.NONE
    sinks: bool = False


@dataclass(frozen=True, slots=True)
class Experts:
    """`layers` of the model's layers route each token to `active` of `count` experts."""

    layers: int
    count: int
    active: int
    size: int
    shared_size: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    bias: bool = False


@dataclass(frozen=True, slots=True)
class Norms:
    """`per_layer` vectors of hidden size in each layer, and one at the end."""

    per_layer: int = 2
    bias: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """`layers` layers keep the last `tokens` tokens only."""

    layers: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A decoder model. `given_params` is what its user stated; it overrides the computed count.

    `computable` is False where the architecture has parts that the formulas do not cover: then
    only `given_params` counts, and the count is unknown without it.
    """

    name: str
    hidden: int
    layers: int
    vocab: int
    attention: Attention
    mlp_size: int
    gated: bool = True
    mlp_bias: bool = False
    head_bias: bool = False
    tied: bool = False
    norms: Norms = Norms()
    learned_positions: int = 0
    experts: Experts | None = None
    window: Window | None = None
    architecture: str = ""
    computable: bool = True
    given_params: int | None = None
    kept_16bit: tuple[str, ...] = ()
    source: str = ""
