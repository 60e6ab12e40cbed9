from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from pytest_django import DjangoAssertNumQueries, Settings

from marketplace import sync
from marketplace.models import Listing, Outbox, Price, QuarantinedRow, Snapshot, Source, SyncRun
from marketplace.sync import planning, publishing, running, visits
from marketplace.sync.claims import LEASE, claim
from tests.marketplace.conftest import THREE
from tests.marketplace.site import (
    Answer,
    Site,
    page,
    status,
    truncated,
    undelimited,
    unless_known,
)

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)


def synced(source: Source, at: datetime = NOON) -> SyncRun:
    run = sync.sync_source(source.pk, now=at)
    assert run is not None
    return run


def serve(site: Site, text: str) -> None:
    site.answers["/list"] = page(text, "text/plain")


def listing(sku: str) -> Listing:
    return Listing.objects.get(sku=sku)


def everything_but_ages() -> list[Any]:
    aged = {"last_seen", "seen_in_id"}
    rows = [*Listing.objects.order_by("pk").values(), *Price.objects.order_by("pk").values()]
    kept = [{name: value for name, value in row.items() if name not in aged} for row in rows]
    return [kept, Snapshot.objects.count(), Listing.history.count()]


def test_a_first_sync_brings_every_machine_with_its_price(source: Source) -> None:
    run = synced(source)
    assert (run.outcome, run.counts["new"], run.counts["listings"]) == ("published", 3, 3)
    row = listing("a-8")
    assert (row.gpu_count, row.vram_key, row.provider.slug) == (8, 80, "acme")
    assert (row.machine_hour_amount, row.machine_hour_currency) == (Decimal(20), "USD")
    assert (row.first_seen, row.last_seen, row.gone_at) == (NOON, NOON, None)
    assert bytes(row.seen_in.body).decode() == THREE


def test_a_sync_that_changed_something_asks_for_new_verdicts_and_one_that_did_not_does_not(
    source: Source,
) -> None:
    synced(source)
    synced(source, LATER)
    assert list(Outbox.objects.values_list("task", "arguments")) == [("evaluate_presets", [])]


def test_equal_hardware_has_one_configuration(source: Source) -> None:
    synced(source)
    assert listing("a-8").configuration == listing("b-8").configuration != ""
    assert listing("a-8").configuration != listing("c-1").configuration


def test_a_second_sync_of_the_same_page_moves_ages_and_nothing_else(source: Source) -> None:
    synced(source)
    before = everything_but_ages()
    run = synced(source, LATER)
    assert (run.outcome, run.counts["unchanged"]) == ("unchanged", 3)
    assert everything_but_ages() == before
    assert set(Listing.objects.values_list("last_seen", flat=True)) == {LATER}


@pytest.mark.fault("F01")
def test_a_page_that_did_not_change_is_asked_for_and_not_sent(source: Source, site: Site) -> None:
    site.answers["/list"] = unless_known('"v1"', THREE)
    synced(source)
    before = everything_but_ages()
    run = synced(source, LATER)
    assert site.headers_seen[-1]["if-none-match"] == '"v1"'
    assert (run.outcome, run.counts["unchanged"]) == ("unchanged", 3)
    assert everything_but_ages() == before
    assert set(Listing.objects.values_list("last_seen", flat=True)) == {LATER}


@pytest.mark.fault("F02")
def test_a_page_that_was_held_back_is_never_taken_for_published(source: Source, site: Site) -> None:
    site.answers["/list"] = unless_known('"v1"', THREE)
    synced(source)
    site.answers["/list"] = unless_known('"v2"', "a-8|eu|H100|8|80|20.00\n")
    assert synced(source, LATER).outcome == "held"
    assert synced(source, LATER + timedelta(minutes=9)).outcome == "held"
    assert set(Listing.objects.values_list("last_seen", flat=True)) == {NOON}


def test_a_changed_price_is_added_and_the_old_one_closed(source: Source, site: Site) -> None:
    synced(source)
    serve(site, THREE.replace("20.00", "18.50"))
    run = synced(source, LATER)
    assert (run.counts["prices_added"], run.counts["prices_closed"]) == (1, 1)
    history = listing("a-8").prices.order_by("first_seen").values_list("amount", "superseded_at")
    assert list(history) == [(Decimal("20"), LATER), (Decimal("18.5"), None)]
    assert listing("a-8").machine_hour_amount == Decimal("18.5")


def test_a_price_that_is_no_longer_published_is_closed(source: Source, site: Site) -> None:
    synced(source)
    serve(site, THREE.replace("20.00", ""))
    synced(source, LATER)
    assert not listing("a-8").prices.filter(superseded_at=None).exists()
    assert listing("a-8").machine_hour_amount is None


def test_a_listing_that_vanished_keeps_its_row_and_its_last_date(
    source: Source, site: Site
) -> None:
    synced(source)
    serve(site, "".join(THREE.splitlines(keepends=True)[:2]))
    run = synced(source, LATER)
    assert (run.counts["gone"], run.drift["gone"]) == (1, ["c-1 (us)"])
    assert (listing("c-1").gone_at, listing("c-1").last_seen) == (LATER, NOON)
    serve(site, THREE)
    synced(source, LATER + timedelta(hours=1))
    assert (listing("c-1").gone_at, listing("c-1").first_seen) == (None, NOON)


def test_a_catalog_that_loses_half_is_held_until_a_person_accepts_it(
    source: Source, site: Site
) -> None:
    synced(source)
    before = everything_but_ages()[0]
    serve(site, "a-8|eu|H100|8|80|19.00\n")
    run = synced(source, LATER)
    assert (run.outcome, run.reason) == ("held", "2 of 3 listings are missing.")
    assert everything_but_ages()[0] == before
    asked = len(site.asked)
    accepted = sync.reparse(source.pk, accept=True, now=LATER + timedelta(minutes=5))
    assert accepted is not None
    assert (accepted.outcome, accepted.counts["gone"]) == ("published", 2)
    assert listing("a-8").last_seen == LATER
    assert len(site.asked) == asked


def test_reading_again_what_was_stored_is_no_new_sighting(source: Source, site: Site) -> None:
    synced(source)
    run = sync.reparse(source.pk, now=LATER)
    assert run is not None
    assert run.outcome == "unchanged"
    assert listing("a-8").last_seen == NOON
    assert site.pages_asked() == ["/list"]


BAD_ANSWERS: dict[str, Answer] = {
    "500": status(500),
    "404": status(404),
    "403": status(403),
    "empty": page(b""),
    "cut": truncated(THREE.encode()),
    "layout": page("<html><h1>We have moved</h1></html>"),
    "garbage": page(b"\xff\xfe\x00|"),
    "wrong": page("a-8|eu|H100|eight|80|20.00"),
}


@pytest.mark.parametrize("answer", BAD_ANSWERS.values(), ids=BAD_ANSWERS.keys())
def test_whatever_goes_wrong_the_last_good_listings_stay_with_their_age(
    source: Source, site: Site, answer: Answer
) -> None:
    synced(source)
    before = list(Listing.objects.order_by("pk").values())
    site.answers["/list"] = answer
    run = synced(source, LATER)
    assert run.outcome == "failed"
    assert run.reason
    assert list(Listing.objects.order_by("pk").values()) == before
    source.refresh_from_db()
    assert source.last_success_at == NOON


def test_a_reader_that_breaks_does_not_print_the_page(source: Source, site: Site) -> None:
    site.answers["/list"] = BAD_ANSWERS["wrong"]
    assert synced(source).reason == "The sync broke: ValueError."


def test_bytes_are_kept_even_when_they_cannot_be_read(source: Source, site: Site) -> None:
    serve(site, "<html>new layout</html>")
    run = synced(source)
    assert bytes(run.snapshots.get().body) == b"<html>new layout</html>"
    assert run.findings[0]["code"] == "layout_changed"


def test_bytes_are_kept_even_when_they_are_no_text(source: Source, site: Site) -> None:
    site.answers["/list"] = BAD_ANSWERS["garbage"]
    run = synced(source)
    assert (run.outcome, bytes(run.snapshots.get().body)) == ("failed", b"\xff\xfe\x00|")


def test_a_next_page_that_has_no_address_publishes_nothing(source: Source, site: Site) -> None:
    synced(source)
    serve(site, "".join(THREE.splitlines(keepends=True)[:2]) + "next http://[broken")
    run = synced(source, LATER)
    assert (run.outcome, run.reason) == ("held", "The list of pages was not read to its end.")
    assert listing("c-1").gone_at is None


def test_robots_that_disallow_mean_no_page_request(source: Source, site: Site) -> None:
    site.answers["/robots.txt"] = page("User-agent: *\nDisallow: /\n", "text/plain")
    run = synced(source)
    source.refresh_from_db()
    assert (run.outcome, source.robots) == ("failed", "disallowed")
    assert site.pages_asked() == []
    site.answers["/robots.txt"] = status(503)
    synced(source, LATER)
    source.refresh_from_db()
    assert source.robots == "unreachable"
    del site.answers["/robots.txt"]
    assert synced(source, LATER + timedelta(hours=1)).outcome == "published"
    source.refresh_from_db()
    assert source.robots == "allowed"


def test_services_mode_never_reaches_loopback(
    source: Source, site: Site, settings: Settings
) -> None:
    settings.EMBEDDED = False
    assert "not on the list of permitted hosts" in synced(source).reason
    assert site.asked == []


def test_a_source_that_is_not_bundled_never_reaches_loopback(source: Source, site: Site) -> None:
    Source.objects.update(bundled=False)
    assert synced(source).outcome == "failed"
    assert site.asked == []


def test_a_curators_value_survives_every_sync(source: Source, site: Site) -> None:
    synced(source)
    corrected = {"gpu_count": {"value": 4, "grade": 1, "source": "mail of the provider"}}
    Listing.objects.filter(sku="a-8").update(corrections=corrected)
    before = listing("a-8").configuration
    serve(site, THREE.replace("20.00", "18.00"))
    synced(source, LATER)
    assert listing("a-8").corrections == corrected
    assert listing("a-8").gpu_count == 8
    assert listing("a-8").configuration != before


def test_a_row_that_is_not_believed_leaves_its_last_good_listing(
    source: Source, site: Site
) -> None:
    synced(source)
    serve(site, THREE.replace("c-1|us|L40S|1|48|1.10", "?c-1|us"))
    run = synced(source, LATER)
    assert run.counts["quarantined"] == {"vram_impossible": 1}
    assert QuarantinedRow.objects.get().sku == "c-1"
    assert (listing("c-1").gone_at, listing("c-1").last_seen) == (None, NOON)


def test_a_name_that_stands_for_other_hardware_is_a_new_listing(source: Source, site: Site) -> None:
    synced(source)
    serve(site, THREE.replace("|80|", "|141|"))
    run = synced(source, LATER)
    assert (run.counts["new"], run.counts["gone"]) == (2, 2)
    rows = Listing.objects.filter(sku="a-8").order_by("vram_key").values_list("vram_key", "gone_at")
    assert list(rows) == [(80, LATER), (141, None)]


def test_a_source_of_doubtful_rows_alone_is_held_and_shows_them(source: Source, site: Site) -> None:
    synced(source)
    serve(site, "?a-8|eu\n?b-8|eu\n?c-1|us\n")
    run = synced(source, LATER)
    assert (run.outcome, run.reason) == ("held", "No listing could be read.")
    assert run.counts["quarantined"] == {"vram_impossible": 3}
    assert run.quarantined.count() == 3
    assert not Listing.objects.exclude(gone_at=None).exists()


def test_an_old_file_does_not_make_a_source_older(source: Source, tmp_path: Path) -> None:
    synced(source)
    (tmp_path / "list.txt").write_text(THREE)
    sync.sync_file(source.pk, tmp_path / "list.txt", now=NOON - timedelta(days=9000))
    source.refresh_from_db()
    assert (source.last_success_at, listing("a-8").last_seen) == (NOON, NOON)


def test_two_rows_of_one_identity_that_differ_are_both_set_aside(
    source: Source, site: Site
) -> None:
    serve(site, THREE + "a-8|eu|H100|8|80|99.00\n")
    run = synced(source)
    assert run.counts["quarantined"] == {"duplicate_key": 2}
    assert not Listing.objects.filter(sku="a-8").exists()


def test_a_row_printed_twice_is_one_listing(source: Source, site: Site) -> None:
    serve(site, THREE + THREE)
    assert synced(source).counts["listings"] == 3


def test_left_out_rows_are_counted(source: Source, site: Site) -> None:
    serve(site, THREE + "cpu\ncpu\n")
    assert synced(source).counts["left_out"] == {"cpu_only": 2}


def test_pages_are_read_as_each_names_the_next(source: Source, site: Site) -> None:
    serve(site, THREE + "next /list?page=2")
    site.answers["/list?page=2"] = page("d-2|eu|L4|2|24|0.90\nnext /list")
    run = synced(source)
    assert (run.counts["pages"], run.counts["listings"]) == (2, 4)
    assert site.pages_asked() == ["/list", "/list?page=2"]
    assert bytes(listing("d-2").seen_in.body).startswith(b"d-2")
    assert listing("d-2").prices.get().snapshot == listing("d-2").seen_in
    again = sync.reparse(source.pk, now=LATER)
    assert again is not None
    assert again.counts["listings"] == 4


@pytest.mark.fault("F28")
def test_a_missing_page_publishes_nothing(source: Source, site: Site) -> None:
    synced(source)
    serve(site, THREE.replace("20.00", "5.00") + "next /list?page=2")
    assert synced(source, LATER).outcome == "failed"
    assert listing("a-8").machine_hour_amount == Decimal(20)


def test_a_list_without_end_is_cut_and_held(source: Source, site: Site) -> None:
    synced(source)
    site.answers |= {
        f"/list?{n}": page(f"x{n}|eu|L4|1|24|1.00\nnext /list?{n + 1}") for n in range(99)
    }
    serve(site, "a-8|eu|H100|8|80|20.00\nnext /list?0")
    run = synced(source, LATER)
    assert (run.outcome, run.counts["pages"], run.counts["complete"]) == ("held", 50, False)
    assert set(Listing.objects.values_list("last_seen", flat=True)) == {NOON}


def test_a_slow_list_of_pages_ends_before_its_task_is_stopped(
    source: Source, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visits, "VISIT_SECONDS", 0)
    assert synced(source).reason == "0 pages took longer than 0 s"
    assert site.pages_asked() == []


def test_a_body_whose_end_nobody_shows_is_no_page(source: Source, site: Site) -> None:
    synced(source)
    site.answers["/list"] = undelimited("".join(THREE.splitlines(keepends=True)[:2]).encode())
    assert synced(source, LATER).outcome == "failed"
    assert listing("c-1").gone_at is None


def test_a_file_goes_the_same_road(source: Source, site: Site, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(THREE)
    (tmp_path / "list.p2.txt").write_text("d-2|eu|L4|2|24|0.90\n")
    run = sync.sync_file(source.pk, tmp_path / "list.txt")
    assert run is not None
    assert (run.outcome, run.counts["listings"], site.asked) == ("published", 4, [])


def test_a_file_is_as_old_as_its_last_change(source: Source, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(THREE)
    sync.sync_file(source.pk, tmp_path / "list.txt", now=NOON - timedelta(days=9000))
    assert listing("a-8").last_seen == NOON - timedelta(days=9000)


def test_a_rehearsal_says_what_would_change_and_writes_nothing(source: Source, site: Site) -> None:
    synced(source)
    before = everything_but_ages()
    serve(site, THREE.replace("20.00", "18.50"))
    run = sync.rehearse(source.pk, now=LATER)
    assert run is not None
    assert (run.outcome, run.drift["changed"]) == ("published", ["a-8 (eu)"])
    assert everything_but_ages() == before
    assert SyncRun.objects.count() == 1


def test_odd_text_is_stored_alike_on_every_database(source: Source, site: Site) -> None:
    serve(site, THREE.replace("H100", "H100\0<script>" + "x" * 500))
    assert synced(source).outcome == "published"
    row = listing("a-8")
    assert (row.gpu_model or "").startswith("H100<script>xxx")
    assert len(row.gpu_model or "") == 80
    assert "\0" not in row.title + row.words["gpu"]


def test_an_identity_too_long_for_its_column_is_set_aside(source: Source, site: Site) -> None:
    serve(site, THREE + f"{'s' * 201}|eu|L4|1|24|1.00\n")
    run = synced(source)
    assert run.counts["quarantined"] == {"value_out_of_range": 1}
    assert run.counts["listings"] == 3


def test_a_number_too_large_for_its_column_is_set_aside(source: Source, site: Site) -> None:
    serve(site, THREE + "d|eu|L4|99999999999|24|1.00\n")
    assert synced(source).counts["quarantined"] == {"value_out_of_range": 1}


def test_a_thousand_listings_take_few_statements(
    source: Source, site: Site, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    serve(site, "".join(f"m{n:04}|eu|H100|8|80|{n + 1}.00\n" for n in range(1000)))
    # SQLite takes 999 values a statement: a few dozen rows of a listing's width.
    with django_assert_max_num_queries(130):
        synced(source)
    with django_assert_max_num_queries(45):
        synced(source, LATER)


# --- claims


def test_a_source_at_work_is_not_claimed_again(source: Source) -> None:
    assert claim(source.pk, NOON) is not None
    assert claim(source.pk, NOON) is None
    assert sync.sync_source(source.pk, now=NOON) is None


def test_a_lease_that_ran_out_is_taken_over(source: Source) -> None:
    dead = claim(source.pk, NOON)
    assert dead is not None
    assert synced(source, NOON + LEASE + timedelta(seconds=1)).outcome == "published"
    dead.refresh_from_db()
    assert (dead.outcome, dead.fence) == ("abandoned", 1)


@pytest.mark.fault("F49")
def test_a_late_run_may_not_publish(
    source: Source, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def be_overtaken(*arguments: Any) -> Any:
        monkeypatch.setattr(running, "plan", planning.plan)
        serve(site, THREE.replace("20.00", "15.00"))
        synced(source, NOON + 2 * LEASE)
        return planning.plan(*arguments)

    monkeypatch.setattr(running, "plan", be_overtaken)
    late = synced(source, NOON)
    assert late.outcome == "abandoned"
    assert listing("a-8").machine_hour_amount == Decimal(15)
    assert Price.objects.count() == 3


@pytest.mark.fault("F38")
def test_a_failure_inside_the_commit_leaves_the_state_before(
    source: Source, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced(source)
    before = everything_but_ages()[0]
    serve(site, THREE.replace("20.00", "15.00"))

    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(publishing, "_write_quarantined", fail)
    run = synced(source, LATER)
    assert (run.outcome, run.reason) == ("failed", "The sync broke: RuntimeError.")
    assert everything_but_ages()[0] == before


@pytest.mark.fault("F46")
@pytest.mark.django_db(transaction=True)
def test_of_two_syncs_at_once_one_publishes(source: Source) -> None:
    runs: list[SyncRun | None] = []
    together = threading.Barrier(2)

    def work() -> None:
        together.wait()
        runs.append(sync.sync_source(source.pk, now=NOON))
        connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    outcomes = sorted(run.outcome for run in runs if run)
    assert outcomes in (["published"], ["published", "unchanged"])
    assert SyncRun.objects.filter(outcome="published").count() == 1
    assert (Listing.objects.count(), Price.objects.count()) == (3, 3)
