"""A price that a curator locks: it ranks, no sync changes it, and it ends with its last day."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import Client

from evaluator.prices import Basis, Purchase, Quote, TimeUnit
from marketplace import sync
from marketplace.listings import current, offerings
from marketplace.locks import is_price, with_lock
from marketplace.models import Listing, Source
from marketplace.shelf import shelf
from tests.marketplace.conftest import THREE
from tests.marketplace.site import Site, page

LOCKED = {"price_per_hour": {"value": "18.50 USD", "source": "curator cora"}}
ASKED = Quote(Decimal(20), "USD", TimeUnit.HOUR, Basis.MACHINE)
SPOT = Quote(Decimal(9), "USD", TimeUnit.HOUR, Basis.MACHINE, Purchase.SPOT)


@pytest.fixture
def synced(source: Source) -> Listing:
    sync.sync_source(source.pk)
    return Listing.objects.get(sku="a-8")


def lock(client: Client, row: Listing, value: str, **more: str) -> Any:
    if not User.objects.filter(username="cora").exists():
        User.objects.create_superuser("cora")
    client.force_login(User.objects.get(username="cora"))
    inline = {f"prices-{name}": "0" for name in ("TOTAL_FORMS", "INITIAL_FORMS")}
    small = {"lock_attribute": "price_per_hour", "lock_value": value}
    address = f"/admin/marketplace/listing/{row.pk}/change/"
    return client.post(address, {"corrections": "{}", **small, **more, **inline})


def asked_of(row: Listing) -> list[tuple[Decimal, str]]:
    (offering,) = offerings(current().filter(pk=row.pk))
    return [(quote.amount, quote.words) for quote in offering.quotes]


def test_a_locked_price_ranks_and_survives_a_sync(
    client: Client, synced: Listing, source: Source, site: Site
) -> None:
    assert lock(client, synced, "18.50 USD", lock_why="a mail of 3 May").status_code == 302
    site.answers["/list"] = page(THREE.replace("20.00", "24.00"), "text/plain")
    sync.sync_source(source.pk)
    synced.refresh_from_db()
    assert (synced.machine_hour_amount, synced.machine_hour_currency) == (Decimal("18.5"), "USD")
    assert asked_of(synced) == [(Decimal("18.50"), "locked by curator cora")]
    published = synced.prices.get(superseded_at=None)
    assert published.amount == Decimal(24)


def test_the_listing_says_who_locked_it_and_why(client: Client, synced: Listing) -> None:
    lock(client, synced, "18.50 USD", lock_why="a mail of <b>3 May</b>")
    text = client.get(synced.get_absolute_url()).content.decode()
    assert "18.50 USD per rental and hour is what a curator locked" in text
    assert "&lt;b&gt;3 May" in text


def test_after_its_last_day_the_catalog_counts_again() -> None:
    held = {"price_per_hour": {"value": "18.50 USD", "until": "2027-01-31"}}
    with time_machine.travel("2027-01-31 23:00Z"):
        assert with_lock([ASKED], held)[0].amount == Decimal("18.50")
    with time_machine.travel("2027-02-01 00:01Z"):
        assert with_lock([ASKED], held) == (ASKED,)


def test_a_lock_takes_the_place_of_on_demand_prices_alone() -> None:
    assert [one.amount for one in with_lock([ASKED, SPOT], LOCKED)] == [Decimal("18.50"), 9]
    assert with_lock([ASKED, SPOT], {}) == (ASKED, SPOT)


def test_a_price_that_is_not_believed_leaves_none(client: Client, synced: Listing) -> None:
    lock(client, synced, "")
    synced.refresh_from_db()
    assert (synced.machine_hour_amount, synced.machine_hour_currency) == (None, "")
    assert asked_of(synced) == []


@pytest.mark.parametrize(
    "text", ["18.50", "USD 18", "0 USD", "-1 USD", "1e3 USD", "18.50 usd", "18,50 USD", "<b> USD"]
)
def test_a_price_without_amount_or_currency_is_refused(
    client: Client, synced: Listing, text: str
) -> None:
    assert not is_price(text)
    response = lock(client, synced, text)
    assert response.status_code == 200
    assert "18.50 USD" in response.content.decode()
    synced.refresh_from_db()
    assert synced.corrections == {}


def test_a_sync_after_the_last_day_brings_the_catalogs_price_back(
    client: Client, synced: Listing, source: Source
) -> None:
    with time_machine.travel("2027-01-30 12:00Z"):
        lock(client, synced, "18.50 USD", lock_until="2027-01-31")
        synced.refresh_from_db()
        assert synced.machine_hour_amount == Decimal("18.5")
    with time_machine.travel("2027-02-01 12:00Z"):
        sync.sync_source(source.pk)
        synced.refresh_from_db()
        assert synced.machine_hour_amount == Decimal(20)
        assert asked_of(synced)[0][0] == 20


def test_every_page_asks_the_catalogs_price_once_the_last_day_is_over(
    client: Client, synced: Listing
) -> None:
    address = synced.get_absolute_url()
    with time_machine.travel("2027-01-31 12:00Z"):
        lock(client, synced, "18.50 USD", lock_until="2027-01-31")
        assert ">18.50 USD</a>" in client.get(address).content.decode()
        assert shelf().numbers["price"].tolist().count(18.5) == 1
    with time_machine.travel("2027-02-01 12:00Z"):
        for page_of in (address, "/listings/"):
            text = client.get(page_of).content.decode()
            assert "20.00 USD" in text
            assert "18.50 USD" not in text
        assert 18.5 not in shelf().numbers["price"].tolist()
