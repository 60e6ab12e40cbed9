"""What was run on a listing's hardware, and what more of it would bring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.facts import RanBy
from evaluator.workload import workload_presets
from marketplace.evidence import Origin, keep, preview, review
from marketplace.machines import machine_of
from marketplace.models import Evidence, Fact, Listing
from marketplace.models.evidence import EvidenceState
from marketplace.runs import looks_at, predicted_rate, runs_of, spread_of
from marketplace.views.scaling import per_hour_of
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db
SAMPLES = Path(__file__).parent.parent / "samples" / "evidence"
PAIRS, SWITCH = "8-gpus-nvlink-pairs", "8-gpus-nvswitch"


@pytest.fixture
def eight() -> Listing:
    return make_listing(make_source())


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada")


def words(response: Any) -> str:
    return " ".join(response.content.decode().split())


def page(client: Client, row: Listing, **query: str) -> Any:
    return client.get(f"/evidence/listings/{row.pk}/", query)


def kept(row: Listing, by: User, sample: str, *, accepted: bool = True) -> Evidence:
    shown = preview(row, (SAMPLES / f"{sample}.txt").read_text("utf-8"))
    found = keep(row, shown, Origin(by, RanBy.RENTER))
    if accepted:
        review(found.pk, EvidenceState.ACCEPTED, None)
    return found


def benchmarked(row: Listing, by: User, rate: int) -> Evidence:
    """Accepted evidence of one more machine with a rate on it."""
    found = kept(row, by, SWITCH)
    Fact.objects.create(
        listing=row,
        evidence=found,
        name="link_bytes_per_s",
        value=rate,
        grade=3,
        source="nccl-tests",
        ran_by="renter",
        as_of=found.ran_at,
    )
    return found


def test_without_runs_the_page_says_what_to_do_and_what_to_expect(
    client: Client, eight: Listing
) -> None:
    text = words(page(client, eight))
    assert "Nothing was run on this hardware yet." in text
    assert "Prove it" in text
    assert "What to expect of a large all-reduce over its GPUs" in text


def test_contradictions_stand_on_top(client: Client, eight: Listing, ada: User) -> None:
    kept(eight, ada, PAIRS)
    text = words(page(client, eight))
    assert "1 machine of this hardware contradicts the catalog." in text
    assert text.index("Contradictions</h2>") < text.index("Runs</h2>")


def test_a_run_says_what_when_and_by_whom(client: Client, eight: Listing, ada: User) -> None:
    kept(eight, ada, SWITCH)
    text = words(page(client, eight))
    assert "by the renter" in text
    assert "<div>NVLink</div>" in text
    assert ">ada<" not in text


def test_pending_evidence_is_its_uploaders_alone(client: Client, eight: Listing, ada: User) -> None:
    kept(eight, ada, SWITCH, accepted=False)
    assert page(client, eight).context["runs"] == []
    client.force_login(ada)
    assert len(page(client, eight).context["runs"]) == 1


def test_runs_of_the_same_hardware_count_and_are_told_apart(
    client: Client, eight: Listing, ada: User
) -> None:
    twin = make_listing(eight.source, "twin")
    other = make_listing(eight.source, "other", gpu_model="A100")
    kept(twin, ada, SWITCH)
    (run,) = page(client, eight).context["runs"]
    assert not run.here
    assert page(client, other).context["runs"] == []


def test_the_spread_is_of_measured_rates(client: Client, eight: Listing, ada: User) -> None:
    for rate in (400, 300, 420):
        benchmarked(eight, ada, rate * 10**9)
    found = page(client, eight).context["spread"]
    assert (found.count, found.low, found.middle, found.high) == (3, 3e11, 4e11, 4.2e11)
    assert "3 runs measured 300 GB/s to 420 GB/s between the GPUs." in words(page(client, eight))


def test_a_measured_rate_is_held_against_the_prediction(eight: Listing, ada: User) -> None:
    machine = machine_of(eight)
    expected = predicted_rate(machine)
    assert expected is not None
    for rate, inside in ((expected.span.typical, True), (expected.low / 2, False)):
        benchmarked(eight, ada, int(rate))
        newest = runs_of(eight, machine, looks_at(eight, ada))[0]
        assert newest.inside is inside


def test_a_benchmark_without_a_matrix_is_a_rate(client: Client, eight: Listing, ada: User) -> None:
    kept(eight, ada, "8-gpus-all-reduce")
    (run,) = page(client, eight).context["runs"]
    assert run.rate == 477_220_000_000
    assert "1 run measured" in words(page(client, eight))


def test_a_benchmark_of_some_gpus_is_no_rate_of_the_machine(ada: User) -> None:
    two = make_listing(make_source(), "sixteen", gpu_count=16)
    kept(two, ada, "8-gpus-all-reduce")
    assert [run.rate for run in runs_of(two, machine_of(two), looks_at(two, ada))] == [None]


def test_nothing_measured_has_no_spread() -> None:
    assert spread_of([]) is None


@pytest.mark.parametrize("slug", list(workload_presets()))
def test_each_preset_has_curves_on_a_fast_machine(
    client: Client, eight: Listing, slug: str
) -> None:
    response = page(client, eight, workload=slug)
    assert response.context["strong"].description.startswith("Strong scaling")
    assert "Each added GPU is worth" in words(response)


def test_one_gpu_is_timed_and_scales_nothing(client: Client, eight: Listing) -> None:
    one = make_listing(eight.source, "one", gpu_count=1, link=None)
    response = page(client, one)
    assert response.context["strong"] is None
    assert "is timed on 1 GPU alone." in words(response)


def test_what_cannot_be_timed_says_where_to_look(client: Client, eight: Listing) -> None:
    bare = make_listing(eight.source, "bare", gpu_model=None, vram_bytes_per_gpu=None, link=None)
    text = words(page(client, bare))
    assert "No plan of this workload can be timed on this machine." in text
    assert "#plans" in text


@pytest.mark.parametrize("name", ["strong", "weak"])
def test_each_curve_can_be_kept_as_a_file(client: Client, eight: Listing, name: str) -> None:
    response = page(client, eight, picture=name)
    assert response["Content-Type"].startswith("image/svg+xml")
    assert b"<desc" in response.content


def test_a_listing_that_is_not_there_is_not_found(client: Client) -> None:
    assert client.get("/evidence/listings/1/").status_code == 404


def test_a_part_of_a_rental_costs_as_much_as_the_whole(eight: Listing) -> None:
    per_hour = per_hour_of(eight, 8)
    assert [per_hour(gpus) for gpus in (1, 8, 9, 16)] == [
        eight.machine_hour_amount * factor for factor in (1, 1, 2, 2)
    ]
    eight.machine_hour_amount = None
    assert per_hour_of(eight, 8)(8) is None


def test_a_training_says_hours_money_and_what_each_saved_hour_costs(
    client: Client, eight: Listing
) -> None:
    text = words(page(client, eight, workload="finetune-llama-8b-lora"))
    assert "Hours, and USD to finish" in text
    assert "the fewest GPUs that hold it" in text


def test_without_a_price_no_money_is_made_up(client: Client, eight: Listing) -> None:
    bare = make_listing(eight.source, "bare", amount=None)
    text = words(page(client, bare))
    assert "no price" in text
    assert "USD" not in text.split('id="curves"')[1]


def test_queries_do_not_grow_with_listings(client: Client, eight: Listing, ada: User) -> None:
    def count() -> int:
        page(client, eight)  # the shelf of all listings is read anew once something changed
        with CaptureQueriesContext(connection) as found:
            page(client, eight)
        return len(found)

    few = count()
    for number in range(20):
        make_listing(eight.source, f"m{number}")
    assert count() == few <= 8


def test_what_to_expect_of_a_link_opens_the_links_that_it_spans(
    client: Client, eight: Listing, ada: User
) -> None:
    predicted = predicted_rate(machine_of(eight))
    assert predicted
    assert [name for name, _ in predicted.links] == ["NVSwitch between all GPUs, 450 GB/s"]
    assert "NVSwitch between all GPUs, 450 GB/s:" in words(page(client, eight))
    kept(eight, ada, PAIRS)
    text = words(page(client, eight))
    assert "NVLink between pairs, 450 GB/s: " in text
    assert "all-reduce of 1 GiB over 8 GPUs" in text


def test_without_a_price_the_column_still_has_a_head(client: Client) -> None:
    free = make_listing(make_source(), amount=None)
    assert "Cost per 1,000,000 tokens</th>" in words(page(client, free))
    training = words(page(client, free, workload="train-llama-70b"))
    assert "Hours, and cost to finish</th>" in training


def test_the_hours_of_a_job_open_what_they_are_for(client: Client, eight: Listing) -> None:
    response = page(client, eight, workload="finetune-llama-8b-lora")
    first = response.context["rows"][0]
    assert first.spent.rented == first.growth.step.hours
    assert "verification 0.5 to 1, work" in words(response)
    served = page(client, eight, workload="serve-llama-8b").context["rows"]
    assert all(row.spent is None for row in served)


TRAIN = "train-llama-70b"


def test_an_end_that_was_asked_for_is_judged_and_handed_on(client: Client, eight: Listing) -> None:
    ends = {"workload": TRAIN, "tokens": "5000000000", "deadline": "96"}
    own, asked = page(client, eight, workload=TRAIN), page(client, eight, **ends)
    first = [response.context["rows"][0].growth.step.hours for response in (own, asked)]
    assert first[1].typical > 2 * first[0].typical
    for shown in (words(asked), words(client.get(eight.get_absolute_url(), ends))):
        assert shown.count("tokens=5000000000&amp;deadline=96") > 3
        assert 'value="5000000000"' in shown


def test_an_end_that_is_none_is_named_and_not_applied(client: Client, eight: Listing) -> None:
    for path in (f"/evidence/listings/{eight.pk}/", eight.get_absolute_url()):
        shown = words(client.get(path, {"workload": TRAIN, "tokens": "-1", "deadline": "soon"}))
        assert "not applied" in shown
        assert "tokens=-1" in shown
        assert "deadline=soon" in shown
        assert 'value="-1"' not in shown
