"""What collect_env (PyTorch, vLLM) and check_env (SGLang) print around the outputs they embed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from evaluator.evidence.lines import Line, Paste
from evaluator.evidence.readings import Format, Problem, Reading, Sign, Standing, Trouble

MODELS = re.compile(r".{0,80}GPU models and configuration\s{0,40}:")
"""vLLM pads its keys to one width; PyTorch does not."""
ONE_GPU = re.compile(r"\s{0,8}GPU (\d{1,3}(?:,\d{1,3}){0,255}): ([^\n(]{2,80}?)\s*")
DRIVER = re.compile(
    r"\s{0,8}(?:Nvidia driver version|CUDA Driver Version|GPU driver version)\s{0,40}: "
    r"(\d[\d.]{0,20})\s*"
)
CUDA = re.compile(r"\s{0,8}CUDA runtime version\s{0,40}: (\d[\d.]{0,20})\s*")
TOPOLOGY = re.compile(r"\s{0,8}(?:GPU|NVIDIA|AMD) Topology:(.{0,80})")
MARKS = (
    "GPU models and configuration",
    "CUDA used to build PyTorch",
    "PyTorch version",
    "CUDA_HOME:",
    "CUDA available:",
)
NOTHING = "could not collect"


@dataclass(slots=True)
class Environment:
    """What was gathered. `missing` is the line that says that no topology was collected."""

    line: int = 0
    names: dict[int, str] = field(default_factory=dict)
    driver: str | None = None
    cuda: str | None = None
    missing: int = 0


def read_environment(paste: Paste) -> Iterator[Reading]:
    """One reading for the report around the embedded outputs."""
    if not any(mark in paste.text for mark in MARKS):
        return
    found = _gather(paste)
    if found.names or found.driver or found.missing:
        yield _reading(found)


def _gather(paste: Paste) -> Environment:
    found, after_title = Environment(), False
    for line in paste.lines:
        title = TOPOLOGY.match(line.text)
        told = line.text.lower()
        if NOTHING in told and (title or after_title):
            found.missing = found.missing or line.number
        if not line.blank:
            after_title = bool(title)
        _take(found, line)
    return found


def _take(found: Environment, line: Line) -> None:
    text = MODELS.sub("", line.text, count=1)
    gpu, driver, cuda = ONE_GPU.fullmatch(text), DRIVER.match(text), CUDA.match(text)
    if gpu:
        for number in gpu[1].split(","):
            found.names.setdefault(int(number), gpu[2])
    found.driver = found.driver or (driver[1] if driver else None)
    found.cuda = found.cuda or (cuda[1] if cuda else None)
    if gpu or driver or cuda:
        found.line = found.line or line.number


def _reading(found: Environment) -> Reading:
    names = tuple(found.names[gpu] for gpu in sorted(found.names)) or None
    expected = "a topology matrix"
    missing = found.missing
    problems = (Problem(Trouble.NOT_COLLECTED, missing, expected=expected),) if missing else ()
    signs = {Sign.MIXED_MODELS} if len(set(names or ())) > 1 else set()
    return Reading(
        format=Format.COLLECT_ENV,
        line=found.line or missing,
        standing=Standing.PARTIAL if problems else Standing.OK,
        problems=problems,
        signs=frozenset(signs),
        gpu_count=len(names) if names else None,
        gpu_names=names,
        driver=found.driver,
        cuda=found.cuda,
    )
