"""What serving engines take besides weights and cache, by version, and what their share covers."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np

from evaluator.ranges import Number, Range, choose_range, exact, larger
from evaluator.shares import Rule, Tier
from evaluator.units import GIB

Version = tuple[int, ...]

GROWTH = Range(0, 0.1 * GIB, 0.5 * GIB)
"""More for each doubling beyond two ranks: wide, since no public log tells more than two apart."""
NOTHING = exact(0)


class Share(StrEnum):
    """What the memory fraction of an engine is a fraction of, and what has to stay inside."""

    TOTAL = "total"
    """Of the reported total, for everything but what `outside` names (vLLM)."""
    STATIC = "static"
    """Of the reported total, for weights and cache only (SGLang's static fraction)."""
    FREE = "free"
    """Of what is free once all the rest is loaded, for the cache (TensorRT-LLM)."""
    NONE = "none"
    """There is no such setting: all of the card."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine from version `since` on, until `until` where a later range is known.

    `alone` and `joined` are bytes outside the tensor allocator on one GPU and on two; `growth` is
    added for each further doubling of the ranks. `graphs` are captured decode graphs.
    `sampler_bytes` are bytes per sequence and vocabulary entry at the peak, or where
    `samples_steps` per token of a step, `step_tokens` the tokens of one prefill step where nothing
    is stated. `samples_on_first` is True where logits are gathered on the first tensor rank alone,
    `keeps_scores` where attention scores of a step are kept, `table_on_host` where an embedding
    that is only looked up waits in host memory. `margin` stays free on every card, `begun` is gone
    before the share is taken of what is left, on one GPU and on more.
    `fraction` is the share that is used where none is stated, by `fraction_of_ranks` a lower one
    from a number of tensor ranks on; None follows the rule `leaves`, which the card decides.
    `sources` says where the figures are from, `changed` what differs from the range before.
    """

    name: str
    since: Version
    share: Share
    alone: Range
    joined: Range
    graphs: Range
    sampler_bytes: float
    step_tokens: Range
    sources: str
    changed: str = ""
    until: Version = ()
    usual: bool = False
    graphs_inside: bool = False
    growth: Range = GROWTH
    margin: Range = NOTHING
    begun: tuple[float, float] = (0, 0)
    samples_on_first: bool = False
    samples_steps: bool = False
    keeps_scores: bool = False
    table_on_host: bool = False
    fraction: float | None = None
    fraction_of_ranks: tuple[tuple[int, float], ...] = ()
    leaves: Rule | None = None

    def communicators(self, ranks: Number) -> Range:
        """What more than one GPU of a replica adds outside the tensor allocator on each."""
        pairs = zip(_ends(self.joined), _ends(self.alone), strict=True)
        first = Range(*(joined - alone for joined, alone in pairs))
        grown = first + self.growth.scaled(larger(0, _doublings(ranks) - 1))
        return choose_range(ranks > 1, grown, exact(0.0))

    def beside(self, ranks: Number) -> Range:
        """Bytes outside the tensor allocator on one of `ranks` GPUs of a replica."""
        return self.alone + self.communicators(ranks)

    @property
    def outside(self) -> tuple[str, ...]:
        """Components that need room on the card, but not inside the engine's share."""
        if self.share is Share.STATIC:
            return ("activations", "engine_overhead", "communicators", "cuda_graphs")
        return () if self.graphs_inside or self.share is not Share.TOTAL else ("cuda_graphs",)

    @property
    def words(self) -> str:
        """Its name and the versions that it stands for."""
        until = f", before {dotted(self.until)}" if self.until else ""
        return f"{self.name} since {dotted(self.since)}{until}"


def _ends(size: Range) -> tuple[Number, Number, Number]:
    return size.low, size.typical, size.high


def _doublings(ranks: Number) -> Number:
    """How often one rank is doubled to have at least so many: bits of the number before."""
    if isinstance(ranks, np.ndarray):
        return np.frexp(ranks - 1)[1]
    return (ranks - 1).bit_length()


def dotted(version: Version) -> str:
    return ".".join(map(str, version))


# --- the data


@cache
def _document() -> Mapping[str, Any]:
    return tomllib.loads(files("evaluator").joinpath("data/engines.toml").read_text("utf-8"))


@cache
def engines() -> Mapping[str, tuple[Engine, ...]]:
    """Every engine by its name, its ranges in the order of their versions."""
    found: dict[str, list[Engine]] = {}
    rows = _document()["engine"]
    for row, after in pairwise([*rows, {}]):
        until = after["since"] if after.get("name") == row["name"] else ""
        found.setdefault(row["name"], []).append(_engine(row, until))
    return {name: tuple(ranges) for name, ranges in found.items()}


SIZES = ("alone", "joined", "graphs", "growth", "margin")


def _engine(row: Mapping[str, Any], until: str) -> Engine:
    plain = {key: value for key, value in row.items() if not key.startswith("leaves")}
    read: dict[str, Any] = {
        "since": version_of(row["since"]),
        "until": version_of(until),
        "share": Share(row["share"]),
        "step_tokens": Range(*row["step_tokens"]),
        "fraction_of_ranks": tuple(map(tuple, row.get("fraction_of_ranks", ()))),
        "leaves": _rule(row),
        "begun": tuple(size * GIB for size in row.get("begun", (0, 0))),
    }
    sizes = {key: Range(*row[key]).scaled(GIB) for key in SIZES if key in row}
    return Engine(**plain | read | sizes)


def _rule(row: Mapping[str, Any]) -> Rule | None:
    if "leaves" not in row:
        return None
    return Rule(
        tiers=tuple(map(_tier, row["leaves"])),
        draft=row.get("leaves_for_draft", 0) * GIB,
        data=row.get("leaves_for_data", 0) * GIB,
        least=row.get("leaves_at_least", 0) * GIB,
    )


def _tier(entry: Mapping[str, Any]) -> Tier:
    return Tier(
        below=entry.get("below", inf) * GIB,
        fixed=entry.get("gib", 0) * GIB,
        each_rank=entry.get("each_rank", 0) * GIB,
        step=entry.get("step", 0),
        graph=entry.get("graph", 0),
        graph_of_four=entry.get("graph_of_four", 0),
    )


# --- finding one

ALIASES = {"trtllm": "tensorrt-llm", "tensorrt_llm": "tensorrt-llm", "llamacpp": "llama.cpp"}


def version_of(text: str) -> Version:
    """Up to three numbers of a version such as "0.11.x", "v0.5.3.post1" or "b7414"."""
    found = re.findall(r"[0-9]+", text)
    return tuple(int(number) for number in found[:3] if len(number) < 6)


@lru_cache(maxsize=256)
def engine(name: str, version: str = "") -> Engine:
    """The engine at a version. An engine that is not listed is judged as vLLM; without a version
    the usual range counts, and a version beyond the newest known one is judged as that."""
    listed = engines().get(listed_name(name), engines()["vllm"])
    stated = version_of(version)
    if not stated:
        return next((one for one in listed if one.usual), listed[-1])
    return max((one for one in listed if one.since <= stated), key=lambda one: one.since)


def listed_name(name: str) -> str:
    key = name.lower().strip()
    return ALIASES.get(key, key)


def is_listed(name: str) -> bool:
    return listed_name(name) in engines()


def doubt_of(name: str, version: str) -> str:
    """Why the figures of a stated version are those of another one; empty where they are not."""
    if not (version and is_listed(name)):
        return ""
    stated, used = version_of(version), engine(name, version)
    newest = version_of(_document()["newest"][listed_name(name)])
    if not stated:
        return f"{version!r} names no number; the usual range is used: {used.words}"
    if stated[: len(newest)] > newest:
        last = f"no change is known beyond {dotted(newest)}"
        return f"{last}; the nearest known range is used: {used.words}"
    return ""
