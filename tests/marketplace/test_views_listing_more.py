"""A listing's page: similar machines, where a price comes from, and pictures as files."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from xml.etree import ElementTree

import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.utils import timezone
from syrupy.assertion import SnapshotAssertion

from marketplace.drawing.price_history import Observation, price_history
from marketplace.models import Listing
from marketplace.templatetags.present import derivation
from tests.pages.catalog import make_listing, make_price, make_source

pytestmark = pytest.mark.django_db


@pytest.fixture
def listing() -> Listing:
    return make_listing(make_source())


def page(client: Client, address: str) -> str:
    return " ".join(client.get(address).content.decode().split())


def test_similar_machines_have_as_many_of_the_same_gpu_cheapest_first(
    client: Client, listing: Listing
) -> None:
    source = listing.source
    make_listing(source, "dear", amount=Decimal(50))
    make_listing(source, "cheap", amount=Decimal(9))
    make_listing(source, "none", amount=None)
    make_listing(source, "four", gpu_count=4)
    make_listing(source, "other", gpu_model="H200")
    make_listing(source, "left", gone_at=timezone.now())
    context = client.get(listing.get_absolute_url()).context
    assert [row.sku for row in context["similar"]] == ["cheap", "dear", "none"]
    assert context["similar_total"] == 3


def test_without_a_gpu_nothing_is_called_similar(client: Client, listing: Listing) -> None:
    blank = make_listing(listing.source, "blank", gpu_model=None)
    assert "nothing can be called similar" in page(client, blank.get_absolute_url())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "2.00 USD per machine-hour"),
        ({"basis": "gpu"}, "2.00 USD per GPU-hour × 8 GPUs"),
        ({"unit": "month"}, "2.00 USD per machine-month ÷ 730 hours of a month"),
        ({"basis": "gpu", "unit": "day"}, "2.00 USD per GPU-day × 8 GPUs ÷ 24 hours of a day"),
    ],
)
def test_a_price_says_how_its_hour_follows(
    client: Client, listing: Listing, changes: dict[str, str], expected: str
) -> None:
    price = make_price(listing, Decimal(2), purchase="spot", **changes)
    assert derivation(price, listing) == expected
    assert expected in page(client, listing.get_absolute_url())


@pytest.mark.parametrize("name", ["history", "memory"])
def test_a_picture_is_a_file_that_stands_alone(client: Client, listing: Listing, name: str) -> None:
    response = client.get(client.get(listing.get_absolute_url()).context["picture_addresses"][name])
    assert response["Content-Type"].startswith("image/svg+xml")
    root = ElementTree.fromstring(response.content.decode())
    described = root.find("{http://www.w3.org/2000/svg}desc")
    assert described is not None
    assert (described.text or "").strip()


def test_there_is_no_file_of_links_that_nobody_saw(client: Client, listing: Listing) -> None:
    assert client.get(f"{listing.get_absolute_url()}?picture=links").status_code == 404


def test_the_title_states_the_answer(client: Client, listing: Listing) -> None:
    text = page(client, listing.get_absolute_url())
    title = text.partition("<title>")[2].partition("</title>")[0]
    assert "8 × H100 at Ridge is ready for" in title or "may do for" in title


def test_the_drawing_of_prices(snapshot: SnapshotAssertion) -> None:
    days = [datetime(2026, 11, day, tzinfo=UTC) for day in (1, 10, 20, 30)]
    observed = [
        Observation(Decimal("19.92"), "USD", "on demand", days[0], days[1]),
        Observation(Decimal("17.50"), "USD", "on demand", days[1], None),
        Observation(Decimal("9.10"), "USD", "spot", days[2], None),
    ]
    drawn = render_to_string("_price_history.svg", {"history": price_history(observed, days[3])})
    assert drawn == snapshot


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ("/listings/{}/?workload=nope", "workload=nope"),
        ("/listings/{}/?plan=tp9", "plan=tp9"),
        ("/plans?listing={}&plan=tp9", "plan=tp9"),
        ("/evidence/listings/{}/?workload=nope", "workload=nope"),
        ("/workloads/memory/?workload=nope", "workload=nope"),
    ],
)
def test_a_name_that_nothing_has_is_not_silently_another(
    client: Client, listing: Listing, asked: str, named: str
) -> None:
    told = page(client, asked.format(listing.pk))
    assert f"Not understood in the address, and not applied: <bdi><code>{named}" in told
    right = asked.replace("nope", "serve-llama-8b").replace("tp9", "tp8")
    assert "Not understood" not in page(client, right.format(listing.pk))
