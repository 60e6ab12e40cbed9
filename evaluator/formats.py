"""How many bits a weight or a cache element takes in each format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from evaluator.gguf import GGUF_MIXES, Mix
from evaluator.ranges import Range, exact


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """`bits` per weight of the quantised matrices, scales included; the rest keeps 16 bits.

    `whole` is True where the figure is an average over every tensor of the model, `experts_only`
    where only expert matrices are quantised. `mapped` is True where an engine holds the file as it
    is, without tensors of its own beside it. `group` weights share a scale that cannot be divided.
    Of a `mix` the ends of the model take other bits than its layers.
    """

    bits: Range
    source: str
    whole: bool = False
    experts_only: bool = False
    mapped: bool = False
    group: int = 1
    mix: Mix | None = None


_SCALED_4BIT = "4 bits + 16-bit scale (and zero point) per group of 128, or of 32"

WEIGHT_FORMATS: Mapping[str, WeightFormat] = {
    "bf16": WeightFormat(exact(16), "2 bytes per weight", whole=True),
    "fp16": WeightFormat(exact(16), "2 bytes per weight", whole=True),
    "fp32": WeightFormat(exact(32), "4 bytes per weight", whole=True),
    "fp8": WeightFormat(Range(8, 8.01, 8.03), "1 byte + scales per channel or block"),
    "int8": WeightFormat(Range(8, 8.01, 8.03), "1 byte + scales per channel"),
    "awq-int4": WeightFormat(Range(4.125, 4.16, 4.65), _SCALED_4BIT, group=128),
    "gptq-int4": WeightFormat(Range(4.125, 4.16, 4.65), _SCALED_4BIT, group=128),
    "gptq-int8": WeightFormat(
        Range(8.125, 8.19, 8.28), "8 bits + scale and zero point per group of 128", group=128
    ),
    "int4": WeightFormat(Range(4.125, 4.5, 4.65), _SCALED_4BIT),
    "bnb-nf4": WeightFormat(
        Range(4.127, 4.5, 4.95),
        "4 bits + fp32 scale per 64, or 8-bit scales twice quantised; dynamic mixes a tenth more",
    ),
    "mxfp4": WeightFormat(exact(4.25), "4 bits + 8-bit scale per 32", experts_only=True),
    "nvfp4": WeightFormat(
        Range(4.5, 4.5, 4.52),
        "4 bits + 8-bit scale per 16 + one fp32 scale per tensor, under 0.02 bits",
    ),
}

GGUF_PLAIN: Mapping[str, float] = {"F32": 32.0, "F16": 16.0, "BF16": 16.0, "Q8_0": 8.5}
"""Bits per weight of files with every matrix alike."""
GGUF_MXFP4 = 4.34
"""Mean bits per weight of MXFP4_MOE: experts at 4.25, all else at 8.5 (llama.cpp#15253)."""

GGUF_NAMES = (*GGUF_PLAIN, "MXFP4_MOE", *GGUF_MIXES)
GGUF_SPREAD = Range(0.96, 1.0, 1.07)
"""The mix of the layers depends on the model: Q4_K_M is 4.84 to 4.94 in most and 5.22 in one."""

KV_BYTES: Mapping[str, float] = {
    "auto": 2,
    "bf16": 2,
    "fp16": 2,
    "fp32": 4,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "int8": 1,
    "nvfp4": 9 / 16,
    "q8_0": 34 / 32,
    "q5_1": 24 / 32,
    "q5_0": 22 / 32,
    "q4_1": 20 / 32,
    "q4_0": 18 / 32,
    "iq4_nl": 18 / 32,
}
"""Bytes per cache element. Those of llama.cpp are blocks of 32 with one or two 16-bit numbers,
those of NVFP4 blocks of 16 with one of 8 bits."""


GROUPED: Mapping[str, int] = {"awq-int4": 4, "gptq-int4": 4, "gptq-int8": 8, "int4": 4, "int8": 8}
"""Bits of methods whose scales may stand for groups of weights."""
USUAL_GROUPS = (32, 64, 128)
PER_CHANNEL = "channel"
LARGEST_GROUP = 65_536
SHORTEST_COLUMN = 1024
"""The inner size of the narrowest matrices that are quantised: with one group for each column, 20
bits per column come to at most 0.02 bits a weight."""


def weight_format(name: str) -> WeightFormat | None:
    """None for a format that is not known.

    "gguf:Q4_K_M" names a GGUF mix, "gptq-int4:g32" groups of 32 weights, "gptq-int4:channel" one
    group for each column and "mixed:5.2" the mean bits of a checkpoint of several formats.
    """
    if name.startswith("mixed:"):
        return _mixed(name.removeprefix("mixed:"))
    if name.startswith("gguf:"):
        return _gguf(name.removeprefix("gguf:"))
    method, _, group = name.partition(":")
    return _grouped(method, group) if group else WEIGHT_FORMATS.get(name)


def with_group(method: str, group: int | None) -> str:
    """The name of a format with groups of a size; -1 is one group for each column."""
    if group is None or method not in GROUPED:
        return method
    return f"{method}:{PER_CHANNEL if group == -1 else f'g{group}'}"


def _grouped(method: str, group: str) -> WeightFormat | None:
    """For each group a scale of 16 bits and, unless kernels drop it, a zero point."""
    bits = GROUPED.get(method)
    if bits is None:
        return None
    if group == PER_CHANNEL:
        ends = Range(bits, bits + 0.01, bits + (16 + bits) / SHORTEST_COLUMN)
        return WeightFormat(ends, f"{bits} bits + 16-bit scale and zero point per column")
    size = int(group[1:]) if group[:1] == "g" and group[1:].isdecimal() and len(group) < 7 else 0
    if not (0 < size <= LARGEST_GROUP and group.isascii()):
        return None
    scaled = bits + (16 + bits) / size
    source = f"{bits} bits + 16-bit scale and {bits}-bit zero point per group of {size}"
    return WeightFormat(Range(bits + 16 / size, scaled, scaled + INDEX_BITS), source, group=size)


MIXED_SPREAD = Range(0.97, 1.0, 1.05)
"""Ranks hold the formats of a mixed checkpoint in other shares than the whole model."""


def mixed_format(bits: float) -> str:
    """The name of a mix of so many bits a weight on average."""
    return f"mixed:{bits:.3f}"


def _mixed(bits: str) -> WeightFormat | None:
    if not re.fullmatch(r"[0-9]{1,2}\.[0-9]{3}", bits):
        return None
    return WeightFormat(MIXED_SPREAD.scaled(float(bits)), "mean of the checkpoint's config_groups")


INDEX_BITS = 0.03
"""A 32-bit group index for each row of a matrix of 1,024 columns or more (GPTQ's `g_idx`)."""


def _gguf(name: str) -> WeightFormat | None:
    if name in GGUF_PLAIN:
        return _mapped(exact(GGUF_PLAIN[name]))
    if name == "MXFP4_MOE":
        return _mapped(GGUF_SPREAD.scaled(GGUF_MXFP4))
    mix = GGUF_MIXES.get(name)
    return _mapped(GGUF_SPREAD.scaled(mix.mean), mix) if mix else None


def _mapped(bits: Range, mix: Mix | None = None) -> WeightFormat:
    return WeightFormat(bits, "published bits per weight", whole=True, mapped=True, mix=mix)


def weight_format_names() -> tuple[str, ...]:
    sized = (f"{method}:g{size}" for method in GROUPED for size in USUAL_GROUPS)
    columns = (f"{method}:{PER_CHANNEL}" for method in GROUPED)
    return (*WEIGHT_FORMATS, *sized, *columns, *(f"gguf:{name}" for name in GGUF_NAMES))
