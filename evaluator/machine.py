"""What is rented, attribute by attribute, each a fact."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from evaluator.connections import Topology
from evaluator.facts import UNKNOWN, Fact
from evaluator.gpus import GpuSpec


class LinkClass(StrEnum):
    """How the GPUs of one machine reach each other, in the words a catalog or a driver uses."""

    NVSWITCH = "nvswitch"
    NVLINK = "nvlink"
    NVLINK_ISLANDS = "nvlink_islands"
    NVLINK_PAIRS = "nvlink_pairs"
    NVLINK_BRIDGE = "nvlink_bridge"
    XGMI = "xgmi"
    XGMI_ISLANDS = "xgmi_islands"
    PCIE_P2P = "pcie_p2p"
    PCIE = "pcie"
    P2P_DISABLED = "p2p_disabled"


class Availability(StrEnum):
    """A listed machine is not available, and an available one is not reserved."""

    AVAILABLE = "available"
    LIMITED = "limited"
    SOLD_OUT = "sold_out"
    WAITLIST = "waitlist"
    PREORDER = "preorder"
    LEAD_TIME = "lead_time"
    ON_REQUEST = "on_request"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two facts about one attribute that disagree: the one judged by, and the one outweighed."""

    attribute: str
    judged_by: str
    outweighed: str


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine as offered. `specs` are all cards that its label may mean, worst one binding.

    Bytes are integers, link speeds bytes/s in one direction. `nodes` is how many machines one
    rental holds; `gpu_count` counts the GPUs of a single node. Of lanes and watts the lowest of all
    GPUs counts, `open_ports` are those that can be reached from outside.
    """

    gpu_model: Fact[str] = UNKNOWN
    specs: tuple[GpuSpec, ...] = ()
    gpu_count: Fact[int] = UNKNOWN
    nodes: int = 1
    fractional: bool = False
    usable_bytes_per_gpu: Fact[int] = UNKNOWN
    form_factor: Fact[str] = UNKNOWN
    link: Fact[LinkClass] = UNKNOWN
    link_bytes_per_s: Fact[int] = UNKNOWN
    topology: Fact[Topology] = UNKNOWN
    inter_node: Fact[str] = UNKNOWN
    inter_node_bytes_per_s: Fact[int] = UNKNOWN
    vcpus: Fact[int] = UNKNOWN
    ram_bytes: Fact[int] = UNKNOWN
    local_storage_bytes: Fact[int] = UNKNOWN
    persistent_storage: Fact[bool] = UNKNOWN
    pcie_generation: Fact[int] = UNKNOWN
    pcie_lanes: Fact[int] = UNKNOWN
    shm_bytes: Fact[int] = UNKNOWN
    power_limit_watts: Fact[int] = UNKNOWN
    virtual: Fact[bool] = UNKNOWN
    open_ports: Fact[int] = UNKNOWN
    download_bytes_per_s: Fact[int] = UNKNOWN
    driver_version: Fact[str] = UNKNOWN
    cuda_version: Fact[str] = UNKNOWN
    nccl_version: Fact[str] = UNKNOWN
    conflicts: tuple[Conflict, ...] = ()

    def fingerprint(self) -> str:
        """Equal for machines that every verdict treats alike: values and grades, never dates."""
        parts = [f"{item.name}={_identity(getattr(self, item.name))}" for item in fields(self)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    def conflict_over(self, attribute: str) -> Conflict | None:
        return next((item for item in self.conflicts if item.attribute == attribute), None)


def _identity(value: Any) -> Any:
    if isinstance(value, Fact):
        return value.identity
    if isinstance(value, tuple):
        return tuple(item.id if isinstance(item, GpuSpec) else item for item in value)
    return value


def worst_usable_bytes(specs: tuple[GpuSpec, ...]) -> int | None:
    """Memory that the driver reports on the smallest GPU; None where any card's is unknown."""
    sizes = [spec.usable_bytes // spec.devices for spec in specs if spec.usable_bytes]
    return min(sizes) if sizes and len(sizes) == len(specs) else None
