"""An answer is kept as it stood, tells what changed since, and is shared by a token alone."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from marketplace.models import Listing, Price, SavedShortlist
from marketplace.views import saved as saved_views
from tests.pages.catalog import make_listing, make_price, make_source

pytestmark = pytest.mark.django_db


@pytest.fixture
def listing() -> Listing:
    source = make_source()
    make_listing(source, "one", gpu_count=1, link=None, amount=Decimal("2.49"))
    return make_listing(source, "eight", title="The eight")


@pytest.fixture
def ada(client: Client) -> Client:
    client.force_login(User.objects.create_user("ada"))
    return client


def keep(client: Client, address: str = "workload=serve-llama-8b") -> SavedShortlist:
    client.post("/saved/", {"address": address})
    return SavedShortlist.objects.latest("pk")


def page(client: Client, address: str) -> str:
    return " ".join(client.get(address).content.decode().split())


def reprice(listing: Listing, amount: str) -> None:
    Price.objects.filter(listing=listing).update(superseded_at=timezone.now())
    make_price(listing, Decimal(amount))


def test_an_answer_is_kept_as_it_stood(ada: Client, listing: Listing) -> None:
    kept = keep(ada, "workload=serve-llama-8b&hourly=%3C%3D20&limit=5")
    assert kept.demands == "hourly=%3C%3D20&limit=5"
    assert kept.sentence.startswith("One GPU is enough: H100 at Ridge for 2.49 USD per hour")
    assert [row["title"] for row in kept.rows] == ["8x H100 SXM one", "The eight"]
    assert kept.document["model"] == {"preset": "llama-3.1-8b"}


def test_a_session_that_ended_leads_back_to_the_answer(client: Client, listing: Listing) -> None:
    asked = "workload=serve-llama-8b&hourly=%3C%3D20"
    answer = client.post("/saved/", {"address": asked})
    assert dict(parse_qsl(urlsplit(answer["Location"]).query))["next"] == f"/?{asked}"
    assert not SavedShortlist.objects.exists()
    assert client.get("/saved/")["Location"] == "/login/?next=/saved/"


def test_nothing_has_changed_at_first(ada: Client, listing: Listing) -> None:
    text = page(ada, keep(ada).get_absolute_url())
    assert "Nothing that was shown has changed since" in text
    assert "The answer now</dt> <dd> the same" in text


def test_a_new_price_is_told_before_and_now(ada: Client, listing: Listing) -> None:
    kept = keep(ada)
    rows = kept.rows
    reprice(listing, "24.00")
    text = page(ada, kept.get_absolute_url())
    assert "1 row differs since" in text
    assert "<bdi>19.92 USD</bdi>" in text
    assert "<strong><bdi>24.00 USD</bdi></strong>" in text
    kept.refresh_from_db()
    assert kept.rows == rows


def test_it_says_what_was_asked_and_leads_to_what_each_plan_is_worth_today(
    ada: Client, listing: Listing
) -> None:
    kept = keep(ada, "workload=serve-llama-8b&hourly=%3C%3D20&limit=5&sort=-cost")
    text = page(ada, kept.get_absolute_url())
    assert "Asked: <strong>Serve Llama 3.1 8B to 32 users</strong>" in text
    assert "Per hour: &lt;=20</span>" in text
    query = "?workload=serve-llama-8b"
    for row in kept.rows:
        asked = f"{query}&amp;listing={row['key']}&amp;plan={row['plan_key']}"
        assert f'href="/plans{asked}">{row["plan"]}</a>' in text
        assert f'href="/listings/{row["key"]}/{query}"' in text
    again = f'href="/{query}&amp;hourly=%3C%3D20&amp;limit=5&amp;sort=-cost">'
    assert f"{again}Ask the same again today</a>" in text


def test_a_pasted_workload_is_asked_again_with_its_file(ada: Client, listing: Listing) -> None:
    text = '{"name": "mine", "task": "serve", "model": {"preset": "llama-3.1-8b"}}'
    ada.post("/saved/", {"workload": text, "max_price": "5"})
    kept = SavedShortlist.objects.get()
    held = ada.get(kept.get_absolute_url()).context["asked_again"]
    answer = ada.post("/workloads/", dict(held))
    assert answer.context["workload"].name == "mine"
    assert [one.words for one in answer.context["chips"]] == ["Max USD/hour: 5"]
    assert "Ask the same again today</button>" in page(ada, kept.get_absolute_url())


def test_warnings_of_that_day_are_kept(ada: Client, listing: Listing) -> None:
    kept = keep(ada, "workload=train-llama-70b")
    told = [row["warnings"] for row in kept.rows if row["title"] == "The eight"]
    assert "nothing is known about" in " ".join(told)
    assert "Warnings then" in page(ada, kept.get_absolute_url())


def test_a_listing_that_left_is_told(ada: Client, listing: Listing) -> None:
    kept = keep(ada)
    listing.gone_at = timezone.now()
    listing.save()
    assert "no longer in the answer" in page(ada, kept.get_absolute_url())


def test_rows_that_moved_in_rank_alone_do_not_hide_what_changed(
    ada: Client, listing: Listing
) -> None:
    make_listing(listing.source, "dear", title="The dear one", amount=Decimal(40))
    kept = keep(ada, "workload=train-llama-70b")
    reprice(listing, "50.00")
    text = page(ada, kept.get_absolute_url())
    assert "1 row differs since" in text
    assert "and 1 other moved in rank alone" in text
    folded = text.partition("1 row moved in rank alone</summary>")[2].partition("</details>")[0]
    assert "The dear one" in folded
    assert "The eight" not in folded


def test_a_pasted_workload_is_kept_with_its_file(ada: Client, listing: Listing) -> None:
    text = '{"name": "mine", "task": "serve", "model": {"preset": "llama-3.1-8b"}}'
    ada.post("/saved/", {"workload": text, "max_price": "5", "pick": "1:one"})
    kept = SavedShortlist.objects.get()
    assert (kept.name, kept.document["name"], kept.demands) == ("mine", "mine", "max_price=5")
    assert "Nothing that was shown has changed" in page(ada, kept.get_absolute_url())


@pytest.mark.parametrize("data", [{"address": "workload=none"}, {"workload": "{"}, {}])
def test_what_cannot_be_read_is_not_kept(ada: Client, listing: Listing, data: Any) -> None:
    ada.post("/saved/", data)
    assert not SavedShortlist.objects.exists()


def test_a_stranger_saves_nothing_and_is_led_to_the_login(client: Client, listing: Listing) -> None:
    response = client.post("/saved/", {"address": ""})
    assert response["Location"].startswith("/login/")
    assert not SavedShortlist.objects.exists()
    assert "Sign in to save this answer" in page(client, "/")


def test_only_its_owner_sees_it(ada: Client, listing: Listing) -> None:
    kept = keep(ada)
    other = Client()
    other.force_login(User.objects.create_user("bob"))
    for method, address in (
        (other.get, kept.get_absolute_url()),
        (other.post, f"{kept.get_absolute_url()}change/"),
        (other.get, "/shared/None/"),
        (other.get, "/shared//"),
    ):
        assert method(address, {"wish": "delete"}).status_code == 404
    assert "kept as" not in page(other, "/saved/")
    assert Client().get(kept.get_absolute_url()).status_code == 302


def test_a_link_shares_it_until_it_is_taken_back(ada: Client, listing: Listing) -> None:
    kept = keep(ada)
    ada.post(f"{kept.get_absolute_url()}change/", {"wish": "share"})
    kept.refresh_from_db()
    assert kept.token is not None
    assert len(kept.token) >= 32
    shared = f"/shared/{kept.token}/"
    assert f"http://testserver{shared}" in page(ada, kept.get_absolute_url())
    response = Client().get(shared)
    text = response.content.decode()
    assert "The eight" in text
    assert "Read only" in text
    assert "ada" not in text
    assert "wish" not in text
    assert response["X-Robots-Tag"] == "noindex"
    assert response["Referrer-Policy"] == "no-referrer"
    assert Client().post(shared).status_code == 405
    ada.post(f"{kept.get_absolute_url()}change/", {"wish": "hide"})
    assert Client().get(shared).status_code == 404


def test_each_share_has_a_token_of_its_own(ada: Client, listing: Listing) -> None:
    tokens = set()
    kept = keep(ada)
    for wish in ("share", "hide", "share"):
        ada.post(f"{kept.get_absolute_url()}change/", {"wish": wish})
        kept.refresh_from_db()
        tokens.add(kept.token)
    assert len(tokens) == 3


def test_it_is_deleted_for_good(ada: Client, listing: Listing) -> None:
    kept = keep(ada)
    ada.post(f"{kept.get_absolute_url()}change/", {"wish": "delete"})
    assert not SavedShortlist.objects.exists()
    assert "You have not saved an answer yet" in page(ada, "/saved/")


def test_a_wish_that_means_nothing_changes_nothing(ada: Client, listing: Listing) -> None:
    kept = keep(ada)
    assert ada.post(f"{kept.get_absolute_url()}change/", {"wish": "x"}).status_code == 404
    assert SavedShortlist.objects.exists()


def test_nobody_fills_the_database(
    ada: Client, listing: Listing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_views, "MOST_SAVED", 1)
    keep(ada)
    response = ada.post("/saved/", {"address": ""}, follow=True)
    assert "Delete one first" in response.content.decode()
    assert SavedShortlist.objects.count() == 1


def test_an_answer_whose_question_no_longer_holds_shows_its_rows(
    ada: Client, listing: Listing
) -> None:
    kept = keep(ada)
    SavedShortlist.objects.update(demands="gpu=vanished")
    text = page(ada, kept.get_absolute_url())
    assert "cannot be asked any more" in text
    assert "The eight" in text
