"""Verdicts are kept by workload, configuration and version, and judged once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from evaluator.fields import InvalidWorkload
from evaluator.workload import parse_workload, workload_presets
from marketplace import evaluations, rankings
from marketplace.models import Evaluation, Fact, Listing, Outbox, Source, Verdict, Workload
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db

SLUG = "serve-llama-8b"


@pytest.fixture
def source() -> Source:
    source = make_source()
    for at in range(4):
        make_listing(source, f"h100-{at}", region=f"r{at}")
    make_listing(source, "l40s", gpu_model="L40S", gpu_count=1, vram_bytes_per_gpu=48 * 10**9)
    return source


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Configurations that were really judged, in order."""
    seen: list[str] = []
    real = evaluations.judge_briefly

    def spy(book: Any, machine: Any) -> Any:
        seen.append(machine.fingerprint())
        return real(book, machine)

    monkeypatch.setattr(evaluations, "judge_briefly", spy)
    return seen


def workload() -> Any:
    return parse_workload(workload_presets()[SLUG])


def evaluated() -> Evaluation:
    """A finished evaluation of the first preset."""
    job = requested()
    evaluations.evaluate(job.pk)
    return job


def test_each_configuration_is_judged_once_and_kept(source: Source, judged: list[str]) -> None:
    evaluated()
    evaluated()
    assert len(judged) == len(set(judged)) == Verdict.objects.count() == 2


def test_needs_choose_among_verdicts(source: Source) -> None:
    document = {**workload_presets()[SLUG], "needs": {"max_price_per_hour": 5}, "name": "cheap"}
    assert rankings.shortlist_for(parse_workload(document)).hidden


def test_kept_verdicts_cost_a_fixed_number_of_queries(
    source: Source, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    rankings.shortlist_for(workload())
    with django_assert_num_queries(8):
        rankings.shortlist_for(workload())


def test_a_fact_that_expires_changes_the_configuration(source: Source) -> None:
    listing = Listing.objects.get(sku="l40s")
    fact = Fact.objects.create(
        listing=listing,
        name="gpu_model",
        value="L40S",
        grade=2,
        source="nvidia-smi -L",
        ran_by="renter",
        as_of=timezone.now(),
        expires_at=timezone.now() + timedelta(days=1),
    )
    Listing.objects.update(configuration="")
    rankings.shortlist_for(workload())
    listing.refresh_from_db()
    while_measured = listing.configuration
    Fact.objects.filter(pk=fact.pk).update(expires_at=timezone.now())
    rankings.shortlist_for(workload())
    listing.refresh_from_db()
    assert listing.configuration != while_measured


def test_another_version_of_the_evaluator_names_all_configurations_anew(source: Source) -> None:
    Listing.objects.filter(sku="h100-0").update(configuration="of-another-version")
    assert rankings.name_configurations(Listing.objects.all()) == 1
    evaluated()
    Listing.objects.filter(sku="h100-0").update(configuration="of-this-version")
    assert rankings.name_configurations(Listing.objects.all()) == 0


def test_a_report_of_another_shape_is_judged_again(source: Source, judged: list[str]) -> None:
    evaluated()
    Verdict.objects.update(report={"plans": []})
    evaluated()
    assert len(judged) == 4
    assert Verdict.objects.exclude(report={"plans": []}).count() == 2


def test_another_version_judges_anew(
    source: Source, judged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated()
    monkeypatch.setattr(evaluations, "evaluator_version", lambda: "next")
    evaluated()
    assert len(judged) == 4
    assert set(Verdict.objects.values_list("evaluator_version", flat=True)) >= {"next"}


def test_verdicts_of_a_version_long_gone_are_forgotten(source: Source) -> None:
    evaluated()
    weeks_ago = timezone.now() - timedelta(weeks=3)
    Verdict.objects.update(evaluator_version="before", created_at=weeks_ago)
    evaluations.evaluate(requested().pk)
    assert not Verdict.objects.filter(evaluator_version="before").exists()


def test_listings_without_a_fingerprint_are_not_one_machine(source: Source) -> None:
    Listing.objects.update(configuration="")
    found = rankings.shortlist_for(workload())
    assert found.configurations == 2
    assert not Listing.objects.filter(configuration="").exists()


def test_a_subset_of_listings_can_be_ranked(source: Source) -> None:
    found = rankings.shortlist_for(workload(), Listing.objects.filter(gpu_model="L40S"))
    assert [row.machine.gpu_model for row in found.rows] == ["L40S"]


def test_one_listing_is_judged_with_all_its_plans(source: Source) -> None:
    row = Listing.objects.filter(gpu_model="H100").first()
    assert row is not None
    assert len(evaluations.judge_listing(workload(), row).plans) > 8


# --- workloads


def test_the_same_document_makes_one_row() -> None:
    document = workload_presets()[SLUG]
    one, other = (evaluations.keep_workload(dict(document)) for _ in range(2))
    assert one.pk == other.pk
    assert one.fingerprint == workload().fingerprint()
    assert parse_workload(one.document) == workload()


def test_presets_are_kept_under_their_own_names() -> None:
    evaluations.keep_presets()
    rows = evaluations.keep_presets()
    assert {row.slug for row in rows} == set(workload_presets())
    assert Workload.objects.filter(preset=True).count() == len(rows)


def test_a_wrong_document_is_refused_and_not_kept() -> None:
    with pytest.raises(InvalidWorkload, match="task"):
        evaluations.keep_workload({"task": "dance"})
    assert not Workload.objects.exists()


# --- jobs


def requested() -> Evaluation:
    return evaluations.request_evaluation(evaluations.keep_presets()[0])


def state(of: Evaluation) -> tuple[str, int, int]:
    of.refresh_from_db()
    return (of.state, of.configurations_done, of.configurations_total)


def test_a_request_leaves_a_message_of_ids() -> None:
    made = requested()
    (message,) = Outbox.objects.values_list("task", "arguments")
    assert message == ("evaluate_workload", [made.pk])


def test_presets_are_requested_once_while_they_wait() -> None:
    first, second = evaluations.request_presets(), evaluations.request_presets()
    assert [one.workload.slug for one in first] == list(workload_presets())
    assert second == []


def test_a_job_judges_everything_and_may_run_twice(source: Source, judged: list[str]) -> None:
    job = requested()
    evaluations.evaluate(job.pk)
    evaluations.evaluate(job.pk)
    assert state(job) == ("done", 2, 2)
    assert job.finished_at is not None
    assert len(judged) == 2


def test_a_job_goes_on_where_a_dead_worker_left_off(source: Source, judged: list[str]) -> None:
    evaluated()
    Verdict.objects.filter(report__gpu_model="H100").delete()
    judged.clear()
    job = requested()
    Evaluation.objects.filter(pk=job.pk).update(state="running")
    evaluations.evaluate(job.pk)
    assert state(job) == ("done", 2, 2)
    assert len(judged) == 1


def test_a_cancelled_job_stops_before_its_next_chunk(
    source: Source, judged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluations, "CHUNK", 1)
    job = requested()
    real = evaluations._store

    def cancel_after(*args: Any) -> None:
        real(*args)
        evaluations.cancel(job.pk)

    monkeypatch.setattr(evaluations, "_store", cancel_after)
    evaluations.evaluate(job.pk)
    assert state(job)[0] == "cancelled"
    assert len(judged) == 1


def test_only_an_open_job_can_be_cancelled(source: Source) -> None:
    job = requested()
    assert evaluations.cancel(job.pk)
    assert not evaluations.cancel(job.pk)
    evaluations.evaluate(job.pk)
    assert state(job)[0] == "cancelled"


def test_a_job_that_breaks_says_why(source: Source) -> None:
    job = requested()
    Workload.objects.update(document={"task": "dance"})
    with pytest.raises(InvalidWorkload):
        evaluations.evaluate(job.pk)
    assert state(job)[0] == "failed"
    assert "dance" in job.error
