"""Parameters of a model, part by part: what each holds, and how tensor parallelism divides it.

Formulas: attention, gated and plain MLP, experts and latent attention as in the models' own
definitions; latent attention after DeepSeek-V2 (arXiv 2405.04434, section 2.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from evaluator.shapes import (
    Attention,
    DeltaNet,
    Experts,
    Feed,
    Latent,
    Layer,
    Mixer,
    ModelShape,
    QkNorm,
    StateSpace,
    Word,
)


class Split(Word):
    """What one tensor-parallel rank holds of a part."""

    TENSOR = "tensor"
    """1/t of it."""
    KV_HEADS = "kv_heads"
    """Whole KV heads: at least one, so the share stops falling when t exceeds their number."""
    EXPERTS = "experts"
    """Whole experts where the plan divides them, else 1/t of each."""
    NONE = "none"
    """All of it."""


class Module(Word):
    """Where a part sits; formats keep some of these in 16 bits."""

    EMBEDDING = "embed_tokens"
    HEAD = "lm_head"
    ATTENTION = "self_attn"
    MIXER = "mixer"
    MLP = "mlp"
    EXPERT = "experts"
    ROUTER = "gate"
    NORM = "norm"
    OTHER = "other"


QUANTISED = (Module.ATTENTION, Module.MIXER, Module.MLP, Module.EXPERT)
"""Where formats of few bits apply; embedding, head, norms and routers keep theirs."""


class Part(NamedTuple):
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


@lru_cache(maxsize=64)
def halves_of(layer: Layer) -> tuple[str, ...]:
    """Names of what a layer is made of: how it mixes, how it feeds, and its norms, of which a layer
    that does only one of them has one."""
    mixes, feeds = layer.mixer is not Mixer.NONE, layer.feed is not Feed.NONE
    mixing = (f"mix {layer.mixer}",) if mixes else ()
    feeding = (f"feed {layer.feed}",) if feeds else ()
    return (*mixing, *feeding, "norms both" if mixes and feeds else "norms one")


@lru_cache(maxsize=4096)
def layer_halves(shape: ModelShape, layer: Layer) -> Mapping[str, tuple[Part, ...]]:
    """The parts of one layer of a kind, by `halves_of`."""
    norms, names = shape.norms, halves_of(layer)
    count = norms.per_layer if names[-1] == "norms both" else 1
    norm = Part(Module.NORM, count * shape.hidden * (1 + norms.bias), Split.NONE)
    halves = (_mixing(shape, layer.mixer), _feeding(shape, layer.feed))
    return dict(zip(names, (*filter(None, halves), (norm,)), strict=True))


def layer_parts(shape: ModelShape, layer: Layer) -> tuple[Part, ...]:
    """The parts of one layer of a kind."""
    return tuple(part for half in layer_halves(shape, layer).values() for part in half)


def _mixing(shape: ModelShape, mixer: Mixer) -> tuple[Part, ...]:
    attention = _attention(shape) if mixer in (Mixer.ATTENTION, Mixer.BOTH) else ()
    if mixer in (Mixer.RECURRENT, Mixer.BOTH) and shape.recurrent:
        return (*attention, *recurrent_parts(shape.hidden, shape.recurrent))
    return attention


def _feeding(shape: ModelShape, feed: Feed) -> tuple[Part, ...]:
    if feed is Feed.ROUTED and shape.experts:
        return _experts(shape, shape.experts)
    return _dense(shape) if feed is Feed.DENSE else ()


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
    norms = shape.norms
    norm = Part(Module.NORM, norms.final * shape.hidden * (1 + norms.bias), Split.NONE)
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
    if shape.given_params is None:
        return 0
    computed = computed_params(shape)
    return 0 if computed is None else max(0, shape.given_params - computed)


@lru_cache(maxsize=4096)
def computed_params(shape: ModelShape) -> int | None:
    """The count that follows from the shape. None where the formulas do not cover it."""
    if not shape.computable:
        return None
    return sum(part.params * times for part, times in _all_parts(shape))


def total_params(shape: ModelShape) -> int | None:
    """All parameters, experts included. A count given by the user may add to the computed one."""
    computed = computed_params(shape)
    return shape.given_params if computed is None else computed + others(shape)


@lru_cache(maxsize=4096)
def expert_params(shape: ModelShape) -> int:
    """Parameters of all routed experts. 0 for a dense model or one of unknown parts."""
    if not shape.computable:
        return 0
    parts = _all_parts(shape)
    return sum(part.params * times for part, times in parts if part.module is Module.EXPERT)


@lru_cache(maxsize=4096)
def routed_layers(shape: ModelShape) -> int:
    """Layers that hold experts."""
    return sum(kind.feed is Feed.ROUTED for kind in shape.layer_kinds)


def active_params(shape: ModelShape) -> int | None:
    """Parameters that one token passes through. The embedding counts, as in published figures."""
    if not shape.computable:
        return None if shape.experts else shape.given_params
    return round(sum(part.active * times for part, times in _all_parts(shape)))


def _all_parts(shape: ModelShape) -> list[tuple[Part, int]]:
    """Every part with the number of times it occurs."""
    kinds = Counter(shape.layer_kinds)
    ends = [(part, 1) for part in (*embedding(shape), *head(shape))]
    return ends + [
        (part, times) for kind, times in kinds.items() for part in layer_parts(shape, kind)
    ]


def _attention(shape: ModelShape) -> tuple[Part, ...]:
    if shape.attention.latent:
        return _latent_attention(shape, shape.attention, shape.attention.latent)
    return _grouped_attention(shape, shape.attention)


def _grouped_attention(shape: ModelShape, attention: Attention) -> tuple[Part, ...]:
    queries, keys = attention.heads * attention.head_dim, attention.kv_heads * attention.head_dim
    hidden, bias = shape.hidden, int(attention.qkv_bias)
    sinks, wide = attention.heads * attention.sinks, 2 + attention.output_gate
    return (
        Part(Module.ATTENTION, hidden * queries * wide + bias * queries + sinks),
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
    width = experts.latent or hidden
    bias = (matrices - 1) * experts.size + width if experts.bias else 0
    each = matrices * experts.size * width + bias
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
        Part(Module.MLP, 2 * hidden * experts.latent, Split.NONE),
        Part(Module.ROUTER, router, Split.NONE),
    )


def recurrent_parts(hidden: int, mixer: DeltaNet | StateSpace) -> tuple[Part, ...]:
    """Projections may be quantised; convolutions, decays and norms stay as they are."""
    if isinstance(mixer, DeltaNet):
        return _delta_net(hidden, mixer)
    return _mamba(hidden, mixer) if mixer.rank else _mamba_2(hidden, mixer)


def _delta_net(hidden: int, mixer: DeltaNet) -> tuple[Part, ...]:
    """Projections to queries, keys, values and gate, and back; two numbers a head; a convolution
    without bias, a decay and its bias for each head, a norm of one head."""
    each_head = 2 * mixer.value_heads * (hidden + 1)
    return (
        Part(Module.MIXER, hidden * (mixer.mixed + 2 * mixer.values)),
        Part(Module.OTHER, each_head + mixer.mixed * mixer.kernel),
        Part(Module.NORM, mixer.value_dim, Split.NONE),
    )


def _mamba(hidden: int, mixer: StateSpace) -> tuple[Part, ...]:
    """Two projections in and one out, the selection of time step and two inputs, a matrix of
    decays and one more number a channel (arXiv 2312.00752, section 3)."""
    inner, state, rank = mixer.inner, mixer.state, mixer.rank
    bias = mixer.bias * (2 * inner + hidden)
    selection = inner * (rank + 2 * state) + rank * inner
    single = inner * (mixer.kernel + mixer.kernel_bias + state + 2)
    return (
        Part(Module.MIXER, 3 * hidden * inner + selection),
        Part(Module.OTHER, single + bias),
        Part(Module.NORM, mixer.inner_norms * (rank + 2 * state), Split.NONE),
    )


def _mamba_2(hidden: int, mixer: StateSpace) -> tuple[Part, ...]:
    """One projection in and one out, a convolution, three numbers a head and a norm (arXiv
    2405.21060, section 7). Ranks divide heads; a single group is on every one."""
    inner, heads, shared = mixer.inner, mixer.heads, mixer.shared
    bias = mixer.bias * (2 * inner + shared + heads + hidden)
    single = (inner + shared) * (mixer.kernel + mixer.kernel_bias) + 3 * heads
    single += inner * mixer.gate_norm
    whole = Split.NONE if mixer.groups == 1 else Split.TENSOR
    return (
        Part(Module.MIXER, hidden * (3 * inner + heads)),
        Part(Module.MIXER, hidden * shared, whole),
        Part(Module.OTHER, single + bias),
    )
