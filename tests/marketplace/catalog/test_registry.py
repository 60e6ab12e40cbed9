"""The one list of adapters and sources, and what a folder of feed files becomes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from marketplace.catalog.adapters.skypilot import COLUMNS
from marketplace.catalog.registry import (
    ADAPTERS,
    DEFINITIONS,
    FEEDS,
    SAMPLES,
    UnknownAdapter,
    adapter_for,
    definitions_for_folder,
    files_without_listings,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    header = ",".join(COLUMNS) + "\n"
    for name in ("verda.csv", "verda.538675a.csv", "new cloud.csv"):
        (tmp_path / name).write_text(header, "utf-8")
    (tmp_path / "accelerators.csv").write_text("AcceleratorName,Clouds\n", "utf-8")
    (tmp_path / "SOURCES.md").write_text("# words", "utf-8")
    return tmp_path


def test_every_source_names_an_adapter_that_exists() -> None:
    assert {definition.adapter for definition in DEFINITIONS} <= set(ADAPTERS)


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_every_adapter_can_be_made(name: str) -> None:
    made = adapter_for(name)
    assert callable(made.read)
    assert callable(made.next_page)


def test_an_unknown_adapter_names_the_known_ones() -> None:
    with pytest.raises(UnknownAdapter, match=r"read 'ftp', expected one of .*skypilot"):
        adapter_for("ftp")


def test_keys_are_unique() -> None:
    assert max(Counter(definition.key for definition in DEFINITIONS).values()) == 1


def test_a_first_run_needs_no_internet() -> None:
    assert all(definition.bundled for definition in DEFINITIONS if definition.enabled)
    assert [definition.enabled for definition in SAMPLES] == [True] * 4


def test_feeds_are_https_addresses_and_off() -> None:
    assert {urlsplit(feed.url).scheme for feed in FEEDS} == {"https"}
    assert not any(feed.enabled for feed in FEEDS)


def test_a_bundled_source_lives_on_the_sample_server() -> None:
    assert SAMPLES[0].address("http://127.0.0.1:8811/").startswith("http://127.0.0.1:8811/")
    assert FEEDS[0].address("http://127.0.0.1:8811") == FEEDS[0].url


def test_each_file_with_listings_is_a_source_of_its_own(folder: Path) -> None:
    found = definitions_for_folder("skypilot", folder)
    assert {(each.key, each.provider) for each in found} == {
        ("skypilot-new-cloud", "new-cloud"),
        ("skypilot-verda", "verda"),
        ("skypilot-verda-538675a", "verda"),
    }
    assert {each.provider_name for each in found} == {"Verda", "new-cloud"}
    assert all(each.file and each.file.is_file() and not each.enabled for each in found)


def test_a_file_without_listings_is_named(folder: Path) -> None:
    assert [file.name for file in files_without_listings(folder)] == ["accelerators.csv"]


def test_one_file_is_a_folder_of_one(folder: Path) -> None:
    (found,) = definitions_for_folder("skypilot", folder / "verda.csv")
    assert found.key == "skypilot-verda"


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="expected a folder or a file"):
        definitions_for_folder("skypilot", tmp_path / "nowhere")


def test_only_feeds_are_read_from_a_folder(folder: Path) -> None:
    with pytest.raises(UnknownAdapter, match="read 'page', expected 'skypilot'"):
        definitions_for_folder("page", folder)


@pytest.mark.shared
def test_the_shared_files_are_twenty_one_sources(shared: Path) -> None:
    found = definitions_for_folder("skypilot", shared / "data" / "skypilot")
    assert len({each.key for each in found}) == len(found) == 21
    assert {each.provider for each in found} == {feed.provider for feed in FEEDS}
