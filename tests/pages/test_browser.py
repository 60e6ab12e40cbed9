"""The pages as people meet them: by mouse, by keyboard, narrow, dark, and without scripts."""

from __future__ import annotations

from decimal import Decimal

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User

from marketplace.frozen import SHOWN
from marketplace.models import Listing, SavedShortlist
from tests.pages.catalog import make_listing, make_price, make_run, make_source, set_aside
from tests.pages.conftest import Visitor

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def listing() -> Listing:
    """A small catalog with a row of every kind; the listing has a long and a hidden side."""
    source = make_source()
    make_run(make_source("lattice"), outcome="failed", reason="500 Internal Server Error")
    set_aside(make_run(source))
    make_listing(source, "one", gpu_count=1, link=None, amount=Decimal("2.49"))
    odd = make_listing(source, "odd", gpu_model="L40S", gpu_count=4, link=None, amount=None)
    make_price(odd, Decimal("0.89"), basis="unknown", machine_per_hour=None)
    return make_listing(source, "e" * 200, title="8x H100 " + "wide" * 60, region="r" * 120)


def kept_answer() -> SavedShortlist:
    """A shared answer that has changed since."""
    owner, _ = User.objects.get_or_create(username="ada")
    row = dict.fromkeys(SHOWN, "as it was") | {"key": "1", "title": "8x H100", "provider": "Ridge"}
    return SavedShortlist.objects.get_or_create(
        token="a" * 32,
        defaults={
            "owner": owner,
            "name": "Serve",
            "document": {"task": "serve", "model": {"preset": "llama-3.1-8b"}},
            "rows": [row],
            "evaluator_version": "1",
        },
    )[0]


def addresses(listing: Listing) -> list[str]:
    return [
        "/",
        "/?workload=train-llama-70b",
        "/?limit=0",
        "/?hourly=%3C20&show=time&show=provider&show=place&sort=-hourly&group=yes",
        "/?hourly=cheap",
        "/workloads/",
        f"/compare/?pick={listing.pk}:one&pick={listing.pk}:tp8",
        "/compare/",
        f"/shared/{kept_answer().token}/",
        "/listings/",
        "/listings/?vram=%3E%3D80&show=vcpus&show=ram&show=disk",
        "/listings/?gpu=H100&max_price=5",
        listing.get_absolute_url(),
        "/status",
        f"/status/runs/{listing.source.runs.first().pk}/",
        "/nowhere",
    ]


def test_the_shortlist_works_without_scripts(visit: Visitor, listing: Listing) -> None:
    page = visit(scripts=False).open("/")
    page.select_option("#id_workload", "train-llama-70b")
    page.click("text=Rank machines")
    assert "workload=train-llama-70b" in page.url
    assert page.locator("#results tr.single").count() == 1
    page.select_option("#id_gpu", "H100")
    page.click("text=Rank machines")
    page.click("a.chip:has-text('GPU model: H100')")
    assert "gpu=" not in page.url


def test_a_pasted_workload_works_without_scripts(visit: Visitor, listing: Listing) -> None:
    page = visit(scripts=False).open("/workloads/")
    page.fill("#id_workload", '{"task": "serve", "model": {"preset": "llama-3.1-8b"}}')
    page.fill("#id_limit", "1")
    page.click("text=Rank machines")
    assert "One GPU is enough" in page.inner_text("h1")
    page.click("button.chip:has-text('Rows: 1')")
    assert page.locator("button.chip").count() == 0
    assert "llama-3.1-8b" in page.input_value("#id_workload")


def test_choosing_a_workload_swaps_results_title_and_address(
    visit: Visitor, listing: Listing
) -> None:
    seen = visit()
    page = seen.open("/")
    first = page.inner_text("h1")
    page.select_option("#id_workload", "train-llama-70b")
    page.wait_for_url("**workload=train-llama-70b**")
    page.wait_for_function("first => document.querySelector('h1').innerText !== first", arg=first)
    assert page.locator("h1").count() == 1
    page.go_back()
    page.wait_for_function("first => document.querySelector('h1').innerText === first", arg=first)
    assert page.locator(".top").count() == 1
    assert seen.complaints == []


def test_a_refused_demand_is_said_where_the_answer_would_be(
    visit: Visitor, listing: Listing
) -> None:
    page = visit().open("/")
    page.fill("#id_max_price", "0")
    page.evaluate("document.querySelector('#shortlist-form').noValidate = true")
    page.locator("#id_max_price").dispatch_event("change")
    page.wait_for_selector("#results .errorlist")
    assert "nothing was ranked" in page.inner_text("h1")


def test_the_first_tab_stop_skips_to_the_answer(visit: Visitor, listing: Listing) -> None:
    page = visit().open("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["y"] >= 0  # type: ignore[index]
    page.keyboard.press("Enter")
    page.wait_for_function("document.activeElement.id === 'main'")


def test_the_keyboard_reaches_form_rows_and_notes_in_order(
    visit: Visitor, listing: Listing
) -> None:
    page = visit().open("/")
    order = []
    for _ in range(120):
        page.keyboard.press("Tab")
        order.append(
            page.evaluate("(e => e.id || e.tagName + ':' + e.innerText)(document.activeElement)")
        )
    places = [order.index(stop) for stop in ("id_workload", "id_limit", "id_min_grade")]
    notes = next(place for place, stop in enumerate(order) if "note" in stop)
    assert places == sorted(places) < [notes]
    page.locator("summary:has-text('note')").first.focus()
    page.keyboard.press("Enter")
    assert page.locator(".notes[open] .findings").first.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_fails_a_serious_rule_of_axe(visit: Visitor, listing: Listing, scheme: str) -> None:
    seen = visit(scheme=scheme)
    found = {}
    for address in addresses(listing):
        page = seen.open(address)
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        violations = Axe().run(page).response["violations"]
        found[address] = [
            (broken["id"], node["html"][:120])
            for broken in violations
            for node in broken["nodes"][:2]
        ]
    assert found == {address: [] for address in found}


@pytest.mark.parametrize("width", [390, 768, 1280, 2200])
def test_no_page_scrolls_sideways(visit: Visitor, listing: Listing, width: int) -> None:
    seen = visit(width=width)
    for address in addresses(listing):
        page = seen.open(address)
        excess = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert (address, excess) == (address, 0)


def test_every_row_is_readable_on_a_narrow_screen(visit: Visitor, listing: Listing) -> None:
    page = visit(width=390).open("/")
    for cell in page.locator("#results tbody tr").first.locator("td, th").all():
        box = cell.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


def test_nothing_is_asked_of_another_host_and_nothing_complains(
    visit: Visitor, listing: Listing
) -> None:
    seen = visit()
    for address in addresses(listing)[:-1]:
        if address not in REFUSED:
            seen.open(address, settled=True)
    assert len(seen.requests) > 20
    assert seen.strangers == []
    assert seen.complaints == []


REFUSED = ("/?limit=0", "/?hourly=cheap", "/compare/")
"""The browser itself complains of an answer that is an error."""

HOSTILE = (
    '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'
    '<b hx-get="/status?hit" hx-trigger="load">x</b><a href="javascript:window.hit=1">y</a>'
    "<p hx-on:load='window.hit=1'>\u202e"
)


def test_a_hostile_listing_is_inert(visit: Visitor) -> None:
    source = make_source()
    evil = make_listing(
        source,
        title=HOSTILE[:300],
        region=HOSTILE[:120],
        zone=HOSTILE[:120],
        url="javascript:window.hit=1",
        words={"link": HOSTILE, HOSTILE: HOSTILE},
    )
    set_aside(source.runs.get(), HOSTILE[:200], words={"x": HOSTILE})
    make_run(source, outcome="failed", reason=HOSTILE)
    seen = visit()
    runs = [f"/status/runs/{run.pk}/" for run in source.runs.all()]
    for address in ("/", "/listings/", evil.get_absolute_url(), "/status", *runs):
        page = seen.open(address, settled=True)
        assert page.evaluate("window.hit") is None
        assert (
            page.locator("main :is(img, script:not([src^='/static/']), [hx-trigger=load])").count()
            == 0
        )
        assert page.locator("a[href^=javascript]").count() == 0
    assert not [url for url in seen.requests if "hit" in url or url.endswith("/x")]
    assert seen.complaints == []
