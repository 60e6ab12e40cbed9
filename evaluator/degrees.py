"""A parallel plan: how a workload is divided over GPUs, and how narrow that is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import IntEnum
from functools import lru_cache

from evaluator.ranges import choose, larger


class Kind(IntEnum):
    """Families of plans. The order is the one in which plans of equal size are tried."""

    ONE_GPU = 0
    REPLICAS = 1
    DATA = 2
    SHARDED = 3
    CONTEXT = 4
    TENSOR = 5
    EXPERT = 6
    PIPELINE = 7
    COMBINED = 8


REASONS = {
    Kind.ONE_GPU: "One GPU moves nothing between GPUs.",
    Kind.REPLICAS: "Replicas share the requests and exchange nothing.",
    Kind.DATA: "Data parallel exchanges gradients once per step.",
    Kind.SHARDED: "Sharding moves every parameter several times per step and hides part of it.",
    Kind.CONTEXT: "Context parallel passes keys and values around and hides part of it.",
    Kind.TENSOR: "Tensor parallel waits for the link inside every layer.",
    Kind.EXPERT: "Expert parallel sends every token to its experts and back, in every such layer.",
    Kind.PIPELINE: "A pipeline bears a slow link, but adds idle time and shortens no request.",
    Kind.COMBINED: "A combination has the needs of each of its parts.",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """Degrees by name; an absent degree is 1. One optimizer copy spans `dp` ranks.

    tp        tensor parallel degree inside every layer
    pp        pipeline stages
    dp        data parallel ranks of a training job; of a serving engine that shares its experts,
              the groups that read different requests
    shard     ranks that share one copy of the parameters (ZeRO-3/FSDP), those of `dp` and `cp`;
              1 is plain data parallel
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
    def engine_ranks(self) -> int:
        """GPUs of one serving engine that exchange anything; groups do where they share experts."""
        return self.tp * self.pp * choose(self.ep > 1, self.dp, 1)  # type: ignore[no-any-return]

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
    def copies(self) -> int:
        """Copies of the parameters that a training job keeps and reduces once per step."""
        return max(1, self.dp * self.cp // self.shard)

    @property
    def kind(self) -> Kind:
        split = {
            Kind.REPLICAS: self.replicas > 1,
            Kind.DATA: self.dp > 1,
            Kind.CONTEXT: self.cp > 1,
            Kind.TENSOR: self.tp > 1,
            Kind.PIPELINE: self.pp > 1,
        }
        kinds = [kind for kind, used in split.items() if used]
        if len(kinds) != 1:
            return Kind.COMBINED if kinds else Kind.ONE_GPU
        if self.ep > 1:
            return Kind.EXPERT
        return Kind.SHARDED if kinds[0] is Kind.DATA and self.shard > 1 else kinds[0]

    @property
    def key(self) -> str:
        """A stable name for addresses and stored rows, such as "tp4-pp2"."""
        return _key(self)

    @property
    def label(self) -> str:
        """The plan in words, such as "FSDP over 16 GPUs on 2 machines"."""
        return _label(self)

    @property
    def reason(self) -> str:
        """Why the plan stands where it does in the order of narrowness."""
        return REASONS[self.kind]


MOST_NAMED = 65536
"""Plans whose names are kept: the same few hundred are named on every page."""


@lru_cache(MOST_NAMED)
def _key(plan: Plan) -> str:
    named = [(item.name, getattr(plan, item.name)) for item in fields(plan)]
    return "-".join(f"{name}{degree}" for name, degree in named if degree > 1) or "one"


@lru_cache(MOST_NAMED)
def _label(plan: Plan) -> str:
    inside = list(_inside_words(plan))
    words = " × ".join(inside) or "one GPU"
    if plan.replicas > 1:
        words = f"{plan.replicas} replicas" + (f" of {words}" if inside else "")
    return words + (f" on {plan.nodes} machines" if plan.nodes > 1 else "")


def _inside_words(plan: Plan) -> Iterator[str]:
    """The parts of a label, such as "TP 4", "PP 2 interleaved 2" and "EP 8"."""
    if plan.tp > 1:
        yield f"TP {plan.tp}"
    if plan.pp > 1:
        yield f"PP {plan.pp}" + (f" interleaved {plan.virtual}" if plan.virtual > 1 else "")
    if plan.cp > 1:
        yield f"CP {plan.cp}"
    if plan.dp > 1 or plan.shard > 1:
        yield _data_words(plan, alone=plan.dp == plan.gpus and plan.ep == 1)
    if plan.ep > 1:
        yield f"EP {plan.ep}" + (f" of TP {plan.etp}" if plan.etp > 1 else "")


def _data_words(plan: Plan, *, alone: bool) -> str:
    name, ranks = ("DP", plan.dp) if plan.shard == 1 else ("FSDP", plan.shard)
    if plan.shard > 1 and plan.copies > 1:
        return f"FSDP {plan.shard} × DP {plan.copies}"
    return f"{name} over {ranks} GPUs" if alone else f"{name} {ranks}"


@lru_cache(MOST_NAMED)
def narrowness(plan: Plan) -> tuple[int, ...]:
    """Sort key: fewer GPUs, then fewer machines, then the family that asks least of the links."""
    first = (plan.gpus, plan.nodes, plan.kind, plan.tp, plan.pp, plan.copies, plan.cp)
    return (*first, plan.replicas, plan.ep, plan.etp, plan.virtual, plan.shard)
