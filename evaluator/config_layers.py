"""Layers that differ from each other: experts, dense ones between them, windows, other kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evaluator.families import Family
from evaluator.fields import Fields, InvalidWorkload
from evaluator.shapes import Experts, Recurrence, Window

MOST_LAYERS = 1000
"""Eight times the deepest published model; every layer is looked at, so this bounds the time."""
MOST_WIDTH = 10**7
MOST_EXPERTS = 10**5
WINDOWED_LAYERS = ("sliding_attention", "chunked_attention")
RECURRENT_LAYERS = ("linear_attention", "mamba", "mamba2")
ATTENTION_LAYERS = ("full_attention", *WINDOWED_LAYERS)


def strange_layers(keys: Fields) -> bool:
    """Whether the config lists layers of a kind that the formulas leave out."""
    named = (*_counts(keys), *listed(keys, "layer_types"))
    return not {str(item) for item in named} <= set(ATTENTION_LAYERS)


def refuse_uneven_lists(keys: Fields, layers: int) -> None:
    """Layers listed one by one are as many as there are: a list cut short would leave the others
    without a cache. Layers that predict further may be listed behind them. Raises InvalidWorkload.
    """
    further = keys.integer("num_nextn_predict_layers", 0, MOST_LAYERS) or 0
    unmarked = Fields(keys.document, keys.path)  # a key looked at here may still be ignored
    for key, count in _listed_layers(unmarked):
        if count and count not in (layers, layers + further):
            read = f"{count:,} layers"
            raise InvalidWorkload(f"{keys.path}.{key}", read, f"num_hidden_layers, {layers:,}")


def _listed_layers(keys: Fields) -> Iterator[tuple[str, int]]:
    for key in ("layer_types", "layers_block_type"):
        yield key, len(listed(keys, key))
    yield "hybrid_override_pattern", len(_pattern(keys))
    yield "layer_type_counts", sum(_counts(keys).values())


def cached_layers(keys: Fields, layers: int) -> int | None:
    """Attention layers, where a config lists layers of several kinds or says every which is one."""
    named = _layers_of(keys, ATTENTION_LAYERS)
    interval = keys.integer("full_attention_interval", 1, MOST_LAYERS)
    pattern = _pattern(keys)
    if named is None and pattern:
        return pattern.count("*")
    return layers // interval if named is None and interval else named


def _pattern(keys: Fields) -> str:
    """Nemotron-H's word for its layers: M is Mamba, * attention, - an MLP."""
    return keys.text("hybrid_override_pattern", MOST_LAYERS) or ""


def read_recurrence(keys: Fields, layers: int, hidden: int) -> Recurrence | None:
    """Layers whose memory of a sequence has one size, where the config gives it."""
    elements = _delta_elements(keys) or _mamba_elements(keys, hidden)
    count = recurrent_layers(keys, layers)
    return Recurrence(count, elements) if count and elements else None


def recurrent_layers(keys: Fields, layers: int) -> int | None:
    """Layers that are no attention. None where the config does not tell them apart."""
    named = _layers_of(keys, RECURRENT_LAYERS)
    pattern, cached = _pattern(keys), cached_layers(keys, layers)
    if named is None and pattern:
        return pattern.count("M")
    return layers - (cached or 0) if named is None and cached is not None else named


def _delta_elements(keys: Fields) -> int:
    """Gated delta net (Qwen3-Next): a matrix for each value head, and the tail of a convolution."""
    names = ("key_heads", "value_heads", "key_dim", "value_dim", "kernel")
    stated = [
        keys.integer(f"linear_{name}", 1, MOST_WIDTH)
        for name in (
            "num_key_heads",
            "num_value_heads",
            "key_head_dim",
            "value_head_dim",
            "conv_kernel_dim",
        )
    ]
    if not all(stated):
        return 0
    size = dict(zip(names, (value or 0 for value in stated), strict=True))
    values = size["value_heads"] * size["value_dim"]
    mixed = 2 * size["key_heads"] * size["key_dim"] + values
    return values * size["key_dim"] + (size["kernel"] - 1) * mixed


def _mamba_elements(keys: Fields, hidden: int) -> int:
    """Mamba: d_inner d_state, and (kernel - 1) (d_inner + 2 groups d_state) of a convolution."""
    state = _size_of(keys, ("mamba_d_state", "ssm_state_size"))
    kernel = _size_of(keys, ("mamba_d_conv", "conv_kernel"))
    heads = _size_of(keys, ("mamba_n_heads", "mamba_num_heads"))
    width = _size_of(keys, ("mamba_d_head", "mamba_head_dim"))
    expanded = _size_of(keys, ("mamba_expand", "expand")) * hidden
    groups = _size_of(keys, ("mamba_n_groups", "n_groups"))
    inner = heads * width or expanded
    if not (state and kernel and inner):
        return 0
    return inner * state + (kernel - 1) * (inner + 2 * groups * state)


def _size_of(keys: Fields, names: tuple[str, ...]) -> int:
    """The first of several names for one size that is a whole number; 0 for none."""
    found = (keys.raw(name) for name in names)
    return next((one for one in found if isinstance(one, int) and 0 < one < MOST_WIDTH), 0)


def read_sizes(keys: Fields, names: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Sizes by our names, each under the first of several keys that is a whole number. Empty where
    one of them is missing."""
    found = {ours: _size_of(keys, theirs) for ours, theirs in names.items()}
    return found if all(found.values()) else {}


def _layers_of(keys: Fields, kinds: tuple[str, ...]) -> int | None:
    """How many layers are of these kinds; None where the config does not list them."""
    named, counts = listed(keys, "layer_types"), _counts(keys)
    if named:
        return sum(item in kinds for item in named)
    return sum(counts.get(kind, 0) for kind in kinds) if counts else None


def listed(keys: Fields, key: str) -> tuple[Any, ...]:
    value = keys.raw(key)
    if value is None:
        return ()
    fine = isinstance(value, list | tuple) and len(value) <= MOST_LAYERS
    if not fine or not all(isinstance(item, int | str) for item in value):
        raise keys.refuse(key, f"a list of at most {MOST_LAYERS} words or numbers")
    return tuple(value)


def _counts(keys: Fields) -> Mapping[str, int]:
    table = keys.table("layer_type_counts")
    if table is None:
        return {}
    return {key: table.integer(key, 0, MOST_LAYERS) or 0 for key in table.document}


def expert_count(keys: Fields) -> int:
    """0 where the config describes no experts, or a single one."""
    names = ("n_routed_experts", "num_local_experts", "num_experts")
    counts = [keys.integer(name, 0, MOST_EXPERTS) for name in names]
    count = next((value for value in counts if value), 0)
    return count if count > 1 else 0


def read_experts(keys: Fields, family: Family, layers: int) -> Experts | None:
    count = expert_count(keys)
    if not count:
        return None
    active = keys.integer("num_experts_per_tok", 1, count) or 1
    size = keys.integer("moe_intermediate_size", 1, MOST_WIDTH) or keys.integer("intermediate_size")
    if size is None:
        raise keys.refuse("moe_intermediate_size", "the inner size of one expert")
    return Experts(
        count=count,
        active=active,
        size=size,
        dense_layers=_dense_layers(keys, layers),
        shared_size=_shared_size(keys, size),
        shared_gate=family.shared_gate,
        router_bias=family.router_bias,
        bias=family.expert_bias,
        latent=keys.integer("moe_latent_size", 0, MOST_WIDTH) or 0,
    )


def _shared_size(keys: Fields, expert_size: int) -> int:
    stated = [keys.integer(name, 0, MOST_WIDTH) for name in SHARED_SIZES]
    number = keys.integer("n_shared_experts", 0, MOST_EXPERTS)
    size = next((one for one in stated if one is not None), None)
    if size is not None and number != 0:
        return size
    if number is not None:
        return number * expert_size
    return expert_size if keys.has("intermediate_size_mlp") else 0


SHARED_SIZES = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "shared_intermediate_size",
)


def _dense_layers(keys: Fields, layers: int) -> tuple[int, ...]:
    """Layers without experts: the first k, those between the steps, and those listed."""
    first = keys.integer("first_k_dense_replace", 0, MOST_LAYERS) or 0
    step = max(
        keys.integer("interleave_moe_layer_step", 1, MOST_LAYERS) or 1,
        keys.integer("decoder_sparse_step", 1, MOST_LAYERS) or 1,
    )
    frequency = keys.integer("moe_layer_freq", 1, MOST_LAYERS) or 1
    stated = listed(keys, "mlp_only_layers")
    return tuple(
        index
        for index in range(layers)
        if index < first or (index + 1) % step or index % frequency or index in stated
    )


def read_window(keys: Fields, family: Family, layers: int) -> Window | None:
    tokens = keys.integer("sliding_window", 1) or keys.integer("attention_chunk_size", 1)
    opted = keys.flag("use_sliding_window")
    count = _windowed_layers(keys, family, layers) if tokens and opted is not False else 0
    return Window(min(count, layers), tokens) if tokens and count else None


def _windowed_layers(keys: Fields, family: Family, layers: int) -> int:
    named = _layers_of(keys, WINDOWED_LAYERS)
    stated = keys.integer("sliding_window_layers", 0, MOST_LAYERS)
    if named is not None:
        return named
    return _by_rule(keys, family, layers) if stated is None else stated


def _window_period(keys: Fields) -> int:
    """Every so many layers one keeps all tokens. EXAONE 4 spells it: "LLLG", local and global."""
    spelt = keys.raw("sliding_window_pattern")
    if isinstance(spelt, str) and spelt.lstrip("L") == "G" and len(spelt) <= MOST_LAYERS:
        return len(spelt)
    return keys.integer("sliding_window_pattern", 1, MOST_LAYERS) or 0


def _by_rule(keys: Fields, family: Family, layers: int) -> int:
    pattern = _window_period(keys) or family.pattern
    first = keys.integer("max_window_layers", 0, MOST_LAYERS) or 0
    opted = keys.flag("use_sliding_window") is True
    return {
        "all": layers,
        "alternate": (layers + 1) // 2,
        "pattern": layers - layers // pattern,
        "chunked": layers - layers // pattern,
        "opt_in": max(0, layers - first) if opted else 0,
    }.get(family.windows, 0)
