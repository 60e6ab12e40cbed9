"""The page that shows predictions beside measurements, from what a run of the command kept."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from marketplace.models import AccuracyReport
from marketplace.pictures import SCATTER_SIDE, scatter_picture
from marketplace.templatetags.present import percent

pytestmark = pytest.mark.django_db

LLAMA_8B: dict[str, Any] = {
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}


def kept(tmp_path: Path, *values: float) -> None:
    lines = [
        {
            "id": f"case-{value}",
            "kind": "weights",
            "model": LLAMA_8B,
            "workload": {"task": "serve", "engine": "vllm", "weights_format": "bf16"},
            "measured": {"value": value, "unit": "GB", "scope": "per_gpu"},
            "tolerance": 0.02,
            "source": f"a log of {value}",
        }
        for value in values
    ]
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    call_command("accuracy", "memory", str(path), "--keep", "--json")


def test_without_a_result_the_page_names_the_command(client: Client) -> None:
    page = client.get("/accuracy").content.decode()
    assert "No result is kept" in page
    assert "manage.py accuracy memory PATH --keep" in page


def test_the_page_shows_misses_and_sources(client: Client, tmp_path: Path) -> None:
    kept(tmp_path, 16.06, 20.0)
    page = client.get("/accuracy/").content.decode()
    assert "1 of 2 cases" in page
    assert "missed: -19.62%" in page
    assert "a log of 16.06" in page
    assert page.count('<circle class="seg-1"') == 2


@pytest.mark.parametrize(
    ("kind", "case", "unit"),
    [
        (
            "throughput",
            {
                "kind": "collective",
                "workload": {"op": "all_reduce"},
                "hardware": {
                    "spec_id": "a800-sxm4-80",
                    "gpus": 96,
                    "nodes": 12,
                    "link": "nvswitch",
                    "link_generation": 3,
                    "inter_node": "ib_hdr",
                },
                "measured": {"metric": "busbw_bytes_per_s", "value": 9e14},
            },
            "busbw bytes per s",
        ),
        (
            "collectives",
            {"op": "all_reduce", "gpus": 8, "size_bytes": 2**30, "algbw_gbs": 1, "busbw_gbs": 467},
            "GB/s",
        ),
    ],
)
def test_every_miss_has_its_unit_and_its_source(
    client: Client, tmp_path: Path, kind: str, case: dict[str, Any], unit: str
) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps({"id": "far off", "source": "a log", **case}), "utf-8")
    call_command("accuracy", kind, str(path), "--keep", "--json")
    page = client.get("/accuracy").content.decode()
    misses = page.partition(">1 miss<")[2].partition("</table>")[0]
    assert f'data-label="Unit" class="word">{unit}</td>' in misses
    assert 'data-label="Source">a log</td>' in misses
    assert "e+" not in misses


def test_a_newer_result_takes_the_place_of_the_older(client: Client, tmp_path: Path) -> None:
    kept(tmp_path, 16.06, 20.0)
    kept(tmp_path, 16.06)
    assert AccuracyReport.objects.count() == 1
    page = client.get("/accuracy").content.decode()
    assert "Every judged case is within its tolerance." in page


def test_the_footer_leads_to_it(client: Client) -> None:
    assert 'href="/accuracy"' in client.get("/status").content.decode()


def test_an_equal_pair_lies_on_the_diagonal() -> None:
    picture = scatter_picture([(2.0**30, 2.0**30), (3.0e11, 3.0e11)])
    assert picture is not None
    assert all(x + y == pytest.approx(SCATTER_SIDE) for x, y in picture.points)
    assert picture.description == "2 of 2 predictions are within a quarter of the measured value."


def test_both_axes_have_figures_and_names(client: Client, tmp_path: Path) -> None:
    kept(tmp_path, 16.06, 20.0)
    page = client.get("/accuracy").content.decode()
    for words in ("Predicted, GiB", "Measured, GiB"):
        assert page.count(words) == 1
    assert page.count(">100</text>") == 2


def test_figures_of_an_axis_never_touch() -> None:
    """They are some 42 units wide at most, with six digits, and stand on a square of 300."""
    picture = scatter_picture([(2.0**10, 2.0**10), (2.0**50, 2.0**50)])
    assert picture is not None
    figured = [decade.at for decade in picture.decades if decade.words]
    assert all(after - before >= 40 for before, after in pairwise(figured))
    assert len(figured) >= 4


def test_what_rounds_to_nothing_has_no_sign() -> None:
    assert (percent(-0.0001), percent(-0.001), percent(None)) == ("0.0%", "-0.1%", "–")


def test_nothing_above_zero_makes_no_picture() -> None:
    assert scatter_picture([(0.0, 1.0)]) is None


@pytest.mark.shared
def test_the_shared_cases_can_be_kept_and_shown(client: Client, shared: Path) -> None:
    call_command("accuracy", "memory", str(shared / "cases/memory.jsonl"), "--keep", "--json")
    page = client.get("/accuracy").content.decode()
    assert "kv capacity blind" in page
