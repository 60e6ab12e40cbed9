"""From a rented machine to the first step: start, download, load. All ranges; most are assumed.

A machine whose download rate is stated is timed with it; else the range of `rent.download` counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from evaluator.calibration import Constant, constants, figure
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.ranges import Range, exact
from evaluator.units import SECONDS_PER_HOUR, gb

HOURS_FROM = 6 * 3600
"""Seconds from which on minutes are no longer read."""


@dataclass(frozen=True)
class FirstStep:
    """Seconds of download and of loading. `stated` is False where the rate is an assumption.

    `fetched` and `loaded` are the bytes that are downloaded and read into the GPUs.
    """

    download: Range
    load: Range
    stated: bool
    fetched: int = 0
    loaded: int = 0

    @property
    def seconds(self) -> Range:
        return self.download + self.load

    @property
    def hours(self) -> Range:
        return self.seconds.scaled(1 / SECONDS_PER_HOUR)

    @cached_property
    def words(self) -> str:
        seconds, unit = (60, "minutes") if self.seconds.high < HOURS_FROM else (3600, "hours")
        low, high = self.seconds.low / seconds, self.seconds.high / seconds
        rate = "the stated" if self.stated else "an assumed"
        return f"{low:,.0f} to {high:,.0f} {unit} to the first step at {rate} download rate"

    @property
    def derivation(self) -> str:
        """How the time comes about: formula, inputs and what is assumed."""
        assumed = ("rent.load",) if self.stated else ("rent.download", "rent.load")
        told = "; ".join(_told(constants()[name]) for name in assumed)
        return (
            f"{gb(self.fetched):,.1f} GB ÷ download rate + {gb(self.loaded):,.1f} GB of weights ÷ "
            f"rate of loading; {told}"
        )


def _told(one: Constant) -> str:
    ends = f"{gb(one.range.low):.2g} to {gb(one.range.high):.2g} GB/s"
    return f"{one.words} {ends}, {one.source} ({one.date})"


def seconds_for(byte_count: float, rate: Range) -> Range:
    """Seconds for bytes at bytes/s; the lowest rate takes longest."""
    return Range(byte_count / rate.high, byte_count / rate.typical, byte_count / rate.low)


def first_step(
    workload: Workload, machine: Machine, weights_bytes: int | None, own_rate: int | None = None
) -> FirstStep | None:
    """None where the size of the weights is not known. The data of a training are fetched too.

    `own_rate` is a download rate in bytes/s that the user states; it outweighs the machine's.
    """
    if weights_bytes is None:
        return None
    job = workload.training
    fetched = weights_bytes + ((job.dataset_bytes or 0) if job else 0)
    return _timed(fetched, weights_bytes, own_rate or machine.download_bytes_per_s.value)


@lru_cache(maxsize=4096)
def _timed(fetched: int, weights_bytes: int, rate: int | None) -> FirstStep:
    return FirstStep(
        download=seconds_for(fetched, exact(float(rate)) if rate else figure("rent.download")),
        load=seconds_for(weights_bytes, figure("rent.load")),
        stated=rate is not None,
        fetched=fetched,
        loaded=weights_bytes,
    )


def checkpoint_range(workload: Workload, trained: int | None) -> Range | None:
    """Bytes of one checkpoint: as stated, else per trained parameter. None where none is written
    or the size of the model is not known."""
    job = workload.training
    if job is None:
        return None
    if job.checkpoint_bytes is not None:
        return exact(float(job.checkpoint_bytes))
    return None if trained is None else figure("rent.checkpoint").scaled(trained)
