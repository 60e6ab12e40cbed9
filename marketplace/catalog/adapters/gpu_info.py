"""The GpuInfo column of a SkyPilot catalog: JSON, a Python literal, or a mixture of both."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

LONGEST = 4096
"""Real fields have under 200 characters. The cap keeps a hostile one from the literal parser."""

_QUOTED_OR_WORD = re.compile(r"'[^']*'|\"[^\"]*\"|\b(?:null|true|false)\b")
_PYTHON_WORDS = {"null": "None", "true": "True", "false": "False"}


class UnreadableGpuInfo(ValueError):
    """The field is no JSON and no Python literal, or does not hold one list of GPUs."""


@dataclass(frozen=True, slots=True)
class GpuInfo:
    """`size` and `total` are the raw values of SizeInMiB and TotalGpuMemoryInMiB.

    Neither can be trusted to be what its name says: see catalog.md, section 2.1.
    """

    name: str = ""
    size: object = None
    total: object = None


@lru_cache(maxsize=4096)
def read_gpu_info(text: str) -> GpuInfo:
    """Raises UnreadableGpuInfo, naming what was read. An empty field is an empty GpuInfo."""
    if not text.strip():
        return GpuInfo()
    fields = _parse(text)
    gpus = fields.get("Gpus")
    if not isinstance(gpus, list) or len(gpus) != 1 or not isinstance(gpus[0], Mapping):
        raise UnreadableGpuInfo(f"read {text[:80]!r}, expected one entry in 'Gpus'")
    gpu: Mapping[str, Any] = gpus[0]
    memory = gpu.get("MemoryInfo")
    return GpuInfo(
        name=str(gpu.get("Name") or ""),
        size=memory.get("SizeInMiB") if isinstance(memory, Mapping) else None,
        total=fields.get("TotalGpuMemoryInMiB", gpu.get("TotalGpuMemoryInMiB")),
    )


def _parse(text: str) -> Mapping[str, Any]:
    if len(text) > LONGEST:
        raise UnreadableGpuInfo(f"read {len(text)} characters, expected at most {LONGEST}")
    try:
        parsed = _literal(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError) as error:
        raise UnreadableGpuInfo(f"read {text[:80]!r}, expected JSON or a Python literal") from error
    if not isinstance(parsed, Mapping):
        raise UnreadableGpuInfo(f"read {text[:80]!r}, expected a mapping")
    return parsed


def _literal(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return ast.literal_eval(_QUOTED_OR_WORD.sub(_python_word, text))


def _python_word(match: re.Match[str]) -> str:
    return _PYTHON_WORDS.get(match[0], match[0])
