"""NCCL's and RCCL's debug log: by which road each channel was opened, and what went wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from evaluator.evidence.lines import Line, Paste
from evaluator.evidence.readings import Format, Reading, Sign, Transport

MARK = re.compile(r"\b[RN]CCL (?:INFO|WARN)\b|\b[RN]CCL version \d")
HOST = re.compile(r"(?:^|[\s\]|])([A-Za-z0-9][\w.-]{0,80}):\d{1,9}:\d{1,9}\s{1,4}\[")
CHANNEL = re.compile(r"(?:Channel|Ring|Tree)\b.{0,120}?->.{0,80}?\bvia\s{1,4}(\S.{0,80})")
VERSION = re.compile(r"[RN]CCL version\s{1,4}(\d{1,3}\.\d{1,3}(?:\.\d{1,3})?)")
NODES = re.compile(r"\bnNodes\s{1,4}(\d{1,5})\b")

NO_ROOM = ("posix_fallocate", "no space left on device")
SHM_FAILED = ("error while creating shared memory", "shared memory segment", "/dev/shm/nccl")  # noqa: S108
FABRIC_DOWN = "system not yet initialized"
"""cudaErrorSystemNotReady, 802: a daemon that the driver needs, on NVSwitch the fabric manager, is
not running (CUDA Runtime API, cudaError).
"""
SOCKETS = ("net/ib : no device found", "using network socket", "failed to open libibverbs")
PLUGIN_OVER_TCP = "selected provider is tcp"
LIBFABRIC = ("NET/AWS Libfabric", "NET/Libfabric")
"""Names of one plugin, old and new. Where GPUDirect works, the log says so behind the name."""


@dataclass(slots=True)
class Log:
    """What was gathered over the lines of a log."""

    line: int = 0
    roads: Counter[str] = field(default_factory=Counter)
    hosts: set[str] = field(default_factory=set)
    nodes: int | None = None
    version: str | None = None
    signs: set[Sign] = field(default_factory=set)
    sockets: bool = False
    fabric_down: bool = False
    plugin_over_tcp: bool = False


def read_nccl_log(paste: Paste) -> Iterator[Reading]:
    """One reading for all NCCL lines of a paste."""
    log = Log()
    for line in paste.lines:
        if MARK.search(line.text):
            log.line = log.line or line.number
            _take(log, line)
    if log.line and _says_something(log):
        yield _reading(log)


def _take(log: Log, line: Line) -> None:
    host, channel = HOST.search(line.text), CHANNEL.search(line.text)
    version, nodes = VERSION.search(line.text), NODES.search(line.text)
    if host:
        log.hosts.add(host[1])
    if channel:
        log.roads[_road(channel[1])] += 1
    if version:
        log.version = log.version or version[1]
    if nodes:
        log.nodes = max(log.nodes or 0, int(nodes[1]))
    _take_failure(log, line.text.lower())


def _says_something(log: Log) -> bool:
    told = log.roads or log.version or log.signs or log.nodes
    return bool(told or log.sockets or log.fabric_down)


def _road(text: str) -> str:
    """`P2P`, `SHM`, `NET/IB`, `NET/IB/GDRDMA`, `NET/Socket`, or the plugin's own name."""
    parts = text.split()[0].split("/")
    if text.startswith("direct shared memory"):
        return "SHM"
    if parts[0] != "NET":
        return parts[0]
    name = " ".join(text.split("/")[1:2]).strip() or "unknown"
    if name.startswith("IB"):
        name = "IB"
    name = name.split("_v")[0]
    return f"NET/{name}/GDRDMA" if "/GDRDMA" in text else f"NET/{name}"


def _take_failure(log: Log, text: str) -> None:
    if any(words in text for words in NO_ROOM):
        log.signs.add(Sign.DEV_SHM_TOO_SMALL)
    if "warn" in text and any(words in text for words in SHM_FAILED):
        log.signs.add(Sign.DEV_SHM_TOO_SMALL)
    if "nvls" in text and ("warn" in text or "failed" in text or "failure" in text):
        log.signs.add(Sign.NVLS_UNAVAILABLE)
    if any(words in text for words in SOCKETS):
        log.sockets = True
    if FABRIC_DOWN in text and "nvls" not in text and "sharp" not in text:
        log.fabric_down = True
    if PLUGIN_OVER_TCP in text:
        log.plugin_over_tcp = True


def _reading(log: Log) -> Reading:
    log.signs |= set(_roads_say(log))
    stopped = log.fabric_down and not log.roads
    return Reading(
        format=Format.NCCL_LOG,
        line=log.line,
        signs=frozenset(log.signs),
        transports=tuple(Transport(name, count) for name, count in sorted(log.roads.items())),
        nodes=_nodes(log),
        nccl_version=log.version,
        fabric_state=f"CUDA error 802, {FABRIC_DOWN}" if stopped else None,
    )


def _roads_say(log: Log) -> Iterator[Sign]:
    plugin = any(log.roads[road] for road in LIBFABRIC)
    if log.roads["SHM"]:
        yield Sign.P2P_UNUSABLE
    if log.roads["NET/Socket"] or (plugin and log.plugin_over_tcp) or _only_sockets(log):
        yield Sign.INTER_NODE_OVER_TCP
    if log.roads["NET/IB"] or (plugin and not log.plugin_over_tcp):
        yield Sign.RDMA_WITHOUT_GPUDIRECT


def _only_sockets(log: Log) -> bool:
    """Whether NCCL found no other network for several machines, in a log without their channels."""
    networked = any(road.startswith("NET/") for road in log.roads)
    return log.sockets and not networked and (_nodes(log) or 1) > 1


def _nodes(log: Log) -> int | None:
    """Stated, or counted by host name; one host beside network channels is not all of them."""
    if log.nodes:
        return log.nodes
    networked = any(name.startswith("NET/") for name in log.roads)
    return None if not log.hosts or (networked and len(log.hosts) < 2) else len(log.hosts)
