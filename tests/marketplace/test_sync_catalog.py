from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from marketplace.models import Listing, Price, Source, SyncRun
from tests.marketplace.site import Site, status

HEADER = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region\n"
)
ROW = "8xH100,H100,8.0,208.0,1800.0,,23.92,,eu-north\n"


def run(*arguments: object) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("sync_catalog", *map(str, arguments), stdout=out, stderr=StringIO())
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    except CommandError as error:
        return error.returncode, str(error)
    return 0, out.getvalue()


def answer(*arguments: object) -> dict[str, Any]:
    code, text = run(*arguments, "--json")
    return {"code": code, **json.loads(text)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "acme.csv").write_text(HEADER + ROW)
    (tmp_path / "accelerators.csv").write_text("AcceleratorName\nH100\n")
    return tmp_path


@pytest.mark.django_db
def test_each_file_of_a_folder_is_a_source_of_its_own(folder: Path) -> None:
    said = answer("skypilot", "--from", folder)
    assert said["code"] == 0
    assert [each["source"] for each in said["sources"]] == ["skypilot-acme"]
    assert said["no_listings"] == ["accelerators.csv"]
    assert said["totals"]["listings"] == 1
    assert Listing.objects.get().source.key == "skypilot-acme"


@pytest.mark.django_db
def test_a_second_reading_adds_nothing(folder: Path) -> None:
    first, second = (answer("skypilot", "--from", folder) for _ in range(2))
    assert second["totals"]["listings"] == first["totals"]["listings"]
    assert second["totals"]["outcomes"] == {"unchanged": 1}
    assert (Listing.objects.count(), Price.objects.count()) == (1, 1)


@pytest.mark.django_db
def test_a_file_that_cannot_be_read_does_not_hold_back_the_others(folder: Path) -> None:
    (folder / "broken.csv").write_text(HEADER)
    said = answer("skypilot", "--from", folder)
    assert said["code"] == 3
    assert said["totals"]["outcomes"] == {"published": 1, "failed": 1}


@pytest.mark.django_db
def test_a_dry_run_shows_the_changes_and_writes_none(folder: Path) -> None:
    code, text = run("skypilot", "--from", folder, "--dry-run")
    assert code == 0
    assert "new: 8xH100 (eu-north)" in text
    assert not Listing.objects.exists()
    assert not SyncRun.objects.exists()
    assert not Source.objects.filter(key="skypilot-acme").exists()


@pytest.mark.django_db
def test_the_table_echoes_the_request_and_says_what_it_hides(folder: Path) -> None:
    lines = run("skypilot", "--from", folder)[1].splitlines()
    assert lines[0] == f"Sync of skypilot, read from {folder}"
    assert lines[-1].startswith("shown 1 of 2 sources, 1 hidden because they hold no listings")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nobody"], 1, "read 'nobody'"),
        (["skypilot", "--from", "/does/not/exist"], 2, "not there"),
        (["skypilot", "sample-brackwater", "--from", "."], 2, "2 names"),
        (["sample-brackwater", "--from", "."], 2, "expected a file"),
        (["skypilot", "--from", "{empty}"], 1, "holds listings"),
    ],
)
def test_a_request_that_means_nothing_says_what_was_expected(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    said = run(*(argument.format(empty=tmp_path) for argument in arguments))
    assert said[0] == code
    assert message in said[1]


def test_sources_are_named_by_key_provider_or_adapter(source: Source) -> None:
    for name in ("acme-list", "acme", "lines"):
        assert [each["source"] for each in answer(name)["sources"]] == ["acme-list"]


def test_without_a_name_what_is_switched_on_is_synced(source: Source, site: Site) -> None:
    Source.objects.create(
        provider=source.provider, key="off", kind="page", adapter="lines", enabled=False
    )
    keys = {each["source"] for each in answer()["sources"]}
    assert "acme-list" in keys
    assert "off" not in keys
    assert not any(key.startswith("skypilot") for key in keys)


def test_a_failing_site_is_reported_with_its_reason(source: Source, site: Site) -> None:
    site.answers["/list"] = status(500)
    said = answer("acme-list")
    assert said["code"] == 3
    assert "answered 500" in said["sources"][0]["reason"]
    rehearsed = answer("acme-list", "--dry-run")
    assert (rehearsed["code"], rehearsed["sources"][0]["outcome"]) == (3, "failed")


@pytest.mark.django_db
@pytest.mark.shared
def test_all_price_files_sync_twice_with_the_same_listings(shared: Path) -> None:
    feed = shared / "data" / "skypilot"
    first, second = (answer("skypilot", "--from", feed) for _ in range(2))
    assert first["code"] == second["code"] == 0
    assert first["totals"]["sources"] == 21
    assert second["totals"]["listings"] == first["totals"]["listings"] == Listing.objects.count()
    assert first["no_listings"] == ["accelerators.csv"]
    assert first["totals"]["quarantined"] == {"duplicate_key": 10}
