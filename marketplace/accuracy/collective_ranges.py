"""Whether the bandwidth of published nccl-tests rows lies in our range for such a link."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evaluator.exchanges import Operation
from evaluator.gpus import GpuSpec, read_label, specs_of
from evaluator.link_costs import Fabric, Wire, busbw_range, fabric_of, wire_of
from evaluator.machine import LinkClass
from evaluator.ranges import Range
from evaluator.units import GB
from marketplace.accuracy.summary import Outcome

KIND = "range"
OPERATIONS = {
    "all_reduce": Operation.ALL_REDUCE,
    "all_gather": Operation.ALL_GATHER,
    "reduce_scatter": Operation.REDUCE_SCATTER,
    "broadcast": Operation.BROADCAST,
    "reduce": Operation.REDUCE,
    "alltoall": Operation.ALL_TO_ALL,
    "sendrecv": Operation.SEND,
}
"""The words of nccl-tests."""
SWITCH = {"nvls": True, "ring": False, "tree": False}


def judge_range(row: Mapping[str, Any]) -> Outcome | None:
    """One row of collectives.jsonl with `range: true`. None where we have no range for it.

    A healthy row must lie inside; one that its source calls faulty must lie below.
    """
    if not row.get("range"):
        return None
    predicted, measured = predict(row), float(row["busbw_gbs"])
    if predicted is None:
        return Outcome(str(row["id"]), KIND, False, None, measured, "no range for this link")
    shown = predicted.scaled(1 / GB)
    healthy = row.get("healthy") is not False
    within = shown.low <= measured <= shown.high if healthy else measured < shown.low
    limit = f"{shown.low:.1f} to {shown.high:.1f} GB/s, {'healthy' if healthy else 'faulty'}"
    return Outcome(
        id=str(row["id"]),
        kind=KIND,
        within=within,
        predicted=shown.typical,
        measured=measured,
        why="" if within else limit,
        low=shown.low,
        high=shown.high,
        compared=healthy,
    )


def predict(row: Mapping[str, Any]) -> Range | None:
    """Bus bandwidth in bytes/s, from the words of the row alone."""
    operation, spec = OPERATIONS.get(str(row["op"])), spec_named(str(row.get("gpu") or ""))
    gpus, nodes = int(row["gpus"]), int(row.get("nodes") or 1)
    if operation is None or spec is None:
        return None
    wire = wire_worded(str(row.get("link") or ""), spec)
    fabric = _fabric(row, gpus // nodes)
    switch = SWITCH.get(str(row.get("algorithm") or "").lower())
    size = int(row["size_bytes"])
    return busbw_range(operation, wire, gpus, nodes, fabric, size, switch=switch)


def _fabric(row: Mapping[str, Any], per_machine: int) -> Fabric | None:
    words = row.get("inter_node")
    return fabric_of(str(words), max(1, per_machine)) if words else None


def spec_named(text: str) -> GpuSpec | None:
    """The first card that a text may name; cards of one model differ little in their links."""
    label = read_label(text)
    if label.model is None:
        return None
    cards = specs_of(label.model)
    form = label.form_factor or ""
    return next((card for card in cards if form and card.form_factor.startswith(form)), cards[0])


def wire_worded(words: str, spec: GpuSpec) -> Wire | None:
    """A topology class such as NV18 or PHB, or the words of a source."""
    found = re.search(r"\bNV(\d{1,2})\b", words)
    generation = re.search(r"gen\s?([3-6])", words, re.IGNORECASE)
    pcie = int(generation[1]) if generation else None
    if found and "pair" not in words.lower():
        return wire_of(_all_joined(spec), spec, links=int(found[1]))
    kind = _kind(words.lower(), bool(found))
    return wire_of(kind, spec, pcie_generation=pcie) if kind else None


def _all_joined(spec: GpuSpec) -> LinkClass:
    switched = any(link.kind == "nvlink_nvswitch" for link in spec.permits)
    return LinkClass.NVSWITCH if switched else LinkClass.NVLINK


def _kind(words: str, paired: bool) -> LinkClass | None:
    if paired or "bridge" in words:
        return LinkClass.NVLINK_PAIRS
    if "xgmi" in words:
        return LinkClass.XGMI
    peer = "p2p" in words and "no p2p" not in words
    if peer or words in ("pix", "pxb"):
        return LinkClass.PCIE_P2P
    known = "pcie" in words or words in ("phb", "node", "sys")
    return LinkClass.PCIE if known else None
