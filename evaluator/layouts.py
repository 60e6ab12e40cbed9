"""Which GPUs exchange what under a plan, and over which links."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.link_costs import Fabric, Group, Wire
from evaluator.plans import Plan


@dataclass(frozen=True, slots=True)
class Layout:
    """Degrees of a plan on `nodes` machines. Tensor ranks are neighbours, then context, data.

    virtual   stages that each pipeline rank holds in turn
    experts   ranks that share one set of experts
    """

    tensor: int = 1
    stages: int = 1
    data: int = 1
    shard: int = 1
    context: int = 1
    experts: int = 1
    virtual: int | None = None
    replicas: int = 1
    nodes: int = 1

    @property
    def gpus(self) -> int:
        return self.tensor * self.stages * self.data * self.context * self.replicas

    @property
    def engine_gpus(self) -> int:
        """GPUs of one copy of a serving engine."""
        return self.tensor * self.stages


def layout_of(plan: Plan) -> Layout:
    return Layout(
        tensor=plan.tp,
        stages=plan.pp,
        data=plan.dp,
        shard=plan.shard,
        replicas=plan.replicas,
        nodes=plan.nodes,
    )


@dataclass(frozen=True, slots=True)
class Links:
    """The links of a rental: `wire` in a machine, `fabric` between machines. None is unknown."""

    wire: Wire | None = None
    fabric: Fabric | None = None


def group_of(layout: Layout, links: Links, ranks: int, inner: int) -> Group:
    """`ranks` GPUs that lie `inner` apart: how many machines they span."""
    per_machine = max(1, layout.gpus // layout.nodes)
    together = max(1, min(ranks, per_machine // inner))
    return Group(ranks, max(1, ranks // together), links.wire, links.fabric)
