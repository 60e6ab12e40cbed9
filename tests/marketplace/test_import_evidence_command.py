"""import_evidence: the same preview in a terminal, with exit codes 0, 1, 2 and 3."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from marketplace.models import Evidence, Listing
from tests.marketplace.test_evidence import CUT, PAIRS, SAMPLES
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db


@pytest.fixture
def eight() -> Listing:
    return make_listing(make_source())


def run(listing: object, file: Path, **options: Any) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("import_evidence", str(listing), str(file), stdout=out, **options)
    except CommandError as error:
        return error.returncode, f"{out.getvalue()}{error}"
    return 0, out.getvalue()


def sample_path(name: str) -> Path:
    return SAMPLES / f"{name}.txt"


def test_it_shows_the_facts_and_keeps_them_for_review(eight: Listing) -> None:
    code, text = run(eight.pk, sample_path(PAIRS), by="provider")
    kept = Evidence.objects.get()
    assert code == 0
    assert "NVLink between pairs" in text
    assert f"kept as evidence {kept.pk}" in text
    assert (kept.state, kept.ran_by, kept.uploaded_by) == ("pending", "provider", None)


def test_a_listing_is_found_by_its_key(eight: Listing) -> None:
    assert run(eight.sku, sample_path(PAIRS), dry_run=True)[0] == 0


def test_a_dry_run_keeps_nothing(eight: Listing) -> None:
    code, text = run(eight.pk, sample_path(PAIRS), dry_run=True)
    assert (code, Evidence.objects.count()) == (0, 0)
    assert "not kept" in text


def test_json_holds_facts_cleaned_text_and_keys(eight: Listing) -> None:
    code, text = run(eight.pk, sample_path(PAIRS), as_json=True)
    document = json.loads(text)
    assert code == 0
    assert {fact["name"] for fact in document["facts"]} >= {"link", "topology"}
    assert document["evidence"] == Evidence.objects.get().pk
    assert "gpu-node-17" not in document["text"]


def test_what_holds_no_fact_is_1(eight: Listing, tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    file.write_text("bash: nvidia-smi: command not found\n")
    assert run(eight.pk, file)[0] == 1
    assert not Evidence.objects.exists()


@pytest.mark.parametrize("name", ["nothing", "999999", "٣"])
def test_an_unknown_listing_is_2(eight: Listing, name: str) -> None:
    code, text = run(name, sample_path(PAIRS))
    assert code == 2
    assert "LISTING" in text


def test_a_missing_file_is_2(eight: Listing, tmp_path: Path) -> None:
    assert run(eight.pk, tmp_path / "none.txt")[0] == 2


def test_a_key_of_several_listings_is_2(eight: Listing) -> None:
    make_listing(make_source("other"), eight.sku)
    assert "several listings" in run(eight.sku, sample_path(PAIRS))[1]


@pytest.mark.parametrize(
    ("name", "words"), [(CUT, "truncated"), ("2-gpus-nvlink", "2 GPUs are in the output")]
)
def test_what_is_damaged_or_does_not_match_is_3(eight: Listing, name: str, words: str) -> None:
    code, text = run(eight.pk, sample_path(name))
    assert code == 3
    assert words in text


def test_the_same_file_twice_opens_two_machines_and_both_wait(eight: Listing) -> None:
    """Nothing tells that they are one: a curator decides."""
    codes = [run(eight.pk, sample_path(PAIRS))[0] for _ in range(2)]
    assert (codes, Evidence.objects.count()) == ([0, 0], 2)
