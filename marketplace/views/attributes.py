"""A machine's attributes as rows: value, grade, source, time, and the provider's own words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from evaluator.facts import Fact
from evaluator.machine import Conflict, Machine
from marketplace.models import Listing
from marketplace.templatetags.present import gb, gb_per_s, gib, words


@dataclass(frozen=True, slots=True)
class Attribute:
    """One line of the listing page. `said` is what the provider printed for it."""

    label: str
    text: str
    fact: Fact[Any]
    said: str = ""
    conflict: Conflict | None = None


def _plain(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _yes_or_no(value: object) -> str:
    return "yes" if value else "no"


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
    ("link", "Link between GPUs", words, ("link",)),
    ("link_bytes_per_s", "Link speed, one direction", gb_per_s, ()),
    ("inter_node", "Network between machines", _plain, ("inter_node",)),
    ("inter_node_bytes_per_s", "Network speed, one direction", gb_per_s, ()),
    ("vcpus", "vCPUs", _plain, ("vcpu", "vCPUs")),
    ("ram_bytes", "Host memory", gb, ("ram", "MemoryGiB")),
    ("local_storage_bytes", "Local storage", gb, ("disk",)),
    ("persistent_storage", "Persistent storage", _yes_or_no, ("persistent_storage",)),
    ("pcie_generation", "PCIe generation", _plain, ("pcie",)),
    ("driver_version", "GPU driver", _plain, ("driver",)),
    ("cuda_version", "CUDA", _plain, ("cuda",)),
    ("nccl_version", "NCCL", _plain, ("nccl",)),
)
"""Attribute, its label, how its value is printed, and under which names a catalog words it."""


def attributes_of(listing: Listing, machine: Machine) -> list[Attribute]:
    """Every attribute, the unknown ones too: what is missing is what has to be asked."""
    return list(_rows(listing, machine))


def _rows(listing: Listing, machine: Machine) -> Iterator[Attribute]:
    for name, label, print_value, keys in SHOWN:
        fact: Fact[Any] = getattr(machine, name)
        yield Attribute(
            label=label,
            text=print_value(fact.value) if fact.known else "",
            fact=fact,
            said=str(listing.words.get(_said_as(listing, keys), "")),
            conflict=machine.conflict_over(name),
        )


def _said_as(listing: Listing, keys: Iterable[str]) -> str:
    """The first of these names under which the catalog worded something."""
    return next((key for key in keys if listing.words.get(key)), "")


def other_words(listing: Listing) -> dict[str, str]:
    """What the provider printed besides the attributes above."""
    used = {_said_as(listing, keys) for _, _, _, keys in SHOWN}
    return {key: str(text) for key, text in listing.words.items() if key not in used and text}
