"""Which kinds of case can be judged, and by what. One line adds a kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from marketplace.accuracy import catalog, collectives, memory, topology
from marketplace.accuracy.summary import Summary

KINDS: Mapping[str, Callable[[Path], Summary]] = {
    "catalog": catalog.score,
    "collectives": collectives.score,
    "memory": memory.score,
    "topology": topology.score,
}

NOT_YET = ("throughput",)
"""Kinds of case files that nothing judges yet."""
