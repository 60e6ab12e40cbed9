"""A file and a mapping become listings; a dry run only shows the differences."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from marketplace.models import Listing, Provider, Source, SyncRun

SAMPLES = Path(__file__).parents[1] / "samples" / "imports"
CSV, MAP = SAMPLES / "list.csv", SAMPLES / "csv.profile.json"


def run(*arguments: Any, **options: Any) -> dict[str, Any]:
    out = StringIO()
    call_command("import_listings", *arguments, as_json=True, stdout=out, **options)
    answer: dict[str, Any] = json.loads(out.getvalue())
    return answer


def bring(path: Path = CSV, **options: Any) -> dict[str, Any]:
    return run("acme-list", path, provider="Acme Ltd", mapping=MAP, **options)


@pytest.mark.django_db
def test_a_dry_run_shows_the_differences_and_leaves_nothing() -> None:
    (report,) = bring(dry_run=True)["sources"]
    assert report["drift"]["new"] == ["k-1 (Frankfurt)", "k-2 (Essen)"]
    assert not Source.objects.exists()
    assert not Provider.objects.exists()
    assert not SyncRun.objects.exists()


@pytest.mark.django_db
def test_an_import_writes_and_the_same_file_again_changes_nothing() -> None:
    (report,) = bring()["sources"]
    assert (report["outcome"], report["counts"]["new"]) == ("published", 2)
    assert str(Listing.objects.get(sku="k-1").machine_hour_amount) == "18.40000000"
    assert bring()["sources"][0]["outcome"] == "unchanged"


@pytest.mark.django_db
def test_the_difference_to_the_list_before_is_told_row_by_row(tmp_path: Path) -> None:
    bring()
    later = tmp_path / "later.csv"
    text = CSV.read_text("utf-8").replace("18,40", "17,90")
    later.write_text(f"{text}k-3;NVIDIA L4;1;24 GB;8;64 GB;Essen;0,70\n", "utf-8")
    (report,) = bring(later, dry_run=True)["sources"]
    moved = ["k-1 (Frankfurt)"]
    told = {"new": ["k-3 (Essen)"], "changed": moved, "repriced": moved, "gone": []}
    assert report["drift"] == told
    assert Listing.objects.count() == 2


@pytest.mark.django_db
@pytest.mark.parametrize("count", ["0.5", "0,5", "1/2", "½"])
def test_a_share_of_a_gpu_in_the_count_column_is_no_whole_one(tmp_path: Path, count: str) -> None:
    listed = tmp_path / "shares.csv"
    listed.write_text(CSV.read_text("utf-8").replace("SXM5;8;", f"SXM5;{count};"), "utf-8")
    bring(listed)
    row = Listing.objects.get(sku="k-1")
    assert (row.gpu_count, row.gpu_fraction) == (1, count)
    assert "fractional_gpu" in {found["code"] for found in row.findings}


@pytest.mark.django_db
@pytest.mark.parametrize(("count", "gpus"), [("8.0", 8), ("8,0", 8), ("1.5", None), ("2,5", None)])
def test_a_count_with_decimals_is_whole_or_unknown(
    tmp_path: Path, count: str, gpus: int | None
) -> None:
    listed = tmp_path / "decimals.csv"
    listed.write_text(CSV.read_text("utf-8").replace("SXM5;8;", f"SXM5;{count};"), "utf-8")
    bring(listed)
    row = Listing.objects.get(sku="k-1")
    assert (row.gpu_count, row.gpu_fraction) == (gpus, "")


@pytest.mark.django_db
def test_a_mapping_stays_with_its_source() -> None:
    bring()
    out = run("acme-list", CSV)
    assert out["sources"][0]["outcome"] == "unchanged"
    assert Source.objects.get(key="acme-list").profile["currency"] == "EUR"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("acme", "nowhere.csv"), {}, "FILE: read nowhere.csv, expected a file"),
        (("acme", CSV), {}, "KEY: read 'acme', a new source"),
        (("Acme!", CSV), {"provider": "A"}, "KEY: read 'Acme!', a new source"),
        (("acme", CSV), {"mapping": CSV}, "--map: read no JSON"),
    ],
)
def test_a_mistake_is_said_before_anything_is_written(
    arguments: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(CommandError, match=r".") as caught:
        run(*arguments, **options)
    assert message in str(caught.value)
    assert not Source.objects.exists()


@pytest.mark.django_db
def test_a_source_of_another_adapter_takes_no_import() -> None:
    provider = Provider.objects.create(slug="a", name="A")
    Source.objects.create(provider=provider, key="page-a", kind="page", adapter="page")
    with pytest.raises(CommandError, match="expected a source of imports"):
        run("page-a", CSV)
