"""Each picture as it was last looked at. `pytest --snapshot-update` keeps a new look."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.template.loader import render_to_string
from syrupy.assertion import SnapshotAssertion

from evaluator.budgets import Component, Fit, FitWord, MemoryBudget, RankBudget
from evaluator.exchanges import Operation, Traffic
from evaluator.link_verdicts import LinkVerdict, LinkWord
from evaluator.machine import LinkClass
from evaluator.placement import placement_of
from evaluator.plans import Plan
from evaluator.ranges import Range, exact
from evaluator.shapes import Attention, ModelShape
from evaluator.shares import Allowance
from evaluator.units import GIB
from marketplace.drawing.loglog import LogLog, Measure, loglog
from marketplace.drawing.memory_bars import CardSize, MemoryBars, memory_bars
from marketplace.drawing.plan_diagram import PlanDiagram, plan_diagram
from marketplace.drawing.plan_wires import SMALL, STACKED, TOLD, Spacing
from marketplace.drawing.timeline import Stretch, Strip, Timeline, timeline
from marketplace.link_matrix import link_matrix
from marketplace.pictures import fit_bar, memory_picture, scatter_picture
from tests.evaluator.topologies import joined

SHAPE = ModelShape("a model", 4096, 32, 32000, Attention(32, 8, 128), 14336)


def memory_of(cache: float) -> MemoryBudget:
    weights = Component("weights", exact(15 * GIB), "")
    kept = Component("kv_cache", Range(cache * GIB, cache * GIB, 2 * cache * GIB), "")
    return MemoryBudget((RankBudget("every rank", (weights, kept)),), Allowance(0.9))


def bars() -> MemoryBars | None:
    cards = [
        CardSize("16 GB", 15 * GIB, ("A",), "does_not_fit"),
        CardSize("24 GB", 22 * GIB, ("B",), "does_not_fit"),
        CardSize("32 GB", 31 * GIB, ("C",), "tight"),
        CardSize("48 GB", 45 * GIB, ("D",), "fits"),
    ]
    return memory_bars(memory_of(8), memory_of(16), cards, "64 requests at once")


def diagram(spacing: Spacing = TOLD) -> PlanDiagram:
    plan = Plan(tp=2, pp=2)
    moved = (
        Traffic("tensor parallel", Operation.ALL_REDUCE, 2, 64, 64 * 262_144, "decode step"),
        Traffic("pipeline", Operation.SEND, 2, 1, 262_144, "decode step"),
    )
    link = LinkVerdict(LinkWord.CLAIMED, "Nobody has measured it.")
    return plan_diagram(plan, placement_of(SHAPE, plan, 4), moved, link, spacing)


def times() -> Timeline | None:
    parts = (
        Stretch("wait", "the host prepares the step", 0.001),
        Stretch("compute", "reading weights", 0.006),
        Stretch("transfer", "64 all-reduces", 0.003),
    )
    first = Strip("TP 2", Range(0.008, 0.01, 0.014), (("GPUs 0–1", parts),))
    second = Strip("PP 2", Range(0.01, 0.013, 0.9), (("GPU 0", parts), ("GPU 1", parts[:2])))
    return timeline([first, second], "one token")


def curve() -> LogLog | None:
    rates = {1: Range(90, 100, 110), 2: Range(150, 170, 190), 8: Range(200, 400, 900)}
    points = [Measure(gpus, rate, f"TP {gpus}") for gpus, rate in rates.items()]
    return loglog(points, "strong", "Strong scaling")


FITTED = Fit(FitWord.FITS, "every rank", Range(20 * GIB, 23 * GIB, 31 * GIB), 72 * GIB)
PAIRS = joined("NV12", "NODE", "SYS", [(0, 1), (2, 3)], ("0", "0", "1", "1"))

PICTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "two cards": ("_pool.svg", {}),
    "need and room": ("_fitbar.svg", {"bar": fit_bar(FITTED)}),
    "one plan's memory": ("_memory.svg", {"picture": memory_picture(memory_of(8), FITTED)}),
    "links": ("_links.svg", {"links": link_matrix(PAIRS, LinkClass.NVSWITCH), "mark": ""}),
    "accuracy": (
        "accuracy/_scatter.svg",
        {"picture": scatter_picture([(10 * GIB, 11 * GIB), (40 * GIB, 70 * GIB)])},
    ),
    "memory bars": ("workload/_bars.svg", {"bars": bars()}),
    "a plan": ("plans/_diagram.svg", {"diagram": diagram()}),
    "a plan, narrow": ("plans/_diagram.svg", {"diagram": diagram(STACKED), "mark": "-narrow"}),
    "a plan, small": ("plans/_mini.svg", {"diagram": diagram(SMALL)}),
    "times": ("plans/_times.svg", {"times": times()}),
    "scaling": ("scaling/_loglog.svg", {"chart": curve()}),
}


def drawn(name: str) -> str:
    template, context = PICTURES[name]
    return re.sub(r"\s*\n\s*", "\n", render_to_string(template, context)).strip()


@pytest.mark.parametrize("name", PICTURES)
def test_it_looks_as_it_did(name: str, snapshot: SnapshotAssertion) -> None:
    assert drawn(name) == snapshot


@pytest.mark.parametrize("name", PICTURES)
def test_its_text_alternative_states_a_finding(name: str) -> None:
    root = ElementTree.fromstring(drawn(name))
    assert root.get("role") == "img"
    described = next((one.text for one in root if one.tag == "desc"), root.get("aria-label"))
    assert described
    assert re.search(r"\d", described)
    assert described.rstrip().endswith((".", "?"))


SPRITE = "_marks.svg"
WITH_THEIR_MODULES = {"_cost_scatter.svg", "_price_history.svg"}
"""Kept by the tests of the modules that draw them."""


def test_no_picture_is_left_out() -> None:
    folder = Path(settings.BASE_DIR) / "templates"
    every = {str(path.relative_to(folder)) for path in folder.rglob("*.svg")}
    kept = {template for template, _ in PICTURES.values()}
    assert every == kept | WITH_THEIR_MODULES | {SPRITE}
