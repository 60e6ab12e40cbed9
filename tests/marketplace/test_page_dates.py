"""A page that dates itself long ago says so in its sync and on its listings, which all stay."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.test import Client

from evaluator.findings import Code
from marketplace.models import Listing, Source
from marketplace.standings import standings
from tests.marketplace.site import Site, page
from tests.marketplace.test_sync import LATER, NOON, synced

ROWS = """<table><tr><th>GPU</th><th>GPUs</th><th>VRAM</th><th>Price per node/hr</th></tr>
<tr><td>H100</td><td>8</td><td>80 GB</td><td>$20.00</td></tr>
<tr><td>L4</td><td>1</td><td>24 GB</td><td>$1.00</td></tr></table>"""


@pytest.fixture
def catalog(source: Source) -> Source:
    """A source of web pages, which may date themselves."""
    source.adapter = "page"
    source.save()
    return source


def show(site: Site, words: str, rows: str = ROWS) -> None:
    site.answers["/list"] = page(f"<html><body><p>{words}</p>{rows}</body></html>")


def codes(source: Source, at: object = NOON) -> list[str]:
    run = source.runs.order_by("-fence").first()
    return [one["code"] for one in run.findings] if run else []


def test_old_news_is_told_and_its_listings_stand(catalog: Source, site: Site) -> None:
    show(site, "Prices as of 3 March 2025")
    run = synced(catalog)
    assert (run.outcome, run.counts["listings"]) == ("published", 2)
    assert codes(catalog) == [Code.STALE_PAGE.value]
    assert Listing.objects.filter(gone_at=None).count() == 2


@pytest.mark.parametrize("words", ["Prices as of 20 November 2026", "Since 3 March 2025", ""])
def test_a_page_of_these_weeks_or_without_a_day_is_no_old_news(
    catalog: Source, site: Site, words: str
) -> None:
    show(site, words)
    synced(catalog)
    assert codes(catalog) == []


def test_a_page_that_never_changes_grows_old(catalog: Source, site: Site) -> None:
    show(site, "Prices as of 20 November 2026")
    synced(catalog)
    run = synced(catalog, NOON + timedelta(days=25))
    assert (run.outcome, codes(catalog)) == ("unchanged", [Code.STALE_PAGE.value])


def test_a_newer_date_clears_it(catalog: Source, site: Site) -> None:
    show(site, "Prices as of 3 March 2025")
    synced(catalog)
    show(site, "Prices as of 29 November 2026")
    synced(catalog, LATER)
    assert codes(catalog) == []
    assert [one.aged for one in standings(LATER)] == [None]


def test_a_page_that_failed_leaves_the_day_of_what_stands(catalog: Source, site: Site) -> None:
    show(site, "Prices as of 3 March 2025")
    synced(catalog)
    site.answers["/list"] = page("<h1>Just a moment...</h1>")
    assert synced(catalog, LATER).outcome == "failed"
    show(site, "Prices as of 3 March 2025")
    synced(catalog, LATER + timedelta(hours=1))
    assert codes(catalog) == [Code.STALE_PAGE.value]


def test_status_and_listing_pages_show_it(catalog: Source, site: Site, client: Client) -> None:
    show(site, "Prices as of 3 March 2025")
    synced(catalog)
    row = Listing.objects.order_by("pk").first()
    assert row
    for address in ("/status", f"/listings/{row.pk}"):
        assert "dates itself 2025-03-03" in client.get(address, follow=True).content.decode()


def test_the_command_shows_it(
    catalog: Source, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    show(site, "Prices as of 3 March 2025")
    call_command("sync_catalog", catalog.key)
    assert "The page dates itself 2025-03-03." in capsys.readouterr().out
