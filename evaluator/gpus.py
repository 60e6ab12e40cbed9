"""GPU models and their published figures. A label may match several cards; none sets a topology."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from evaluator.units import GB, GIB, MIB

SIZE_TOLERANCE = 0.07
"""A reported size this close to a published one is that size (gpuhunt's rule, catalog.md 3)."""


@dataclass(frozen=True, slots=True)
class PermittedLink:
    """What a form factor can carry, one direction. Never evidence that a machine carries it."""

    kind: str
    generation: int | None = None
    bytes_per_s: int | None = None


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """Published figures of one card. None is unknown. Bytes/s in one direction, dense TFLOPS."""

    id: str
    model: str
    name: str
    vendor: str
    form_factor: str
    label_gb: int
    source: str
    architecture: str = ""
    compute_capability: str | None = None
    memory_type: str = ""
    driver_reported_mib: int | None = None
    usable_bytes: int | None = None
    memory_bytes_per_s: int | None = None
    dense_tflops: Mapping[str, float] = field(default_factory=dict)
    pcie_generation: int | None = None
    pcie_lanes: int | None = None
    pcie_bytes_per_s: int | None = None
    peer_to_peer: str | None = None
    permits: tuple[PermittedLink, ...] = ()
    tdp_watts: int | None = None
    aliases: tuple[str, ...] = ()
    cross_checked_with: tuple[str, ...] = ()
    note: str = ""


@cache
def specs() -> tuple[GpuSpec, ...]:
    """Every card of `data/gpus.toml`, in file order."""
    text = files("evaluator").joinpath("data/gpus.toml").read_text("utf-8")
    return tuple(_spec(table) for table in tomllib.loads(text)["gpu"])


def _spec(table: dict[str, Any]) -> GpuSpec:
    links = tuple(PermittedLink(**link) for link in table.pop("permits", ()))
    lists: dict[str, Any] = {
        key: tuple(table.pop(key, ())) for key in ("aliases", "cross_checked_with")
    }
    return GpuSpec(permits=links, **lists, **table)


@cache
def specs_of(model: str) -> tuple[GpuSpec, ...]:
    """All cards sold under a canonical model name such as "A100" or "RTX A6000"."""
    return tuple(spec for spec in specs() if spec.model == model)


def known_sizes_gb(model: str) -> tuple[int, ...]:
    """Published label sizes of a model, ascending. Empty for an unknown model."""
    return tuple(sorted({spec.label_gb for spec in specs_of(model)}))


def size_matching(model: str, vram_bytes: float) -> int | None:
    """Label size in GB of the card whose label (as GB or GiB) or driver report is nearest.

    None when no published size lies within SIZE_TOLERANCE.
    """
    distances = [
        (abs(vram_bytes - reference) / reference, spec.label_gb)
        for spec in specs_of(model)
        for reference in _sizes_in_bytes(spec)
    ]
    distance, size = min(distances, default=(1.0, 0))
    return size if distance <= SIZE_TOLERANCE else None


def _sizes_in_bytes(spec: GpuSpec) -> list[int]:
    reported = [spec.driver_reported_mib * MIB] if spec.driver_reported_mib else []
    return [spec.label_gb * GB, spec.label_gb * GIB, *reported]


def candidates(
    model: str, *, label_gb: int | None = None, form_factor: str | None = None
) -> tuple[GpuSpec, ...]:
    """The cards a catalog's words may mean. Words that exclude every card are set aside."""
    found = specs_of(model)
    for fits in (
        lambda spec: label_gb is None or spec.label_gb == label_gb,
        lambda spec: form_factor is None or _same_form(spec.form_factor, form_factor),
    ):
        found = tuple(filter(fits, found)) or found
    return found


def _same_form(published: str, stated: str) -> bool:
    """ "SXM" names every SXM generation; "PCIe LP" is a PCIe card."""
    return published.upper().startswith(stated.upper()) or stated.upper() in published.upper()
