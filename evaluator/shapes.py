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
    """Each token goes to `active` of `count` experts, except in `dense_layers` (indices)."""

    count: int
    active: int
    size: int
    dense_layers: tuple[int, ...] = ()
    shared_size: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    bias: bool = False


@dataclass(frozen=True, slots=True)
class Norms:
    """`per_layer` vectors of hidden size in each layer, one at the end and perhaps at the start."""

    per_layer: int = 2
    bias: bool = False
    of_embedding: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """`layers` layers keep the last `tokens` tokens only."""

    layers: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Recurrence:
    """`layers` layers keep a state of `elements` numbers for each sequence, and no tokens."""

    layers: int
    elements: int


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A decoder model.

    `given_params` is a count that the user states: parameters beyond the computed text model are
    taken as further modules. `computable` is False where the architecture has parts that the
    formulas do not cover: then only `given_params` counts, and without it the size is unknown.
    `dimensioned` is False where layers, width or heads are missing, so that neither cache nor
    activations follow. `cached_layers` is how many layers keep a growing cache; None is all.
    `kept_16bit` are names of modules that a quantised checkpoint leaves in 16 bits, and
    `checkpoint_format` is how the checkpoint is quantised in the config's own words ("" is not),
    `checkpoint_group` how many weights share a scale, -1 for a whole column.
    `predict_layers` are extra layers on the last stage that predict tokens further ahead; engines
    and published counts leave them out, so they are 0 unless a training job has them.
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
    recurrence: Recurrence | None = None
    architecture: str = ""
    computable: bool = True
    dimensioned: bool = True
    cached_layers: int | None = None
    given_params: int | None = None
    kept_16bit: tuple[str, ...] = ()
    checkpoint_format: str = ""
    checkpoint_group: int | None = None
    predict_layers: int = 0
    source: str = ""
