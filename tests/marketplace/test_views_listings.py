"""The listings table: filters that are never dropped, pages by key, and text that stays text."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from marketplace.models import Listing, Source
from marketplace.offers import forget_catalog
from tests.pages.catalog import make_listing, make_price, make_source

pytestmark = pytest.mark.django_db


@pytest.fixture
def source() -> Source:
    return make_source()


def shown(response: Any) -> list[str]:
    return [listing.sku for listing in response.context["page"].rows]


def test_every_listing_shows_its_age(client: Client, source: Source) -> None:
    make_listing(source)
    page = client.get("/listings/").content.decode()
    assert "3 h ago</time>" in page
    assert "Snapshots of catalogs, not reservations" in page


def test_a_listing_without_comparable_price_comes_last_and_is_not_hidden(
    client: Client, source: Source
) -> None:
    make_listing(source, "none", amount=None)
    make_listing(source, "euro", amount=Decimal(1), machine_hour_currency="EUR")
    make_listing(source, "dear", amount=Decimal(9))
    make_listing(source, "cheap", amount=Decimal(2))
    assert shown(client.get("/listings/")) == ["cheap", "dear", "none", "euro"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("gpu=H100", ["big"]),
        ("count=4", ["small"]),
        ("link=null", ["small"]),
        ("link=nvswitch", ["big"]),
        ("region=NORTH", ["big"]),
        ("max_price=5", ["small"]),
        ("availability=sold_out", ["small"]),
        ("provider=ridge&count=8", ["big"]),
        ("source=ridge&gpu=L40S", ["small"]),
    ],
)
def test_filters_keep_what_they_say(
    client: Client, source: Source, query: str, expected: list[str]
) -> None:
    make_listing(source, "big")
    make_listing(
        source,
        "small",
        gpu_model="L40S",
        gpu_count=4,
        link=None,
        region="us-east",
        availability="sold_out",
        amount=Decimal(4),
    )
    assert shown(client.get(f"/listings/?{query}")) == expected


@pytest.mark.parametrize(
    "query",
    ["gpu=nothing", "count=-1", "count=1e400", "count=x", "max_price=NaN", "link=x", "region=%00"],
)
def test_a_filter_that_cannot_be_read_shows_no_row_and_says_so(
    client: Client, source: Source, query: str
) -> None:
    make_listing(source)
    response = client.get(f"/listings/?{query}")
    assert response.status_code == 200
    assert shown(response) == []
    assert 'class="errorlist"' in response.content.decode()


def test_a_key_that_means_nothing_is_said_and_not_dropped_silently(
    client: Client, source: Source
) -> None:
    page = client.get("/listings/?cards=8&<b>=1").content.decode()
    assert "<code>cards</code>" in page
    assert "<code>&lt;b&gt;</code>" in page


def test_each_filter_is_a_chip_that_takes_it_away(client: Client, source: Source) -> None:
    make_listing(source)
    chips = client.get("/listings/?gpu=H100&count=8&after=3&region=").context["chips"]
    assert [(chip.words, chip.remove) for chip in chips] == [
        ("GPU model: H100", "/listings/?count=8"),
        ("GPUs: 8", "/listings/?gpu=H100"),
    ]


def test_gone_listings_are_hidden_until_asked_for(client: Client, source: Source) -> None:
    make_listing(source, gone_at=timezone.now())
    assert shown(client.get("/listings/")) == []
    assert shown(client.get("/listings/?gone=shown")) == ["h100x8"]


@pytest.mark.parametrize("sort", ["price", "gpus", "memory", "machine", "seen"])
def test_pages_by_key_show_each_listing_once(client: Client, source: Source, sort: str) -> None:
    for number in range(23):
        make_listing(
            source,
            f"m{number}",
            gpu_count=number % 3 + 1 if number % 4 else None,
            vram_bytes_per_gpu=(number % 2 + 1) * 40 * 10**9,
            amount=Decimal(number % 5 + 1) if number % 6 else None,
            last_seen=timezone.now() - timedelta(hours=number % 4),
        )
    address, found = f"/listings/?size=5&sort={sort}", []
    while address:
        response = client.get(address)
        found += shown(response)
        address = response.context["next"]
    assert sorted(found) == sorted(f"m{number}" for number in range(23))
    assert len(found) == 23


@pytest.mark.parametrize(
    "query",
    [
        "after=999999999999999999",
        "after=" + "9" * 4000,
        "after=-1",
        "after=x",
        "size=1000000",
        "size=0",
        "page=1000000000",
        "sort=provider__website",
        "sort=-pk",
        "sort=",
    ],
)
def test_absurd_places_and_orders_give_an_ordinary_first_page(
    client: Client, source: Source, query: str
) -> None:
    for number in range(3):
        make_listing(source, f"m{number}")
    assert len(shown(client.get(f"/listings/?{query}"))) == 3


def test_a_page_is_never_larger_than_its_cap(client: Client, source: Source) -> None:
    now = timezone.now()
    snapshot = make_listing(source).seen_in
    Listing.objects.bulk_create(
        Listing(
            source=source,
            provider=source.provider,
            sku=f"b{number}",
            seen_in=snapshot,
            first_seen=now,
            last_seen=now,
        )
        for number in range(250)
    )
    assert len(shown(client.get("/listings/?size=100000"))) == 200


def queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as found:
        assert client.get(address).status_code == 200
    return len(found)


def test_queries_do_not_grow_with_rows(client: Client, source: Source) -> None:
    make_listing(source, "first")
    few = queries(client, "/listings/")
    for number in range(30):
        row = make_listing(source, f"m{number}")
        make_price(row, Decimal(3), purchase="spot")
    forget_catalog()
    assert queries(client, "/listings/") == few <= 10


def test_the_price_column_repeats_what_was_published(client: Client, source: Source) -> None:
    row = make_listing(source, amount=None, machine_hour_amount=Decimal("11.92"))
    row.machine_hour_currency = "USD"
    row.save()
    make_price(row, Decimal("1.49"), basis="gpu", machine_per_hour=Decimal("11.92"))
    page = client.get("/listings/").content.decode()
    assert "1.49 USD per GPU-hour, on demand" in page
    assert "<strong>11.92 USD</strong>" in page


HOSTILE = '"><script>alert(1)</script><a hx-get=/status hx-trigger=load href="javascript:x">{{7*7}}'


def test_scraped_text_is_text_in_the_table(client: Client, source: Source) -> None:
    make_listing(source, title=HOSTILE, region=HOSTILE, gpu_model=HOSTILE[:70], form_factor="<i>")
    page = client.get("/listings/").content.decode()
    assert "<script>alert" not in page
    assert not re.search(r"<a[^>]* hx-get=/status", page)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "{{7*7}}" in page
    assert "<i>" not in page


def test_htmx_gets_the_rows_alone_and_everyone_else_the_page(
    client: Client, source: Source
) -> None:
    make_listing(source)
    part = client.get("/listings/", headers={"HX-Request": "true"})
    assert "<html" not in part.content.decode()
    assert 'hx-swap-oob="true"' in part.content.decode()
    for also in ("HX-Boosted", "HX-History-Restore-Request"):
        whole = client.get("/listings/", headers={"HX-Request": "true", also: "true"})
        assert "<html" in whole.content.decode()
    assert "HX-Request" in part.headers["Vary"]


def test_an_empty_catalog_says_what_to_do(client: Client) -> None:
    assert "manage.py sync_catalog" in client.get("/listings/").content.decode()


def test_offers_of_the_same_hardware_are_told_and_never_merged(
    client: Client, source: Source
) -> None:
    for sku in ("own", "resold", "resold-again"):
        make_listing(source, sku=sku)
    make_listing(source, sku="smaller", vcpus=96)
    make_listing(source, sku="open", vcpus=None)
    text = client.get("/listings/").content.decode()
    assert text.count("same hardware in 3 listings") == 3
    same = Listing.objects.get(sku="own").configuration
    alike = client.get("/listings/", {"configuration": same})
    assert set(shown(alike)) == {"own", "resold", "resold-again"}
