"""Where the ranks of a plan lie: on which GPU of which machine, with which layers.

Tensor ranks are neighbours, then context, data, stages; replicas lie outermost. So the groups that
exchange most stay inside one machine, and inside one island of it where islands are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from evaluator.partition import stages_of
from evaluator.plans import Plan
from evaluator.shapes import ModelShape


@dataclass(frozen=True, slots=True)
class Rank:
    """One working GPU, counted from 0 over all machines; `machine` counts them from 0 too.

    `first` and `layers` are the layers of its pipeline stage. Under interleaving they are the sum
    of all that the rank holds in turn.
    """

    gpu: int
    machine: int
    replica: int
    stage: int
    data: int
    context: int
    tensor: int
    first: int
    layers: int


@dataclass(frozen=True, slots=True)
class Placement:
    """`idle` are GPUs of the machines that no rank uses, by the same count as `Rank.gpu`."""

    ranks: tuple[Rank, ...]
    idle: tuple[int, ...] = ()

    @property
    def stages(self) -> tuple[tuple[int, int], ...]:
        """First layer and number of layers of each stage, in order."""
        found = {rank.stage: (rank.first, rank.layers) for rank in self.ranks}
        return tuple(found[stage] for stage in sorted(found))

    @property
    def uneven(self) -> bool:
        """Whether some stage holds more layers than another: the largest sets the pace."""
        return len({layers for _, layers in self.stages}) > 1


@lru_cache(maxsize=2048)
def placement_of(shape: ModelShape, plan: Plan, gpus_per_machine: int | None = None) -> Placement:
    """Ranks in the order of their GPUs. Without a count machines hold just what the plan uses."""
    working = -(-plan.gpus // plan.nodes)
    held = max(working, gpus_per_machine or working)
    stages = stages_of(shape, plan)
    ranks = []
    for index in range(plan.gpus):
        machine, place = divmod(index, working)
        tensor, rest = index % plan.tp, index // plan.tp
        context, rest = rest % plan.cp, rest // plan.cp
        data, rest = rest % plan.dp, rest // plan.dp
        stage, replica = rest % plan.pp, rest // plan.pp
        gpu, layers = machine * held + place, stages[stage]
        ranks.append(
            Rank(gpu, machine, replica, stage, data, context, tensor, layers.first, layers.layers)
        )
    used = {rank.gpu for rank in ranks}
    idle = tuple(gpu for gpu in range(plan.nodes * held) if gpu not in used)
    return Placement(tuple(ranks), idle)


def pace(layers: int, stages: int) -> float:
    """How much longer the largest stage takes than an even share of the layers: 1 where even."""
    if stages == 1 or not layers:
        return 1.0
    return -(-layers // stages) * stages / layers
