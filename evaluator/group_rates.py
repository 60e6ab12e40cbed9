"""What benchmarks of one machine show for a group of GPUs, at any message size.

T = a + b x S (Hockney), so between two rows the time is interpolated, never the bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from evaluator.connections import ALL_REDUCE, Rate, Topology, rates_of
from evaluator.exchanges import LATENCY_BELOW, Operation, bus_factor
from evaluator.units import GB

PROGRAMS = {
    ALL_REDUCE: Operation.ALL_REDUCE,
    "all_gather": Operation.ALL_GATHER,
    "reduce_scatter": Operation.REDUCE_SCATTER,
    "alltoall": Operation.ALL_TO_ALL,
}
"""Collectives by the names of nccl-tests' programs."""
WAIT_S = {True: 150e-6, False: 300e-6}
"""Longest wait of a healthy group before its bytes flow, over fabric links or not. Eight A100 spend
75 µs on 1 MiB and eight GPUs over PCIe about 150 µs; twice that is no sign of health.
"""


@dataclass(frozen=True, slots=True)
class AtMessage:
    """A bus bandwidth in bytes/s at a message. `asked` is the plan's own size; `message` is the
    nearest that was run where that one lies outside.
    """

    asked: int
    message: int
    bytes_per_s: float

    @property
    def words(self) -> str:
        where = f"{size_words(self.message)} messages"
        if self.message != self.asked:
            where += f", the nearest run to the plan's {size_words(self.asked)}"
        return f"{self.bytes_per_s / GB:.3g} GB/s at {where}"


@dataclass(frozen=True, slots=True)
class GroupSpeed:
    """What a group of `ranks` GPUs reached: bytes/s of its largest message, and the seconds that a
    tiny one took (None where none was run).
    """

    ranks: int
    bytes_per_s: int
    latency_s: float | None

    @property
    def words(self) -> str:
        tiny = f", {self.latency_s * 1e6:.3g} µs for a tiny message" if self.latency_s else ""
        return f"{self.ranks} GPUs: {self.bytes_per_s / GB:.3g} GB/s{tiny}"


def size_words(byte_count: float) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if byte_count >= unit:
            return f"{byte_count / unit:.3g} {name}"
    return f"{byte_count:.0f} B"


def speeds_of(topology: Topology) -> tuple[GroupSpeed, ...]:
    """Bandwidth and latency of every size of group that was benchmarked inside the machine."""
    sizes = sorted({rate.ranks for rate in topology.rates if rate.nodes <= 1})
    curves = (rates_of(topology, ranks) for ranks in sizes)
    return tuple(_speed(curve) for curve in curves if curve)


def _speed(curve: Sequence[Rate]) -> GroupSpeed:
    tiny = [rate.seconds for rate in curve if 0 < rate.message_bytes <= LATENCY_BELOW]
    latency = min((seconds for seconds in tiny if seconds), default=None)
    return GroupSpeed(curve[-1].ranks, curve[-1].bytes_per_s, latency)


def rate_at(curve: Sequence[Rate], message: int) -> AtMessage | None:
    """The bandwidth at a message: its own row, else between its neighbours, else the nearest row.

    `curve` is ordered by message size. A message of 0 asks for the largest that was run.
    """
    known = [(rate.message_bytes, bus) for rate in curve if (bus := _bus(rate)) > 0]
    if not known:
        return None
    least, most = known[0][0], known[-1][0]
    asked = message or most
    size = min(max(asked, least), most)
    return AtMessage(asked, size, size / _seconds_per_factor(known, size))


PRINTED_COARSELY = GB // 10
"""Two decimals of GB/s say little of tiny messages; below this their printed time does."""


def _bus(rate: Rate) -> float:
    """Bus bandwidth of a row in bytes/s; 0 where neither it nor a time was printed."""
    if rate.bytes_per_s >= PRINTED_COARSELY or not rate.seconds:
        return rate.bytes_per_s if rate.message_bytes else 0
    return _factor(rate.operation, rate.ranks) * rate.message_bytes / rate.seconds


def _factor(program: str, ranks: int) -> float:
    """Bytes that each rank sends per byte of buffer, by the name that nccl-tests prints."""
    return float(bus_factor(PROGRAMS.get(program, Operation.ALL_REDUCE), ranks))


def _seconds_per_factor(curve: Sequence[tuple[int, float]], size: int) -> float:
    """Time of a message but for the collective's own factor, which is the same along a curve of
    message sizes and bus bandwidths.
    """
    if exact := dict(curve).get(size):
        return size / exact
    below, above = next((a, b) for a, b in pairwise(curve) if a[0] < size < b[0])
    first, last = below[0] / below[1], above[0] / above[1]
    share = (size - below[0]) / (above[0] - below[0])
    return first + share * (last - first)


def enough_at(
    carries_bytes_per_s: float,
    ranks: int,
    message: int,
    *,
    fabric: bool,
    operation: str = ALL_REDUCE,
) -> float:
    """Bus bandwidth in bytes/s that a link shows at a message if it carries the given rate for
    large ones and waits as long as a healthy one may.
    """
    sent = _factor(operation, ranks) * message
    return sent / (WAIT_S[fabric] + sent / carries_bytes_per_s)


@dataclass(frozen=True, slots=True)
class Reached:
    """A benchmark against what is enough, at the plan's message where it does worst."""

    seen: AtMessage
    enough_bytes_per_s: float

    @property
    def suffices(self) -> bool:
        return self.seen.bytes_per_s >= self.enough_bytes_per_s

    @property
    def words(self) -> str:
        return f"{self.seen.words}; {self.enough_bytes_per_s / GB:.3g} GB/s are enough there"


def reached(
    curve: Sequence[Rate], messages: Iterable[int], carries_bytes_per_s: float, *, fabric: bool
) -> Reached | None:
    """A group's benchmark held against its plan's own messages; the worst of them counts."""
    found = list(_reached(curve, tuple(messages) or (0,), carries_bytes_per_s, fabric))
    return min(found, key=lambda one: one.seen.bytes_per_s / one.enough_bytes_per_s, default=None)


def _reached(
    curve: Sequence[Rate], messages: Sequence[int], carries: float, fabric: bool
) -> Iterator[Reached]:
    for message in messages:
        if seen := rate_at(curve, message):
            first = curve[0]
            enough = enough_at(
                carries, first.ranks, seen.message, fabric=fabric, operation=first.operation
            )
            yield Reached(seen, enough)
