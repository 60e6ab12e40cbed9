"""The shape of a decoder model and the parameters that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import cycle, islice
from typing import NamedTuple


class Word(StrEnum):
    """A word of a closed list. Hashed as the text that it is: enumerations have a hash in Python,
    and caches ask for it a thousand times in one table of budgets."""

    __hash__ = str.__hash__


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
    """`output_gate` is a projection as wide as the queries that scales what the heads give."""

    heads: int
    kv_heads: int
    head_dim: int
    latent: Latent | None = None
    qkv_bias: bool = False
    output_bias: bool = False
    output_gate: bool = False
    qk_norm: QkNorm = QkNorm.NONE
    sinks: bool = False


@dataclass(frozen=True, slots=True)
class Experts:
    """Each token goes to `active` of `count` experts, except in `dense_layers` (indices).

    `latent` is the width of what experts take and give where it is not the model's own: one
    projection leads there and one back.
    """

    count: int
    active: int
    size: int
    dense_layers: tuple[int, ...] = ()
    shared_size: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    bias: bool = False
    latent: int = 0


@dataclass(frozen=True, slots=True)
class Norms:
    """`per_layer` vectors of hidden size in each layer, one at the end unless `final` is False, and
    perhaps one at the start."""

    per_layer: int = 2
    bias: bool = False
    of_embedding: bool = False
    final: bool = True


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
class DeltaNet:
    """Gated delta net (arXiv 2412.06464): heads of keys and of values, their sizes, convolution."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int

    @property
    def values(self) -> int:
        return self.value_heads * self.value_dim

    @property
    def mixed(self) -> int:
        """Channels of queries, keys and values, which pass the convolution."""
        return 2 * self.key_heads * self.key_dim + self.values

    @property
    def elements(self) -> int:
        """A matrix for each value head, and the tail of the convolution."""
        return self.values * self.key_dim + (self.kernel - 1) * self.mixed

    @property
    def kept(self) -> int:
        """Numbers that a token leaves for the backward pass: projections and gate, the
        convolution's output, heads before and after their norm."""
        return 2 * self.mixed + 3 * self.values


@dataclass(frozen=True, slots=True)
class StateSpace:
    """Mamba (arXiv 2312.00752) where `rank` is above 0, else Mamba 2 (arXiv 2405.21060).

    `inner` channels pass a convolution and keep `state` numbers each. Mamba 2 has `heads` of them,
    and `groups` that share their inputs; Mamba projects its time steps through `rank` numbers.
    `bias` is that of the projections, `inner_norms` are norms of what a token selects (Jamba),
    `gate_norm` is the norm before the projection out, which Falcon-H1 may go without.
    """

    inner: int
    state: int
    kernel: int
    groups: int = 0
    heads: int = 0
    rank: int = 0
    bias: bool = False
    kernel_bias: bool = True
    inner_norms: bool = False
    gate_norm: bool = True

    @property
    def shared(self) -> int:
        """Channels of the two inputs that the heads of a group share."""
        return 2 * self.groups * self.state

    @property
    def elements(self) -> int:
        return self.inner * self.state + (self.kernel - 1) * (self.inner + self.shared)

    @property
    def kept(self) -> int:
        """Numbers that a token leaves for the backward pass: projections, the convolution's
        output, what is selected, the scan's output and its product with the gate."""
        selected = self.inner + self.rank + 2 * self.state if self.rank else self.heads
        return 2 * (self.inner + self.shared) + 3 * self.inner + selected


class Mixer(Word):
    """How a layer mixes tokens."""

    ATTENTION = "attention"
    RECURRENT = "recurrent"
    BOTH = "both"
    """Attention and a state side by side, with one norm before them (Falcon-H1)."""
    NONE = "none"


class Feed(Word):
    """What a layer does to each token alone."""

    DENSE = "dense"
    ROUTED = "routed"
    NONE = "none"


class Layer(NamedTuple):
    """The kind of one layer."""

    mixer: Mixer = Mixer.ATTENTION
    feed: Feed = Feed.DENSE

    @property
    def attends(self) -> bool:
        return self.mixer in (Mixer.ATTENTION, Mixer.BOTH)

    @property
    def recurs(self) -> bool:
        return self.mixer in (Mixer.RECURRENT, Mixer.BOTH)


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A decoder model.

    `given_params` is a count that the user states: parameters beyond the computed text model are
    taken as further modules. `computable` is False where the architecture has parts that the
    formulas do not cover: then only `given_params` counts, and without it the size is unknown.
    `dimensioned` is False where layers, width or heads are missing, so that neither cache nor
    activations follow. `cached_layers` is how many layers keep a growing cache; None is all.
    `kinds` lists every layer of a model whose layers differ in more than their experts, `recurrent`
    the sizes of those that keep a state; empty, every layer has attention and an MLP or experts.
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
    kinds: tuple[Layer, ...] = ()
    recurrent: DeltaNet | StateSpace | None = None
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

    def __hash__(self) -> int:
        """Of what tells most models apart: caches ask for it often, and compare the whole."""
        sizes = (self.hidden, self.layers, self.vocab, self.mlp_size, self.given_params)
        return hash((self.name, sizes))

    @property
    def layer_kinds(self) -> tuple[Layer, ...]:
        """The kind of every layer; a list that is too short is repeated."""
        if self.kinds:
            return tuple(islice(cycle(self.kinds), self.layers))
        if self.experts is None:
            return (DENSE,) * self.layers
        dense = frozenset(self.experts.dense_layers)
        return tuple(DENSE if index in dense else ROUTED for index in range(self.layers))

    @property
    def distinct_kinds(self) -> set[Layer]:
        """The kinds that occur."""
        if self.kinds or self.experts:
            return set(self.layer_kinds)
        return {DENSE}


DENSE, ROUTED = Layer(Mixer.ATTENTION, Feed.DENSE), Layer(Mixer.ATTENTION, Feed.ROUTED)
