"""Lines in which a tool says that it failed, and outputs of vendors that are not supported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evaluator.evidence.lines import Paste
from evaluator.evidence.readings import Format, Problem, Trouble


@dataclass(frozen=True, slots=True)
class Failure:
    """A sentence of a tool, what it means, and whose it is."""

    words: str
    trouble: Trouble
    format: Format


FAILURES = (
    Failure("no devices were found", Trouble.NO_DEVICES, Format.SMI_TABLE),
    Failure("no devices found", Trouble.NO_DEVICES, Format.SMI_TABLE),
    Failure("no cuda-capable device", Trouble.NO_DEVICES, Format.P2P_BANDWIDTH),
    Failure("communicate with the nvidia driver", Trouble.DRIVER_UNREACHABLE, Format.SMI_TABLE),
    Failure("failed to initialize nvml", Trouble.DRIVER_UNREACHABLE, Format.SMI_TABLE),
    Failure("driver/library version mismatch", Trouble.DRIVER_UNREACHABLE, Format.SMI_TABLE),
    Failure("driver not initialized", Trouble.DRIVER_UNREACHABLE, Format.ROCM_TOPOLOGY),
    Failure("amdgpu not found in modules", Trouble.DRIVER_UNREACHABLE, Format.ROCM_TOPOLOGY),
    Failure("unable to load driver", Trouble.DRIVER_UNREACHABLE, Format.AMD_TABLE),
    Failure("failed to run topology matrix", Trouble.COMMAND_FAILED, Format.TOPO_MATRIX),
    Failure("unable to determine the device handle", Trouble.COMMAND_FAILED, Format.SMI_TABLE),
    Failure("failed to get", Trouble.COMMAND_FAILED, Format.UNKNOWN),
    Failure("test nccl failure", Trouble.COMMAND_FAILED, Format.NCCL_TESTS),
    Failure("test cuda failure", Trouble.COMMAND_FAILED, Format.NCCL_TESTS),
    Failure("smi: command not found", Trouble.COMMAND_FAILED, Format.UNKNOWN),
    Failure("smi: not found", Trouble.COMMAND_FAILED, Format.UNKNOWN),
    Failure("nvidia-smi' is not recognized", Trouble.COMMAND_FAILED, Format.UNKNOWN),
    Failure("unknown error", Trouble.COMMAND_FAILED, Format.SMI_TABLE),
    Failure("invalid combination of input arguments", Trouble.COMMAND_FAILED, Format.UNKNOWN),
    Failure("system not yet initialized", Trouble.COMMAND_FAILED, Format.UNKNOWN),
    Failure("gpu is lost", Trouble.COMMAND_FAILED, Format.SMI_TABLE),
    Failure("could not collect", Trouble.NOT_COLLECTED, Format.COLLECT_ENV),
)
"""The most telling first."""

COMPLAINT = re.compile(
    r"\s{0,20}(?:\[?error\b|fatal\b|failed\b|unable to\b|option \"|invalid\b|unknown error"
    r"|nvml:|traceback\b)",
    re.IGNORECASE,
)
ENDS_BADLY = (": unknown error", "command not found", "is missing its value.", "permission denied")
OTHER_VENDOR = re.compile(
    r"\s{0,20}(?:GPU \d{1,3}/\d{1,3}\s|(?:NPU|MLU|DCU|XPU)\s?\d{1,3}\s{1,20}\S)"
)


def find_failures(paste: Paste) -> Iterator[tuple[Problem, Format]]:
    """Every sentence of a failed tool, the most telling first."""
    lowered = [(line.number, line.text.lower()) for line in paste.lines if not line.blank]
    for failure in FAILURES:
        for number, text in lowered:
            if failure.words in text:
                expected = "the output of the command"
                yield Problem(failure.trouble, number, text.strip()[:80], expected), failure.format
                break


def find_other_vendor(paste: Paste) -> Problem | None:
    """A matrix of a tool that is not supported."""
    for line in paste.lines:
        if OTHER_VENDOR.match(line.text):
            expected = "the output of an NVIDIA or AMD tool"
            return Problem(
                Trouble.UNSUPPORTED_FORMAT, line.number, line.text.strip()[:40], expected
            )
    return None


def complaint(paste: Paste) -> int:
    """The first line that is an error message; 0 where there is none."""
    for line in paste.lines:
        text = line.text.lower().rstrip()
        if COMPLAINT.match(line.text) and not text.startswith("nvml: unable to retrieve nvlink"):
            return line.number
        if text.endswith(ENDS_BADLY):
            return line.number
    return 0
