"""What serving engines take besides weights and cache, by version, and what their share covers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np

from evaluator.ranges import Number, Range, choose_range, exact, larger
from evaluator.units import GIB

Version = tuple[int, ...]

GROWTH = Range(0, 0.1 * GIB, 0.5 * GIB)
"""More for each doubling beyond two ranks: wide, since no public log tells more than two apart."""


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
    """One engine from version `since` on.

    `alone` and `joined` are bytes outside the tensor allocator on one GPU and on two; `growth` is
    added for each further doubling of the ranks. `graphs` are captured decode graphs.
    `sampler_bytes` are bytes per sequence and vocabulary entry at the peak, `step_tokens` the
    tokens of one prefill step where nothing is stated. `samples_on_first` is True where logits are
    gathered on the first tensor rank alone. `sources` says where the figures are from.
    """

    name: str
    since: Version
    share: Share
    alone: Range
    joined: Range
    graphs: Range
    graphs_inside: bool
    sampler_bytes: float
    step_tokens: Range
    sources: str
    growth: Range = GROWTH
    samples_on_first: bool = False

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


def _ends(size: Range) -> tuple[Number, Number, Number]:
    return size.low, size.typical, size.high


def _doublings(ranks: Number) -> Number:
    """How often one rank is doubled to have at least so many: bits of the number before."""
    if isinstance(ranks, np.ndarray):
        return np.frexp(ranks - 1)[1]
    return (ranks - 1).bit_length()


def _gib(low: float, typical: float, high: float) -> Range:
    return Range(low * GIB, typical * GIB, high * GIB)


_PLANNER = "logs in llm-d-planner, docs/empirical-vllm-memory-results.md"
_VLLM_GRAPHS = _gib(0.1, 0.5, 1.1)
_STEPS = Range(2048, 8192, 8192)

ENGINES: Mapping[str, tuple[Engine, ...]] = {
    "vllm": (
        Engine(
            name="vllm",
            since=(0,),
            share=Share.TOTAL,
            alone=_gib(0.03, 0.15, 1.8),
            joined=_gib(0.25, 0.55, 3.6),
            graphs=_VLLM_GRAPHS,
            graphs_inside=False,
            sampler_bytes=38.5,
            step_tokens=_STEPS,
            sources=f"{_PLANNER}; 1.79 GiB alone and 3.58 at tp 2 in vllm#10511 (0.6)",
            samples_on_first=True,
        ),
        Engine(
            name="vllm",
            since=(0, 8),
            share=Share.TOTAL,
            alone=_gib(0.03, 0.15, 0.6),
            joined=_gib(0.25, 0.55, 1.5),
            graphs=_VLLM_GRAPHS,
            graphs_inside=False,
            sampler_bytes=38.5,
            step_tokens=_STEPS,
            sources=f"{_PLANNER}: 0.13 GiB alone, 0.55 at tp 2 (0.11)",
        ),
        Engine(
            name="vllm",
            since=(0, 21),
            share=Share.TOTAL,
            alone=_gib(0.03, 0.15, 0.6),
            joined=_gib(0.25, 0.55, 1.5),
            graphs=_VLLM_GRAPHS,
            graphs_inside=True,
            sampler_bytes=38.5,
            step_tokens=_STEPS,
            sources=f"{_PLANNER}; graphs inside the share since 0.21: gpustack/runner#251",
        ),
    ),
    "sglang": (
        Engine(
            name="sglang",
            since=(0,),
            share=Share.STATIC,
            alone=_gib(0.3, 0.8, 2.0),
            joined=_gib(0.5, 1.2, 3.5),
            graphs=_gib(0.1, 0.9, 2.5),
            graphs_inside=False,
            sampler_bytes=10,
            step_tokens=_STEPS,
            sources="graphs of 0.93 GiB for 13 sizes on 4 x L4 (llms-in-clouds, docs/sglang.md); "
            "context 0.3 to 2 GiB (ml-engineering)",
        ),
    ),
    "tensorrt-llm": (
        Engine(
            name="tensorrt-llm",
            since=(0,),
            share=Share.FREE,
            alone=_gib(0.5, 1.0, 2.5),
            joined=_gib(0.8, 1.4, 4.0),
            graphs=_gib(0.0, 0.3, 1.5),
            graphs_inside=True,
            sampler_bytes=10,
            step_tokens=Range(2048, 8192, 8192),
            sources="first communicator 0.34 to 0.41 GB (aiconfigurator); context 0.3 to 2 GiB",
        ),
    ),
    "llama.cpp": (
        Engine(
            name="llama.cpp",
            since=(0,),
            share=Share.NONE,
            alone=_gib(0.2, 0.4, 0.8),
            joined=_gib(0.2, 0.4, 0.8),
            graphs=_gib(0, 0, 0.1),
            graphs_inside=True,
            sampler_bytes=4,
            step_tokens=exact(512),
            sources="physical batch of 512 tokens, fp32 logits; context 0.2 to 0.8 GiB",
            growth=exact(0),
        ),
    ),
    "transformers": (
        Engine(
            name="transformers",
            since=(0,),
            share=Share.NONE,
            alone=_gib(0.3, 0.4, 2.0),
            joined=_gib(0.5, 1.2, 3.5),
            graphs=exact(0),
            graphs_inside=True,
            sampler_bytes=10,
            step_tokens=Range(1, 256, 2048),
            sources="context of 360 MiB in lm-sys/FastChat#2005, 0.3 to 2 GiB (ml-engineering)",
        ),
    ),
}
ALIASES = {"trtllm": "tensorrt-llm", "tensorrt_llm": "tensorrt-llm", "llamacpp": "llama.cpp"}


@lru_cache(maxsize=256)
def engine(name: str, version: str = "") -> Engine:
    """The engine at a version such as "0.11.x". An engine that is not listed is judged as vLLM;
    without a version the newest one whose figures come from logs counts."""
    key = name.lower().strip()
    listed = ENGINES.get(ALIASES.get(key, key), ENGINES["vllm"])
    stated = tuple(int(number) for number in re.findall(r"\d+", version)[:3] if len(number) < 6)
    if not stated:
        return listed[min(1, len(listed) - 1)]
    return max((one for one in listed if one.since <= stated), key=lambda one: one.since)


def is_listed(name: str) -> bool:
    key = name.lower().strip()
    return ALIASES.get(key, key) in ENGINES
