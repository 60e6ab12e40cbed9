"""The scorers of pasted outputs and benchmark rows: each difference is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marketplace.accuracy import collectives, topology

PAIR = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-31\nGPU1\tNV4\t X \t0-31\n"
EXPECT = {
    "format": "nvidia-smi-topo-m", "expect": "ok", "error": None, "gpu_count": 2,
    "gpu_matrix": [["X", "NV4"], ["NV4", "X"]], "link_classes": {"NV4": 1}, "pairs_known": 1,
    "best_pair_class": "NV4", "all_to_all_nvlink": True, "nvlink_islands": [[0, 1]],
    "largest_nvlink_clique": 2, "nvlink_count_per_pair": {"min": 4, "max": 4},
    "best_group_worst_class": {"2": "NV4"}, "nics": [], "gpu_nearest_nic": None,
    "cpu_affinity": ["0-31", "0-31"], "warnings": [], "notes": "not compared",
}  # fmt: skip


def why(folder: Path, text: str = PAIR, **changes: Any) -> str:
    (folder / "1.txt").write_text(text, "utf-8")
    (folder / "1.json").write_text(json.dumps(EXPECT | changes), "utf-8")
    summary = topology.score(folder)
    assert summary.cases == 1
    return summary.misses[0].why if summary.misses else ""


def test_a_right_reading_is_within(tmp_path: Path) -> None:
    assert why(tmp_path) == ""


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"gpu_count": 3}, "gpu_count"),
        ({"expect": "partial", "error": "truncated"}, "expect, error"),
        ({"gpu_matrix": [["X", "NV4"], [None, "X"]]}, "gpu_matrix"),
        ({"all_to_all_nvlink": None}, "all_to_all_nvlink"),
        ({"link_classes": {}}, "link_classes"),
        ({"nvlink_count_per_pair": None}, "nvlink_count_per_pair"),
        ({"warnings": ["incomplete"]}, "warnings"),
        ({"driver": "550"}, "driver"),
    ],
)
def test_each_difference_is_named(tmp_path: Path, changes: dict[str, Any], field: str) -> None:
    assert why(tmp_path, **changes) == field


def test_a_refused_text_is_right_where_it_should_be(tmp_path: Path) -> None:
    expect = {
        "format": "nvidia-smi-table",
        "expect": "error",
        "error": "no_devices",
        "gpu_count": 0,
    }
    (tmp_path / "1.txt").write_text("No devices were found\n", "utf-8")
    (tmp_path / "1.json").write_text(json.dumps(expect | {"warnings": []}), "utf-8")
    assert topology.score(tmp_path / "1.json").within_tolerance == 1


def test_an_answer_that_is_no_object_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text("[]", "utf-8")
    assert topology.score(tmp_path).unreadable


CASE_ERRORS = {"006-2gpu-node-indented-wrapped-legend", "033-5gpu-node-phb-with-p2p-ok"}
"""Their affinities hold statuses of the second table of the paste; the text shows CPU lists."""


@pytest.mark.shared
def test_the_topology_cases(shared: Path) -> None:
    summary = topology.score(shared / "cases" / "topology")
    assert {miss.id for miss in summary.misses} <= CASE_ERRORS
    assert not summary.unreadable


ROW = {
    "id": "1", "op": "all_reduce", "size_bytes": 1024, "algbw_gbs": 100.0, "busbw_gbs": 175.0,
    "gpu": "H100", "gpus": 8, "nodes": 1, "link": "NV18", "inter_node": None,
    "nccl_version": None, "algorithm": None, "healthy": True, "range": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"busbw_gbs": 178.0}, None),
        ({"busbw_gbs": 180.0}, "busbw does not follow"),
        ({"algbw_gbs": None, "gpus": None, "healthy": None}, None),
        ({"op": "gossip"}, "op is 'gossip'"),
        ({"size_bytes": -1}, "size_bytes is"),
    ],
)
def test_rows_are_kept_whole_and_follow_from_their_figures(
    tmp_path: Path, changes: dict[str, Any], reason: str | None
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROW | changes), "utf-8")
    summary = collectives.score(path)
    assert bool(summary.misses) is bool(reason)
    assert not reason or summary.misses[0].why.startswith(reason)


BIG = {"size_bytes": 2**30, "algbw_gbs": 265.0, "busbw_gbs": 463.75, "range": True}


@pytest.mark.parametrize(
    ("changes", "right"),
    [
        ({}, True),
        ({"algbw_gbs": 20.0, "busbw_gbs": 35.0}, False),
        ({"algbw_gbs": 20.0, "busbw_gbs": 35.0, "healthy": False}, True),
        ({"healthy": False}, False),
    ],
)
def test_a_healthy_row_lies_in_our_range_and_a_faulty_one_below_it(
    tmp_path: Path, changes: dict[str, Any], right: bool
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROW | BIG | changes), "utf-8")
    summary = collectives.score(path)
    assert (summary.cases, summary.within_tolerance) == (1, int(right))
    assert summary.by_kind["range"].cases == 1


@pytest.mark.shared
def test_the_collective_cases(shared: Path) -> None:
    summary = collectives.score(shared / "cases" / "collectives.jsonl")
    assert summary.cases == summary.within_tolerance > 0
    assert not summary.unreadable
