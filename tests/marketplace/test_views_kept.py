"""A page is made once a minute for strangers, and never outlives what it shows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponse
from django.middleware.csrf import get_token
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from marketplace.models import Listing
from marketplace.views import kept
from tests.pages.catalog import make_listing, make_price, make_run, make_source

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def keeping(nothing_kept: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_PAGES", 3)
    kept._pages.clear()


@pytest.fixture
def listing() -> Listing:
    return make_listing(make_source())


def queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as found:
        assert client.get(address).status_code == 200
    return len(found)


def test_a_second_visit_asks_only_whether_anything_changed(
    client: Client, listing: Listing
) -> None:
    for address in ("/", "/listings/", listing.get_absolute_url()):
        first = client.get(address)
        assert queries(client, address) == 1
        again = client.get(address)
        assert again.content == first.content
        assert again.headers["Vary"] == first.headers["Vary"]
        assert again.headers["Content-Security-Policy"]


CHANGES: dict[str, Callable[[Listing], object]] = {
    "a row that somebody saved": lambda row: Listing.objects.get(pk=row.pk).save(),
    "a new listing": lambda row: make_listing(row.source, "new"),
    "a new price": lambda row: make_price(row, Decimal(3), purchase="spot"),
    "a run that ended": lambda row: make_run(row.source, finished_at=timezone.now()),
    "a source that was switched off": lambda row: row.source.save(),
    "a provider's new name": lambda row: row.provider.save(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_change_of_the_catalog_makes_every_page_anew(
    client: Client, listing: Listing, change: Callable[[Listing], object]
) -> None:
    client.get("/listings/")
    change(listing)
    assert queries(client, "/listings/") > 1


def test_a_minute_later_ages_are_counted_anew(
    client: Client, listing: Listing, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.get("/listings/")
    monkeypatch.setattr(kept, "time", lambda: (timezone.now() + timedelta(minutes=1)).timestamp())
    assert queries(client, "/listings/") > 1


def test_a_fragment_is_another_page(client: Client, listing: Listing) -> None:
    whole = client.get("/listings/").content
    assert client.get("/listings/", headers={"HX-Request": "true"}).content != whole


def test_whoever_is_signed_in_is_answered_alone(client: Client, listing: Listing) -> None:
    client.force_login(User.objects.create_user("ada"))
    for _ in range(2):
        assert queries(client, "/") > 1
        assert "ada" in client.get("/").content.decode()
    assert "ada" not in Client().get("/").content.decode()


def test_a_page_with_a_form_of_its_visitor_is_not_kept(listing: Listing) -> None:
    page = kept.kept_a_minute(lambda request: HttpResponse(get_token(request)))
    one, other = (page(RequestFactory().get("/")) for _ in range(2))
    assert one.content != other.content
    assert not kept._pages


def test_no_more_pages_are_kept_than_allowed(client: Client, listing: Listing) -> None:
    for size in range(1, 9):
        client.get(f"/listings/?size={size}")
    assert len(kept._pages) == 3
