"""The real price files: counts, and an independent check of memory per GPU.

The check does not use the adapter's own rules. It knows from reading the files by hand what the
memory column of each one counts (catalog.md, section 2.1), and the sizes of the reference list.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from evaluator.findings import Code
from evaluator.units import GB, GIB, MIB
from marketplace.catalog.adapters.skypilot import SkyPilotAdapter
from marketplace.catalog.base import Batch, Entry, Page
from tests.services import SHARED

pytestmark = pytest.mark.shared

TOTALS = {"primeintellect.csv", "vast.csv", "verda.538675a.csv"}
GIGABYTES = {"runpod.excerpt.csv", "shadeform.csv"}
ENTRIES = {
    "cudo.csv": 156,
    "hyperbolic.csv": 3,
    "hyperbolic.v7.csv": 37,
    "hyperstack.csv": 25,
    "jarvislabs.csv": 16,
    "lambda.csv": 374,
    "lium.csv": 40,
    "lium.b286816.csv": 34,
    "mithril.csv": 4,
    "nebius.csv": 21,
    "oci.excerpt.csv": 21,
    "primeintellect.csv": 115,
    "runpod.excerpt.csv": 79,
    "seeweb.csv": 27,
    "shadeform.csv": 118,
    "simplepod.v7.csv": 42,
    "spheron.excerpt.csv": 25,
    "vast.csv": 67,
    "verda.csv": 22,
    "verda.538675a.csv": 45,
    "yotta.csv": 8,
}
EACH_FILE = pytest.mark.parametrize("name", ENTRIES)
LARGEST_CARD_GB = 288


@cache
def batch_of(name: str) -> Batch:
    path = SHARED / "data" / "skypilot" / name
    return SkyPilotAdapter().read([Page(name, path.read_bytes(), "text/csv")])


@cache
def rows_of(name: str) -> list[dict[str, str]]:
    path: Path = SHARED / "data" / "skypilot" / name
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@cache
def reference_sizes() -> frozenset[int]:
    text = (SHARED / "reference" / "gpu_specs.json").read_text("utf-8")
    listed = json.loads(text)["accelerators"]
    return frozenset(card["memory"]["marketed_label_gb"] for card in listed)


def column_gib(found: Entry, name: str) -> float | None:
    """Memory of one GPU in GiB by the file's own column, read the way a person reads it."""
    match = re.search(r"SizeInMiB\W+(\d+)", found.words["GpuInfo"])
    size = int(match[1]) if match else 0
    if not size:
        return None
    if name in GIGABYTES:
        return size
    count = (found.gpu_count or 1) if name in TOTALS else 1
    return size * MIB / count / GIB


@EACH_FILE
def test_every_row_is_accounted_for(name: str) -> None:
    batch = batch_of(name)
    left_out = sum(batch.left_out.values())
    assert len(batch.entries) + len(batch.quarantined) + left_out == len(rows_of(name))
    assert (len(batch.entries), batch.complete) == (ENTRIES[name], True)


def test_only_keys_that_stand_twice_are_quarantined() -> None:
    reasons = Counter(
        (name, row.reason.code) for name in ENTRIES for row in batch_of(name).quarantined
    )
    assert reasons == {("simplepod.v7.csv", Code.DUPLICATE_KEY): 10}


@EACH_FILE
def test_cpu_rows_are_exactly_those_without_an_accelerator(name: str) -> None:
    without = [row for row in rows_of(name) if not row["AcceleratorName"]]
    assert sum(batch_of(name).left_out.values()) == len(without)


@EACH_FILE
def test_memory_per_gpu_is_what_a_person_reads(name: str) -> None:
    """Within the 7 % by which a label and a driver's figure differ."""
    wrong = [
        (found.sku, found.vram_bytes_per_gpu, expected)
        for found in batch_of(name).entries
        if found.vram_bytes_per_gpu and (expected := column_gib(found, name))
        if abs(found.vram_bytes_per_gpu / GB - expected) > 0.1 * expected
    ]
    assert wrong == []


@EACH_FILE
def test_memory_per_gpu_is_a_published_size_or_one_modified_card(name: str) -> None:
    sizes = reference_sizes() | {6, 8, 10, 12}  # small cards that the reference list leaves out
    odd = {
        (found.gpu_model, found.vram_bytes_per_gpu // GB)
        for found in batch_of(name).entries
        if found.vram_bytes_per_gpu and found.vram_bytes_per_gpu // GB not in sizes
    }
    assert odd == set()


@EACH_FILE
def test_no_machine_has_the_memory_of_one_gpu_or_of_all_squared(name: str) -> None:
    for found in batch_of(name).entries:
        if found.gpu_model == "H100" and found.gpu_count == 8:
            assert found.vram_bytes_per_gpu == 80 * GB
        assert (found.vram_bytes_per_gpu or 0) <= LARGEST_CARD_GB * GB


def test_no_memory_is_unknown_in_these_files() -> None:
    unknown = [
        (name, found.sku)
        for name in ENTRIES
        for found in batch_of(name).entries
        if found.vram_bytes_per_gpu is None
    ]
    assert unknown == []


def test_every_gpu_of_these_files_is_known() -> None:
    named = {found.gpu_model for name in ENTRIES for found in batch_of(name).entries}
    assert None not in named


@EACH_FILE
def test_keys_are_unique(name: str) -> None:
    keys = Counter(
        (found.sku, found.region, found.zone, found.vram_bytes_per_gpu)
        for found in batch_of(name).entries
    )
    assert max(keys.values()) == 1


@EACH_FILE
def test_prices_are_positive_dollars_for_the_machine(name: str) -> None:
    written = {row["Price"] for row in rows_of(name)} | {
        row.get("SpotPrice", "") for row in rows_of(name)
    }
    for found in batch_of(name).entries:
        for quote in found.quotes:
            assert quote.amount > 0
            assert (quote.currency, quote.basis.value, quote.unit.value) == (
                "USD",
                "machine",
                "hour",
            )
            assert quote.words in written


@EACH_FILE
def test_a_form_factor_never_sets_a_link(name: str) -> None:
    linked = [found for found in batch_of(name).entries if found.link]
    assert all("NVLINK" in " ".join(found.words.values()).upper() for found in linked)


def test_contradicting_names_leave_the_form_factor_unknown() -> None:
    conflicts = [
        found
        for found in batch_of("spheron.excerpt.csv").entries
        if Code.CONFLICTING_VALUES in {item.code for item in found.findings}
    ]
    assert {found.words["AcceleratorName"] for found in conflicts} == {"H100_NVL", "A100_80G_PCIE"}
    assert all(found.form_factor is None for found in conflicts)


def test_reading_twice_gives_the_same_batch() -> None:
    path = SHARED / "data" / "skypilot" / "vast.csv"
    again = SkyPilotAdapter().read([Page("vast.csv", path.read_bytes(), "text/csv")])
    assert again == batch_of("vast.csv")
