"""How a checkpoint is quantised, from `quantization_config` of its config.json."""

from __future__ import annotations

from evaluator.fields import Fields

LARGEST_GROUP = 65_536
"""Above the inner size of any published matrix."""


def checkpoint_format(keys: Fields) -> str:
    """The method, with its bits where they are not the usual 4 of a method of integers."""
    table = keys.table("quantization_config")
    method = (table.text("quant_method") or "") if table else ""
    if table is None or method in ("compressed-tensors", "modelopt", "modelopt_fp4"):
        return _by_groups(table, method) if table else ""
    if method not in ("awq", "gptq", "bitsandbytes"):
        return method
    bits = table.integer("bits", 1, 16) or table.integer("w_bit", 1, 16)
    bits = 8 if table.flag("load_in_8bit") else bits
    return method if bits in (None, 4) else f"{method} of {bits} bits"


def _by_groups(table: Fields, method: str) -> str:
    """Methods that describe the weights of each group of layers. One description, or the method's
    own name."""
    algorithm = (table.text("quant_algo") or "").lower()
    if algorithm in ("fp8", "nvfp4"):
        return algorithm
    weights = _described_weights(table)
    if weights is None:
        return method
    kind, bits = weights.text("type"), weights.integer("num_bits", 1, 32)
    scaled = weights.integer("group_size", -1, LARGEST_GROUP)
    words = {("float", 8): "fp8", ("int", 8): "int8", ("int", 4): "int4"}
    if (kind, bits, scaled) == ("float", 4, 16):
        return "nvfp4"
    return words.get((kind or "int", bits or 0), method)


def _described_weights(table: Fields) -> Fields | None:
    """None unless exactly one group of layers is described."""
    groups = table.table("config_groups")
    if groups is None or len(groups.document) != 1:
        return None
    only = groups.table(next(iter(groups.document)))
    return only.table("weights") if only else None


def checkpoint_group(keys: Fields) -> int | None:
    """How many weights share a scale; -1 is a whole column."""
    table = keys.table("quantization_config")
    if table is None:
        return None
    described = _described_weights(table)
    for place, key in ((table, "group_size"), (table, "q_group_size"), (described, "group_size")):
        size = place.integer(key, -1, LARGEST_GROUP) if place else None
        if size is not None:
            return size or None
    return -1 if described and described.text("strategy") == "channel" else None


def kept_modules(keys: Fields) -> tuple[str, ...]:
    for key in ("quantization_config", "checkpoint_quantization"):
        table = keys.table(key)
        if table is None:
            continue
        for name in ("modules_to_not_convert", "ignore", "ignored_layers"):
            if kept := table.texts(name, limit=10_000):
                return kept
    return ()
