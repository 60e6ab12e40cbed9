"""The best assignment of a plan's groups to the GPUs of a machine whose pairs were seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from evaluator.connections import (
    GPU_FAULTS,
    NOT_SEEN,
    Topology,
    is_fabric,
    links_in,
    rank_of,
)
from evaluator.pair_rates import slow_pairs

MOST_STEPS = 5_000
"""Partial groups tried per class. Real machines take a few dozen; beyond this the next class is
taken, so a search that is given up can only make the answer more cautious."""

Group = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Assignment:
    """Disjoint groups of GPU indices. `worst` is the pair that sets their pace."""

    groups: tuple[Group, ...]
    worst: tuple[int, int]

    @property
    def words(self) -> str:
        return " and ".join(f"GPUs {', '.join(map(str, group))}" for group in self.groups)

    def joins(self, pair: tuple[int, int]) -> bool:
        """Whether both GPUs of a pair lie in one group."""
        return any(set(pair) <= set(group) for group in self.groups)

    @property
    def members(self) -> frozenset[int]:
        return frozenset(gpu for group in self.groups for gpu in group)


@lru_cache(maxsize=2048)
def assign(topology: Topology, size: int, count: int = 1) -> Assignment | None:
    """`count` disjoint groups of `size` GPUs whose worst pair is as good as can be had.

    GPUs with a fault and pairs that are too slow are left out where enough others are as well
    joined. None where the machine has too few GPUs.
    """
    if size < 2 or size * count > topology.gpus:
        return None
    cost = _costs(topology)
    for limit in sorted(set(cost.values())):
        fast = frozenset(pair for pair in cost if cost[pair] <= limit)
        if groups := _Search(size, count, fast).fill((), (), tuple(range(topology.gpus))):
            return _assignment(groups, cost)
    return _assignment(tuple(_in_order(size, count)), cost)


def _costs(topology: Topology) -> dict[tuple[int, int], tuple[bool, int, int]]:
    """A fault weighs most, then the class, then fewer links between the two."""
    slow = {one.pair for one in slow_pairs(topology)}
    faulty = {gpu for kind in GPU_FAULTS for fault in topology.of_kind(kind) for gpu in fault.gpus}
    return {
        pair: (pair in slow or bool(faulty & set(pair)), *_class_cost(topology.between(*pair)))
        for pair in topology.pairs
    }


def _class_cost(word: str | None) -> tuple[int, int]:
    rank = rank_of(word)
    links = links_in(word)
    return (rank, -links) if rank < NOT_SEEN and is_fabric(word) else (rank, 0)


def _assignment(
    groups: tuple[Group, ...], cost: dict[tuple[int, int], tuple[bool, int, int]]
) -> Assignment:
    pairs = [pair for group in groups for pair in combinations(group, 2)]
    return Assignment(groups, max(pairs, key=lambda pair: cost[pair]))


def _in_order(size: int, count: int) -> Iterator[Group]:
    return (tuple(range(at * size, (at + 1) * size)) for at in range(count))


@dataclass
class _Search:
    """Disjoint groups all of whose pairs are in `fast`."""

    size: int
    count: int
    fast: frozenset[tuple[int, int]]
    steps: int = 0

    def fill(self, done: tuple[Group, ...], group: Group, left: Group) -> tuple[Group, ...]:
        """Extends the open group by each GPU that fits it, or gives up after MOST_STEPS."""
        self.steps += 1
        if len(group) == self.size:
            done, group = (*done, group), ()
        if len(done) == self.count:
            return done
        after = group[-1] if group else done[-1][0] if done else -1
        for gpu in left:
            if self.steps > MOST_STEPS:
                return ()
            if gpu > after and all((other, gpu) in self.fast for other in group):
                rest = tuple(one for one in left if one != gpu)
                if found := self.fill(done, (*group, gpu), rest):
                    return found
        return ()
