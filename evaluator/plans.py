"""Parallel plans: how a workload is divided over the GPUs of one rental, narrowest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from enum import IntEnum

from evaluator.findings import Code, Finding, finding
from evaluator.formats import weight_format
from evaluator.jobs import Workload
from evaluator.ranges import choose, larger
from evaluator.shapes import ModelShape


class Kind(IntEnum):
    """Families of plans. The order is the one in which plans of equal size are tried."""

    ONE_GPU = 0
    REPLICAS = 1
    DATA = 2
    SHARDED = 3
    TENSOR = 4
    PIPELINE = 5
    COMBINED = 6


REASONS = {
    Kind.ONE_GPU: "One GPU moves nothing between GPUs.",
    Kind.REPLICAS: "Replicas share the requests and exchange nothing.",
    Kind.DATA: "Data parallel exchanges gradients once per step.",
    Kind.SHARDED: "Sharding moves every parameter several times per step and hides part of it.",
    Kind.TENSOR: "Tensor parallel waits for the link inside every layer.",
    Kind.PIPELINE: "A pipeline bears a slow link, but adds idle time and shortens no request.",
    Kind.COMBINED: "A combination has the needs of each of its parts.",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """Degrees by name; an absent degree is 1. One optimizer copy spans `dp` ranks.

    tp        tensor parallel degree inside every layer
    pp        pipeline stages
    dp        data parallel ranks of a training job
    shard     ranks that share one copy of the parameters (ZeRO-3/FSDP); 1 is plain data parallel
    replicas  independent copies of a serving engine, which exchange nothing
    nodes     machines of one listing that the plan spans
    ep        ranks that share the experts of a layer; they are ranks of `tp` and `dp`, no more GPUs
    etp       tensor parallel degree inside an expert, where `ep` is above 1
    cp        ranks that share the tokens of a sequence
    virtual   stages of one pipeline rank (interleaved schedule)
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    shard: int = 1
    replicas: int = 1
    nodes: int = 1
    ep: int = 1
    etp: int = 1
    cp: int = 1
    virtual: int = 1

    @property
    def gpus(self) -> int:
        """GPUs that work, over all machines."""
        return self.tp * self.pp * self.dp * self.cp * self.replicas

    @property
    def expert_shard(self) -> int:
        """Ranks that share the states of one expert, where `shard` ranks share all the others."""
        shared = larger(1, self.shard * self.tp // (self.ep * self.etp))
        return choose(self.ep > 1, shared, self.shard)  # type: ignore[no-any-return]

    @property
    def exchanges(self) -> bool:
        """Whether any GPU sends anything to another. Replicas of one GPU do not."""
        return self.gpus > self.replicas

    @property
    def joins_machines(self) -> bool:
        """Whether one engine or job lies on several machines. Replicas each stay inside one."""
        return self.nodes > self.replicas

    @property
    def kind(self) -> Kind:
        split = [self.replicas > 1, self.dp > 1, self.tp > 1, self.pp > 1]
        if sum(split) != 1:
            return Kind.COMBINED if any(split) else Kind.ONE_GPU
        sharded = Kind.SHARDED if self.shard > 1 else Kind.DATA
        return (Kind.REPLICAS, sharded, Kind.TENSOR, Kind.PIPELINE)[split.index(True)]

    @property
    def key(self) -> str:
        """A stable name for addresses and stored rows, such as "tp4-pp2"."""
        named = [(item.name, getattr(self, item.name)) for item in fields(self)]
        return "-".join(f"{name}{degree}" for name, degree in named if degree > 1) or "one"

    @property
    def label(self) -> str:
        """The plan in words, such as "FSDP over 16 GPUs on 2 machines"."""
        inside = [f"TP {self.tp}"] if self.tp > 1 else []
        inside += [f"PP {self.pp}"] if self.pp > 1 else []
        if self.dp > 1:
            inside.append(_data_words(self, alone=not inside))
        words = " × ".join(inside) or "one GPU"
        if self.replicas > 1:
            words = f"{self.replicas} replicas" + (f" of {words}" if inside else "")
        return words + (f" on {self.nodes} machines" if self.nodes > 1 else "")

    @property
    def reason(self) -> str:
        """Why the plan stands where it does in the order of narrowness."""
        return REASONS[self.kind]


def _data_words(plan: Plan, *, alone: bool) -> str:
    if plan.shard == 1:
        return f"DP over {plan.dp} GPUs" if alone else f"DP {plan.dp}"
    if plan.shard == plan.dp:
        return f"FSDP over {plan.dp} GPUs" if alone else f"FSDP {plan.dp}"
    return f"FSDP {plan.shard} × DP {plan.dp // plan.shard}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A plan that the model or the batch does not allow. `finding` names the smallest change."""

    plan: Plan
    finding: Finding


@dataclass(frozen=True, slots=True)
class PlanSpace:
    """Legal plans, narrowest first, and the refused ones in the same order."""

    plans: tuple[Plan, ...]
    refused: tuple[Refusal, ...] = ()


def narrowness(plan: Plan) -> tuple[int, ...]:
    """Sort key: fewer GPUs, then fewer machines, then the family that asks least of the links."""
    return (plan.gpus, plan.nodes, plan.kind, plan.tp, plan.pp, plan.dp // plan.shard)


def plans_of(workload: Workload, gpus: int, machines: Iterable[int] = (1,)) -> PlanSpace:
    """Every plan for `gpus` GPUs in each of the given numbers of machines.

    Tensor parallel groups stay inside one machine; a plan on several machines uses all their GPUs.
    """
    proposals = _serving_plans if workload.serving else _training_plans
    found = {plan for nodes in machines for plan in proposals(workload, gpus, nodes)}
    legal: list[Plan] = []
    refused: list[Refusal] = []
    for plan in sorted(found, key=narrowness):
        reason = refusal_of(workload, plan)
        if reason:
            refused.append(Refusal(plan, reason))
        else:
            legal.append(plan)
    return PlanSpace(tuple(legal), tuple(refused))


def degrees(gpus: int) -> list[int]:
    """Degrees worth trying: powers of two and divisors of the GPU count, from 2 up."""
    return [d for d in range(2, gpus + 1) if gpus % d == 0 or d & (d - 1) == 0]


def _serving_plans(workload: Workload, gpus: int, nodes: int) -> Iterator[Plan]:
    if nodes > 1:
        yield Plan(replicas=gpus * nodes, nodes=nodes)
        yield _spanning_pipeline(workload, gpus, nodes)
        return
    for tp in (1, *degrees(gpus)):
        yield from (Plan(tp=tp, replicas=r) for r in (1, *degrees(gpus // tp)))
        yield from (Plan(tp=tp, pp=pp) for pp in degrees(gpus // tp))


def _training_plans(workload: Workload, gpus: int, nodes: int) -> Iterator[Plan]:
    if nodes > 1:
        yield from _spanning_plans(workload, gpus, nodes)
        return
    for tp in (1, *degrees(gpus)):
        yield Plan(tp=tp)
        yield from (Plan(tp=tp, pp=pp) for pp in degrees(gpus // tp))
        yield from (Plan(tp=tp, dp=dp, shard=dp) for dp in degrees(gpus // tp))
    yield from (Plan(dp=dp) for dp in degrees(gpus))


def _spanning_plans(workload: Workload, gpus: int, nodes: int) -> Iterator[Plan]:
    """Plans over whole machines: replicate, shard, shard inside each, or split the layers."""
    ranks = gpus * nodes
    yield Plan(dp=ranks, nodes=nodes)
    yield Plan(dp=ranks, shard=ranks, nodes=nodes)
    yield _spanning_pipeline(workload, gpus, nodes)
    if gpus > 1:
        yield Plan(dp=ranks, shard=gpus, nodes=nodes)
    for tp in degrees(gpus):
        if gpus % tp == 0:
            yield Plan(tp=tp, dp=ranks // tp, shard=ranks // tp, nodes=nodes)


def _spanning_pipeline(workload: Workload, gpus: int, nodes: int) -> Plan:
    """The widest tensor groups that the model allows in each machine, stages over all of them."""
    allowed = (tp for tp in range(gpus, 0, -1) if gpus % tp == 0)
    tp = next(tp for tp in allowed if not _undivided_by(workload, tp))
    return Plan(tp=tp, pp=gpus * nodes // tp, nodes=nodes)


def refusal_of(workload: Workload, plan: Plan) -> Finding | None:
    """Why the model or the batch cannot be divided this way. None when it can."""
    checks = (_refuse_tensor, _refuse_stages, _refuse_batch)
    return next((found for check in checks if (found := check(workload, plan))), None)


def _refuse_tensor(workload: Workload, plan: Plan) -> Finding | None:
    quantity = _undivided_by(workload, plan.tp)
    if not quantity:
        return None
    admitted = next(d for d in range(plan.tp - 1, 0, -1) if not _undivided_by(workload, d))
    change = f"Use a tensor parallel degree of {admitted}."
    return finding(Code.PLAN_INDIVISIBLE, quantity=quantity, degree=plan.tp, change=change)


def _undivided_by(workload: Workload, tp: int) -> str:
    """The first quantity of the model that `tp` ranks cannot share. Empty when they can.

    The vocabulary is padded by every engine, so it never refuses. KV heads are copied where there
    are more ranks than heads; a latent cache is copied always. Weights that share a scale must stay
    on one rank, or the engine refuses to load.
    """
    model, form = workload.model, weight_format(workload.weights_format)
    group = form.group if form else 1
    heads, kv_heads = model.attention.heads, model.attention.kv_heads
    if heads % tp:
        return f"{heads} attention heads"
    if not model.attention.latent and kv_heads % tp and tp % kv_heads:
        return f"{kv_heads} KV heads"
    sizes = [(name, size) for name, size in _inner_sizes(model) if size % (tp * group)]
    in_groups = f" in groups of {group}" if group > 1 else ""
    return next((f"the {name} of {size}{in_groups}" for name, size in sizes), "") if tp > 1 else ""


def _inner_sizes(model: ModelShape) -> list[tuple[str, int]]:
    """Sizes that tensor parallelism divides inside the layers, for the layers that exist."""
    experts = model.experts
    if experts is None:
        return [("MLP size", model.mlp_size)]
    dense = model.mlp_size if experts.dense_layers else 0
    return [
        ("MLP size", dense),
        ("expert size", experts.size),
        ("shared expert size", experts.shared_size),
    ]


def _refuse_stages(workload: Workload, plan: Plan) -> Finding | None:
    """Serving engines take uneven stages; training frameworks want equal ones."""
    layers, pp = workload.model.layers, plan.pp
    if pp == 1 or (layers >= pp and (workload.serving or layers % pp == 0)):
        return None
    stages = next((d for d in range(min(pp - 1, layers), 0, -1) if layers % d == 0), 1)
    change = f"Use {stages} pipeline stages."
    return finding(Code.PLAN_INDIVISIBLE, quantity=f"{layers} layers", degree=pp, change=change)


def _refuse_batch(workload: Workload, plan: Plan) -> Finding | None:
    """Every rank must get the same number of micro-batches."""
    job = workload.training
    ranks = plan.dp * job.micro_batch if job else 1
    if job is None or job.global_batch is None or job.global_batch % ranks == 0:
        return None
    return finding(
        Code.PLAN_INDIVISIBLE,
        quantity=f"the global batch of {job.global_batch} sequences",
        degree=ranks,
        change=f"Set global_batch to {-(-job.global_batch // ranks) * ranks}.",
    )


def machines_to_try(nodes: int, most: int) -> list[int]:
    """Numbers of machines beyond the first: those of one rental, then whole rentals."""
    return [*range(2, nodes + 1), *range(2 * nodes, most + 1, nodes)]
