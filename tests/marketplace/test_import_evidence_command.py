"""import_evidence: the same preview in a terminal, with exit codes 0, 1, 2 and 3."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from marketplace.evaluations import keep_workload
from marketplace.models import Evidence, Listing, MeasuredFigure
from tests.marketplace.test_evidence import CUT, PAIRS, SAMPLES
from tests.pages.catalog import make_listing, make_source
from tests.pages.everything import DOCUMENT

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


def test_speeds_are_kept_with_what_ran(eight: Listing) -> None:
    ran = {"workload": "serve-llama-8b", "plan": "tp2"}
    code, said = run(eight.pk, sample_path("engine-serve"), **ran)
    assert code == 0
    assert "output rate of all GPUs: 2,000 tokens/s" in said
    assert "shown 3 of 3 facts; kept as evidence" in said
    assert set(MeasuredFigure.objects.values_list("workload", "plan")) == {
        ("serve-llama-8b", "tp2")
    }


def test_speeds_of_a_saved_workload_are_kept_by_its_slug(eight: Listing) -> None:
    saved = keep_workload(DOCUMENT, User.objects.create_user("ada"))
    code, said = run(eight.pk, sample_path("engine-serve"), workload=saved.slug, plan="tp2")
    assert code == 0, said
    assert MeasuredFigure.objects.filter(workload=saved.slug).count() == 3


@pytest.mark.parametrize(
    ("ran", "code", "words"),
    [
        ({}, 3, "Name the workload and the plan that ran"),
        ({"workload": "serve-llama-8b"}, 2, "--workload and --plan: read one, expected both"),
        ({"workload": "nothing", "plan": "tp2"}, 2, "read 'nothing', expected a saved one"),
        ({"workload": "serve-llama-8b", "plan": "tp7"}, 2, "Expected one of one"),
    ],
)
def test_speeds_without_what_ran_are_refused(
    eight: Listing, ran: dict[str, str], code: int, words: str
) -> None:
    told, said = run(eight.pk, sample_path("engine-serve"), **ran)
    assert (told, Evidence.objects.count()) == (code, 0)
    assert words in said


def test_json_holds_speeds(eight: Listing) -> None:
    _, said = run(eight.pk, sample_path("engine-serve"), dry_run=True, as_json=True)
    assert json.loads(said)["speeds"][0]["metric"]


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
