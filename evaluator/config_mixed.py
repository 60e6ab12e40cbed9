"""The mean bits of a checkpoint whose modules have several formats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaluator.config_quantised import Described
from evaluator.formats import mixed_format, weight_format, with_group
from evaluator.module_names import named_share, names_of_layers
from evaluator.parameters import QUANTISED, Part, layer_parts
from evaluator.shapes import ModelShape

FORMATS = {"fp8": "fp8", "int8": "int8", "int4": "int4", "nvfp4": "nvfp4", "mxfp4": "int4:g32"}
"""Words of a description; MXFP4 has 4.25 bits like 4-bit integers in groups of 32, and is not kept
to experts here."""
KEPT_BITS = 16.0


def mean_format(shape: ModelShape, groups: Sequence[Described]) -> str:
    """The name of the mix. Weights that no description names have the format of the class "Linear",
    or 16 bits. Without parts that can be told, all descriptions count alike."""
    bits = [_bits(group) for group in groups]
    if not shape.computable:
        return mixed_format(sum(bits) / len(bits))
    named = [names_of_layers(group.targets, shape.layers) for group in groups]
    rest = next(
        (one for one, group in zip(bits, groups, strict=True) if _is_rest(group)), KEPT_BITS
    )
    held = taken = 0.0
    for index, part, params in _quantised(shape):
        shares = [named_share(part, names[index], gated=shape.gated) for names in named]
        held += params
        taken += params * _mean(bits, shares, rest)
    return mixed_format(taken / held if held else rest)


def _quantised(shape: ModelShape) -> Iterator[tuple[int, Part, float]]:
    """Layer, part and its parameters, without those that the checkpoint keeps at 16 bits."""
    kept = names_of_layers(shape.kept_16bit, shape.layers)
    for index, kind in enumerate(shape.layer_kinds):
        for part in layer_parts(shape, kind):
            if part.module in QUANTISED:
                left = 1 - named_share(part, kept[index], gated=shape.gated)
                yield index, part, part.params * left


def _mean(bits: Sequence[float], shares: Sequence[float], rest: float) -> float:
    """Bits of a part whose shares have formats of their own; the first that names it counts."""
    left, sum_of_bits = 1.0, 0.0
    for each, share in zip(bits, shares, strict=True):
        named = min(left, share)
        left, sum_of_bits = left - named, sum_of_bits + named * each
    return sum_of_bits + left * rest


def _is_rest(group: Described) -> bool:
    return "Linear" in group.targets


def _bits(group: Described) -> float:
    form = weight_format(with_group(FORMATS.get(group.method, ""), group.group))
    return float(form.bits.typical) if form else KEPT_BITS
