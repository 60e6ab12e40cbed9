"""How a checkpoint is quantised, from `quantization_config` of its config.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaluator.fields import Fields, InvalidWorkload

LARGEST_GROUP = 65_536
"""Above the inner size of any published matrix."""


BY_GROUPS = ("compressed-tensors", "modelopt", "modelopt_fp4")


def checkpoint_format(keys: Fields) -> str:
    """The method, with its bits where they are not the usual 4 of a method of integers."""
    table = keys.table("quantization_config")
    method = (table.text("quant_method") or "") if table else ""
    if table is None or method in BY_GROUPS:
        return _by_groups(table, method) if table else ""
    if method not in ("awq", "gptq", "bitsandbytes"):
        return method
    bits = table.integer("bits", 1, 16) or table.integer("w_bit", 1, 16)
    bits = 8 if table.flag("load_in_8bit") else bits
    return method if bits in (None, 4) else f"{method} of {bits} bits"


def _by_groups(table: Fields, method: str) -> str:
    """The one description of all weights, or the method's own name."""
    algorithm = (table.text("quant_algo") or "").lower()
    if algorithm in ("fp8", "nvfp4"):
        return algorithm
    only = _described_weights(table)
    return (_word_of(only) or method) if only else method


def _word_of(weights: Fields) -> str:
    """Empty for a kind of weights that has no format."""
    kind, bits = weights.text("type"), weights.integer("num_bits", 1, 32)
    scaled = weights.integer("group_size", -1, LARGEST_GROUP)
    words = {("float", 8): "fp8", ("int", 8): "int8", ("int", 4): "int4"}
    if (kind, bits, scaled) == ("float", 4, 16):
        return "nvfp4"
    if (kind, bits, scaled) == ("float", 4, 32):
        return "mxfp4"
    return words.get((kind or "int", bits or 0), "")


@dataclass(frozen=True, slots=True)
class Described:
    """Modules by name, and the format of their weights with the size of its groups. An empty format
    is one of 16 bits."""

    targets: tuple[str, ...]
    method: str
    group: int | None = None


def described_groups(keys: Fields) -> tuple[Described, ...]:
    """Several descriptions of weights, or none: of one the checkpoint's format says all."""
    table = keys.table("quantization_config")
    if table is None or table.text("quant_method") not in BY_GROUPS:
        return ()
    layers = table.table("quantized_layers")
    if layers is not None and layers.document:
        return _by_layers(layers)
    groups = table.table("config_groups")
    if groups is None or len(groups.document) < 2:
        return ()
    if len(groups.document) > MOST_GROUPS:
        raise table.refuse("config_groups", f"at most {MOST_GROUPS} descriptions")
    tables = [found for name in groups.document if (found := groups.table(name))]
    return tuple(_described(one) for one in tables)


MOST_GROUPS = 100


def _described(table: Fields) -> Described:
    weights, targets = table.table("weights"), table.texts("targets", limit=10_000)
    if weights is None:
        return Described(targets, "")
    method = _word_of(weights)
    if not method:
        raise table.refuse("weights", "weights of 4 or 8 bits as integers or floats")
    return Described(targets, method, _group_of(weights))


ALGORITHMS: Mapping[str, tuple[str, int | None]] = {
    "FP8": ("fp8", None),
    "FP8_PER_CHANNEL_PER_TOKEN": ("fp8", None),
    "FP8_PB_WO": ("fp8", None),
    "NVFP4": ("nvfp4", None),
    "W8A8_SQ_PER_CHANNEL": ("int8", -1),
    "W8A16": ("int8", -1),
    "W4A16": ("int4", None),
    "W4A16_AWQ": ("int4", None),
    "W4A8_AWQ": ("int4", None),
}
"""Algorithms of NVIDIA ModelOpt's exports, and the weights and groups that they stand for."""
MOST_NAMES = 200_000
"""Three matrices of 256 experts in 61 layers are 46,848 names."""


def _by_layers(layers: Fields) -> tuple[Described, ...]:
    """Modules one by one (`quant_algo` MIXED_PRECISION), those of one format together."""
    if len(layers.document) > MOST_NAMES:
        raise InvalidWorkload(
            layers.path, f"{len(layers.document):,} modules", f"at most {MOST_NAMES:,} modules"
        )
    found: dict[tuple[str, int | None], list[str]] = {}
    for name in layers.document:
        found.setdefault(_format_of(layers, name), []).append(name)
    return tuple(Described(tuple(names), *form) for form, names in found.items())


def _format_of(layers: Fields, name: str) -> tuple[str, int | None]:
    module = layers.table(name)
    algorithm = (module.text("quant_algo") or "") if module else ""
    method, usual = ALGORITHMS.get(algorithm.upper(), ("", None))
    if module is None or not method:
        raise InvalidWorkload(f"{layers.path}.{name}"[:200], algorithm, f"one of {_ALGORITHMS}")
    size = module.integer("group_size", -1, LARGEST_GROUP)
    return method, (size or usual) if method.startswith("int") else None


_ALGORITHMS = ", ".join(ALGORITHMS)


def _described_weights(table: Fields) -> Fields | None:
    """None unless exactly one group of layers is described."""
    groups = table.table("config_groups")
    if groups is None or len(groups.document) != 1:
        return None
    only = groups.table(next(iter(groups.document)))
    return only.table("weights") if only else None


def _group_of(weights: Fields) -> int | None:
    size = weights.integer("group_size", -1, LARGEST_GROUP)
    return size or (-1 if weights.text("strategy") == "channel" else None)


def checkpoint_group(keys: Fields) -> int | None:
    """How many weights share a scale; -1 is a whole column."""
    table = keys.table("quantization_config")
    if table is None:
        return None
    for key in ("group_size", "q_group_size"):
        size = table.integer(key, -1, LARGEST_GROUP)
        if size is not None:
            return size or None
    described = _described_weights(table)
    return _group_of(described) if described else None


def kept_modules(keys: Fields) -> tuple[str, ...]:
    for key in ("quantization_config", "checkpoint_quantization"):
        table = keys.table(key)
        if table is None:
            continue
        for name in ("modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules"):
            if kept := table.texts(name, limit=10_000):
                return kept
    return ()
