"""Attributes of a machine in words: their labels, how a value is printed, a paste's facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from evaluator.connections import Topology
from evaluator.facts import Grade
from evaluator.group_rates import speeds_of
from evaluator.links import words_of
from evaluator.machine import LinkClass
from evaluator.pair_rates import told_rates
from evaluator.sightings import Seen
from marketplace.link_matrix import describe
from marketplace.templatetags.present import gb, gb_per_s, gib


def _plain(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _yes_or_no(value: object) -> str:
    return "yes" if value else "no"


def _link_words(value: str) -> str:
    return words_of(LinkClass(value))


SHOWN: tuple[tuple[str, str, Callable[[Any], str], tuple[str, ...]], ...] = (
    ("gpu_model", "GPU model", _plain, ("gpu", "AcceleratorName")),
    ("gpu_count", "GPUs in a machine", _plain, ("gpu_count", "AcceleratorCount")),
    (
        "usable_bytes_per_gpu",
        "Memory per GPU that a driver reports",
        gib,
        ("vram", "vram_total", "GpuInfo"),
    ),
    ("form_factor", "Form factor", _plain, ("form_factor",)),
    ("link", "Link between GPUs", _link_words, ("link",)),
    ("link_bytes_per_s", "Link speed, one direction", gb_per_s, ()),
    ("inter_node", "Network between machines", _plain, ("inter_node",)),
    ("inter_node_bytes_per_s", "Network speed, one direction", gb_per_s, ()),
    ("vcpus", "vCPUs", _plain, ("vcpu", "vCPUs")),
    ("ram_bytes", "Host memory", gb, ("ram", "MemoryGiB")),
    ("local_storage_bytes", "Local storage", gb, ("disk",)),
    ("persistent_storage", "Persistent storage", _yes_or_no, ("persistent_storage",)),
    ("pcie_generation", "PCIe generation", _plain, ("pcie",)),
    ("pcie_lanes", "PCIe lanes of a GPU", _plain, ()),
    ("shm_bytes", "Shared memory of the container", gb, ()),
    ("power_limit_watts", "Power limit of a GPU, watts", _plain, ()),
    ("virtual", "Virtual machine", _yes_or_no, ()),
    ("open_ports", "Ports open to the outside", _plain, ()),
    ("download_bytes_per_s", "Download rate", gb_per_s, ()),
    ("driver_version", "GPU driver", _plain, ("driver",)),
    ("cuda_version", "CUDA", _plain, ("cuda",)),
    ("nccl_version", "NCCL", _plain, ("nccl",)),
)
"""Attribute, its label, how its value is printed, and under which names a catalog words it."""


def printed(name: str, value: Any) -> tuple[str, str]:
    """Label and text of one attribute's value."""
    label, print_value = next(
        ((label, show) for known, label, show, _ in SHOWN if known == name), (name, _plain)
    )
    return label, print_value(value)


@dataclass(frozen=True, slots=True)
class SeenLine:
    label: str
    text: str
    grade: Grade
    caveat: str = ""


def seen_lines(facts: Iterable[Seen]) -> list[SeenLine]:
    return [
        SeenLine(*_printed(seen.name, seen.value), grade=seen.grade, caveat=seen.caveat)
        for seen in facts
    ]


def _printed(name: str, value: Any) -> tuple[str, str]:
    if isinstance(value, Topology):
        faults = (f"{fault.kind.value.replace('_', ' ')}: {fault.words}" for fault in value.faults)
        seen = (describe(value),) if value.matrix else ()
        speeds = (*(speed.words for speed in speeds_of(value)), *told_rates(value))
        return "Links, pair by pair", " ".join((*seen, *(f"{one}." for one in (*speeds, *faults))))
    return printed(name, value)
