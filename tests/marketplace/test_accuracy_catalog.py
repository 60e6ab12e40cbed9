"""The scorer of catalog pages: it sees every kind of difference, and every accepted alternative."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marketplace.accuracy.catalog import score

PAGE = """<!doctype html><html lang="en"><body>
<div class="m" id="k-1"><h3>8x H100 SXM5 80GB</h3><p>$20.00/hr per machine</p><p>In stock</p></div>
<div class="m" id="k-2"><h3>1x L4 24GB</h3><p>$0.50/hr</p><p>In stock</p></div>
<div class="m" id="k-3"><h3>8x H100 600GB</h3><p>$20.00/hr per machine</p><p>In stock</p></div>
</body></html>"""


def row(sku: str, **changes: Any) -> dict[str, Any]:
    wide = {
        "id": sku, "gpu_model": "H100", "gpu_count": 8, "vram_gb_per_gpu": 80,
        "form_factor": "SXM5", "link": "unknown", "link_evidence": "unknown",
        "availability": "available", "region": None, "vcpus": None, "ram_gb": None,
        "local_storage_gb": None, "warnings": ["form_factor_only"],
        "offers": [{"model": "on_demand", "amount": "20", "currency": "USD", "unit": "hour",
                    "basis": "machine", "machine_per_hour": "20.00"}],
    }  # fmt: skip
    single = {
        "gpu_model": "L4", "gpu_count": 1, "vram_gb_per_gpu": 24, "form_factor": None,
        "link": "n/a", "link_evidence": "n/a", "warnings": [],
        "offers": [{"model": "on_demand", "amount": "0.5", "currency": "USD", "unit": "hour",
                    "basis": "machine", "machine_per_hour": "0.50"}],
    }  # fmt: skip
    return wide | (single if sku == "k-2" else {}) | changes


def expectation(**changes: Any) -> dict[str, Any]:
    return {
        "sync_status": "partial", "listings": [row("k-1"), row("k-2")], "delisted": [],
        "quarantined": [{"id": "k-3", "reason": "vram_impossible"}], "page_warnings": [],
    } | changes  # fmt: skip


def why(folder: Path, expect: dict[str, Any], **case: Any) -> str:
    source = {"url": "https://p.example/gpus"}
    (folder / "case.html").write_text(PAGE, "utf-8")
    (folder / "case.json").write_text(
        json.dumps({"case": "case", "source": source, "expect": expect, **case}), "utf-8"
    )
    summary = score(folder)
    assert summary.cases == 1
    return summary.misses[0].why if summary.misses else ""


def test_a_right_reading_is_within(tmp_path: Path) -> None:
    assert why(tmp_path, expectation()) == ""


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gpu_model", "A100"), ("gpu_count", 4), ("nodes", 2), ("vram_gb_per_gpu", 94),
        ("form_factor", None), ("link", "nvlink"), ("link_evidence", "declared"),
        ("availability", "limited"), ("region", "Oslo, NO"), ("vcpus", 208), ("ram_gb", 2048),
        ("local_storage_gb", 0), ("warnings", ["price_from"]), ("offers", []),
        ("warnings", ["form_factor_only", "basis_unknown"]),
    ],
)  # fmt: skip
def test_each_field_is_compared(tmp_path: Path, field: str, value: object) -> None:
    listings = [row("k-1", **{field: value}), row("k-2")]
    assert f"k-1.{field}" in why(tmp_path, expectation(listings=listings))


@pytest.mark.parametrize(
    ("part", "value"),
    [("amount", "2.50"), ("currency", "EUR"), ("unit", "month"), ("basis", "gpu"),
     ("model", "spot"), ("machine_per_hour", None)],
)  # fmt: skip
def test_each_part_of_an_offer_is_compared(tmp_path: Path, part: str, value: object) -> None:
    offer = row("k-1")["offers"][0] | {part: value}
    listings = [row("k-1", offers=[offer]), row("k-2")]
    assert "k-1.offers.0" in why(tmp_path, expectation(listings=listings))
    accepting = [row("k-1", offers=[offer], accept=_accept(part)), row("k-2")]
    assert why(tmp_path, expectation(listings=accepting)) == ""


def _accept(part: str) -> dict[str, list[Any]]:
    return {f"offers.0.{part}": [row("k-1")["offers"][0][part]]}


def test_one_gpu_makes_both_bases_the_same(tmp_path: Path) -> None:
    offer = row("k-2")["offers"][0] | {"basis": "gpu"}
    listings = [row("k-1"), row("k-2", offers=[offer])]
    assert why(tmp_path, expectation(listings=listings)) == ""


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"listings": [row("k-1")]}, "k-2: expected 'absent'"),
        ({"listings": [row("k-1"), row("k-2"), row("k-9")]}, "k-9: expected 'listed'"),
        ({"quarantined": []}, "quarantined"),
        ({"sync_status": "ok"}, "sync_status"),
        ({"delisted": ["k-7"]}, "delisted"),
        ({"page_warnings": ["layout_changed"]}, "page_warnings"),
        ({"unchanged": ["k-7"]}, "unchanged"),
    ],
)  # fmt: skip
def test_what_stands_around_the_rows_is_compared(
    tmp_path: Path, changes: dict[str, Any], word: str
) -> None:
    assert word in why(tmp_path, expectation(**changes))


def test_a_row_may_be_accepted_as_quarantined_or_absent(tmp_path: Path) -> None:
    doubted = row("k-3", accept="quarantined")
    gone = row("k-9", accept="absent")
    listings = [row("k-1"), row("k-2"), doubted, gone]
    assert why(tmp_path, expectation(listings=listings, quarantined=[])) == ""


def test_accepted_values_and_warnings_count(tmp_path: Path) -> None:
    accept = {"availability": ["available"], "warnings_may_lack": ["vram_ambiguous"]}
    changed = row(
        "k-1",
        availability="limited",
        warnings=["form_factor_only", "vram_ambiguous"],
        accept=accept,
    )
    assert why(tmp_path, expectation(listings=[changed, row("k-2")])) == ""


def test_may_quarantine_and_may_stay_count(tmp_path: Path) -> None:
    known = [{"id": name, "status": "listed"} for name in ("k-1", "k-2", "k-7", "k-3")]
    expect = expectation(quarantined=[], delisted=["k-7"])
    assert why(tmp_path, expect, may_quarantine=["k-3"], prior_listings=known) == ""
    held = [{"id": name, "status": "listed"} for name in ("k-1", "k-7", "k-8")]
    assert "delisted" in why(tmp_path, expect, may_quarantine=["k-3"], prior_listings=held)
    stay = {"may_quarantine": ["k-3"], "may_stay": ["k-7"], "prior_listings": held}
    assert why(tmp_path, expect, **stay) == ""


def test_a_broken_case_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{", "utf-8")
    assert score(tmp_path).unreadable[0].startswith("bad.json: JSONDecodeError")
