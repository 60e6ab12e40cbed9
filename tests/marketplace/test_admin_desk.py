"""The curation desk: profiles with a preview, aliases, locks, the quarantine queue, imports."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from marketplace import outbox, readers, sync, tasks
from marketplace.catalog.failures import Refused
from marketplace.machines import machine_of
from marketplace.models import (
    GpuAlias,
    Listing,
    Outbox,
    Provider,
    QuarantinedRow,
    Source,
    SyncRun,
)
from tests.marketplace.site import Site, page

RUNPOD = Path(__file__).parents[1] / "samples" / "interfaces" / "runpod.json"
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)
PAGE = """<html><body><h1>Machines</h1>
<div class="plan" id="z8"><h2>8x Zephyr 9000 80GB GPU</h2><p>$12.00 per machine per hour</p></div>
<div class="plan" id="h8"><h2>8x NVIDIA H100 80GB</h2><p>$19.20 per machine per hour</p></div>
<div class="plan" id="bad"><h2>2x NVIDIA H100 80GB</h2><p>$4.00 per machine per hour</p></div>
<div class="plan" id="bad"><h2>2x NVIDIA H100 80GB</h2><p>$5.00 per machine per hour</p></div>
</body></html>"""


@pytest.fixture
def desk(client: Client, db: None) -> Client:
    client.force_login(User.objects.create_superuser("cora"))
    return client


@pytest.fixture
def shop(db: None, tmp_path: Path) -> Source:
    """A source whose one page was read from a file."""
    file = tmp_path / "list.html"
    file.write_text(PAGE, "utf-8")
    source = Source.objects.create(
        provider=Provider.objects.create(slug="acme", name="Acme"),
        key="acme-shop",
        kind="page",
        adapter="page",
        url="https://acme.example/list",
        enabled=False,
    )
    sync.sync_file(source.pk, file)
    return source


def work(name: str, ids: Any, message: int) -> None:
    tasks.app.tasks[name](*ids)


def profile_url(source: Source) -> str:
    return reverse("admin:marketplace_source_profile", args=[source.pk])


def listing(sku: str) -> Listing:
    return Listing.objects.get(sku=sku)


# --- profiles


def test_the_preview_shows_listings_and_what_is_set_aside_and_writes_nothing(
    desk: Client, shop: Source
) -> None:
    runs = SyncRun.objects.count()
    said = desk.get(profile_url(shop)).content.decode()
    assert "h8" in said
    assert "Set aside" in said
    assert "19.20 USD per machine and hour" in said
    assert SyncRun.objects.count() == runs


def test_a_live_preview_answers_with_the_preview_alone(desk: Client, shop: Source) -> None:
    answer = desk.post(
        profile_url(shop), {"profile": '{"rows": "div.nothing"}'}, headers={"HX-Request": "true"}
    )
    said = answer.content.decode()
    assert "<html" not in said
    assert "Listings were expected on the page and none was found." in said


def test_a_mistake_in_a_profile_is_said_and_not_saved(desk: Client, shop: Source) -> None:
    said = desk.post(profile_url(shop), {"profile": '{"bases": "gpu"}', "save": "1"})
    assert "bases: unknown key" in said.content.decode()
    shop.refresh_from_db()
    assert shop.profile == {}


def test_a_proposal_can_be_saved_and_the_pages_are_read_again(desk: Client, shop: Source) -> None:
    said = desk.post(profile_url(shop), {"profile": "{}", "propose": "1"})
    proposed = said.context["form"].data["profile"]
    assert json.loads(proposed)["rows"] == "div.plan"
    desk.post(profile_url(shop), {"profile": proposed, "save": "1"})
    shop.refresh_from_db()
    assert shop.profile["rows"] == "div.plan"
    assert Outbox.objects.filter(task="reparse_source", arguments=[shop.pk]).exists()
    assert shop.history.first().history_user.username == "cora"


def test_a_source_without_pages_has_nothing_to_preview(desk: Client, shop: Source) -> None:
    other = Source.objects.create(
        provider=shop.provider, key="empty", kind="page", adapter="page", enabled=False
    )
    assert "No page of this source is stored yet" in desk.get(profile_url(other)).content.decode()


def test_who_may_not_change_a_source_sees_no_preview(client: Client, shop: Source) -> None:
    client.force_login(User.objects.create_user("vic", is_staff=True))
    assert client.get(profile_url(shop)).status_code == 403


def test_pages_that_are_not_as_the_profile_says_are_held(shop: Source) -> None:
    Source.objects.filter(pk=shop.pk).update(profile={"expected_count": 40})
    run = sync.reparse(shop.pk)
    assert run is not None
    assert (run.outcome, run.reason) == ("held", "The page counts 40 listings, 3 were found.")


# --- aliases


def test_an_unmapped_name_is_listed_and_an_alias_maps_it_at_the_next_reading(
    desk: Client, shop: Source
) -> None:
    before = listing("z8")
    assert (before.gpu_model, before.gpu_count) == (None, 8)
    page = reverse("admin:marketplace_gpualias_changelist")
    assert [one.name for one in desk.get(page).context["unmapped"]] == ["Zephyr 9000 80GB GPU"]
    add = reverse("admin:marketplace_gpualias_add")
    desk.post(add, {"spelling": "Zephyr 9000", "model": "H100", "note": "mail of 3 May"})
    outbox.publish(work, NOON)
    after = listing("z8")
    assert (after.pk, after.gpu_model, after.gpu_count) == (before.pk, "H100", 8)
    assert desk.get(page).context["unmapped"] == []


def test_an_alias_never_outweighs_a_name_that_is_known(shop: Source) -> None:
    GpuAlias.objects.create(spelling="NVIDIA", model="A100")
    sync.reparse(shop.pk)
    assert listing("h8").gpu_model == "H100"


@pytest.mark.parametrize(
    ("spelling", "said"),
    [("RTX 4090", "which already means RTX 4090"), ("--", "Expected letters or digits")],
)
def test_an_alias_that_makes_no_sense_is_refused(desk: Client, spelling: str, said: str) -> None:
    add = reverse("admin:marketplace_gpualias_add")
    answer = desk.post(add, {"spelling": spelling, "model": "H100"})
    assert said in answer.content.decode()
    assert not GpuAlias.objects.exists()


# --- keys


def interface(adapter: str) -> Source:
    return Source.objects.create(
        provider=Provider.objects.create(slug=adapter, name=adapter),
        key=f"{adapter}-api",
        kind="feed",
        adapter=adapter,
        url="https://api.example/types",
        enabled=True,
    )


def test_an_interface_without_its_key_is_off_and_says_which(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LINKPROOF_LAMBDA_KEY", raising=False)
    source = interface("lambda")
    said = client.get(reverse("status")).content.decode()
    assert "needs a key in <code>LINKPROOF_LAMBDA_KEY</code>" in said
    with pytest.raises(Refused, match="LINKPROOF_LAMBDA_KEY is not set"):
        readers.asking_of(source)


def test_a_key_goes_into_the_request_and_into_no_text(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINKPROOF_LAMBDA_KEY", "very-secret")
    asking = readers.asking_of(interface("lambda"))
    assert asking.headers == {"Authorization": "Bearer very-secret"}
    assert "very-secret" not in repr(asking)


def test_an_interface_is_asked_with_its_method_body_and_key_and_robots_without(
    db: None, site: Site, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINKPROOF_RUNPOD_KEY", "very-secret")
    settings.EMBEDDED, settings.SAMPLE_SERVER_ADDRESS = True, site.loopback
    site.answers["/graphql"] = page(RUNPOD.read_bytes(), "application/json")
    source = interface("runpod")
    Source.objects.filter(pk=source.pk).update(url=f"{site.url}/graphql", bundled=True)
    run = sync.sync_source(source.pk)
    assert run is not None
    assert (run.outcome, run.counts["new"]) == ("published", 7)
    assert b"gpuTypes" in site.bodies_seen[0]
    robots, asked = site.headers_seen[:2]
    assert (robots.get("authorization"), asked["authorization"]) == (None, "Bearer very-secret")


def test_a_source_without_its_key_cannot_be_switched_on(
    desk: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LINKPROOF_LAMBDA_KEY", raising=False)
    source = interface("lambda")
    change = reverse("admin:marketplace_source_change", args=[source.pk])
    fields = {name: getattr(source, name) for name in ("key", "kind", "adapter", "url")}
    answer = desk.post(
        change,
        {
            **fields,
            "provider": source.provider_id,
            "interval_minutes": 60,
            "profile": "{}",
            "enabled": "on",
        },
    )
    assert "LINKPROOF_LAMBDA_KEY is not set" in answer.content.decode()


# --- locks


def lock(desk: Client, sku: str, **fields: str) -> str:
    change = reverse("admin:marketplace_listing_change", args=[listing(sku).pk])
    given = {f"lock_{name}": value for name, value in fields.items()}
    answer = desk.post(change, {"corrections": "{}", "prices-TOTAL_FORMS": 0,
                                "prices-INITIAL_FORMS": 0, **given}, follow=True)  # fmt: skip
    return answer.content.decode()


def test_a_lock_says_who_why_and_until_and_survives_a_sync(desk: Client, shop: Source) -> None:
    lock(desk, "h8", attribute="vcpus", value="96", why="mail of 3 May", until="2099-01-31")
    sync.reparse(shop.pk)
    stored = listing("h8").corrections["vcpus"]
    assert (stored["value"], stored["source"]) == (96, "curator cora")
    assert (stored["why"], stored["until"]) == ("mail of 3 May", "2099-01-31")
    assert machine_of(listing("h8")).vcpus.value == 96
    change = reverse("admin:marketplace_listing_change", args=[listing("h8").pk])
    said = desk.get(change).content.decode()
    assert "<b>vcpus</b> = 96: curator cora, mail of 3 May, until 2099-01-31" in said


def test_a_lock_ends_with_its_last_day(desk: Client, shop: Source) -> None:
    today = timezone.now().date()
    lock(desk, "h8", attribute="gpu_count", value="4", until=today.isoformat())
    assert machine_of(listing("h8")).gpu_count.value == 4
    lock(desk, "h8", attribute="gpu_count", value="4", until=(today - DAY).isoformat())
    assert machine_of(listing("h8")).gpu_count.value == 8


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"value": "many"}, "gpu_count: read &#x27;many&#x27;, expected null or a whole number"),
        ({"value": "8", "until": "soon"}, "Enter a valid date"),
    ],
)
def test_a_lock_that_makes_no_sense_is_refused(
    desk: Client, shop: Source, fields: dict[str, str], said: str
) -> None:
    assert said in lock(desk, "h8", attribute="gpu_count", **fields)
    assert listing("h8").corrections == {}


# --- the queue and the desk


def test_a_quarantined_row_shows_its_rule_and_the_raw_page_as_text(
    desk: Client, shop: Source
) -> None:
    row = QuarantinedRow.objects.get(sku="bad")
    said = desk.get(reverse("admin:marketplace_quarantinedrow_change", args=[row.pk]))
    text = said.content.decode()
    assert "duplicate_key: " in text
    assert "&lt;div class=&quot;plan&quot; id=&quot;bad&quot;&gt;" in text


def test_the_queue_leaves_a_re_parse_for_a_worker(desk: Client, shop: Source) -> None:
    row = QuarantinedRow.objects.get(sku="bad")
    queue = reverse("admin:marketplace_quarantinedrow_changelist")
    desk.post(queue, {"action": "read_again", "_selected_action": [row.pk]})
    assert Outbox.objects.filter(task="reparse_source", arguments=[shop.pk]).exists()


def test_the_desk_shows_what_moved_and_the_first_bad_row(desk: Client, shop: Source) -> None:
    said = desk.get(reverse("admin:marketplace_source_changelist")).content.decode()
    assert "2, 0, 0, 1" in said
    assert "bad: duplicate_key" in said


# --- imports


def upload(desk: Client, source: Source, text: str) -> Any:
    file = SimpleUploadedFile("list.html", text.encode())
    return desk.post(reverse("admin:marketplace_source_import", args=[source.pk]), {"file": file})


def test_an_import_first_shows_the_difference_and_then_writes_it(
    desk: Client, shop: Source
) -> None:
    later = PAGE.replace("$19.20", "$18.00")
    shown = upload(desk, shop, later)
    assert "<bdi>h8</bdi>" in shown.content.decode()
    assert str(listing("h8").machine_hour_amount) == "19.20000000"
    page = reverse("admin:marketplace_source_import", args=[shop.pk])
    desk.post(page, {"kept": shown.context["kept"], "write": "1"})
    assert str(listing("h8").machine_hour_amount) == "18.00000000"


@pytest.mark.parametrize("given", [{}, {"kept": "no base64!"}])
def test_an_import_without_a_file_asks_for_one(
    desk: Client, shop: Source, given: dict[str, str]
) -> None:
    page = reverse("admin:marketplace_source_import", args=[shop.pk])
    assert "Choose " in desk.post(page, {**given, "write": "1"}).content.decode()


def test_a_page_of_the_admin_names_the_icon_that_a_browser_would_guess(desk: Client) -> None:
    for name in (
        "admin:index",
        "admin:marketplace_source_changelist",
        "admin:marketplace_gpualias_add",
    ):
        assert '<link rel="icon"' in desk.get(reverse(name)).content.decode()
