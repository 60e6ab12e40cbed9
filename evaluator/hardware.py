"""Machines as columns, and the few kinds of them between which memory, links and time can tell.

Two machines of one kind differ in nothing but their host: a plan fits both or neither, waits for
the same links and takes the same time. So a catalog of thousands asks each question some hundred
times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.facts import Fact
from evaluator.gpus import GpuSpec
from evaluator.machine import Machine

Column = NDArray[Any]

KIND_FACTS = (
    "gpu_model",
    "specs",
    "gpu_count",
    "nodes",
    "fractional",
    "usable_bytes_per_gpu",
    "form_factor",
    "link",
    "link_bytes_per_s",
    "topology",
    "inter_node",
    "inter_node_bytes_per_s",
    "pcie_generation",
    "pcie_lanes",
    "download_bytes_per_s",
    "driver_version",
    "cuda_version",
    "nccl_version",
    "conflicts",
)
"""Every attribute of a machine that memory, links, software or time may look at."""


def kind_of(machine: Machine) -> Hashable:
    """Equal for machines between which only the host can tell."""
    return tuple(_identity(getattr(machine, name)) for name in KIND_FACTS)


def _identity(value: Any) -> Hashable:
    if isinstance(value, Fact):
        return value.identity
    if isinstance(value, tuple):
        return tuple(one.id if isinstance(one, GpuSpec) else one for one in value)
    return value  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Hardware:
    """Distinct machines. Columns have one element for each, NaN or -1 where it is not known.

    `kinds` holds one machine of each kind, `kind` the number of each machine's, and `loads_like`
    the first kind that loads as fast as each. Bytes are floats, exact to 2^53. `kept` holds columns
    that others worked out, by what they asked.
    """

    machines: tuple[Machine, ...]
    kinds: tuple[Machine, ...]
    kind: Column
    loads_like: Column
    vcpus: Column
    ram_bytes: Column
    local_storage_bytes: Column
    persistent_storage: Column
    kept: dict[Hashable, Column] = field(default_factory=dict)

    @classmethod
    def of(cls, machines: Sequence[Machine]) -> Hardware:
        kind, firsts = numbered(kind_of(machine) for machine in machines)
        kinds = tuple(machines[first] for first in firsts)
        loading, first_kinds = numbered(one.download_bytes_per_s.value for one in kinds)
        return cls(
            machines=tuple(machines),
            kinds=kinds,
            kind=kind,
            loads_like=np.array(first_kinds, dtype=np.int64)[loading],
            vcpus=_numbers(machines, "vcpus", float, np.nan),
            ram_bytes=_numbers(machines, "ram_bytes", float, np.nan),
            local_storage_bytes=_numbers(machines, "local_storage_bytes", float, np.nan),
            persistent_storage=_numbers(machines, "persistent_storage", np.int8, -1),
        )

    def __len__(self) -> int:
        return len(self.machines)

    def by_kind(self, name: str, read: Callable[[Machine], int]) -> Column:
        """A whole number of every kind, read once."""
        if name not in self.kept:
            self.kept[name] = np.array([read(kind) for kind in self.kinds], dtype=np.int64)
        return self.kept[name]

    def grades(self, names: Sequence[str]) -> Column:
        """Grades of facts, by name and kind of machine."""
        rows = [[getattr(kind, name).grade for kind in self.kinds] for name in names]
        return np.array(rows, dtype=np.int8)


def numbered(keys: Iterable[Hashable]) -> tuple[Column, list[int]]:
    """Equal keys get one number, counted up from 0; and the place where each was met first."""
    numbers = defaultdict[Hashable, int]()
    numbers.default_factory = numbers.__len__
    column = np.fromiter(map(numbers.__getitem__, keys), dtype=np.int64)
    return column, np.flatnonzero(np.diff(np.maximum.accumulate(column), prepend=-1)).tolist()


def _numbers(machines: Sequence[Machine], name: str, kind: Any, unknown: float) -> Column:
    values = (getattr(machine, name).value for machine in machines)
    return np.array([unknown if value is None else value for value in values], dtype=kind)
