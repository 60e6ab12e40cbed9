"""What an engine's own benchmark, or the log of a training, says of its speed.

`vllm bench serve` and sglang's bench_serving print one report; Megatron-LM and torchtitan one line
for each step, of which the first ones warm up. torchtitan's tps are of one device.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

OUTPUT_RATE, FIRST_TOKEN, PER_TOKEN = (
    "output rate of all GPUs",
    "time to the first token",
    "time per token",
)
STEP, GPU_RATE = "step", "trained tokens of one GPU"
UNITS = {
    OUTPUT_RATE: "tokens/s",
    FIRST_TOKEN: "s",
    PER_TOKEN: "s",
    STEP: "s per step",
    GPU_RATE: "tokens/s",
}

NUMBER = r"([0-9][0-9,]*(?:\.[0-9]+)?)"
REPORT = (
    (OUTPUT_RATE, 1.0, rf"^Output token throughput \(tok/s\):\s+{NUMBER}\s*$"),
    (FIRST_TOKEN, 1e-3, rf"^Mean TTFT \(ms\):\s+{NUMBER}\s*$"),
    (PER_TOKEN, 1e-3, rf"^Mean TPOT \(ms\):\s+{NUMBER}\s*$"),
)
STEPS = (
    (STEP, 1e-3, rf"\biteration\s+(\d+)/.*?elapsed time per iteration \(ms\): {NUMBER} \|"),
    (GPU_RATE, 1.0, rf"\bstep:\s*(\d+)\b.*?\btps: {NUMBER}\b"),
)
WARM_UP = 10
"""First steps that are left out: compiling, caches and clocks settle."""
FEWEST = 3
"""Steps after them without which nothing is said."""
LONGEST_LINE = 2_000


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure; of a training the middle of `count` steps."""

    metric: str
    value: float
    count: int = 1

    @property
    def unit(self) -> str:
        return UNITS[self.metric]


def engine_runs(text: str) -> tuple[Measured, ...]:
    """Figures of one run; none where a text holds two reports, of which neither is meant."""
    lines = [line.strip() for line in text.splitlines() if len(line) <= LONGEST_LINE]
    return (*_reported(lines), *_logged(lines))


def _reported(lines: list[str]) -> Iterator[Measured]:
    for metric, factor, pattern in REPORT:
        found = [match[1] for line in lines if (match := re.match(pattern, line))]
        if len(found) == 1 and (value := _number(found[0]) * factor):
            yield Measured(metric, value)


def _logged(lines: list[str]) -> Iterator[Measured]:
    for metric, factor, pattern in STEPS:
        found = (re.search(pattern, line) for line in lines)
        values = [_number(one[2]) * factor for one in found if one and int(one[1]) > WARM_UP]
        if len(values) >= FEWEST and (value := median(values)):
            yield Measured(metric, value, len(values))


def _number(text: str) -> float:
    return float(text.replace(",", ""))
