from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from marketplace.models import Source
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db

SLUG = "serve-llama-8b"


@pytest.fixture
def source() -> Source:
    source = make_source()
    make_listing(source, link=None)
    make_listing(source, "l40s", gpu_model="L40S", gpu_count=1, vram_bytes_per_gpu=48 * 10**9)
    make_listing(source, "l4", gpu_model="L4", gpu_count=1, vram_bytes_per_gpu=24 * 10**9)
    return source


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("shortlist", *arguments, stdout=out)
    return out.getvalue()


def failing(*arguments: str) -> CommandError:
    with pytest.raises(CommandError) as caught:
        run(*arguments)
    return caught.value


def test_a_table_echoes_the_request_and_closes_with_the_counts(source: Source) -> None:
    lines = run(SLUG).splitlines()
    assert lines[0].startswith("Serve Llama 3.1 8B to 32 users: serve Llama-3.1-8B, bf16")
    assert lines[-1].startswith("shown 3 of 3")


def test_a_row_names_memory_price_age_and_weakest_evidence(source: Source) -> None:
    table = run(SLUG)
    assert "GiB" in table
    assert "19.92 USD/h per machine, on-demand" in table
    assert "3 hours" in table
    assert "memory per GPU: declared" in table
    assert "one GPU (7 idle)" in table
    assert "· Not needed by this plan: How the 8 GPUs are joined is not verified." in table
    assert "not a reservation" in table


def test_what_is_hidden_is_counted_by_reason(source: Source) -> None:
    closing = run(SLUG, "--limit", "1").splitlines()[-1]
    assert closing == "shown 2 of 3, 1 hidden: 1 because they rank below those shown"


def test_json_holds_numbers_and_amounts_as_text(source: Source) -> None:
    found = json.loads(run(SLUG, "--format", "json"))
    first = found["rows"][0]
    assert (first["rank"], first["plan"], first["cost_per_hour"]) == (0, "one", "19.92000000")
    assert len(first["needed_bytes_per_gpu"]) == 3
    assert found["shown"] + sum(found["hidden"].values()) == found["total"] == 3


def test_a_row_that_serves_tells_its_speed_and_money_per_token(source: Source) -> None:
    table = run(SLUG)
    assert "tokens/s, first token" in table
    assert "USD per 1,000,000 tokens" in table
    first = json.loads(run(SLUG, "--format", "json"))["rows"][0]["outlook"]
    assert first["rate"] == sorted(first["rate"])
    assert [float(end) for end in first["per_million"]] == sorted(map(float, first["per_million"]))
    assert first["dominating"]
    assert first["conditional"] is False


def test_csv_cells_cannot_run_as_formulas(source: Source) -> None:
    make_listing(source, "evil", title='=HYPERLINK("http://x")', region="@SUM(A1)")
    make_listing(source, "evil2", title="ok", gpu_model="=1+1", vram_bytes_per_gpu=96 * 10**9)
    rows = list(csv.reader(io.StringIO(run(SLUG, "--format", "csv").strip())))
    assert all(len(row) == len(rows[0]) for row in rows)
    assert not [cell for row in rows[1:] for cell in row if cell.startswith(("=", "+", "-", "@"))]


@pytest.mark.parametrize("shape", ["table", "md", "csv", "json"])
def test_a_listing_cannot_paint_on_the_terminal(source: Source, shape: str) -> None:
    make_listing(source, "evil", title="\x1b[31mred\x9b0m\u202eright\u200f | <b>`x`")
    printed = run(SLUG, "--format", shape)
    assert not set(printed) & set("\x1b\x9b\u202e\u200f")
    assert shape != "md" or "\\| \\<b\\>" in printed


def test_json_keeps_what_was_read(source: Source) -> None:
    make_listing(source, "evil", title="\u202eright", amount=Decimal("1.00"))
    assert json.loads(run(SLUG, "--format", "json"))["rows"][0]["title"] == "\u202eright"


def test_the_counts_of_a_csv_go_to_the_error_stream(source: Source) -> None:
    out, error = io.StringIO(), io.StringIO()
    call_command("shortlist", SLUG, "--format", "csv", stdout=out, stderr=error)
    assert error.getvalue().startswith("shown 3 of 3")
    assert "shown" not in out.getvalue()


def test_markdown_is_a_table_between_request_and_counts(source: Source) -> None:
    lines = run(SLUG, "--format", "md").splitlines()
    widths = {line.count(" | ") for line in lines if line.startswith("| ")}
    assert len(widths) == 1
    assert lines[-1].startswith("shown")


def test_a_file_is_read_as_well_as_a_preset(source: Source, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(document()))
    assert run(str(path)).startswith("mine: serve")


def document(**changes: Any) -> dict[str, Any]:
    return {"name": "mine", "task": "serve", "model": {"preset": "llama-3.1-8b"}} | changes


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "expected a JSON file or a preset"),
        (b"\xff\xfe", "expected a JSON file or a preset"),
        (b"[1]", "an object"),
        (json.dumps(document(colour="red")).encode(), "colour"),
        (json.dumps(document(task="dance")).encode(), "task"),
        (b"[" * 100_000, "expected a JSON file or a preset"),
    ],
)
def test_a_file_that_cannot_be_used_ends_in_2_and_names_the_field(
    tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    error = failing(str(path))
    assert error.returncode == 2
    assert words in str(error)


@pytest.mark.parametrize("arguments", [("nowhere.json",), (SLUG, "--limit", "0")])
def test_wrong_usage_ends_in_2(arguments: tuple[str, ...]) -> None:
    assert failing(*arguments).returncode == 2


def test_nothing_that_serves_ends_in_1_after_the_near_misses(
    source: Source, tmp_path: Path
) -> None:
    path, out = tmp_path / "large.json", io.StringIO()
    path.write_text(json.dumps(document(model={"preset": "llama-3.1-405b"})))
    with pytest.raises(CommandError) as caught:
        call_command("shortlist", str(path), stdout=out)
    assert caught.value.returncode == 1
    near = out.getvalue().split("Near misses: they do not serve.")[1]
    assert " too little: " in next(line for line in near.splitlines() if line.startswith("     "))


def test_an_empty_catalog_ends_in_1() -> None:
    error = failing(SLUG)
    assert error.returncode == 1


def test_csv_tells_of_each_row_what_to_do_or_what_would_mend_it(source: Source) -> None:
    rows = list(csv.DictReader(io.StringIO(run(SLUG, "--format", "csv"))))
    ranked = [row for row in rows if row["part"] == "rows"]
    missed = next(row for row in rows if row["part"] == "near_misses")
    assert all("vllm serve" in row["advice"] and "Check first" in row["advice"] for row in ranked)
    assert "too little" in missed["what fails"]
    assert missed["smallest change"]
    assert not missed["advice"]


def test_a_near_miss_names_the_change_that_would_admit_it(source: Source) -> None:
    lines = run(SLUG).splitlines()
    at = next(n for n, line in enumerate(lines) if "✗" in line and "too little" in line)
    assert lines[at + 1].strip().startswith("→ ")
    record = json.loads(run(SLUG, "--format", "json"))["near_misses"][0]
    assert record["changes"]
    assert record["what_fails"]


def test_what_nothing_beats_is_named_though_it_is_not_shown(source: Source) -> None:
    make_listing(source, "h100x1", gpu_model="H100", gpu_count=1, vram_bytes_per_gpu=80 * 10**9)
    lines = run(SLUG, "--limit", "1").splitlines()
    front = lines[next(n for n, line in enumerate(lines) if line.startswith("Worth weighing")) :]
    assert any(line.startswith("  not shown") for line in front)
    whole = json.loads(run(SLUG, "--format", "json", "--limit", "1"))
    assert {one["listing"] for one in whole["front"]} - {one["listing"] for one in whole["rows"]}
