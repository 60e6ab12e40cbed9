"""Which machines fail which item of the host checklist, as columns: unknown never fails.

The rules of `host.host_items` that can end in "fail"; what a plan asks of the host is few numbers,
which many plans share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evaluator.hardware import Column, Hardware
from evaluator.jobs import Workload
from evaluator.plans import Plan
from evaluator.software import software_failure
from evaluator.states import host_bytes


@dataclass(frozen=True, slots=True)
class Asked:
    """What a plan asks of every machine: cores for its processes, bytes of RAM at once."""

    working: int
    offloaded: int


def asked_of(workload: Workload, plan: Plan) -> Asked:
    return Asked(max(1, plan.gpus // plan.nodes), host_bytes(workload, plan) or 0)


def _cores(asked: Asked, hardware: Hardware, machines: Column) -> Column:
    return hardware.vcpus[machines] < asked.working


def _ram(asked: Asked, hardware: Hardware, machines: Column) -> Column:
    return hardware.ram_bytes[machines] < asked.offloaded


Rule = Callable[[Asked, Hardware, Column], Column]
RULES: tuple[tuple[str, Rule], ...] = (("vCPUs per GPU", _cores), ("host RAM", _ram))
"""In the order of the checklist; storage and software follow them, whatever the plan."""
STORAGE = ("local storage", "persistent storage")
SOFTWARE = ("driver, CUDA, NCCL", "GPU against the engine", "number formats")
NAMES = ("", *(name for name, _ in RULES), *STORAGE, *SOFTWARE)
"""Names of failing items by their number; 0 is none."""


@dataclass(frozen=True, slots=True)
class HostTable:
    """The first item that fails, by its place in `NAMES`, for what a plan asks.

    `storage` is the first that fails whatever the plan: storage, then software.
    """

    hardware: Hardware
    storage: Column

    @classmethod
    def of(cls, workload: Workload, hardware: Hardware, weights_bytes: int | None) -> HostTable:
        storage = _storage(workload, hardware, weights_bytes)
        return cls(hardware, np.where(storage > 0, storage, _software(workload, hardware)))

    def first_failure(self, asked: Asked, machines: Column) -> Column:
        """By machine, of those at the given places."""
        found = self.storage[machines]
        for place in range(len(RULES), 0, -1):
            found[RULES[place - 1][1](asked, self.hardware, machines)] = place
        return found


def _software(workload: Workload, hardware: Hardware) -> Column:
    """Drivers, cards and formats that the workload's engine refuses, asked once for each stack."""
    names = (software_failure(workload, sample) for sample in hardware.softwares)
    found = np.array([NAMES.index(name) for name in names], dtype=np.int8)
    return found[hardware.software] if len(hardware) else found


def _storage(workload: Workload, hardware: Hardware, weights_bytes: int | None) -> Column:
    """A disk that is too small and the only one, or checkpoints that nothing outlives."""
    found = np.zeros(len(hardware), dtype=np.int8)
    nowhere, job = hardware.persistent_storage == 0, workload.training
    if job and job.checkpoint_bytes:
        found[nowhere] = NAMES.index("persistent storage")
    if weights_bytes is not None:
        stated = (job.dataset_bytes or 0) + (job.checkpoint_bytes or 0) if job else 0
        small = hardware.local_storage_bytes < weights_bytes + stated
        found[nowhere & small] = NAMES.index("local storage")
    return found
