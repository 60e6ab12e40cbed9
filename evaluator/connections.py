"""How the GPUs of one machine were seen to be joined: pair by pair, with rates and faults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import lru_cache
from itertools import combinations
from typing import Any, TypeVar

T = TypeVar("T")

ORDER = ("NV", "XGMI", "C2C", "PIX", "PXB", "PHB", "NODE", "PCIE", "SYS", "DIS")
"""Classes from best to worst (nvidia-smi's legend; AMD's words stand where they are as good)."""
FABRIC = frozenset({"NV", "XGMI", "C2C"})
"""Links made for GPUs. All other classes lead over PCIe."""
RANK = {name: place for place, name in enumerate(ORDER)}
NOT_SEEN = len(ORDER)


@lru_cache(maxsize=256)
def family(word: str) -> str:
    """The class without its link count: NV18 is NV. SOC is the old word for SYS."""
    return "SYS" if word == "SOC" else re.sub(r"^NV\d+$", "NV", word)


def rank_of(word: str | None) -> int:
    """0 is best. A pair that was not seen ranks behind all that were."""
    return NOT_SEEN if word is None else RANK.get(family(word), NOT_SEEN)


def links_in(word: str | None) -> int:
    """NVLinks that a class counts: 18 in NV18, 0 where it counts none."""
    return int(word[2:]) if word and re.fullmatch(r"NV\d+", word) else 0


def is_fabric(word: str | None) -> bool:
    return word is not None and family(word) in FABRIC


class FaultKind(StrEnum):
    """What stops a group of GPUs from working as their matrix promises."""

    INACTIVE_LINKS = "inactive_links"
    OFF_FABRIC = "off_fabric"
    FABRIC_MANAGER = "fabric_manager"
    NARROW_SLOT = "narrow_slot"
    SLOW_GPU = "slow_gpu"
    SLICED = "sliced"
    SMALL_SHM = "small_shm"
    SHM_FAILED = "shm_failed"
    NO_PEER_ACCESS = "no_peer_access"
    TCP_BETWEEN = "tcp_between"
    NO_GPUDIRECT = "no_gpudirect"


@dataclass(frozen=True, slots=True)
class Fault:
    """`gpus` are the indices that it touches; empty where it touches all.

    `look` counts the looks at a machine from the newest on; 0 is the newest, or the only one.
    """

    kind: FaultKind
    gpus: tuple[int, ...] = ()
    words: str = ""
    look: int = 0


@dataclass(frozen=True, slots=True)
class Rate:
    """A bus bandwidth that a benchmark saw, bytes/s, for one operation, group and message.

    `nodes` is 0 where the output does not name its hosts. `seconds` is the printed time of one
    call, 0 where none was printed; `look` as in `Fault`.
    """

    operation: str
    ranks: int
    message_bytes: int
    bytes_per_s: int
    nodes: int = 1
    seconds: float = 0.0
    look: int = 0


@dataclass(frozen=True, slots=True)
class NicPaths:
    """A network device and its class to each GPU."""

    name: str
    to_gpus: tuple[str | None, ...] = ()


Cells = tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """What outputs of one machine show. Empty means not seen; None in a cell is unknown.

    `peer` says whether the driver lets a pair reach each other's memory. `checked` are the kinds
    of fault that the outputs could have shown: one that is checked and absent is not there.
    `pair_rates` are GB/s from the row's GPU to the column's, with peer access. `look` is that of
    the matrix, as in `Fault`, `pair_look` that of the pair rates.
    """

    gpus: int = 0
    matrix: Cells = ()
    peer: tuple[tuple[bool | None, ...], ...] = ()
    numa: tuple[str | None, ...] = ()
    nics: tuple[NicPaths, ...] = ()
    nearest_nic: tuple[str | None, ...] = ()
    transports: tuple[str, ...] = ()
    rates: tuple[Rate, ...] = ()
    pair_rates: tuple[tuple[float | None, ...], ...] = ()
    faults: tuple[Fault, ...] = ()
    checked: tuple[FaultKind, ...] = ()
    look: int = 0
    pair_look: int = 0

    def between(self, one: int, other: int) -> str | None:
        """The class of a pair; None where it was not seen."""
        return self.matrix[one][other] if self.matrix else None

    def reach(self, one: int, other: int) -> bool | None:
        return self.peer[one][other] if self.peer else None

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        return tuple(combinations(range(self.gpus), 2))

    @property
    def whole(self) -> bool:
        """Whether every pair was seen."""
        return bool(self.matrix) and all(self.between(*pair) for pair in self.pairs)

    @property
    def all_to_all(self) -> bool | None:
        """Whether every pair has a fabric link. None where a pair that was not seen decides."""
        known = [word for pair in self.pairs if (word := self.between(*pair))]
        if any(not is_fabric(word) for word in known):
            return False
        return True if self.whole and self.gpus > 1 else None

    @property
    def islands(self) -> tuple[tuple[int, ...], ...]:
        """Sets of GPUs, two or more, that fabric links connect, not always each with each."""
        return tuple(one for one in self._components() if len(one) > 1)

    def _components(self) -> Iterator[tuple[int, ...]]:
        left = set(range(self.gpus))
        while left:
            found, edge = set(), {min(left)}
            while edge:
                found |= edge
                edge = {b for a in edge for b in left - found if is_fabric(self.between(a, b))}
            left -= found
            yield tuple(sorted(found))

    @property
    def pairs_only(self) -> bool:
        """Whether fabric links join pairs and no larger group."""
        return bool(self.islands) and all(len(island) == 2 for island in self.islands)

    @property
    def flattened(self) -> bool:
        """Every pair PHB and no two NUMA nodes: a desktop, or a virtual machine that hides its
        bridges. The two cannot be told apart (topology reference 2.8).
        """
        words = {self.between(*pair) for pair in self.pairs}
        nodes = {node for node in self.numa if node}
        return self.gpus > 2 and words == {"PHB"} and len(nodes) < 2

    def of_kind(self, kind: FaultKind) -> tuple[Fault, ...]:
        return tuple(fault for fault in self.faults if fault.kind is kind)

    def worst_pair(self, group: Sequence[int]) -> tuple[int, int]:
        """The pair of the group that ranks last; the first of several."""
        return max(combinations(sorted(group), 2), key=lambda pair: rank_of(self.between(*pair)))

    def links_of(self, gpu: int) -> int | None:
        """NVLinks of one GPU to all others together. None where a pair of it was not seen."""
        others = [self.between(gpu, to) for to in range(self.gpus) if to != gpu]
        return sum(map(links_in, others)) if all(others) else None

    def best_pair(self, group: Sequence[int]) -> tuple[int, int]:
        """The pair of the group that ranks first."""
        return min(combinations(sorted(group), 2), key=lambda pair: rank_of(self.between(*pair)))


GPU_FAULTS = (
    FaultKind.INACTIVE_LINKS,
    FaultKind.OFF_FABRIC,
    FaultKind.NARROW_SLOT,
    FaultKind.SLOW_GPU,
)
"""Faults that a group escapes by leaving a GPU out."""


def merge(newest_first: Iterable[Topology]) -> Topology:
    """Several looks at one machine as one: of each part the newest that was seen.

    A fault stands until a newer output that could show it does not.
    """
    return together(_dated(one, look) for look, one in enumerate(newest_first))


def together(newest_first: Iterable[Topology]) -> Topology:
    """Outputs of one paste as one look; of each part the first that shows it."""
    seen = list(newest_first)
    size = max((one.gpus for one in seen), default=0)
    parts = [one for one in seen if one.gpus in (0, size)]
    names = ("matrix", "peer", "numa", "nics", "nearest_nic", "transports", "pair_rates")
    newest = {name: _first(getattr(one, name) for one in parts) for name in names}
    rates = {_run(rate): rate for one in reversed(seen) for rate in one.rates}
    judges = {kind: next((one for one in parts if kind in one.checked), None) for kind in FaultKind}
    return Topology(
        gpus=size,
        rates=tuple(rates[run] for run in sorted(rates)),
        faults=tuple(found for kind in FaultKind for found in _standing(parts, kind)),
        checked=tuple(kind for kind, one in judges.items() if one),
        look=next((one.look for one in parts if one.matrix), 0),
        pair_look=next((one.pair_look for one in parts if one.pair_rates), 0),
        **newest,
    )


def _standing(newest_first: Iterable[Topology], kind: FaultKind) -> Iterator[Fault]:
    """Faults of one kind, back to the newest output that would have shown all of them."""
    told: set[tuple[int, ...]] = set()
    for one in newest_first:
        found = [fault for fault in one.of_kind(kind) if fault.gpus not in told]
        told.update(fault.gpus for fault in found)
        yield from found
        if kind in one.checked:
            return


def _dated(one: Topology, look: int) -> Topology:
    """The topology of one look, its faults and rates with the place of that look."""
    return replace(
        one,
        look=look,
        pair_look=look,
        faults=tuple(replace(fault, look=look) for fault in one.faults),
        rates=tuple(replace(rate, look=look) for rate in one.rates),
    )


def _run(rate: Rate) -> tuple[str, int, int, int]:
    return (rate.operation, rate.ranks, rate.nodes, rate.message_bytes)


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value), ())


ALL_REDUCE = "all_reduce"


def rates_of(
    topology: Topology, ranks: int, nodes: int = 1, operation: str = ALL_REDUCE
) -> tuple[Rate, ...]:
    """One collective of a group of this size, by message size. Empty where none was run.

    A run that does not name its hosts counts as one of a single machine.
    """
    found = [r for r in topology.rates if r.ranks == ranks and (r.nodes or 1) == nodes]
    same = (rate for rate in found if operation in rate.operation)
    return tuple(sorted(same, key=lambda rate: rate.message_bytes))


def rate_for(topology: Topology, ranks: int) -> Rate | None:
    """The all-reduce of a group of this size at the largest message. None where none was run."""
    return next(reversed(rates_of(topology, ranks)), None)


# --- as plain values, for storage


LOOKS = frozenset({"look", "pair_look"})
"""Told by the order of the looks at a machine, not by what is stored of one."""


def to_plain(value: Any) -> Any:
    """Lists, texts and numbers, without what is empty."""
    if isinstance(value, (Topology, Fault, Rate, NicPaths)):
        named = ((item.name, getattr(value, item.name)) for item in fields(value))
        return {
            name: to_plain(one) for name, one in named if name not in LOOKS and one not in ((), "")
        }
    if isinstance(value, tuple):
        return [to_plain(one) for one in value]
    return value.value if isinstance(value, StrEnum) else value


def from_plain(stored: dict[str, Any]) -> Topology:
    """The topology that `to_plain` gave. Raises TypeError, ValueError or KeyError for others."""
    values = {name: _tuples(value) for name, value in stored.items()}
    for name, kind in (("nics", NicPaths), ("rates", Rate)):
        values[name] = tuple(kind(**_parts(one)) for one in stored.get(name, ()))
    values["checked"] = tuple(FaultKind(kind) for kind in stored.get("checked", ()))
    values["faults"] = tuple(_fault(one) for one in stored.get("faults", ()))
    return Topology(**values)


def _fault(stored: dict[str, Any]) -> Fault:
    return Fault(**{**_parts(stored), "kind": FaultKind(stored["kind"])})


def _parts(stored: dict[str, Any]) -> dict[str, Any]:
    return {name: _tuples(value) for name, value in stored.items()}


def _tuples(value: Any) -> Any:
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value
