"""The shortlist by mouse and keyboard: filter, compare, keep, share; with scripts and without."""

from __future__ import annotations

import json
import os
from decimal import Decimal

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import Page, Route

from evaluator.workload import workload_presets
from marketplace.evaluations import keep_workload, request_evaluation
from marketplace.models import Evaluation, Listing
from marketplace.views.answers import UNSAID
from marketplace.views.ranked import columns_for
from tests.pages.catalog import make_listing, make_source
from tests.pages.conftest import Visit, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PASSWORD = "a phrase of no use elsewhere"


@pytest.fixture
def catalog() -> Listing:
    """Four machines: row 0 on one GPU, and three that rank behind it by their price."""
    source = make_source()
    make_listing(source, "one", gpu_count=1, link=None, amount=Decimal("2.49"))
    for at, amount in enumerate(("12", "20")):
        make_listing(source, f"m{at}", amount=Decimal(amount), title=f"Machine {at}")
    return make_listing(source, "last", amount=Decimal(30), title="Machine 2")


def rows(page: Page) -> list[str]:
    names = page.locator("#results table.ranked >> nth=0").locator("tbody th a.cell-main")
    return names.all_inner_texts()


def shoot(page: Page, name: str) -> None:
    """A picture for people to look at, where a folder for it is named."""
    folder = os.environ.get("LINKPROOF_SCREENSHOTS")
    if folder:
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def sign_in(seen: Visit) -> None:
    User.objects.get_or_create(username="ada")[0].set_password(PASSWORD)
    user = User.objects.get(username="ada")
    user.set_password(PASSWORD)
    user.save()
    page = seen.open("/login/")
    page.fill("#id_username", "ada")
    page.fill("#id_password", PASSWORD)
    page.click("main button:has-text('Sign in')")
    page.wait_for_selector(".account:has-text('ada')")


@pytest.mark.parametrize("scripts", [True, False])
def test_filter_compare_keep_and_share(visit: Visitor, catalog: Listing, scripts: bool) -> None:
    seen = visit(scripts=scripts)
    sign_in(seen)
    page = seen.open("/")
    page.click("summary:has-text('Columns and their filters')")
    page.fill("#id_hourly", "12..20")
    page.press("#id_hourly", "Enter")
    page.wait_for_url("**hourly=12..20**")
    page.wait_for_selector("a.chip:has-text('Per hour: 12..20')")
    assert rows(page) == ["8x H100 SXM one", "Machine 0", "Machine 1"]
    for box in page.locator("#results input[name=pick]").all()[:2]:
        box.check()
    page.click("text=Compare the ticked")
    page.wait_for_selector("h1:has-text('differ in')")
    assert page.url.count("pick=") == 2
    shoot(page, f"compare-{scripts}")

    page.go_back()
    page.click("text=Save this answer")
    page.wait_for_selector("h1:has-text('Nothing that was shown has changed')")
    page.click("text=Make a link")
    address = page.inner_text("[aria-label='Link to copy']").strip()
    shoot(page, f"saved-{scripts}")
    stranger = visit(scripts=scripts)
    read = stranger.open(address.removeprefix(stranger.home))
    assert "Read only" in read.inner_text("main")
    assert read.locator("main form").count() == 0
    assert [one.complaints for one in (seen, stranger)] == [[], []]
    assert [one.strangers for one in (seen, stranger)] == [[], []]


def test_ticks_outlive_a_filter_and_one_enter_asks_once(visit: Visitor, catalog: Listing) -> None:
    seen = visit()
    page = seen.open("/")
    for box in page.locator("#results input[name=pick]").all()[:3]:
        box.check()
    page.click("summary:has-text('Columns and their filters')")
    answers: list[str] = []
    page.on("requestfinished", lambda done: answers.append(done.url))
    page.fill("#id_hourly", "12..30")
    page.press("#id_hourly", "Enter")
    page.wait_for_selector("a.chip:has-text('Per hour: 12..30')")
    page.wait_for_load_state("networkidle")
    assert sum("hourly=" in url for url in answers) == 1, (
        "the change and the submit of one Enter are one question"
    )
    ticked = page.locator("#results input[name=pick]:checked")
    assert ticked.count() == 3
    page.fill("#id_hourly", "20..30")
    page.press("#id_hourly", "Enter")
    page.wait_for_selector("a.chip:has-text('Per hour: 20..30')")
    assert ticked.count() == 2, "row 0 stays on top, Machine 0 is gone"
    page.click("text=Compare the ticked")
    page.wait_for_selector("h1:has-text('differ in')")
    assert seen.complaints == []


def test_a_refused_expression_is_said_where_it_was_typed(visit: Visitor, catalog: Listing) -> None:
    page = visit(scripts=False).open("/?hourly=%3E%3Dcheap")
    assert page.locator("details.columns").get_attribute("open") is not None
    assert "at character 3" in page.inner_text("#id_hourly_error")
    assert page.get_attribute("#id_hourly", "aria-describedby") is not None


def test_rows_are_ticked_and_compared_by_keyboard_alone(visit: Visitor, catalog: Listing) -> None:
    page = visit().open("/")
    ticked = 0
    for _ in range(120):
        page.keyboard.press("Tab")
        here = "document.activeElement"
        if ticked < 2 and page.evaluate(f"{here}.name") == "pick":
            page.keyboard.press("Space")
            ticked += 1
        if page.evaluate(f"{here}.innerText").startswith("Compare the ticked"):
            page.keyboard.press("Enter")
            break
    page.wait_for_selector("h1:has-text('differ in')")


@pytest.mark.parametrize("scripts", [True, False])
def test_the_head_of_a_column_leads_to_its_filter(
    visit: Visitor, catalog: Listing, scripts: bool
) -> None:
    page = visit(scripts=scripts).open("/")
    assert not page.locator("#id_hourly").is_visible()
    page.locator("#ranked th a.filter:has-text('Per hour')").press("Enter")
    page.locator("#id_hourly:focus").wait_for()
    page.keyboard.type("12..20")
    page.keyboard.press("Enter")
    page.wait_for_selector("#ranked th a.filter:has-text('12..20')")
    assert rows(page) == ["8x H100 SXM one", "Machine 0", "Machine 1"]


def test_a_narrow_screen_sorts_too(visit: Visitor, catalog: Listing) -> None:
    page = visit(width=390).open("/")
    page.select_option("#id_sort", label="Per hour, turned round")
    page.wait_for_url("**sort=-hourly**")
    page.wait_for_selector("#ranked tbody tr:nth-child(2):has-text('Machine 2')")
    assert rows(page)[1:] == ["Machine 2", "Machine 1", "Machine 0"]


def test_columns_take_the_words_of_the_workload_that_is_picked(
    visit: Visitor, catalog: Listing
) -> None:
    page = visit().open("/?time=%3C%3D900")
    assert page.inner_text("#name-time") == "Time per token, ms"
    page.select_option("#id_workload", label="Train Llama 3.1 70B")
    page.wait_for_selector("#name-time:has-text('Time to finish, hours')")
    assert page.get_attribute("#edit-workload", "href") == "/workloads/?workload=train-llama-70b"


def test_with_every_column_words_stay_whole_and_the_page_does_not_scroll(
    visit: Visitor, catalog: Listing
) -> None:
    every = "&".join(f"show={one.key}" for one in columns_for(UNSAID) if not one.fixed)
    page = visit().open(f"/?{every}")
    heads = page.locator("#ranked thead th").all()
    assert len(heads) == 1 + len(columns_for(UNSAID))
    lines = {head.inner_text(): head.locator("a").first.bounding_box() for head in heads}
    assert {name for name, box in lines.items() if box is None or box["height"] > 3 * 18} == set()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_a_running_evaluation_can_be_stopped_by_keyboard_while_it_is_told_anew(
    visit: Visitor, catalog: Listing
) -> None:
    seen = visit()
    sign_in(seen)
    document = json.loads(json.dumps(workload_presets()["serve-llama-8b"], default=dict))
    kept = keep_workload(document, User.objects.get())
    asked = request_evaluation(kept)
    page = seen.open(f"/evaluations/{asked.pk}/")
    page.focus("button:has-text('Cancel')")
    Evaluation.objects.update(configurations_total=7, configurations_done=3, state="running")
    page.wait_for_selector("h1:has-text('3 of 7 configurations judged')")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('Cancelled after 3 of 7 configurations')")


def test_every_picture_says_what_it_shows(visit: Visitor, catalog: Listing) -> None:
    seen = visit()
    for path in ("/", "/?workload=train-llama-70b", catalog.get_absolute_url()):
        page = seen.open(path)
        pictures = page.locator("figure svg[role=img]").all()
        assert pictures
        for picture in pictures:
            assert len(picture.locator("desc").text_content() or "") > 40


def test_marks_differ_in_shape_and_not_in_colour_alone(visit: Visitor, catalog: Listing) -> None:
    page = visit().open("/")
    assert page.locator("#scatter .spot path.shape, #scatter .spot circle.shape").count() >= 4
    assert page.locator("#scatter .key svg use").count() == 4


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_kept_answers_are_wide_enough_and_readable(
    visit: Visitor, catalog: Listing, scheme: str, width: int
) -> None:
    seen = visit(width=width, scheme=scheme)
    sign_in(seen)
    page = seen.open("/")
    page.click("text=Save this answer")
    page.wait_for_selector("#share-title")
    page.click("text=Make a link")
    kept = page.url.removeprefix(seen.home)
    found = {}
    for path in (kept, "/saved/", "/"):
        page = seen.open(path)
        shoot(page, f"signed-in-{path.strip('/').replace('/', '-')}-{width}-{scheme}")
        excess = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        broken = Axe().run(page).response["violations"]
        found[path] = (excess, [(one["id"], one["nodes"][0]["html"][:90]) for one in broken])
    assert found == dict.fromkeys(found, (0, []))


def test_print_leaves_out_what_paper_cannot_use(visit: Visitor, catalog: Listing) -> None:
    page = visit().open("/?hourly=%3C%3D20")
    page.emulate_media(media="print")
    useless = ("#shortlist-form", "nav[aria-label=Main]", "#compare-form", "a[download]")
    for hidden in (*useless, ".chip > [aria-hidden]", "#ranked .filter:not(:has(bdi))"):
        assert page.locator(hidden).count()
        assert not page.locator(hidden).first.is_visible()
    assert page.locator("#ranked .filter:has-text('<=20')").is_visible()
    assert page.locator("#results table.ranked").first.is_visible()
    assert page.locator("#scatter svg").first.is_visible()


def test_what_is_pressed_before_the_answer_came_counts_for_it(
    visit: Visitor, catalog: Listing
) -> None:
    seen = visit()
    page = seen.open("/")
    page.click("summary:has-text('Columns and their filters')")
    held: list[Route] = []
    page.route("**/?*hourly=*", lambda route: held.append(route), times=1)
    page.fill("#id_hourly", "12..30")
    page.click("#ranked thead a:has-text('Per hour')")
    page.wait_for_selector("#results.htmx-request")
    assert "sort=hourly" not in page.url
    held[0].continue_()
    page.wait_for_url(lambda url: "hourly=12..30" in url and "sort=hourly" in url)
    assert seen.complaints == []


def test_a_press_after_a_value_that_is_refused_is_not_lost(
    visit: Visitor, catalog: Listing
) -> None:
    page = visit().open("/")
    page.fill("#id_max_price", "-1")
    page.click("#ranked thead a:has-text('Per hour')")
    page.wait_for_url("**sort=hourly**")


def test_a_press_is_not_passed_on_to_another_machine_of_the_same_name(
    visit: Visitor, catalog: Listing
) -> None:
    for amount in ("14", "16"):
        make_listing(catalog.source, f"twin-{amount}", amount=Decimal(amount), title="Twin")
    page = visit().open("/?hourly=14..14")
    left: list[str] = []
    page.on("request", lambda one: left.append(one.url) if "/listings/" in one.url else None)
    held: list[Route] = []
    page.route("**/?*hourly=16*", lambda route: held.append(route), times=1)
    page.fill("#id_hourly", "16..16")
    page.click("#ranked a.cell-main:has-text('Twin')")
    page.wait_for_selector("#results.htmx-request")
    page.evaluate("addEventListener('htmx:afterSettle', () => { document.body.id = 'settled' })")
    held[0].continue_()
    page.wait_for_selector("body#settled")
    assert page.locator("a.chip:has-text('Per hour: 16..16')").count() == 1
    assert left == []


def test_an_answer_that_fails_is_shown_and_leaves_no_press_behind(
    visit: Visitor, catalog: Listing
) -> None:
    page = visit().open("/?show=hourly")
    held: list[Route] = []
    page.route("**/?*hourly=12*", lambda route: held.append(route), times=1)
    page.fill("#id_hourly", "12..30")
    page.click("#ranked thead a:has-text('Per hour')")
    page.wait_for_selector("#results.htmx-request")
    page.route("**/?*hourly=12*", lambda route: route.fulfill(status=503, body="no"), times=1)
    held[0].fulfill(status=500, body="no")
    page.wait_for_selector("text=no")
    assert "hourly=12..30" in page.url
    assert "sort=" not in page.url.replace("sort=&", "")
