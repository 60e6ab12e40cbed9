"""Models whose layers differ in kind: attention beside layers that keep a state of one size.

Only families whose published classes fix every size are read. All others ask for a count, since a
wrong one is worse than none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from evaluator.config_layers import MOST_LAYERS, MOST_WIDTH, cached_layers, listed, read_sizes
from evaluator.families import family_key
from evaluator.fields import Fields
from evaluator.shapes import (
    Attention,
    DeltaNet,
    Feed,
    Layer,
    Mixer,
    ModelShape,
    Recurrence,
    StateSpace,
)

Recurrent = DeltaNet | StateSpace
Mixers = Sequence[Mixer]


@dataclass(frozen=True, slots=True)
class Hybrid:
    """The kind of every layer, and the sizes of those that keep a state."""

    kinds: tuple[Layer, ...]
    recurrent: Recurrent

    def dense_layers(self) -> tuple[int, ...]:
        return tuple(at for at, kind in enumerate(self.kinds) if kind.feed is Feed.DENSE)

    def layered(self, shape: ModelShape) -> ModelShape:
        """The shape with the kind of each layer, and what follows from it."""
        states = sum(kind.recurs for kind in self.kinds)
        experts = shape.experts and replace(shape.experts, dense_layers=self.dense_layers())
        return replace(
            shape,
            kinds=self.kinds,
            recurrent=self.recurrent,
            experts=experts,
            attention=self._attention_beside(shape.attention),
            cached_layers=sum(kind.attends for kind in self.kinds),
            recurrence=Recurrence(states, self.recurrent.elements) if states else None,
            dimensioned=True,
        )

    def _attention_beside(self, attention: Attention) -> Attention:
        """A delta net stands beside attention with a gate. Where no layer attends, the heads that
        ranks divide are those of the mixer."""
        mixer = self.recurrent
        if any(kind.attends for kind in self.kinds):
            return replace(attention, output_gate=isinstance(mixer, DeltaNet))
        heads = mixer.value_heads if isinstance(mixer, DeltaNet) else mixer.heads or mixer.inner
        return Attention(heads, heads, 1)


def is_hybrid(architecture: str) -> bool:
    return family_key(architecture) in READERS


def read_hybrid(keys: Fields, architecture: str, *, routed: bool) -> Hybrid | None:
    """None where the family is not covered, or a size or the order of its layers is missing.

    `routed` says that the config describes experts.
    """
    layers = keys.integer("num_hidden_layers", 1, MOST_LAYERS) or 0
    hidden = keys.integer("hidden_size", 1, MOST_WIDTH) or 0
    reader = READERS.get(family_key(architecture))
    if reader is None or not (layers and hidden):
        return None
    kinds, sizes = reader.kinds(keys, layers, routed), reader.sizes(keys, hidden)
    if sizes is None or len(kinds) != layers:
        return None
    return Hybrid(tuple(kinds), sizes)


# --- the order of layers


def _delta_kinds(keys: Fields, layers: int, routed: bool) -> Sequence[Layer]:
    """Qwen3-Next and Qwen3.5: the same MLP or experts in all layers."""
    if keys.flag("attn_output_gate") is False:
        return ()
    return _fed_alike(_mixers(keys, layers), routed=routed)


def _granite_kinds(keys: Fields, layers: int, routed: bool) -> Sequence[Layer]:
    return _fed_alike(_mixers(keys, layers), routed=routed)


def _fed_alike(mixers: Mixers, *, routed: bool) -> Sequence[Layer]:
    return [Layer(mixer, Feed.ROUTED if routed else Feed.DENSE) for mixer in mixers]


def _mixers(keys: Fields, layers: int) -> Mixers:
    """From a list of layers, or every n-th one; where only counts are known, evenly spread."""
    named = [_MIXER_WORDS.get(str(word)) for word in listed(keys, "layer_types")]
    if named:
        return [one for one in named if one]
    count = cached_layers(keys, layers)
    if count is None:
        return ()
    before = (count * index // layers for index in range(layers + 1))
    return [Mixer.ATTENTION if one < other else Mixer.RECURRENT for one, other in pairwise(before)]


_MIXER_WORDS = {
    "attention": Mixer.ATTENTION,
    "full_attention": Mixer.ATTENTION,
    "linear_attention": Mixer.RECURRENT,
    "mamba": Mixer.RECURRENT,
    "mamba2": Mixer.RECURRENT,
}


def _pattern_kinds(keys: Fields, layers: int, routed: bool) -> Sequence[Layer]:
    """Nemotron-H (arXiv 2504.03624): each layer mixes or feeds. Biases are not covered."""
    words = listed(keys, "layers_block_type") or tuple(
        keys.text("hybrid_override_pattern", MOST_LAYERS) or ""
    )
    kinds = [_PATTERN_WORDS.get(str(word)) for word in words]
    feeds = {kind.feed for kind in kinds if kind}
    unsized = Feed.DENSE in feeds and not keys.has("intermediate_size")
    biased = [name for name in _BIASES if keys.flag(name)]
    if biased or unsized or not keys.has("head_dim") or (Feed.ROUTED in feeds) != routed:
        return ()
    return [kind for kind in kinds if kind]


_PATTERN_WORDS = {
    word: kind
    for words, kind in (
        (("M", "mamba", "linear_attention"), Layer(Mixer.RECURRENT, Feed.NONE)),
        (("*", "attention", "full_attention"), Layer(Mixer.ATTENTION, Feed.NONE)),
        (("-", "mlp"), Layer(Mixer.NONE, Feed.DENSE)),
        (("E", "moe"), Layer(Mixer.NONE, Feed.ROUTED)),
    )
    for word in words
}
_BIASES = ("mamba_proj_bias", "use_bias", "attention_bias", "mlp_bias")


def _jamba_kinds(keys: Fields, layers: int, routed: bool) -> Sequence[Layer]:
    """Jamba (arXiv 2403.19887): one layer of each period has attention, one or more experts."""
    attention, experts = _period(keys, "attn_layer"), _period(keys, "expert_layer")
    if not attention or (routed and not experts):
        return ()
    return [
        Layer(
            Mixer.ATTENTION if _falls(index, attention) else Mixer.RECURRENT,
            Feed.ROUTED if routed and _falls(index, experts) else Feed.DENSE,
        )
        for index in range(layers)
    ]


def _period(keys: Fields, name: str) -> tuple[int, int] | None:
    period = keys.integer(f"{name}_period", 1, MOST_LAYERS)
    offset = keys.integer(f"{name}_offset", 0, (period or MOST_LAYERS) - 1)
    return None if period is None or offset is None else (period, offset)


def _falls(index: int, every: tuple[int, int] | None) -> bool:
    return every is not None and index % every[0] == every[1]


def _bamba_kinds(keys: Fields, layers: int, routed: bool) -> Sequence[Layer]:
    attending = listed(keys, "attn_layer_indices")
    mixers = (Mixer.ATTENTION if at in attending else Mixer.RECURRENT for at in range(layers))
    return [] if routed or not attending else _fed_alike([*mixers], routed=False)


def _mamba_kinds(keys: Fields, layers: int, routed: bool) -> Sequence[Layer]:
    return [] if routed else [Layer(Mixer.RECURRENT, Feed.NONE)] * layers


def _parallel_kinds(keys: Fields, layers: int, routed: bool) -> Sequence[Layer]:
    """Falcon-H1 (arXiv 2507.22448): every layer attends and keeps a state, then feeds. Its biases
    are not covered, and its order of layers is fixed."""
    biased = any(map(keys.flag, (*_BIASES, "projectors_bias")))
    some = listed(keys, "attn_layer_indices") or keys.flag("mamba_use_mlp") is False
    return [] if routed or biased or some else [Layer(Mixer.BOTH, Feed.DENSE)] * layers


# --- the sizes of layers with a state


def _delta_net(keys: Fields, hidden: int) -> DeltaNet | None:
    names = ("key_heads", "value_heads", "key_dim", "value_dim", "kernel")
    sizes = read_sizes(keys, dict(zip(names, DELTA_KEYS, strict=True)))
    return DeltaNet(**sizes) if sizes else None


DELTA_KEYS = (
    ("linear_num_key_heads",),
    ("linear_num_value_heads",),
    ("linear_key_head_dim",),
    ("linear_value_head_dim",),
    ("linear_conv_kernel_dim",),
)
_Names = dict[str, tuple[str, ...]]
_STATE: _Names = {
    "state": ("mamba_d_state", "ssm_state_size", "state_size"),
    "kernel": ("mamba_d_conv", "conv_kernel"),
}
_HEADS: _Names = {
    "heads": ("mamba_n_heads", "mamba_num_heads", "num_heads"),
    "groups": ("mamba_n_groups", "n_groups"),
}


def _mamba(keys: Fields, hidden: int) -> StateSpace | None:
    """Jamba states how many times wider its channels are, pure Mamba may state the channels."""
    sizes, jamba = read_sizes(keys, _STATE), keys.has("mamba_d_state")
    stated = None if jamba else keys.integer("intermediate_size", 1, MOST_WIDTH)
    inner = stated or _expanded(keys, hidden)
    rank = _rank(keys, "mamba_dt_rank" if jamba else "time_step_rank", hidden)
    if not sizes or not inner:
        return None
    plain = StateSpace(inner, sizes["state"], sizes["kernel"], rank=rank, inner_norms=jamba)
    return _biased(keys, plain)


def _expanded(keys: Fields, hidden: int) -> int:
    return read_sizes(keys, {"expand": ("mamba_expand", "expand")}).get("expand", 0) * hidden


def _rank(keys: Fields, name: str, hidden: int) -> int:
    """A sixteenth of the width where it is left out or "auto"."""
    automatic = keys.raw(name) in (None, "auto")
    return -(-hidden // 16) if automatic else keys.integer(name, 1, MOST_WIDTH) or 1


def _mamba_2(keys: Fields, hidden: int) -> StateSpace | None:
    sizes = read_sizes(keys, _STATE | _HEADS)
    width = read_sizes(keys, {"each": ("mamba_d_head", "mamba_head_dim", "head_dim")})
    expanded = _expanded(keys, hidden)
    if not sizes or not (width or expanded):
        return None
    stated = keys.integer("mamba_d_ssm", 1, MOST_WIDTH)
    inner = stated or (width["each"] * sizes["heads"] if width else expanded)
    groups, heads = sizes["groups"], sizes["heads"]
    return _biased(keys, StateSpace(inner, sizes["state"], sizes["kernel"], groups, heads))


def _biased(keys: Fields, plain: StateSpace) -> StateSpace:
    """Projections have a bias where the config says so, convolutions unless it denies it."""
    kernel = [keys.flag(name) for name in ("use_conv_bias", "mamba_conv_bias")]
    bias = [keys.flag(name) for name in ("use_bias", "mamba_proj_bias")]
    gate = keys.flag("mamba_rms_norm") is not False
    return replace(plain, bias=True in bias, kernel_bias=False not in kernel, gate_norm=gate)


@dataclass(frozen=True, slots=True)
class Reader:
    kinds: Callable[[Fields, int, bool], Sequence[Layer]]
    sizes: Callable[[Fields, int], Recurrent | None]


READERS: Mapping[str, Reader] = {
    "qwen3next": Reader(_delta_kinds, _delta_net),
    "qwen35": Reader(_delta_kinds, _delta_net),
    "qwen35moe": Reader(_delta_kinds, _delta_net),
    "nemotronh": Reader(_pattern_kinds, _mamba_2),
    "jamba": Reader(_jamba_kinds, _mamba),
    "bamba": Reader(_bamba_kinds, _mamba_2),
    "falconh1": Reader(_parallel_kinds, _mamba_2),
    "granitemoehybrid": Reader(_granite_kinds, _mamba_2),
    "mamba": Reader(_mamba_kinds, _mamba),
    "falconmamba": Reader(_mamba_kinds, _mamba),
    "mamba2": Reader(_mamba_kinds, _mamba_2),
}
"""By `family_key`. From the published classes of the transformers library; the totals of one model
of each are tested."""
