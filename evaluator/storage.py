"""Disks of a rented machine: room for weights, data and checkpoints, and what outlives it."""

from __future__ import annotations

from functools import lru_cache

from evaluator.checklist import Asked, HostItem
from evaluator.facts import Grade
from evaluator.first_step import checkpoint_range, first_step
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.states import trainable_params
from evaluator.units import gb

LOCAL = Asked(
    "local storage",
    ("local_storage_bytes", "persistent_storage", "download_bytes_per_s"),
    "Ask for `df -h` and for the download rate of the machine.",
)


def storage_items(
    workload: Workload, machine: Machine, weights_bytes: int | None
) -> tuple[HostItem, HostItem]:
    """Local and persistent storage. They depend on no plan: every machine fetches it all."""
    remote, disk = machine.persistent_storage, machine.local_storage_bytes
    step = first_step(workload, machine, weights_bytes)
    needed = None if weights_bytes is None else weights_bytes + beside_weights(workload)
    start = step.words if step else ""
    saved = _assumed_checkpoint(workload) if disk.value else 0
    local = local_item(disk.value, disk.grade, needed, remote.value, start, saved)
    return local, persistent_item(remote.value, remote.grade, _keeps(workload))


def beside_weights(workload: Workload) -> int:
    """Bytes of data and of one checkpoint, as far as they are stated."""
    job = workload.training
    return (job.dataset_bytes or 0) + (job.checkpoint_bytes or 0) if job else 0


def _assumed_checkpoint(workload: Workload) -> int:
    """Bytes of a checkpoint of no stated size: it may leave a question and makes no fail."""
    job = workload.training
    if job is None or job.checkpoint_bytes is not None:
        return 0
    saved = checkpoint_range(workload, trainable_params(workload))
    return round(saved.typical) if saved else 0


def _keeps(workload: Workload) -> bool:
    return bool(workload.training and workload.training.checkpoint_bytes)


@lru_cache(maxsize=4096)
def local_item(
    disk: int | None,
    grade: Grade,
    needed: int | None,
    remote: bool | None,
    start: str,
    checkpoint: int = 0,
) -> HostItem:
    """A small disk fails only where no other storage can hold the rest."""
    start = f" {start[:1].upper()}{start[1:]}." if start else ""
    if needed is None:
        return LOCAL.unknown("The size of the weights is not known.", grade)
    if disk is None:
        return LOCAL.unknown(f"The disk is not stated; {gb(needed):,.0f} GB go to it.{start}")
    words = f"{gb(disk):,.0f} GB of local disk for {gb(needed):,.0f} GB.{start}"
    if disk >= needed + checkpoint:
        return LOCAL.passes(words, grade)
    if disk >= needed:
        words = f"{words} A checkpoint of about {gb(checkpoint):,.0f} GB has no room beside them."
        return LOCAL.unknown(words, grade, "State checkpoint_bytes, or take a larger disk.")
    remedy = f"Take a disk or a volume of {gb(needed):,.0f} GB or more."
    if remote is not False:
        return LOCAL.unknown(words, grade, remedy)
    return LOCAL.fails(words, grade, remedy)


LASTING = Asked(
    "persistent storage", ("persistent_storage",), "Ask which storage outlives the rental."
)


@lru_cache(maxsize=64)
def persistent_item(present: bool | None, grade: Grade, keeps: bool) -> HostItem:
    if present is None:
        return LASTING.unknown("Nothing says what outlives the rental.")
    if present:
        return LASTING.passes("Storage outlives the rental.", grade)
    if keeps:
        reason = "Nothing outlives the rental, and the job writes checkpoints."
        return LASTING.fails(
            reason, grade, "Take a volume that stays, or copy each checkpoint out."
        )
    return LASTING.passes("Nothing outlives the rental; nothing has to.", grade)
