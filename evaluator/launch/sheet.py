"""What a launch sheet holds: commands by engine, what they assume, and what would disprove us."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evaluator.findings import Finding
from evaluator.link_verdicts import LinkVerdict
from evaluator.plans import Plan
from evaluator.ranges import Range


@dataclass(frozen=True, slots=True)
class Command:
    """Shell text and where to run it, such as "on machine 0"."""

    where: str
    text: str


@dataclass(frozen=True, slots=True)
class EngineLaunch:
    """The commands of one engine at the version whose options they use.

    `unsupported` says why the engine cannot run the plan and what would change that; then
    `commands` is empty.
    """

    engine: str
    version: str
    source: str
    commands: tuple[Command, ...] = ()
    benchmark: tuple[Command, ...] = ()
    unsupported: str = ""


@dataclass(frozen=True, slots=True)
class Predicted:
    """A figure that the benchmark measures, and the range outside of which we were wrong."""

    metric: str
    value: Range
    unit: str


@dataclass(frozen=True, slots=True)
class Counter:
    """What to record beside the benchmark, and with what."""

    name: str
    how: str


@dataclass(frozen=True, slots=True)
class Benchmark:
    """`predicted` is empty where the plan cannot be timed. `conditional` spans unknown links."""

    predicted: tuple[Predicted, ...]
    rules: tuple[str, ...]
    counters: tuple[Counter, ...]
    disproved_if: str
    conditional: bool = False


@dataclass(frozen=True, slots=True)
class LaunchSheet:
    """How to launch a plan. `memory` is bytes of the binding GPU, `link` the need and its grade.

    `refusal` is why no command is given: then every engine is without commands.
    """

    plan: Plan
    engines: tuple[EngineLaunch, ...]
    assumptions: tuple[str, ...]
    memory: Range | None
    usable_bytes: int | None
    link: LinkVerdict
    benchmark: Benchmark
    refusal: Finding | None = None

    @property
    def commands(self) -> tuple[Command, ...]:
        """Those of the first engine that can run the plan."""
        return next((one.commands for one in self.engines if one.commands), ())

    @property
    def to_fill(self) -> tuple[str, ...]:
        """Assumptions about what the renter has to put into those commands."""
        text = "\n".join(one.text for one in self.commands)
        return tuple(one for one in self.assumptions if text and _is_asked_for(one, text))


PLACEHOLDER = re.compile(r"\b[A-Z_]{4,}\b")
WHOLE_NAME = "Put the path"


def _is_asked_for(assumption: str, text: str) -> bool:
    named = (f"${word}" in text for word in PLACEHOLDER.findall(assumption))
    return assumption.startswith(WHOLE_NAME) or any(named)
