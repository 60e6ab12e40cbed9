"""Topologies in few words, for tests of what is judged on pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluator.connections import Topology


def pairs_of(
    gpus: int, known: Mapping[tuple[int, int], str], numa: tuple[str, ...] = ()
) -> Topology:
    """A machine of which only the given pairs were seen."""

    def cell(one: int, to: int) -> str | None:
        return "X" if one == to else known.get((min(one, to), max(one, to)))

    rows = tuple(tuple(cell(one, to) for to in range(gpus)) for one in range(gpus))
    return Topology(gpus=gpus, matrix=rows, numa=numa)


def uniform(gpus: int, word: str) -> Topology:
    """Every pair of one class."""
    return pairs_of(gpus, {(a, b): word for a in range(gpus) for b in range(a + 1, gpus)})


def joined(
    inside: str,
    near: str,
    far: str,
    islands: Sequence[tuple[int, ...]],
    numa: tuple[str, ...],
) -> Topology:
    """Islands of one class; other pairs are `near` on one NUMA node and `far` between two."""
    known = {}
    for a in range(len(numa)):
        for b in range(a + 1, len(numa)):
            together = any(a in island and b in island for island in islands)
            known[a, b] = inside if together else near if numa[a] == numa[b] else far
    return pairs_of(len(numa), known, numa)
