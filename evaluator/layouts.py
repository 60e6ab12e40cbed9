"""Which GPUs exchange what under a plan, and over which links."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.link_costs import Fabric, Fabrics, Group, Wire, Wires
from evaluator.plans import Plan


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


@dataclass(frozen=True, slots=True)
class Links:
    """The links of a rental: `wire` in a machine, `fabric` between machines. None is unknown."""

    wire: Wire | Wires | None = None
    fabric: Fabric | Fabrics | None = None


def group_of(layout: Layout, links: Links, ranks: int, inner: int) -> Group:
    """`ranks` GPUs that lie `inner` apart: how many machines they span."""
    per_machine = max(1, layout.gpus // layout.nodes)
    together = max(1, min(ranks, per_machine // inner))
    return Group(ranks, max(1, ranks // together), links.wire, links.fabric)
