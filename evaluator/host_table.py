"""Which machines fail which item of the host checklist, as columns: unknown never fails.

The items of `host.host_items` that can end in "fail". Numbers of the host are compared as columns,
all others are asked once for each kind of machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from evaluator.checklist import HostItem, failures
from evaluator.hardware import Column, Hardware
from evaluator.host import CORES, RAM, plan_items
from evaluator.host_gpus import SLOTS, WHOLE
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.plans import Plan
from evaluator.releases import formats_of, stack_of
from evaluator.rocm import ROCM
from evaluator.software import CARD, DRIVER, FORMAT, software_items
from evaluator.states import host_bytes
from evaluator.storage import LASTING, LOCAL, beside_weights

NAMES = (
    "",
    *(item.name for item in (LOCAL, LASTING, DRIVER, ROCM, CARD, FORMAT, CORES, RAM, SLOTS, WHOLE)),
)
"""Names of items that can fail, in the order of the checklist; 0 is none."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a plan asks of every machine: cores for its processes, bytes of RAM, peers."""

    working: int
    offloaded: int
    exchanges: bool


def load_of(workload: Workload, plan: Plan) -> Load:
    offloaded = host_bytes(workload, plan) or 0
    return Load(max(1, plan.gpus // plan.nodes), offloaded, plan.exchanges)


def _cores(load: Load, hardware: Hardware, machines: Column) -> Column:
    return hardware.vcpus[machines] < load.working


def _ram(load: Load, hardware: Hardware, machines: Column) -> Column:
    return hardware.ram_bytes[machines] < load.offloaded


@dataclass(frozen=True, slots=True)
class HostTable:
    """`alone` is the place in `NAMES` of the first item that fails whatever the plan, by machine.

    `peculiar` are kinds whose slots or shares of GPUs may fail a plan.
    """

    workload: Workload
    hardware: Hardware
    alone: Column
    peculiar: tuple[int, ...]
    _failing: dict[tuple[int, Load], int] = field(default_factory=dict)

    @classmethod
    def of(cls, workload: Workload, hardware: Hardware, weights_bytes: int | None) -> HostTable:
        asked = (stack_of(workload), formats_of(workload))
        if asked not in hardware.kept:
            software = [_place(software_items(workload, kind)) for kind in hardware.kinds]
            hardware.kept[asked] = np.array(software, dtype=np.int8)
        alone = hardware.kept[asked][hardware.kind]
        storage = _storage(workload, hardware, weights_bytes)
        peculiar = np.flatnonzero(hardware.by_kind("peculiar", _is_peculiar)).tolist()
        return cls(workload, hardware, np.where(storage > 0, storage, alone), tuple(peculiar))

    def first_failure(self, plan: Plan, load: Load, machines: Column) -> Column:
        """Of machines at the given places; `plan` is any plan of that load."""
        found = np.zeros(len(machines), dtype=np.int8)
        for kind in self.peculiar:
            found[self.hardware.kind[machines] == kind] = self._of_kind(kind, plan, load)
        found[_ram(load, self.hardware, machines)] = NAMES.index(RAM.name)
        found[_cores(load, self.hardware, machines)] = NAMES.index(CORES.name)
        alone = self.alone[machines]
        return np.where(alone > 0, alone, found)

    def _of_kind(self, kind: int, plan: Plan, load: Load) -> int:
        if (kind, load) not in self._failing:
            items = plan_items(self.workload, plan, self.hardware.kinds[kind], None)
            own = (item for item in items if item.name in (SLOTS.name, WHOLE.name))
            self._failing[kind, load] = _place(own)
        return self._failing[kind, load]


def _place(items: Iterable[HostItem]) -> int:
    return next((NAMES.index(item.name) for item in failures(items)), 0)


def _is_peculiar(machine: Machine) -> bool:
    return machine.fractional or machine.topology.known


def _storage(workload: Workload, hardware: Hardware, weights_bytes: int | None) -> Column:
    """A disk that is too small and the only one, or checkpoints that nothing outlives."""
    found = np.zeros(len(hardware), dtype=np.int8)
    nowhere, job = hardware.persistent_storage == 0, workload.training
    if job and job.checkpoint_bytes:
        found[nowhere] = NAMES.index(LASTING.name)
    if weights_bytes is not None:
        small = hardware.local_storage_bytes < weights_bytes + beside_weights(workload)
        found[nowhere & small] = NAMES.index(LOCAL.name)
    return found
