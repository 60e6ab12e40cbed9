"""Which ROCm, engine and AMD card go together, from the dated tables of data/software.toml.

Cards are told apart by their generation. RCCL is a part of ROCm, so its version asks for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from evaluator.checklist import Asked, HostItem, weakest
from evaluator.facts import Grade
from evaluator.gpus import GpuSpec
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.releases import (
    Stack,
    Version,
    formats_of,
    reaches,
    release_of,
    releases_of,
    said,
    stack_of,
    tables,
    version_of,
)


def rocm_items(workload: Workload, machine: Machine) -> Iterator[HostItem]:
    """ROCm and its driver, the card against the engine, and the number formats."""
    stack, grade = stack_of(workload), machine.gpu_model.grade
    generations = tuple(dict.fromkeys(spec.architecture for spec in machine.specs))
    driver, rocm = machine.driver_version, machine.cuda_version
    yield rocm_item(
        (driver.value or "", rocm.value or ""), weakest(driver, rocm), stack, generations
    )
    yield card_item(generations, stack, grade)
    yield format_item(machine.specs, formats_of(workload), grade)


ROCM = Asked(
    "driver, ROCm, RCCL",
    ("driver_version", "cuda_version", "nccl_version"),
    "Ask for `amd-smi version`, which prints the driver and the ROCm release.",
)


@lru_cache(maxsize=1024)
def rocm_item(
    versions: tuple[str, str], grade: Grade, stack: Stack, generations: tuple[str, ...]
) -> HostItem:
    """The release as stated against what the card and the engine need."""
    needs = list(_needs(stack, generations))
    needed, why = max(needs, default=((), ""))
    stated = version_of(versions[1])
    if not stated:
        wanted = f" {said(needed)} or newer is needed." if needed else ""
        return ROCM.unknown(f"The ROCm release is not stated.{wanted}")
    if not reaches(stated, needed):
        remedy = f"Have ROCm {said(needed)} or newer installed, or take another machine."
        return ROCM.fails(f"ROCm {versions[1]}, and {why} needs {said(needed)}.", grade, remedy)
    if not needed:
        return ROCM.unknown(f"ROCm {versions[1]}; no table says what the card needs.", grade)
    if not versions[0]:
        return ROCM.unknown(f"ROCm {versions[1]} will do; the driver is not stated.", grade)
    return ROCM.passes(f"Driver {versions[0]} and ROCm {versions[1]}; RCCL comes with it.", grade)


def _needs(stack: Stack, generations: tuple[str, ...]) -> Iterator[tuple[Version, str]]:
    rows = [row for row in tables()["rocm"] if set(row.generations) & set(generations)]
    yield from ((row.rocm, "the card") for row in rows)
    release = release_of(stack.engine, stack.version, "rocm_engine") if stack.version else None
    if release:
        yield release.rocm, stack.words


ASK_CARD = "Ask for `amd-smi list`."
CARD = Asked("GPU against the engine", ("gpu_model",), ASK_CARD)


@lru_cache(maxsize=1024)
def card_item(generations: tuple[str, ...], stack: Stack, grade: Grade) -> HostItem:
    """The card's generation against those that the engine's documentation names."""
    rows = releases_of(stack.engine, "rocm_engine")
    row = release_of(stack.engine, stack.version, "rocm_engine")
    if not rows or row is None:
        return CARD.unknown(f"No table says which AMD GPUs {stack.engine} takes.", grade)
    named = ", ".join(generations)
    if set(generations) <= set(row.generations):
        return CARD.passes(f"{named}; {stack.engine} takes it on ROCm {said(row.rocm)} up.", grade)
    words = f"{named} is not among the cards that {stack.words} names."
    return CARD.unknown(words, grade, "Start the engine on one such card.")


FORMAT = Asked("number formats", ("gpu_model",), ASK_CARD)
MULTIPLIED = {"cache in fp8": "fp8", "mxfp4": "fp4"}
"""Peaks by which a format is known to be multiplied, where they are named otherwise."""
PLAIN = frozenset({"fp16", "fp32", "gguf"})


def format_item(specs: tuple[GpuSpec, ...], formats: tuple[str, ...], grade: Grade) -> HostItem:
    """Whether a peak is published for each format of the job on every card of the label."""
    asked = [name for name in formats if name not in PLAIN]
    missing = [name for name in asked if not _is_multiplied(specs, name)]
    if not missing:
        return FORMAT.passes(f"{', '.join(formats)} on matrix cores of this card.", grade)
    words = f"No peak of the card is published for {', '.join(missing)}."
    return FORMAT.unknown(words, grade, ASK_ENGINE)


ASK_ENGINE = "Start the engine on one such card: whether it takes the format, its version decides."


def _is_multiplied(specs: tuple[GpuSpec, ...], name: str) -> bool:
    peak = MULTIPLIED.get(name, name)
    return bool(specs) and all(spec.dense_tflops.get(peak) for spec in specs)
