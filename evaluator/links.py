"""What each class of link carries, and which groups of GPUs a plan makes of it.

Judgements by group: the worst pair inside the group counts. Figures are seen bus bandwidths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import lru_cache

from evaluator.facts import Fact, Grade
from evaluator.machine import LinkClass
from evaluator.pair_rates import LEAST_NVLINK
from evaluator.plans import Plan
from evaluator.units import GB


class Use(StrEnum):
    """What a group of GPUs does over its link."""

    TENSOR = "tensor parallel"
    EXPERT = "expert parallel"
    CONTEXT = "context parallel"
    SHARDED = "sharding"
    DATA = "data parallel"
    PIPELINE = "a pipeline"


class Suits(IntEnum):
    """How a known class suits a use. DEPENDS is settled by a benchmark alone."""

    ENOUGH = 0
    DEPENDS = 1
    POOR = 2


@dataclass(frozen=True, slots=True)
class Demand:
    """One group of a plan: `ranks` GPUs that exchange, inside a machine or across `machines`.

    `span` counts the GPUs among which the group lies: twice its ranks where tensor pairs are inner.
    """

    use: Use
    ranks: int
    span: int
    machines: int = 1


def demands_of(plan: Plan) -> tuple[Demand, ...]:
    """The groups of a plan that exchange anything. Tensor groups never leave a machine."""
    return tuple(_demands(plan))


def _demands(plan: Plan) -> Iterator[Demand]:
    """Neighbouring GPUs are tensor ranks, then context, then data ranks; stages lie outside.

    Where all ranks share the experts, that exchange asks for more than gradients ever do.
    """
    per_machine = plan.gpus // plan.nodes
    if plan.tp > 1:
        yield Demand(Use.TENSOR, plan.tp, plan.tp)
    if plan.ep > 1 and plan.dp > 1:
        yield from _group(Use.EXPERT, plan.ep, plan.etp, plan)
    if plan.cp > 1:
        yield from _group(Use.CONTEXT, plan.cp, plan.tp, plan)
    if plan.pp > 1:
        span = plan.gpus // plan.replicas
        yield Demand(Use.PIPELINE, plan.pp, span, plan.nodes if span > per_machine else 1)
    if plan.shard > 1:
        yield from _group(Use.SHARDED, plan.shard, plan.tp, plan)
    if plan.copies > 1 and (plan.ep == 1 or plan.ep * plan.etp < plan.tp * plan.dp):
        yield from _group(Use.DATA, plan.copies, plan.tp * plan.shard, plan)


def _group(use: Use, ranks: int, inner: int, plan: Plan) -> Iterator[Demand]:
    """A group of ranks `inner` GPUs apart, on as many machines as it has to span."""
    per_machine = plan.gpus // plan.nodes
    spans = ranks * inner > per_machine
    machines = min(plan.nodes, -(-ranks * inner // per_machine)) if spans else 1
    yield from _spread(use, ranks, inner, machines)


def _spread(use: Use, ranks: int, inner: int, machines: int) -> Iterator[Demand]:
    """A group over several machines also exchanges inside each of them."""
    if machines > 1:
        yield Demand(use, ranks, ranks * inner, machines)
    if ranks > machines:
        yield Demand(use, ranks // machines, ranks // machines * inner)


TOLERANT = frozenset({Use.DATA, Use.PIPELINE})
"""Uses that every link inside a machine carries: gradients once per step, one hop per stage."""


MOVES = {
    Use.TENSOR: "exchanges activations twice in every layer",
    Use.EXPERT: "sends every token to its experts and back in every layer",
    Use.CONTEXT: "passes keys and values around in every layer",
    Use.SHARDED: "moves every parameter each step",
    Use.DATA: "moves every gradient each step",
    Use.PIPELINE: "moves activations once a stage",
}
"""What a use asks of the links, for a sentence that it begins."""
WAITED_FOR = frozenset({Use.TENSOR, Use.EXPERT})
"""Uses that every layer waits for: no compute hides them."""
HIDDEN = frozenset({Use.SHARDED, Use.CONTEXT})
"""Uses that compute hides in part: how much, only a benchmark tells."""


LINK_WORDS = {
    LinkClass.NVSWITCH: "NVSwitch between all GPUs",
    LinkClass.NVLINK: "NVLink",
    LinkClass.NVLINK_ISLANDS: "NVLink inside groups, not between them",
    LinkClass.NVLINK_PAIRS: "NVLink between pairs",
    LinkClass.NVLINK_BRIDGE: "an NVLink bridge between pairs",
    LinkClass.XGMI: "Infinity Fabric",
    LinkClass.XGMI_ISLANDS: "Infinity Fabric inside groups, not between them",
    LinkClass.PCIE_P2P: "PCIe with peer access",
    LinkClass.PCIE: "PCIe",
    LinkClass.P2P_DISABLED: "PCIe without peer access",
}


def words_of(link: LinkClass) -> str:
    return LINK_WORDS[link]


NAMED = {link.value.replace("_", " "): words for link, words in LINK_WORDS.items()}
LONGEST_FIRST = "|".join(sorted((name.replace(" ", "[ _]") for name in NAMED), key=len)[::-1])
NAME = re.compile(rf"(?<![\w-])(?:{LONGEST_FIRST})(?![\w-])")


@lru_cache(maxsize=1024)
def links_told(text: str) -> str:
    """A text whose links are told as people write them: "measured NVLink between pairs"."""
    return NAME.sub(lambda found: NAMED[found[0].replace("_", " ")], text)


PAIRS = frozenset({LinkClass.NVLINK_PAIRS, LinkClass.NVLINK_BRIDGE, LinkClass.NVLINK_ISLANDS})
"""Fast for two GPUs; how many more an island holds, only its pairs tell."""
ALL_TO_ALL = frozenset({LinkClass.NVSWITCH, LinkClass.NVLINK})
FULL_MESH = 8
"""A full Infinity Fabric mesh is fast only when all eight take part: 47.7 against 313 GB/s."""


def suits(link: LinkClass, demand: Demand) -> Suits:
    """How a class of link suits a group of GPUs, by the worst pair that the group may hold."""
    if demand.use in TOLERANT or link in ALL_TO_ALL:
        return Suits.ENOUGH
    if link is LinkClass.XGMI:
        return Suits.ENOUGH if demand.span >= FULL_MESH else Suits.DEPENDS
    if demand.span == 2 and link in (*PAIRS, LinkClass.XGMI_ISLANDS):
        return Suits.ENOUGH if link in PAIRS else Suits.DEPENDS
    if demand.use in HIDDEN or link is LinkClass.PCIE_P2P:
        return Suits.DEPENDS
    small = link is LinkClass.PCIE and demand.ranks <= 4
    return Suits.DEPENDS if small else Suits.POOR


NVLINKS = frozenset({"nvlink_nvswitch", "nvlink_bridge_optional"})
INFINITY_FABRICS = frozenset({"infinity_fabric_mesh", "infinity_fabric_bridge_optional"})
CARRIED_BY = {
    LinkClass.NVSWITCH: frozenset({"nvlink_nvswitch"}),
    LinkClass.NVLINK: NVLINKS,
    LinkClass.NVLINK_PAIRS: NVLINKS,
    LinkClass.NVLINK_ISLANDS: NVLINKS,
    LinkClass.NVLINK_BRIDGE: frozenset({"nvlink_bridge_optional"}),
    LinkClass.XGMI: INFINITY_FABRICS,
    LinkClass.XGMI_ISLANDS: INFINITY_FABRICS,
}
"""What a card must permit for a claim to be possible. Peer access over PCIe is always possible."""


LINK_BYTES_PER_S = (25 * GB, LEAST_NVLINK)
"""One NVLink, one direction: of A100, H100 and Turing, and of GA102."""


def bridge_links(bytes_per_s: int) -> int | None:
    """How many NVLinks carry a published rate, bytes/s in one direction. None for no whole one."""
    return next((bytes_per_s // one for one in LINK_BYTES_PER_S if bytes_per_s % one == 0), None)


CLASS_FLOOR = {
    LinkClass.NVSWITCH: 40 * GB,
    LinkClass.NVLINK: 40 * GB,
    LinkClass.NVLINK_PAIRS: 35 * GB,
    LinkClass.NVLINK_ISLANDS: 35 * GB,
    LinkClass.NVLINK_BRIDGE: 35 * GB,
    LinkClass.XGMI: 40 * GB,
    LinkClass.XGMI_ISLANDS: 35 * GB,
}
"""Lowest bus bandwidth seen on a healthy link of the class, any generation (formulas C3)."""
CARRIES_TENSOR = 20 * GB
"""Bus bandwidth of peer access behind one PCIe 4 switch, typical (formulas C3)."""


def below_class(link: LinkClass, rate: Fact[int]) -> bool:
    measured = rate.at_least(Grade.MEASURED) and rate.value is not None
    return measured and (rate.value or 0) < CLASS_FLOOR.get(link, 0)


def suits_at_rate(link: LinkClass, demand: Demand, rate: Fact[int]) -> Suits:
    """A benchmarked rate settles what the class leaves open; a rate below any seen is too slow."""
    by_class = suits(link, demand)
    if demand.use not in TOLERANT and below_class(link, rate):
        return Suits.POOR
    if by_class is not Suits.DEPENDS or not rate.at_least(Grade.BENCHMARKED):
        return by_class
    return Suits.ENOUGH if (rate.value or 0) >= CARRIES_TENSOR else Suits.POOR


RDMA = re.compile(
    r"infiniband|\b(?:ib|qdr|edr|hdr|ndr|xdr)\d*\b|roce|rdma|\befa\b|gpudirect|nvlink|slingshot",
    re.IGNORECASE,
)
SLOW_ETHERNET = re.compile(
    r"\b(?:1|10|20|25)[\s-]?(?:GbE|Gbps|Gb/s|Gbit/s|GigE|G)\b", re.IGNORECASE
)


def fabric_suits(fabric: str, use: Use) -> Suits:
    """RDMA would do for all; TCP at 25 Gb/s or less moves 1 to 3 GB/s, too little for sharding."""
    if use in TOLERANT or RDMA.search(fabric):
        return Suits.ENOUGH
    return Suits.POOR if SLOW_ETHERNET.search(fabric) else Suits.DEPENDS
