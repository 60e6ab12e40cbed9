"""One kind of exchange between GPUs: which collective, how often, how many bytes, and why so many.

Bytes that each rank sends follow nccl-tests PERFORMANCE.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cache

from evaluator.units import GB, KIB, MB, MIB


class Operation(StrEnum):
    ALL_REDUCE = "all-reduce"
    ALL_GATHER = "all-gather"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_TO_ALL = "all-to-all"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    SEND = "send"


class Bound(StrEnum):
    """What sets the time of one call, by the size of its message."""

    LATENCY = "latency"
    MIXED = "latency and bandwidth"
    BANDWIDTH = "bandwidth"


LATENCY_BELOW = 64 * KIB
"""Engines' own kernels take the same few microseconds up to here (aiconfigurator tables)."""
BANDWIDTH_ABOVE = 32 * MIB
"""From here on latency is below a tenth of the time (15 measured curves)."""


@cache
def bus_factor(operation: Operation, ranks: int) -> Fraction:
    """Bytes that each rank sends per byte of buffer: nccl-tests PERFORMANCE.md."""
    if operation in (Operation.SEND, Operation.BROADCAST, Operation.REDUCE):
        return Fraction(1)
    share = Fraction(ranks - 1, ranks)
    return 2 * share if operation is Operation.ALL_REDUCE else share


@dataclass(frozen=True, slots=True)
class Traffic:
    """One kind of exchange. `buffer_bytes` sums the buffers of all `calls` on one GPU.

    `group` ranks take part, spread over `machines`. `per` names the unit of work: an optimizer
    step, a decode step, the prefill of one request. `often` says where the number of calls comes
    from and `much` where the buffer of one does, with their inputs; `source` who describes it.
    """

    purpose: str
    operation: Operation
    group: int
    calls: int
    buffer_bytes: int
    per: str
    machines: int = 1
    often: str = field(default="", compare=False)
    much: str = field(default="", compare=False)
    source: str = field(default="", compare=False)

    @property
    def message_bytes(self) -> int:
        """Buffer of one call, as nccl-tests counts it."""
        return self.buffer_bytes // self.calls

    @property
    def sent_bytes(self) -> int:
        """Bytes that each GPU sends per unit of work, wherever its peers are."""
        return int(bus_factor(self.operation, self.group) * self.buffer_bytes)

    @property
    def sent_words(self) -> str:
        return size_words(self.sent_bytes)

    @property
    def between_machines_bytes(self) -> int:
        """Bytes per GPU that leave the machine when the collective is hierarchical; else 0.

        Each of the g GPUs of a machine carries 1/g of the buffer over the network.
        """
        if self.machines == 1:
            return 0
        share = 1 if self.operation is Operation.SEND else max(1, self.group // self.machines)
        return int(bus_factor(self.operation, self.machines) * self.buffer_bytes / share)

    @property
    def bound(self) -> Bound:
        if self.message_bytes <= LATENCY_BELOW:
            return Bound.LATENCY
        return Bound.BANDWIDTH if self.message_bytes >= BANDWIDTH_ABOVE else Bound.MIXED

    @property
    def words(self) -> str:
        """The need in numbers, for a screen."""
        calls = f"{self.calls} {self.operation}{'s' if self.calls > 1 else ''}"
        return (
            f"{calls} of {size_words(self.message_bytes)} over {self.group} GPUs per {self.per}: "
            f"{self.sent_words} sent by each GPU, bound by {self.bound}"
        )

    @property
    def derivation(self) -> str:
        """How the bytes that each GPU sends come about; empty where nothing is told of it."""
        if not self.much:
            return ""
        factor = SENT[self.operation].format(n=self.group, less=self.group - 1)
        each, sent = size_words(self.message_bytes), self.sent_words
        return (
            f"Calls: {self.often} = {self.calls:,}. Buffer of one: {self.much} = {each}. "
            f"Sent by each GPU: {factor} = {sent}."
        )


SENT = {
    Operation.ALL_REDUCE: "calls x buffer x 2 x {less}/{n}",
    Operation.ALL_GATHER: "calls x buffer x {less}/{n}",
    Operation.REDUCE_SCATTER: "calls x buffer x {less}/{n}",
    Operation.ALL_TO_ALL: "calls x buffer x {less}/{n}",
    Operation.BROADCAST: "calls x buffer",
    Operation.REDUCE: "calls x buffer",
    Operation.SEND: "calls x buffer",
}
"""`bus_factor` as it is written down in nccl-tests PERFORMANCE.md."""


def size_words(byte_count: int) -> str:
    for unit, name in ((GB, "GB"), (MB, "MB")):
        if byte_count >= unit:
            return f"{byte_count / unit:.3g} {name}"
    return f"{byte_count / 1000:.3g} kB"
