"""Which kinds of case can be judged, and by what. One line adds a kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from marketplace.accuracy import catalog, collectives, memory, throughput, topology
from marketplace.accuracy.summary import Summary

KINDS: Mapping[str, Callable[[Path], Summary]] = {
    "catalog": catalog.score,
    "collectives": collectives.score,
    "memory": memory.score,
    "throughput": throughput.score,
    "topology": topology.score,
}
