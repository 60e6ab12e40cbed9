"""What benchmarks of single pairs prove: the pair itself, and a ceiling for each group with it.

They never make a word better: copies between two GPUs are no collective of many. Rates are bytes/s
in one direction, with peer access enabled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from statistics import median

from evaluator.connections import Topology, is_fabric, links_in
from evaluator.units import GB

LEAST_NVLINK = 14_062_500_000
"""One NVLink of GA102, one direction (its whitepaper v2): the slowest there is since 2018."""
FAR_BELOW = 0.5
"""Healthy pairs of one class lie within a tenth of each other; x8 for x16 halves a rate."""
ENOUGH_ALIKE = 3
"""Pairs of one class below which none of them is what is usual."""

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SlowPair:
    """`usual` is what pairs of its class reach, on this machine or anywhere."""

    pair: Pair
    bytes_per_s: float
    usual: float

    @property
    def words(self) -> str:
        one, other = self.pair
        return f"GPUs {one} and {other} reach {_gb(self.bytes_per_s)} of {_gb(self.usual)} GB/s"


def _gb(rate: float) -> str:
    return f"{rate / GB:.3g}"


def one_way(topology: Topology, pair: Pair) -> float | None:
    """The slower direction of a pair. None where neither was measured, or only a part of the GPUs
    was: its numbers are its own.
    """
    rows = topology.pair_rates
    one, other = pair
    if len(rows) != topology.gpus:
        return None
    known = [rate for rate in (rows[one][other], rows[other][one]) if rate is not None]
    return min(known) * GB if known else None


@lru_cache(maxsize=2048)
def slow_pairs(topology: Topology) -> tuple[SlowPair, ...]:
    """Pairs far below what their class of link gives."""
    if not topology.pair_rates:
        return ()
    by_class: dict[str | None, dict[Pair, float]] = {}
    for pair in topology.pairs:
        if rate := one_way(topology, pair):
            by_class.setdefault(topology.between(*pair), {})[pair] = rate
    return tuple(
        SlowPair(pair, rate, usual)
        for word, rates in by_class.items()
        for pair, rate in sorted(rates.items())
        if rate < FAR_BELOW * (usual := _usual(word, list(rates.values())))
    )


def _usual(word: str | None, rates: Sequence[float]) -> float:
    """Of the class on this machine, and at least what so many NVLinks carry; 0 where not known."""
    seen = median(rates) if word and len(rates) >= ENOUGH_ALIKE else 0.0
    return max(seen, links_in(word) * LEAST_NVLINK)


def told_rates(topology: Topology) -> tuple[str, ...]:
    """What was measured of single pairs, in words: from the slowest to the fastest, and the slow.

    Of a part of the machine too, whose numbers are its own.
    """
    rows = enumerate(topology.pair_rates)
    known = [rate for at, row in rows for to, rate in enumerate(row) if rate and to != at]
    if not known:
        return ()
    span = f"{min(known):.3g} to {max(known):.3g}" if min(known) < max(known) else f"{known[0]:.3g}"
    return (f"Pairs reach {span} GB/s one way", *(one.words for one in slow_pairs(topology)))


@dataclass(frozen=True, slots=True)
class Ceiling:
    """No collective of a group can move more than this through one of its GPUs."""

    gpu: int
    bytes_per_s: float

    @property
    def words(self) -> str:
        return f"GPU {self.gpu} moves {_gb(self.bytes_per_s)} GB/s at most to the others"


def ceiling(topology: Topology, group: Sequence[int]) -> Ceiling | None:
    """The narrowest GPU of a group. None where none of them was measured against all others.

    Links of a fabric carry side by side; all roads over the host leave by one slot.
    """
    found = [Ceiling(gpu, rate) for gpu in group if (rate := _out_of(topology, gpu, group))]
    return min(found, key=lambda one: one.bytes_per_s, default=None)


def _out_of(topology: Topology, gpu: int, group: Sequence[int]) -> float | None:
    pairs = [pair for pair in combinations(sorted(group), 2) if gpu in pair]
    rates = [rate for pair in pairs if (rate := one_way(topology, pair))]
    if not rates or len(rates) < len(pairs):
        return None
    words = [topology.between(*pair) for pair in pairs]
    side_by_side = not all(words) or any(map(is_fabric, words))
    return sum(rates) if side_by_side else max(rates)
