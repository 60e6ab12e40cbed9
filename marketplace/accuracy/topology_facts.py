"""Readings in the words of the case files: one object for all outputs of a paste."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evaluator.evidence import (
    BandwidthMatrix,
    Format,
    MigInstance,
    NvlinkStatus,
    PcieLink,
    Reading,
    Span,
    Standing,
    Trouble,
    UnreadableEvidence,
)
from evaluator.evidence.groups import (
    Family,
    all_to_all,
    best_group_worst_class,
    islands,
    known_classes,
    largest_clique,
    nvlink_counts,
)

MAIN = (Format.TOPO_MATRIX,)
"""Where a paste holds one of these, it gives the name; else the first output does."""

UNNAMED_NICS = (Format.NCCL_XML,)


def refused_facts(problem: UnreadableEvidence) -> dict[str, Any]:
    """What a refused text still says: which tool it was, and that it counted no GPU."""
    none_found = problem.trouble is Trouble.NO_DEVICES
    return {
        "format": problem.format.value,
        "expect": "error",
        "errors": {problem.trouble.value},
        "gpu_count": 0 if none_found else None,
    }


def facts_of(readings: Sequence[Reading]) -> dict[str, Any]:
    """The main output's fields first; the others fill what it does not tell."""
    ordered = sorted(readings, key=lambda reading: reading.format not in MAIN)
    found: dict[str, Any] = {}
    for reading in ordered:
        for field, value in _fields(reading).items():
            if found.get(field) is None:
                found[field] = value
    partial = any(reading.standing is Standing.PARTIAL for reading in readings)
    found["expect"] = "partial" if partial else "ok"
    found["errors"] = {one.trouble.value for reading in readings for one in reading.problems}
    return found


def _fields(reading: Reading) -> dict[str, Any]:
    return {
        "format": reading.format.value,
        **{field: tell(reading) for field, tell in FIELDS.items()},
        **_matrix_facts(reading),
        **_bandwidth_facts(reading.bandwidth),
    }


def _list(values: Sequence[Any] | None) -> list[Any] | None:
    return None if values is None else list(values)


def _rows(matrix: Sequence[Sequence[Any]] | None) -> list[list[Any]] | None:
    return None if matrix is None else [list(row) for row in matrix]


def _nics(reading: Reading) -> list[Any] | None:
    if reading.nics is None:
        return None
    if reading.format in UNNAMED_NICS:
        return [nic.label for nic in reading.nics]
    return [{"label": nic.label, "device": nic.device} for nic in reading.nics]


def _nearest(reading: Reading) -> dict[str, Any] | None:
    if not reading.nearest_nic:
        return None
    return {
        str(gpu): {"class": nearest.link_class, "nics": list(nearest.labels)}
        for gpu, nearest in enumerate(reading.nearest_nic)
        if nearest
    }


def _status(link: NvlinkStatus) -> dict[str, Any]:
    inactive = None if link.inactive is None else list(link.inactive)
    every = link.all_inactive and not link.inactive
    return {
        "gpu": link.gpu,
        "name": link.name,
        "active": link.active,
        "inactive": "all" if every else inactive,
        "gbs": link.gb_s,
    }


def _statuses(reading: Reading) -> list[dict[str, Any]] | None:
    return None if reading.nvlinks is None else [_status(link) for link in reading.nvlinks]


def _pcie(reading: Reading) -> Any:
    slots = [_slot(slot) for slot in reading.pcie or ()]
    return (slots[0] if len(slots) == 1 else slots) if slots else None


def _slot(slot: PcieLink) -> dict[str, Any]:
    return {
        "gen_max": slot.generation_max,
        "gen_current": slot.generation_now,
        "host_gen_max": slot.host_generation_max,
        "width_max": slot.width_max,
        "width_current": slot.width_now,
        "link_gb_s": slot.link_gb_s,
    }


def _instances(reading: Reading) -> list[Any] | None:
    return [_instance(one) for one in reading.mig_instances] or None


def _instance(one: MigInstance) -> Any:
    return one.profile if one.profile else {"gi": one.instance, "mib": one.mib}


def _transports(reading: Reading) -> dict[str, int] | None:
    if reading.transports is None:
        return None
    return {transport.name: transport.channels for transport in reading.transports}


def _access(reading: Reading) -> list[list[int]] | None:
    if reading.can_access is None:
        return None
    return sorted(list(pair) for pair in reading.can_access)


def _top(reading: Reading) -> float | None:
    return reading.top_row.best_busbw_gb_s if reading.top_row else None


def _size_at_top(reading: Reading) -> int | None:
    return reading.top_row.size_bytes if reading.top_row else None


FIELDS: Mapping[str, Callable[[Reading], Any]] = {
    "gpu_count": lambda reading: reading.gpu_count,
    "gpu_names_in_text": lambda reading: _list(reading.gpu_names),
    "driver": lambda reading: reading.driver,
    "cuda": lambda reading: reading.cuda,
    "vram_mib": lambda reading: _list(reading.vram_mib),
    "mig_enabled": lambda reading: reading.mig_enabled,
    "mig_instances": _instances,
    "gpu_matrix": lambda reading: _rows(reading.matrix),
    "nics": _nics,
    "gpu_nearest_nic": _nearest,
    "cpu_affinity": lambda reading: _list(reading.cpu_affinity),
    "numa_affinity": lambda reading: _list(reading.numa_affinity),
    "gpu_numa_id": lambda reading: _list(reading.gpu_numa_id),
    "numa_node": lambda reading: _list(reading.numa_node),
    "p2p_matrix": lambda reading: _rows(reading.p2p_matrix),
    "gpus": _statuses,
    "nvlink_supported": lambda reading: reading.nvlink_supported,
    "pcie": _pcie,
    "transports": _transports,
    "nodes": lambda reading: reading.nodes,
    "nccl_version": lambda reading: reading.nccl_version,
    "max_busbw_gb_s": _top,
    "size_at_max": _size_at_top,
    "can_access": _access,
    "slow_gpus": lambda reading: _list(reading.slow_gpus),
    "host_to_device_gb_s": lambda reading: reading.host_to_device_gb_s,
    "device_to_host_gb_s": lambda reading: reading.device_to_host_gb_s,
}


def _span(span: Span | None) -> dict[str, float] | None:
    return {"min": span.low, "max": span.high} if span else None


def _counts(span: Span | None) -> dict[str, int] | None:
    return {"min": int(span.low), "max": int(span.high)} if span else None


def _matrix_facts(reading: Reading) -> dict[str, Any]:
    """What follows from a matrix of classes."""
    matrix = reading.matrix
    if matrix is None:
        return {}
    known = known_classes(matrix)
    groups = best_group_worst_class(matrix)
    return {
        "link_classes": dict(Counter(known)),
        "pairs_known": len(known),
        "pairs_total": len(matrix) * (len(matrix) - 1) // 2,
        "best_pair_class": known[0] if known else None,
        "worst_pair_class": known[-1] if known else None,
        "all_to_all_nvlink": all_to_all(matrix, Family.NVLINK),
        "all_to_all_xgmi": all_to_all(matrix, Family.XGMI),
        "nvlink_islands": islands(matrix, Family.NVLINK),
        "xgmi_islands": islands(matrix, Family.XGMI),
        "largest_nvlink_clique": largest_clique(matrix, Family.NVLINK),
        "largest_xgmi_clique": largest_clique(matrix, Family.XGMI),
        "nvlink_count_per_pair": _counts(nvlink_counts(matrix)),
        "best_group_worst_class": None
        if groups is None
        else {str(size): link for size, link in groups.items()},
    }


def _bandwidth_facts(tables: Sequence[BandwidthMatrix]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for table in tables:
        if table.p2p is not None and table.both_ways is not None:
            way = "bidir" if table.both_ways else "unidir"
            switch = "on" if table.p2p else "off"
            found[f"{way}_{switch}_gb_s"] = _span(table.span)
    return found
