"""Modules that a quantised checkpoint names, and the share of a part that they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from evaluator.parameters import Module, Part, Split

EVERY = "*"
"""In a list of modules: every layer, or every module of a layer."""
MLP_PROJECTIONS = frozenset({"gate_proj", "up_proj", "down_proj"})
PROJECTIONS = {split: frozenset[str]() for split in Split} | {
    Split.TENSOR: frozenset({"q_proj", "o_proj"}),
    Split.KV_HEADS: frozenset({"k_proj", "v_proj"}),
}
"""Projections by the part that they are in: queries and output have one size, keys and values
another."""
OF_EXPERTS = frozenset(f"{Module.EXPERT.value}.{name}" for name in MLP_PROJECTIONS)
"""Projections of experts, which a list names for each expert alone: all of them are alike."""
NAMED = frozenset(module.value for module in Module).union(MLP_PROJECTIONS, *PROJECTIONS.values())
KNOWN_MODULES = frozenset({EVERY, *NAMED, *OF_EXPERTS})


def named_share(part: Part, names: frozenset[str], *, gated: bool) -> float:
    """The share of a part that the names cover: all of it, or some of its projections."""
    if not names:
        return 0.0
    experts_too = part.module is Module.EXPERT and Module.MLP.value in names
    if part.module.value in names or EVERY in names or experts_too:
        return 1.0
    if part.module is Module.EXPERT:
        return min(1.0, len(names & OF_EXPERTS) / (3 if gated else 2))
    if part.module is Module.ATTENTION:
        return len(names & PROJECTIONS[part.split]) / 2
    if part.module is Module.MLP:
        return min(1.0, len(names & MLP_PROJECTIONS) / (3 if gated else 2))
    return 0.0


def names_of_layers(names: tuple[str, ...], layers: int) -> Sequence[frozenset[str]]:
    """The modules of each layer that a list names."""
    found, nothing = _by_layer(names), frozenset[str]()
    everywhere = found.get(EVERY, nothing)
    if not found.keys() - {EVERY}:
        return [everywhere] * layers
    return [everywhere | found.get(str(index), nothing) for index in range(layers)]


@lru_cache(maxsize=256)
def _by_layer(names: tuple[str, ...]) -> Mapping[str, frozenset[str]]:
    """Read once: a pasted list may hold thousands of names."""
    found: dict[str, set[str]] = {}
    for name in names:
        layer, module = _named_module(name)
        if module in KNOWN_MODULES:
            found.setdefault(layer, set()).add(module)
    return {layer: frozenset(modules) for layer, modules in found.items()}


def _named_module(name: str) -> tuple[str, str]:
    """ "self_attn", "model.layers.0" and "model.layers.*.mlp" name modules, layers and both.

    Of a pattern ("re:.*self_attn.*") the last known word counts, in every layer.
    """
    if name.startswith("re:"):
        found = [word for word in re.findall(r"\w+", name) if word in NAMED]
        return EVERY, found[-1] if found else ""
    words = name.split(".")
    if "layers" not in words:
        return EVERY, words[-1]
    layer, *rest = words[words.index("layers") + 1 :] or [EVERY]
    return layer, _module_of(rest) if rest else EVERY


def _module_of(words: Sequence[str]) -> str:
    """The last word, or that of an expert: "mlp.experts.7.down_proj" is one of "experts"."""
    experts = Module.EXPERT.value
    if experts not in words or words[-1] not in MLP_PROJECTIONS:
        return experts if experts in words else words[-1]
    return f"{experts}.{words[-1]}"
