"""The status page and the two answers for a supervisor."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from marketplace import standings
from tests.pages.catalog import make_listing, make_run, make_source, set_aside

pytestmark = pytest.mark.django_db


def state() -> str:
    (only,) = standings.standings(timezone.now())
    return only.state


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        (0, "fresh"),
        (1.9, "fresh"),
        (2.1, "ageing"),
        (11.9, "ageing"),
        (12.1, "stale"),
        (23.9, "stale"),
        (24.1, "hidden"),
    ],
)
def test_a_source_ages_in_four_bands(hours: float, expected: str) -> None:
    make_source(last_success_at=timezone.now() - timedelta(hours=hours))
    assert state() == expected


def test_the_bands_are_set_by_the_operator(settings: Settings) -> None:
    settings.FRESH_HOURS, settings.AGEING_HOURS, settings.HIDDEN_HOURS = 30, 40, 50
    make_source(last_success_at=timezone.now() - timedelta(hours=29))
    assert state() == "fresh"


def test_a_listing_that_nobody_saw_for_a_day_is_counted_and_not_ranked(client: Client) -> None:
    old = timezone.now() - timedelta(hours=25)
    make_listing(make_source(last_success_at=old), last_seen=old)
    make_listing(make_source("second"), "other")
    result = client.get("/").context["result"]
    assert result.hidden["their source has not been seen for 24 hours"] == 1
    assert result.total == 2
    assert "is hidden because their source has not been seen" in " ".join(
        client.get("/").content.decode().split()
    )


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ("failed", "failed"),
        ("abandoned", "failed"),
        ("held", "held"),
        ("unchanged", "fresh"),
        ("running", "fresh"),
    ],
)
def test_the_newest_run_speaks_before_the_age(outcome: str, expected: str) -> None:
    make_run(make_source(), outcome=outcome)
    assert state() == expected


def test_a_source_without_success_was_never_read() -> None:
    make_source(last_success_at=None)
    assert state() == "never"


def test_a_row_set_aside_by_another_version_is_still_told(client: Client) -> None:
    run = make_run(make_source())
    set_aside(run, "a")
    run.quarantined.update(finding={"code": "no_longer_used", "gaps": {}})
    page = client.get(f"/status/runs/{run.pk}/?reason=%00")
    assert page.status_code == 200
    assert "no_longer_used" in client.get(f"/status/runs/{run.pk}/").content.decode()


def test_a_source_that_is_switched_off_is_no_trouble() -> None:
    make_source(enabled=False)
    assert state() == "off"


def test_the_page_counts_listings_and_rows_set_aside_by_reason(client: Client) -> None:
    source = make_source()
    run = make_run(source, counts={"left_out": {"cpu_only": 214}})
    make_listing(source)
    set_aside(run, "one")
    set_aside(run, "two")
    page = client.get("/status").content.decode()
    assert "2 duplicate key</a>" in page
    assert "214 cpu only" in page
    assert ">1</a>" in page


def test_counts_by_reason_are_summed_over_all_sources(client: Client) -> None:
    for name in ("one", "two"):
        set_aside(make_run(make_source(name), counts={"left_out": {"no GPU named": 3}}))
    page = " ".join(client.get("/status").content.decode().split())
    assert "Set aside in the newest runs: 2 duplicate key." in page
    assert "Left out: 6 no GPU named." in page


def test_a_source_never_read_and_switched_off_stands_apart(client: Client) -> None:
    source = make_source("read", enabled=False)
    assert source.runs.exists()
    idle = make_source("idle", enabled=False)
    idle.runs.all().delete()
    response = client.get("/status")
    assert [one.source.key for one in response.context["standings"]] == ["read"]
    assert [one.source.key for one in response.context["unused"]] == ["idle"]


def test_sample_catalogs_are_called_invented_on_every_page(client: Client) -> None:
    make_source("ours", bundled=True)
    page = client.get("/listings/").content.decode()
    assert "1 sample catalog with invented providers and prices" in page


def test_a_failed_run_prints_its_reason_as_text(client: Client) -> None:
    make_run(
        make_source(), outcome="failed", reason="read <script>alert(1)</script>, expected a page"
    )
    page = client.get("/status").content.decode()
    assert "read &lt;script&gt;alert(1)&lt;/script&gt;, expected a page" in page


def test_queries_do_not_grow_with_sources(client: Client) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as found:
            client.get("/status")
        return len(found)

    make_source("first")
    few = count()
    for number in range(12):
        set_aside(make_run(make_source(f"s{number}")))
    assert count() == few <= 8


def test_rows_set_aside_say_why_and_keep_their_words(client: Client) -> None:
    run = make_run(make_source())
    set_aside(run, "<b>x</b>", words={"GpuInfo": "<img src=x onerror=alert(1)>"})
    page = client.get(f"/status/runs/{run.pk}/").content.decode()
    assert "The key &lt;b&gt;x&lt;/b&gt; stands 2 times in one file." in page
    assert "&lt;img src=x" in page
    assert "<img" not in page


def test_rows_set_aside_come_in_capped_pages(client: Client) -> None:
    run = make_run(make_source())
    for number in range(205):
        set_aside(run, f"k{number}")
    first = client.get(f"/status/runs/{run.pk}/")
    second = client.get(f"/status/runs/{run.pk}/?after={first.context['next_after']}")
    assert (len(first.context["rows"]), len(second.context["rows"])) == (200, 5)
    assert second.context["next_after"] is None


def test_a_run_that_never_was_is_a_404(client: Client) -> None:
    assert client.get("/status/runs/99999999999999999999999/").status_code == 404


def test_nothing_set_up_says_what_to_do(client: Client) -> None:
    page = client.get("/status").content.decode()
    assert "make run" in page
    assert "No source is set up yet." in page


def test_health_is_plain_and_never_cached(client: Client) -> None:
    for address in ("/healthz", "/readyz"):
        response = client.get(address)
        assert (response.status_code, response["Content-Type"][:10]) == (200, "text/plain")
        assert "no-store" in response["Cache-Control"]


def test_a_waiting_migration_is_not_ready(client: Client) -> None:
    MigrationRecorder(connection).migration_qs.filter(app="marketplace").last().delete()
    response = client.get("/readyz")
    assert (response.status_code, response.content) == (503, b"migrations that wait: 1\n")


def test_health_needs_no_database(client: Client) -> None:
    with CaptureQueriesContext(connection) as found:
        client.get("/healthz")
    assert len(found) == 0
