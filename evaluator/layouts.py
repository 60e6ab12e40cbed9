"""Which GPUs exchange what under a plan, and over which links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from evaluator.link_costs import Fabric, Fabrics, Group, Wire, Wires
from evaluator.plans import Plan
from evaluator.ranges import larger, smaller


@dataclass(frozen=True, slots=True)
class Layout:
    """Degrees of a plan on `nodes` machines. Tensor ranks are neighbours, then context, data.

    virtual   stages that each pipeline rank holds in turn
    shard     ranks that share one copy of the parameters, context ranks among them
    experts   ranks that share one set of experts
    within    ranks that share one expert; None takes the tensor ranks

    A serving engine with `data` above 1 reads different requests on each of these ranks and shares
    its experts among them.
    """

    tensor: int = 1
    stages: int = 1
    data: int = 1
    shard: int = 1
    context: int = 1
    experts: int = 1
    within: int | None = None
    virtual: int | None = None
    replicas: int = 1
    nodes: int = 1

    @property
    def gpus(self) -> int:
        return self.tensor * self.stages * self.data * self.context * self.replicas

    @property
    def engine_gpus(self) -> int:
        """GPUs of one copy of a serving engine."""
        return self.tensor * self.stages * self.data * self.context

    @property
    def engine_machines(self) -> int:
        """Machines over which one copy of a serving engine lies."""
        return max(1, self.nodes // self.replicas)

    @property
    def turns(self) -> int:
        """Stages that each pipeline rank is known to hold in turn; 0 where that is left open."""
        return 0 if self.virtual is None else self.virtual

    @property
    def expert_inner(self) -> int:
        """How far the ranks that share a set of experts lie apart."""
        return self.tensor if self.within is None else self.within


def layout_of(plan: Plan) -> Layout:
    return Layout(
        tensor=plan.tp,
        stages=plan.pp,
        data=plan.dp,
        shard=plan.shard,
        context=plan.cp,
        experts=plan.ep,
        within=plan.etp if plan.ep > 1 else None,
        virtual=plan.virtual if plan.pp > 1 else None,
        replicas=plan.replicas,
        nodes=plan.nodes,
    )


DEGREES = ("tensor", "stages", "data", "shard", "context", "experts", "replicas", "nodes")


def layouts_of(plans: Sequence[Plan], which: Any) -> Layout:
    """One layout for all elements: every degree is a column, by the number of an element's plan.

    What a plan leaves open is written out: the ranks of an expert, and 0 turns of its stages.
    """
    table = np.ones((len(plans), len(DEGREES) + 2), dtype=np.int64)
    for number in np.flatnonzero(np.bincount(which)).tolist():
        table[number] = _degrees_of(plans[number])
    *degrees, within, virtual = table.T[:, which]
    return Layout(**dict(zip(DEGREES, degrees, strict=True)), within=within, virtual=virtual)


@lru_cache(maxsize=65536)
def _degrees_of(plan: Plan) -> tuple[int, ...]:
    layout = layout_of(plan)
    named = [getattr(layout, name) for name in DEGREES]
    return (*named, layout.expert_inner, layout.turns)


def layout_at(layout: Layout, rows: Any) -> Layout:
    """Of some of the elements."""
    return Layout(*(getattr(layout, name)[rows] for name in Layout.__slots__))


@dataclass(frozen=True, slots=True)
class Links:
    """The links of a rental: `wire` in a machine, `fabric` between machines. None is unknown."""

    wire: Wire | Wires | None = None
    fabric: Fabric | Fabrics | None = None


def group_of(layout: Layout, links: Links, ranks: int, inner: int) -> Group:
    """`ranks` GPUs that lie `inner` apart: how many machines they span."""
    per_machine = larger(1, layout.gpus // layout.nodes)
    together = larger(1, smaller(ranks, per_machine // inner))
    return Group(ranks, larger(1, ranks // together), links.wire, links.fabric)
