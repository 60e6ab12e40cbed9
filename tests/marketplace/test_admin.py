from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import models
from django.test import Client
from django.urls import reverse

from marketplace import outbox, sync, tasks
from marketplace.admin.exports import inert
from marketplace.models import Listing, Outbox, Provider, Source, SyncRun
from tests.marketplace.conftest import THREE
from tests.marketplace.site import Site, page

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOSTILE = '<script>alert(1)</script><a hx-get="/boom" href="javascript:boom()">'
OURS = [
    model
    for model in apps.get_app_config("marketplace").get_models()
    if not model.__name__.startswith("Historical") and not model._meta.auto_created
]


@pytest.fixture
def desk(client: Client, db: None) -> Client:
    client.force_login(User.objects.create_superuser("cora"))
    return client


@pytest.fixture
def synced(source: Source) -> Source:
    sync.sync_source(source.pk, now=NOON)
    return source


def address(model: type[models.Model], view: str, *arguments: object) -> str:
    return reverse(f"admin:marketplace_{model._meta.model_name}_{view}", args=arguments)


def text(client: Client, url: str, **query: str) -> str:
    response = client.get(url, query)
    assert response.status_code == 200, url
    return response.content.decode()


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_every_table_has_a_page_that_lists_and_searches(
    desk: Client, synced: Source, model: type[models.Model]
) -> None:
    assert admin.site.is_registered(model)
    text(desk, address(model, "changelist"))
    text(desk, address(model, "changelist"), q="a")
    row = model._default_manager.first()
    if row is not None:
        text(desk, address(model, "change", row.pk))


@pytest.mark.parametrize(
    "name", ["Snapshot", "Price", "SyncRun", "QuarantinedRow", "Evidence", "Fact", "Verdict"]
)
def test_history_cannot_be_added_to_or_changed(desk: Client, synced: Source, name: str) -> None:
    model = apps.get_model("marketplace", name)
    assert desk.get(address(model, "add")).status_code == 403
    row = model._default_manager.first()
    if row is not None:
        assert desk.post(address(model, "change", row.pk), {"reason": "x"}).status_code == 403
        assert desk.post(address(model, "delete", row.pk), {"post": "yes"}).status_code == 403


def act(desk: Client, action: str, *sources: Source) -> None:
    keys = [source.pk for source in sources]
    desk.post(address(Source, "changelist"), {"action": action, "_selected_action": keys})


def work(name: str, ids: Any, _message: int) -> None:
    tasks.app.tasks[name](*ids)


def test_sync_now_leaves_a_message_and_fetches_nothing_itself(
    desk: Client, source: Source, site: Site
) -> None:
    act(desk, "sync_now", source)
    assert site.asked == []
    assert [(row.task, row.arguments) for row in Outbox.objects.all()] == [
        ("sync_source", [source.pk])
    ]
    outbox.publish(work, NOON)
    assert Listing.objects.count() == 3


def test_re_parse_reads_the_stored_page_without_the_network(
    desk: Client, synced: Source, site: Site
) -> None:
    asked = len(site.asked)
    act(desk, "read_again", synced)
    outbox.publish(work, NOON)
    assert [run.outcome for run in SyncRun.objects.order_by("fence")] == ["published", "unchanged"]
    assert len(site.asked) == asked


def test_a_person_may_accept_that_listings_are_gone(
    desk: Client, synced: Source, site: Site
) -> None:
    site.answers["/list"] = page("a-8|eu|H100|8|80|20.00\n")
    sync.sync_source(synced.pk, now=NOON + timedelta(hours=1))
    act(desk, "accept_held", synced)
    outbox.publish(work, NOON)
    assert Listing.objects.filter(gone_at=None).count() == 1


def test_without_the_right_nothing_is_left_behind(client: Client, source: Source) -> None:
    client.force_login(User.objects.create_user("vic", is_staff=True))
    act(client, "sync_now", source)
    assert not Outbox.objects.exists()


def correct(desk: Client, sku: str, corrections: object) -> str:
    """The page's errors; empty when it was saved."""
    listing = Listing.objects.get(sku=sku)
    form = {"corrections": json.dumps(corrections), "prices-TOTAL_FORMS": 0}
    form |= {"prices-INITIAL_FORMS": 0}
    response = desk.post(address(Listing, "change", listing.pk), form)
    return "" if response.status_code == 302 else response.content.decode()


def test_a_correction_is_kept_with_its_source_and_takes_effect(
    desk: Client, synced: Source
) -> None:
    before = Listing.objects.get(sku="a-8").configuration
    assert correct(desk, "a-8", {"link": "nvswitch"}) == ""
    listing = Listing.objects.get(sku="a-8")
    stored = listing.corrections["link"]
    assert (stored["value"], stored["grade"], stored["source"]) == (
        "nvswitch",
        "declared",
        "curator cora",
    )
    assert listing.configuration != before
    assert listing.link is None
    assert listing.history.count() == 2
    assert listing.history.first().history_user.username == "cora"


def test_a_correction_is_locked_against_the_next_sync(
    desk: Client, synced: Source, site: Site
) -> None:
    correct(desk, "a-8", {"gpu_count": 4, "vcpus": {"value": 96, "source": "mail of 3 May"}})
    corrected = Listing.objects.get(sku="a-8")
    site.answers["/list"] = page(THREE.replace("20.00", "18.00"))
    sync.sync_source(synced.pk, now=NOON + timedelta(hours=1))
    listing = Listing.objects.get(sku="a-8")
    assert listing.corrections == corrected.corrections
    assert listing.configuration == corrected.configuration


@pytest.mark.parametrize(
    ("corrections", "message"),
    [
        ({"colour": "red"}, "colour: unknown attribute, expected one of cuda_version"),
        ({"gpu_count": "eight"}, "expected null or a whole number above 0"),
        ({"gpu_count": 0}, "expected null or a whole number above 0"),
        ({"gpu_count": True}, "expected null or a whole number above 0"),
        ({"link": "warp"}, "expected null or one of nvswitch"),
        ({"persistent_storage": "yes"}, "expected null or true or false"),
        ({"driver_version": " "}, "expected null or a text"),
        ({"vcpus": {"source": "mail"}}, "vcpus: no value is given"),
        ({"vcpus": {"value": 8, "who": "me"}}, "unknown key who"),
        ({"link": {"value": "nvlink", "grade": "measured"}}, "expected declared"),
        ([1], "Read a list, expected an object"),
    ],
)
def test_a_correction_that_cannot_be_meant_says_what_was_expected(
    desk: Client, synced: Source, corrections: object, message: str
) -> None:
    assert message in correct(desk, "a-8", corrections)
    assert Listing.objects.get(sku="a-8").corrections == {}


def test_saving_a_correction_moves_no_other_column(desk: Client, synced: Source) -> None:
    listing = Listing.objects.get(sku="a-8")
    form = {"corrections": "{}", "title": "mine", "gpu_count": 1}
    form |= {"prices-TOTAL_FORMS": 0, "prices-INITIAL_FORMS": 0}
    desk.post(address(Listing, "change", listing.pk), form)
    listing.refresh_from_db()
    assert (listing.title, listing.gpu_count) == ("8x H100", 8)


def test_text_of_a_page_is_only_ever_text(desk: Client, source: Source, site: Site) -> None:
    site.answers["/list"] = page(THREE.replace("H100", HOSTILE))
    sync.sync_source(source.pk, now=NOON)
    listing = Listing.objects.get(sku="a-8")
    snapshot = listing.seen_in
    pages = [
        text(desk, address(Listing, "changelist")),
        text(desk, address(Listing, "change", listing.pk)),
        text(desk, address(type(snapshot), "change", snapshot.pk)),
        text(desk, address(SyncRun, "changelist")),
    ]
    for shown in pages:
        assert "<script>alert" not in shown
        assert "<a hx-get" not in shown
    assert "&lt;script&gt;alert" in pages[0]


def test_no_cell_of_an_export_is_a_formula(desk: Client, source: Source, site: Site) -> None:
    site.answers["/list"] = page(THREE.replace("a-8", "=HYPERLINK(1)"))
    sync.sync_source(source.pk, now=NOON)
    response = desk.post(
        address(Listing, "export"),
        {"format": "0", "resource": "", **{f"listingresource_{n}": "on" for n in ("sku", "title")}},
    )
    exported = response.content.decode()
    assert "'=HYPERLINK(1)" in exported
    assert ",=HYPERLINK" not in exported


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", " =", "\ufeff="])
def test_whatever_a_spreadsheet_would_run_is_quoted(start: str) -> None:
    assert inert(f"{start}1+1").startswith("'")


@pytest.mark.parametrize("value", ["8x H100", 8, None, "H100-8", ""])
def test_everything_else_is_exported_as_it_is(value: object) -> None:
    assert inert(value) == value


def source_form(**changes: object) -> dict[str, object]:
    return {
        "provider": Provider.objects.get().pk,
        "key": "new",
        "kind": "page",
        "adapter": "skypilot",
        "url": "https://shop.example/list",
        "profile": "{}",
        "interval_minutes": 60,
        "enabled": "on",
    } | changes


def test_a_new_source_is_scheduled_and_visited_at_once(desk: Client, source: Source) -> None:
    desk.post(address(Source, "add"), source_form())
    made = Source.objects.get(key="new")
    assert Outbox.objects.get().arguments == [made.pk]
    task = apps.get_model("django_celery_beat", "PeriodicTask").objects.get(description="new")
    assert (task.task, json.loads(task.args), task.enabled) == ("visit_source", [made.pk], True)
    desk.post(address(Source, "change", made.pk), source_form(enabled="", interval_minutes=90))
    task.refresh_from_db()
    assert (task.enabled, task.interval.every) == (False, 900)
    desk.post(address(Source, "delete", made.pk), {"post": "yes"})
    assert not type(task).objects.filter(pk=task.pk).exists()


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://shop.example/",
        "http://user:pw@shop.example/",
        "http://shop.example:8080/",
        "gopher://shop.example/",
    ],
)
def test_an_address_that_would_be_refused_is_refused_in_the_form(
    desk: Client, source: Source, url: str
) -> None:
    desk.post(address(Source, "add"), source_form(url=url))
    assert not Source.objects.filter(key="new").exists()


def test_lists_ask_the_database_a_fixed_number_of_times(
    desk: Client, source: Source, site: Site, django_assert_max_num_queries: Any
) -> None:
    site.answers["/list"] = page("".join(f"m{n}|eu|H100|8|80|{n + 1}\n" for n in range(90)))
    sync.sync_source(source.pk, now=NOON)
    for model in OURS:
        with django_assert_max_num_queries(22):
            text(desk, address(model, "changelist"))
