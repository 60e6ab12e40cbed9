"""One row of a collective benchmark as a fact: what was run on what, and what came of it.

Bandwidths are GB/s (10^9). Bus bandwidth is algorithm bandwidth times a factor of the operation:
nccl-tests, doc/PERFORMANCE.md, "Bus bandwidth".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evaluator.evidence.readings import BenchmarkRow

TOLERANCE = 0.02
"""The two bandwidths are printed with two decimals each, and sources round them again."""

BUS_FACTORS: Mapping[str, Callable[[int], Fraction]] = {
    "all_reduce": lambda ranks: Fraction(2 * (ranks - 1), ranks),
    "all_gather": lambda ranks: Fraction(ranks - 1, ranks),
    "reduce_scatter": lambda ranks: Fraction(ranks - 1, ranks),
    "alltoall": lambda ranks: Fraction(ranks - 1, ranks),
    "gather": lambda ranks: Fraction(ranks - 1, ranks),
    "scatter": lambda ranks: Fraction(ranks - 1, ranks),
    "broadcast": lambda ranks: Fraction(1),
    "reduce": lambda ranks: Fraction(1),
    "sendrecv": lambda ranks: Fraction(1),
}
"""For broadcast, reduce and sendrecv over two ranks or more; one rank moves nothing."""


class InvalidBenchmark(ValueError):
    """A row that cannot be a fact: the field, what was read, and what was expected."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """None is unknown. `healthy` is the source's word: False where it reports a fault.

    `link` is the class inside a machine, `inter_node` the network's name in the source's words.
    """

    operation: str
    busbw_gb_s: float
    size_bytes: int | None = None
    algbw_gb_s: float | None = None
    gpu: str | None = None
    ranks: int | None = None
    nodes: int | None = None
    link: str | None = None
    inter_node: str | None = None
    nccl_version: str | None = None
    algorithm: str | None = None
    healthy: bool | None = None

    def __post_init__(self) -> None:
        _expect("op", self.operation in BUS_FACTORS, self.operation, ", ".join(BUS_FACTORS))
        for name, figure in (("busbw_gbs", self.busbw_gb_s), ("algbw_gbs", self.algbw_gb_s)):
            fits = figure is None or (_is_number(figure) and 0 <= figure < 1e9)
            _expect(name, fits, figure, "GB/s, 0 or more")
        for name, count in (
            ("size_bytes", self.size_bytes),
            ("gpus", self.ranks),
            ("nodes", self.nodes),
        ):
            fits = count is None or (_is_whole(count) and count > 0)
            _expect(name, fits, count, "a whole number above 0")
        single = self.ranks == 1
        _expect("busbw_gbs", not single or self.busbw_gb_s == 0, self.busbw_gb_s, "0 for one rank")


def _expect(field: str, fits: bool, read: object, expected: str) -> None:
    if not fits:
        raise InvalidBenchmark(f"{field} is {str(read)[:80]!r}, expected {expected}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


WORDS = {
    "op": "operation",
    "size_bytes": "size_bytes",
    "algbw_gbs": "algbw_gb_s",
    "busbw_gbs": "busbw_gb_s",
    "gpu": "gpu",
    "gpus": "ranks",
    "nodes": "nodes",
    "link": "link",
    "inter_node": "inter_node",
    "nccl_version": "nccl_version",
    "algorithm": "algorithm",
    "healthy": "healthy",
}
"""The key of a stored object for each attribute."""


def from_words(stored: Mapping[str, Any]) -> Benchmark:
    """A stored object, or a row of a case file. Raises InvalidBenchmark."""
    if not _is_number(stored.get("busbw_gbs")):
        raise InvalidBenchmark(f"busbw_gbs is {stored.get('busbw_gbs')!r}, expected a number")
    values: dict[str, Any] = {attribute: stored.get(key) for key, attribute in WORDS.items()}
    return Benchmark(**values)


def to_words(benchmark: Benchmark) -> dict[str, Any]:
    """The object to store. `from_words` gives the same benchmark back."""
    return {key: getattr(benchmark, attribute) for key, attribute in WORDS.items()}


def from_row(row: BenchmarkRow, ranks: int | None) -> Benchmark:
    """A row that a reader found; its better column counts. Raises InvalidBenchmark."""
    in_place = row.busbw_in_place_gb_s is not None and row.busbw_in_place_gb_s > row.busbw_gb_s
    algbw = row.algbw_in_place_gb_s if in_place else row.algbw_gb_s
    size = row.size_bytes or None
    return Benchmark(row.operation, row.best_busbw_gb_s, size, algbw, ranks=ranks)


def implied_busbw_gb_s(benchmark: Benchmark) -> float | None:
    """Bus bandwidth by the factor of the operation; None where a part of it is unknown."""
    if benchmark.algbw_gb_s is None or benchmark.ranks is None:
        return None
    if benchmark.ranks == 1:
        return 0.0
    return benchmark.algbw_gb_s * float(BUS_FACTORS[benchmark.operation](benchmark.ranks))


def consistent(benchmark: Benchmark) -> bool | None:
    """Whether busbw follows from algbw within two percent; None where it cannot be told."""
    implied = implied_busbw_gb_s(benchmark)
    if implied is None:
        return None
    return abs(implied - benchmark.busbw_gb_s) <= TOLERANCE * max(implied, benchmark.busbw_gb_s)
