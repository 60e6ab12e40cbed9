"""The dated tables of data/software.toml: versions, and what a workload runs on."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from evaluator.jobs import Workload

Version = tuple[int, ...]
TRAINER = "pytorch"
"""Every training stack that is named here stands on it."""


def version_of(text: str | None) -> Version:
    """Numbers of a version in order: (570, 26) for "570.26". Empty where none can be read."""
    found = re.match(r"\s*v?(\d+(?:\.\d+)*)", text or "")
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def reaches(have: Version, need: Version) -> bool:
    """Compared as far as both are stated: branch 570 reaches 570.26."""
    common = min(len(have), len(need))
    return have[:common] >= need[:common]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table. Versions as tuples; empty is not stated."""

    name: str = ""
    since: Version = ()
    cuda: Version = ()
    driver: Version = ()
    capability: Version = ()
    native: Version = ()
    nccl: Version = ()
    rocm: Version = ()
    generations: tuple[str, ...] = ()
    engines: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    date: str = ""


WORDS = frozenset({"name", "source", "date", "engines"})
LISTS = frozenset({"generations"})


@cache
def tables() -> Mapping[str, tuple[Row, ...]]:
    """Every table of the file by its name, rows in file order."""
    text = files("evaluator").joinpath("data/software.toml").read_text("utf-8")
    return {name: tuple(map(_row, rows)) for name, rows in tomllib.loads(text).items()}


def _row(entry: Mapping[str, Any]) -> Row:
    return Row(**{key: _value(key, value) for key, value in entry.items()})


def _value(key: str, value: Any) -> Any:
    if key in WORDS:
        return value
    return tuple(value) if key in LISTS else version_of(value)


def releases_of(engine: str, table: str = "engine") -> tuple[Row, ...]:
    """Newest first. Empty for an engine that the table does not speak of."""
    return tuple(row for row in tables()[table] if row.name == engine.lower())


def release_of(engine: str, version: str, table: str = "engine") -> Row | None:
    """The row that a stated version falls under; the newest where none is stated."""
    stated = version_of(version)
    rows = releases_of(engine, table)
    return next((row for row in rows if not stated or reaches(stated, row.since)), None)


def lowest_driver(cuda: Version) -> Version:
    """The driver from which on a CUDA release runs at all. Empty where no table says."""
    rows = tables()["family"]
    return next((row.driver for row in rows if cuda[:1] == row.cuda), ())


def own_driver(cuda: Version) -> Version:
    """The driver that came with a toolkit; that of its major release where it is not listed."""
    rows = tables()["toolkit"]
    listed = next((row.driver for row in rows if cuda[:2] == row.cuda), ())
    return listed or lowest_driver(cuda)


def first_cuda(capability: Version) -> Version:
    """The CUDA release that first knew a card. Empty where every one in use does."""
    rows = [row for row in tables()["card"] if reaches(capability, row.capability)]
    newest = max(rows, key=lambda row: row.capability, default=Row())
    return newest.cuda if newest.capability[:1] == capability[:1] else ()


def first_nccl(capability: Version) -> Version:
    """The NCCL release that first knew a card. Empty where no table says."""
    rows = [row for row in tables()["nccl"] if reaches(capability, row.capability)]
    newest = max(rows, key=lambda row: row.capability, default=Row())
    return newest.nccl if newest.capability[:1] == capability[:1] else ()


def said(version: Version) -> str:
    return ".".join(map(str, version))


def driver_said(version: Version) -> str:
    """NVIDIA writes the later parts of a driver with two digits: 580.65.06."""
    return ".".join(f"{part:02d}" for part in version)


@dataclass(frozen=True, slots=True)
class Stack:
    """The framework or engine of a workload and its version as stated, "" where it is not."""

    engine: str
    version: str = ""

    @property
    def words(self) -> str:
        return f"{self.engine} {self.version}".strip()


def stack_of(workload: Workload) -> Stack:
    job = workload.serving
    return _stack(job.engine, job.engine_version) if job else _stack(TRAINER, "")


@lru_cache(maxsize=1024)
def _stack(engine: str, version: str) -> Stack:
    return Stack(engine.lower(), version)


def formats_of(workload: Workload) -> tuple[str, ...]:
    """Number formats that the job computes with or keeps: weights, then the cache."""
    return _formats(workload.weights_format, workload.serving.kv_dtype if workload.serving else "")


@lru_cache(maxsize=1024)
def _formats(weights: str, cache_format: str) -> tuple[str, ...]:
    held = "cache in fp8" if cache_format.startswith("fp8") else cache_format
    found = (weights.partition(":")[0], held)
    return tuple(dict.fromkeys(name for name in found if name and name != "auto"))
