"""What an engine may fill of a card: a fraction, or all but what it leaves by the card's size."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from evaluator.ranges import Number, choose, larger
from evaluator.units import GIB, MIB


@dataclass(frozen=True, slots=True)
class Tier:
    """What is left of cards that report less than `below` bytes, on each of them.

    Either `fixed` bytes and `each_rank` for every GPU of a replica, or, where `step` is above 0,
    what follows from that many tokens of a prefill step and a graph of `graph` sequences, of
    `graph_of_four` with four tensor ranks and more.
    """

    below: float = inf
    fixed: float = 0.0
    each_rank: float = 0.0
    step: int = 0
    graph: int = 0
    graph_of_four: int = 0


METADATA, EACH_TOKEN, EACH_SEQUENCE, EACH_RANK = 512 * MIB, 1.5 * MIB, 2 * MIB, 128 * MIB
OF_DATA_RANK, OF_LARGE_GRAPH, LARGE_GRAPH = 3 * MIB, 1.5 * MIB, 300
LEAST_STEP = 2048
LARGE_CARD = 60 * GIB
"""SGLang's rule of 0.5.3, python/sglang/srt/server_args.py: bytes for a token of a step, a sequence
of the largest graph, a GPU of a replica; more for each data-parallel rank; cards above 60 GiB leave
at least a number of bytes."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Tiers in the order of their cards. `draft` and `data` are left besides for a draft model and
    for attention of data-parallel ranks, `least` at least by large cards."""

    tiers: tuple[Tier, ...]
    draft: float = 0.0
    data: float = 0.0
    least: float = 0.0


@dataclass(frozen=True, slots=True)
class Left:
    """Bytes that stay free on a card, by its size: `bytes[i]` below `below[i]`, ascending."""

    below: tuple[float, ...]
    bytes: tuple[Number, ...]

    def of(self, usable: Number) -> Number:
        left = self.bytes[-1]
        for below, each in zip(self.below[-2::-1], self.bytes[-2::-1], strict=True):
            left = choose(usable < below, each, left)
        return left

    def asks(self, needed: Number) -> Number:
        """The smallest card on which so many bytes and what it leaves have room."""
        starts = (0.0, *self.below[:-1])
        asked = larger(needed + self.bytes[-1], starts[-1])
        for below, each, start in zip(
            self.below[-2::-1], self.bytes[-2::-1], starts[-2::-1], strict=True
        ):
            here = larger(needed + each, start)
            asked = choose(here < below, here, asked)
        return asked


@dataclass(frozen=True, slots=True)
class Allowance:
    """`fraction` of a card may be filled, or where `left` is known all but that. `begun` bytes are
    gone before the engine looks at the card."""

    fraction: Number = 1.0
    left: Left | None = None
    begun: Number = 0

    def of(self, usable: Number) -> Number:
        """Bytes that may be filled on a card that reports `usable`."""
        seen = usable - self.begun
        return seen * self.fraction if self.left is None else seen - self.left.of(usable)

    def asks(self, needed: Number) -> Number:
        """What a card has to report for so many bytes."""
        if self.left is None:
            return needed * (1 / self.fraction) + self.begun
        return self.left.asks(needed + self.begun)

    @property
    def words(self) -> str:
        """What turns a need into what a card has to report; of one plan, not of columns."""
        if self.left is not None:
            return " + what the engine leaves free on a card of that size"
        share = "" if self.fraction == 1 else f" ÷ {self.fraction:g}"
        return f"{share} + {self.begun / GIB:.1f} GiB in use before" if self.begun else share


WHOLE = Allowance()


def left_by(
    rule: Rule, tensor: Number, ranks: Number, data: Number, *, step: int | None, draft: bool
) -> Left:
    """What the rule leaves under a plan of so many tensor ranks, GPUs of a replica and data ranks.

    `step` is a stated number of tokens of one prefill step.
    """
    more = rule.draft * draft + rule.data * (data > 1)
    sizes = tuple(_of_tier(rule, tier, (tensor, ranks, data), step) + more for tier in rule.tiers)
    return Left(tuple(tier.below for tier in rule.tiers), sizes)


def _of_tier(
    rule: Rule, tier: Tier, degrees: tuple[Number, Number, Number], step: int | None
) -> Any:
    tensor, ranks, data = degrees
    if not tier.step:
        return tier.fixed + tier.each_rank * ranks
    graph = choose(tensor >= 4, tier.graph_of_four or tier.graph, tier.graph)
    of_data = OF_DATA_RANK + OF_LARGE_GRAPH * np.asarray(graph > LARGE_GRAPH)
    size = METADATA + max(step or tier.step, LEAST_STEP) * EACH_TOKEN + graph * EACH_SEQUENCE
    size = size + ranks * EACH_RANK + choose(data > 1, graph * data * of_data, 0.0)
    return larger(size, rule.least) if tier.below > LARGE_CARD else size
