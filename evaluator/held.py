"""One group of a plan on its best GPUs, with what was seen of them and what it has to carry."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from evaluator.connections import ALL_REDUCE, Rate, Topology, is_fabric, rates_of
from evaluator.exchanges import Operation, Traffic
from evaluator.facts import Grade
from evaluator.findings import Finding
from evaluator.group_rates import Reached, enough_at, reached, size_words
from evaluator.grouping import Assignment
from evaluator.link_verdicts import LinkVerdict, LinkWord
from evaluator.links import CARRIES_TENSOR, CLASS_FLOOR, TOLERANT, Demand, Use
from evaluator.machine import LinkClass, Machine
from evaluator.plans import Plan
from evaluator.units import GB, GIB

BENCHMARK = "{program}_perf -b {least} -e 8G -f 2 -g {ranks}"
PROGRAMS_OF = {
    Use.SHARDED: ("all_gather", "reduce_scatter", ALL_REDUCE),
    Use.CONTEXT: ("all_gather", ALL_REDUCE),
    Use.EXPERT: ("alltoall", ALL_REDUCE),
}
"""Benchmarks that show a use, its own collective first; all others reduce."""
USES = {
    "tensor parallel": Use.TENSOR,
    "pipeline": Use.PIPELINE,
    "experts": Use.EXPERT,
    "context": Use.CONTEXT,
}
"""The use of an exchange by its purpose; gradients and parameters are told by their collective."""
LEAST = 1024


@dataclass(frozen=True, slots=True)
class Need:
    """What one group of a plan moves: in words, and the bytes of one call of each exchange."""

    words: str
    messages: tuple[int, ...]


@lru_cache(maxsize=4096)
def need_of(use: Use, exchanges: tuple[Traffic, ...]) -> Need:
    """What the groups of one use move, of all that a plan moves. The same for every machine."""
    moved = [one for one in exchanges if _use_of(one) is use]
    words = "; ".join(one.words for one in moved) or "not known: the model's size is not"
    return Need(words, tuple(one.message_bytes for one in moved))


def _use_of(one: Traffic) -> Use:
    reduced = Use.DATA if one.operation is Operation.ALL_REDUCE else Use.SHARDED
    return USES.get(one.purpose, reduced)


@lru_cache(maxsize=4096)
def benchmark_of(use: Use, ranks: int, messages: tuple[int, ...] = ()) -> str:
    """The command that shows a group at its plan's own messages and at large ones."""
    least = _nccl_size(min((size for size in messages if 0 < size < GIB), default=GIB))
    return BENCHMARK.format(program=programs_of(use)[0], least=least, ranks=ranks)


def programs_of(use: Use) -> tuple[str, ...]:
    return PROGRAMS_OF.get(use, (ALL_REDUCE,))


def _nccl_size(byte_count: int) -> str:
    """The power of two at or below, as nccl-tests writes sizes."""
    size = max(LEAST, 1 << (byte_count.bit_length() - 1))
    return next(f"{size // unit}{name}" for unit, name in SIZES if size >= unit)


SIZES = ((GIB, "G"), (1 << 20, "M"), (1 << 10, "K"))


@lru_cache(maxsize=4096)
def clearing_rate(ranks: int, messages: tuple[int, ...], *, fabric: bool = False) -> str:
    """The bus bandwidths that would clear a doubt, at the plan's own messages."""
    carries = CLASS_FLOOR[LinkClass.NVLINK] if fabric else CARRIES_TENSOR
    asked = sorted({size for size in messages if size}, reverse=True)
    if not asked:
        return f"at least {carries / GB:.3g} GB/s"
    enough = [enough_at(carries, ranks, size, fabric=fabric) for size in asked]
    each = zip(enough, asked, strict=True)
    told = (f"{rate / GB:.3g} GB/s at {size_words(size)} messages" for rate, size in each)
    return f"at least {' and '.join(told)}"


def is_amd(machine: Machine) -> bool:
    """Whether all cards that its label may mean are AMD's, whose tools have other names."""
    return {spec.vendor.lower() for spec in machine.specs} == {"amd"}


@dataclass(frozen=True, slots=True)
class Tools:
    """How one vendor's tools are asked for a matrix and for the links of each GPU, and with which
    words they allow peer access.
    """

    matrix: str
    links: str
    peers: str


NVIDIA_TOOLS = Tools(
    "nvidia-smi topo -m", "nvidia-smi nvlink --status", "OK in `nvidia-smi topo -p2p r`"
)
AMD_TOOLS = Tools("rocm-smi --showtopo", "amd-smi topology", "ENABLED in `amd-smi topology`")


@dataclass(frozen=True, slots=True)
class Held:
    """One group of a plan on its best GPUs, and what was seen of them.

    `messages` are the sizes in bytes of what it exchanges in one call; empty where not known.
    """

    plan: Plan
    demand: Demand
    machine: Machine
    topology: Topology
    placed: Assignment
    messages: tuple[int, ...] = ()

    @property
    def link(self) -> str:
        return self.topology.between(*self.placed.worst) or "an unseen link"

    @property
    def grade(self) -> Grade:
        return self.machine.topology.grade

    @property
    def tolerant(self) -> bool:
        return self.demand.use in TOLERANT

    @property
    def ranks(self) -> int:
        return len(self.placed.groups[0])

    @property
    def command(self) -> str:
        """The benchmark, pinned to the first group where it is not the whole machine."""
        group = self.placed.groups[0]
        variable = "HIP_VISIBLE_DEVICES" if is_amd(self.machine) else "CUDA_VISIBLE_DEVICES"
        pin = f"{variable}={','.join(map(str, group))} "
        whole = len(group) == self.topology.gpus
        return ("" if whole else pin) + benchmark_of(self.demand.use, self.ranks, self.messages)

    @property
    def clearing(self) -> str:
        return clearing_rate(self.ranks, self.messages, fabric=self.on_fabric)

    @property
    def curve(self) -> tuple[Rate, ...]:
        """The benchmark rows of a group of this size, of the collective that is most its own."""
        programs = programs_of(self.demand.use)
        curves = (rates_of(self.topology, self.ranks, 1, program) for program in programs)
        return next((curve for curve in curves if curve), ())

    @property
    def reached(self) -> Reached | None:
        """The benchmark of a group of this size at the plan's own messages."""
        return self._against(self.curve)

    @property
    def larger(self) -> tuple[int, Reached] | None:
        """The benchmark of the whole machine, where the group is a part of it, and how many GPUs
        took part. One of fewer may have left the group's GPUs out.
        """
        curve = rates_of(self.topology, self.topology.gpus)
        shown = self._against(curve) if self.topology.gpus > self.ranks else None
        return (self.topology.gpus, shown) if shown else None

    def _against(self, curve: tuple[Rate, ...]) -> Reached | None:
        carries = CLASS_FLOOR[LinkClass.NVLINK] if self.on_fabric else CARRIES_TENSOR
        return reached(curve, self.messages, carries, fabric=self.on_fabric)

    @property
    def needed(self) -> float:
        """Bus bandwidth in bytes/s without which the group is too slow at its own messages."""
        messages = self.messages or (0,)
        return max(self._needed_at(size) for size in messages)

    def _needed_at(self, message: int) -> float:
        if not message:
            return CARRIES_TENSOR
        return enough_at(CARRIES_TENSOR, self.ranks, message, fabric=self.on_fabric)

    @property
    def on_fabric(self) -> bool:
        """Whether the group's pairs are joined by fabric links, as seen or else as declared."""
        if self.topology.matrix:
            return is_fabric(self.link)
        return self.machine.link.value in CLASS_FLOOR

    @property
    def pair(self) -> str:
        return "GPUs {} and {}".format(*self.placed.worst)

    @property
    def tools(self) -> Tools:
        return AMD_TOOLS if is_amd(self.machine) else NVIDIA_TOOLS

    @property
    def gaps(self) -> dict[str, str]:
        """Words for the gaps of the findings about a group."""
        return {
            "plan": self.plan.label,
            "group": self.placed.words,
            "pair": self.pair,
            "link": self.link,
            "command": self.command,
            "rate": self.clearing,
        }

    def said(
        self, word: LinkWord, found: Finding, grade: Grade | None = None, command: str = ""
    ) -> LinkVerdict:
        """A verdict whose reason is its finding's sentence, cleared as the remedy says."""
        return LinkVerdict(
            word=word,
            reason=found.sentence,
            grade=self.grade if grade is None else grade,
            settled_by=command or self.command,
            findings=(found,),
            cleared_by=found.remedy,
            groups=self.placed.groups if self.topology.matrix else (),
        )
