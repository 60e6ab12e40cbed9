"""What one GPU can do per second, by the format in which it multiplies."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from evaluator.gpus import GpuSpec, specs_of
from evaluator.ranges import Few, Number, Range, exact

TERA = 10**12
MULTIPLIED_IN = {
    "fp8": ("fp8",),
    "int8": ("int8",),
    "nvfp4": ("fp4", "fp8"),
    "mxfp4": ("fp4", "fp8"),
    "fp32": ("fp16",),
}
"""Formats that tensor cores multiply themselves; all others are unpacked to 16 bits first."""


@dataclass(frozen=True, slots=True)
class Device:
    """Peaks of one GPU: FLOP/s dense, bytes/s. `generation` names the constants that apply.

    `memory_kind` is "GDDR" or "HBM", "" where it is not published.
    """

    generation: str
    half_flops: float
    peaks: tuple[tuple[str, float], ...]
    memory_bytes_per_s: float
    usable_bytes: int | None
    memory_kind: str = ""

    def rate(self, weights_format: str) -> tuple[str, float]:
        """The format in which weights are multiplied, and the peak for it."""
        known = dict(self.peaks)
        for name in MULTIPLIED_IN.get(weights_format, ()):
            if name in known:
                return name, known[name]
        return "half", self.half_flops


class Devices(Device):
    """Many elements, each on one of few cards: every peak is a column.

    `cards` are the distinct devices, `which` the number of each element's.
    """

    cards: Few[Device]
    which: Any

    @classmethod
    def of(cls, cards: Few[Device], which: Any) -> Devices:
        half = cards.each("half", lambda one: exact(one.half_flops), which)
        memory = cards.each("memory", lambda one: exact(one.memory_bytes_per_s), which)
        made = cls("", half.typical, (), memory.typical, None)
        object.__setattr__(made, "cards", cards)
        object.__setattr__(made, "which", which)
        return made


def on_each(device: Device, key: Hashable, read: Callable[[Device], Range]) -> Range:
    """What is read of a device; of many devices, for each element, once for each key."""
    if isinstance(device, Devices):
        return device.cards.each(key, read, device.which)
    return read(device)


def peak_of(device: Device, weights_format: str) -> Number:
    """FLOP/s in the format in which weights are multiplied."""
    key = ("peak", weights_format)
    return on_each(device, key, lambda one: exact(one.rate(weights_format)[1])).typical


def device_of(spec: GpuSpec) -> Device | None:
    """None where the card's peak or its memory bandwidth is not published.

    A card without a published peak has that of the slowest of its model in the same form; without
    a published bandwidth, that of the slowest of its model in any form.
    """
    peaks = _peaks(spec)
    half = peaks.get("bf16") or peaks.get("fp16")
    memory = spec.memory_bytes_per_s or _slowest_memory(spec)
    if not half or not memory:
        return None
    shares = spec.devices
    return Device(
        generation=spec.architecture.partition(" ")[0],
        half_flops=half / shares,
        peaks=tuple((name, value / shares) for name, value in peaks.items()),
        memory_bytes_per_s=memory / shares,
        usable_bytes=spec.usable_bytes // shares if spec.usable_bytes else None,
        memory_kind=spec.memory_type.rstrip("0123456789XEWxew "),
    )


def _peaks(spec: GpuSpec) -> dict[str, float]:
    alike = [card for card in specs_of(spec.model) if card.form_factor == spec.form_factor]
    published = [spec, *sorted(alike, key=lambda card: card.dense_tflops.get("fp16") or 0)]
    for card in published:
        if any(card.dense_tflops.values()):
            return {name: value * TERA for name, value in card.dense_tflops.items() if value}
    return {}


def _slowest_memory(spec: GpuSpec) -> int | None:
    rates = [card.memory_bytes_per_s for card in specs_of(spec.model) if card.memory_bytes_per_s]
    return min(rates, default=None)


def crossover_batch(device: Device, weights_format: str, bytes_per_weight: float) -> float:
    """Sequences from which a decode step multiplies longer than it reads the weights."""
    _, peak = device.rate(weights_format)
    return peak * bytes_per_weight / (2 * device.memory_bytes_per_s)
