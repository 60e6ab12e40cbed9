"""How many bits the tensors of a GGUF mix take: layers, embedding and output head differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MEASURED_PARAMS, MEASURED_TABLE = 8_030_261_248, 128_256 * 4_096
"""Llama 3.1 8B, of which the means below were published: all parameters, and those of its embedding
(and as many of its head)."""

BLOCK_BITS: Mapping[str, float] = {
    "Q2_K": 2.625,
    "Q3_K": 3.4375,
    "IQ3_S": 3.4375,
    "IQ4_XS": 4.25,
    "Q4": 4.5,
    "Q4_K": 4.5,
    "Q4_1": 5.0,
    "Q5": 5.5,
    "Q5_K": 5.5,
    "Q5_1": 6.0,
    "Q6_K": 6.5625,
}
"""Bits of a block over its weights (ggml-common.h). `Q4` is Q4_0 and IQ4_NL, `Q5` is Q5_0."""

WIDER_BITS: Mapping[str, float] = {
    **dict.fromkeys(("Q2_K", "Q3_K", "IQ3_S", "IQ4_XS"), 4.5),
    "Q4_K": 5.5,
    "Q5_K": 6.0,
    "Q6_K": 8.5,
}
"""Blocks of 256 weights do not divide a row of another length: the block of 32 that stands in for
each (src/llama-quant.cpp)."""
LONG_BLOCK = 256
DOWN_SHARE = 1 / 4
"""Of the weights of a layer those whose rows are as long as the MLP is wide, and keep their blocks:
a third of a gated MLP, and attention takes as much as a third of it."""


@dataclass(frozen=True, slots=True)
class Mix:
    """`mean` bits per weight over all tensors of an 8B, and the bits of a weight of the embedding
    and of the output head. A table that is both is kept as a head is. `wider_...` are those of a
    model whose rows no long block divides; `even` where most layers take the block of the table."""

    mean: float
    table: float
    head: float
    wider_table: float
    wider_head: float
    even: bool = True

    @property
    def wider_layers(self) -> float:
        """Mean bits in the layers of a model whose width is no multiple of a long block."""
        base = self.table if self.even else self.layers
        return self.layers * (DOWN_SHARE + (1 - DOWN_SHARE) * self.wider_table / base)

    @property
    def layers(self) -> float:
        """Mean bits in the layers: what the two ends leave of the published mean."""
        ends = MEASURED_TABLE * (self.table + self.head)
        return (self.mean * MEASURED_PARAMS - ends) / (MEASURED_PARAMS - 2 * MEASURED_TABLE)


def _published(mean: float, table: str, head: str = "Q6_K") -> Mix:
    bits, wider = (BLOCK_BITS[table], BLOCK_BITS[head]), (_wider(table), _wider(head))
    return Mix(mean, *bits, *wider, even=table in ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q4"))


def _wider(block: str) -> float:
    return WIDER_BITS.get(block, BLOCK_BITS[block])


def _uniform(block: str) -> Mix:
    """Every matrix alike but the head, so that the mean over the 8B follows."""
    bits, head = BLOCK_BITS[block], BLOCK_BITS["Q6_K"]
    mean = bits + (head - bits) * MEASURED_TABLE / MEASURED_PARAMS
    return Mix(mean, bits, head, _wider(block), _wider("Q6_K"))


GGUF_MIXES: Mapping[str, Mix] = {
    "Q6_K": _uniform("Q6_K"),
    "Q5_1": _uniform("Q5_1"),
    "Q5_K_M": _published(5.7036, "Q5_K"),
    "Q5_K_S": _published(5.5704, "Q5_K"),
    "Q5_0": _uniform("Q5"),
    "Q4_1": _uniform("Q4_1"),
    "Q4_K_M": _published(4.8944, "Q4_K"),
    "Q4_K_S": _published(4.6672, "Q4_K"),
    "Q4_0": _uniform("Q4"),
    "IQ4_NL": _published(4.6818, "Q4"),
    "IQ4_XS": _published(4.4597, "IQ4_XS"),
    "Q3_K_L": _published(4.2979, "Q3_K"),
    "Q3_K_M": _published(3.9960, "Q3_K"),
    "Q3_K_S": _published(3.6429, "Q3_K"),
    "IQ3_M": _published(3.7628, "IQ3_S"),
    "IQ3_S": _published(3.6606, "IQ3_S"),
    "IQ3_XS": _published(3.4977, "IQ3_S"),
    "IQ3_XXS": _published(3.2548, "IQ3_S", "Q5_K"),
    "Q2_K": _published(3.1593, "Q2_K"),
    "Q2_K_S": _published(2.9697, "Q2_K"),
    "IQ2_M": _published(2.9294, "IQ3_S", "Q5_K"),
    "IQ2_S": _published(2.7403, "IQ3_S", "Q5_K"),
    "IQ2_XS": _published(2.5882, "Q2_K", "Q5_K"),
    "IQ2_XXS": _published(2.3824, "Q2_K", "Q5_K"),
    "IQ1_M": _published(2.1460, "Q2_K", "Q5_K"),
    "IQ1_S": _published(2.0042, "Q2_K", "Q5_K"),
}
"""Means of llama.cpp, tools/quantize/README.md (Q3_K_M by its file, 4.02 GB); which block embedding
and head take: src/llama-quant.cpp. A small model with a large vocabulary takes more than the mean
says: Llama 3.2 1B as Q4_K_M 5.2 bits."""
