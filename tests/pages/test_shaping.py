"""Workload, plans, scaling, learning: by keyboard, narrow, dark, without scripts, and hostile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from evaluator.facts import RanBy
from marketplace.evidence import Origin, keep, preview, review
from marketplace.models import Listing
from marketplace.models.evidence import EvidenceState
from tests.pages.catalog import make_listing, make_source
from tests.pages.conftest import Visitor
from tests.pages.test_browser import HOSTILE

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SAMPLE = Path(__file__).parent.parent / "samples" / "evidence" / "8-gpus-nvlink-pairs.txt"
MEMORY = "/workloads/memory/"


@pytest.fixture
def eight() -> Listing:
    """An 8 × H100 machine on which somebody's evidence contradicts the catalog."""
    row = make_listing(make_source(), title="8x H100 " + "wide" * 40)
    kept = keep(row, preview(row, SAMPLE.read_text("utf-8")), Origin(None, RanBy.RENTER))
    review(kept.pk, EvidenceState.ACCEPTED, None)
    return row


def addresses(row: Listing) -> list[str]:
    return [
        MEMORY,
        f"{MEMORY}?workload=train-llama-70b&tp=4&pp=2",
        f"{MEMORY}?tp=3",
        f"{MEMORY}?paste",
        "/plans",
        f"/plans?listing={row.pk}&plan=tp4-pp2",
        f"/plans?listing={row.pk}&workload=train-llama-70b",
        "/plans?gpu=L4&count=2&workload=train-llama-70b",
        f"/evidence/listings/{row.pk}/",
        "/learn",
        "/glossary",
    ]


def opened(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_every_page_passes_axe_fits_its_width_and_stays_at_home(
    visit: Visitor, eight: Listing, scheme: str, width: int
) -> None:
    seen = visit(scheme=scheme, width=width)
    found = {}
    for address in addresses(eight):
        page = seen.open(address)
        opened(page)
        excess = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        broken = Axe().run(page).response["violations"]
        found[address] = (excess, [(one["id"], one["nodes"][0]["html"][:120]) for one in broken])
    assert found == dict.fromkeys(found, (0, []))
    assert seen.strangers == []
    assert [said for said in seen.complaints if "422" not in said] == []


@pytest.mark.parametrize("width", [1280, 390])
def test_no_picture_has_to_be_scrolled_sideways(visit: Visitor, eight: Listing, width: int) -> None:
    seen, found = visit(width=width), dict[str, object]()
    asked = (f"/plans?listing={eight.pk}", f"/evidence/listings/{eight.pk}/")
    shaped = f"{MEMORY}?workload=train-llama-70b&tp=4&pp=2"
    drawn = (f"{asked[0]}&plan={key}" for key in ("pp8", "tp4-pp2", "tp8"))
    for address in (shaped, eight.get_absolute_url(), *asked, *drawn):
        page = seen.open(address)
        pictures = page.locator("figure svg[role=img]:visible")
        boxes = [pictures.nth(at).bounding_box() for at in range(pictures.count())]
        beyond = [box for box in boxes if box and box["x"] + box["width"] > width]
        small = page.evaluate(SMALL_LETTERS)
        found[address] = (len(boxes) > 0, beyond, small)
    assert found == dict.fromkeys(found, (True, [], []))


SMALL_LETTERS = """[...document.querySelectorAll("figure svg[role=img] text")]
    .filter(one => !one.closest("#prices-title ~ *") && !one.matches(".declared"))
    .filter(one => one.checkVisibility())
    .filter(one => one.getCTM().a * parseFloat(getComputedStyle(one).fontSize) < 8.5)
    .map(one => one.textContent)"""
"""Words of pictures lower than 8.5 pixels, but for the price history and the corners of a matrix,
which its sentence repeats."""


def settles(page: Page, words: str) -> None:
    page.wait_for_function(
        "words => document.querySelector('h1').innerText.includes(words)", arg=words
    )


def test_the_answer_follows_while_typing_and_the_address_with_it(
    visit: Visitor, eight: Listing
) -> None:
    seen = visit()
    page = seen.open(f"{MEMORY}?workload=serve-llama-8b")
    before = page.inner_text("h1")
    page.focus("#id_concurrency")
    page.keyboard.press("End")
    page.keyboard.type("0")
    page.wait_for_function("was => document.querySelector('h1').innerText !== was", arg=before)
    assert "concurrency=320" in page.url
    assert page.evaluate("document.activeElement.id") == "id_concurrency"
    page.reload()
    assert page.input_value("#id_concurrency") == "320"
    assert seen.complaints == []


def test_a_link_that_becomes_a_button_is_pressed_for_what_was_just_typed(
    visit: Visitor, eight: Listing
) -> None:
    seen = visit()
    page = seen.open(f"{MEMORY}?workload=serve-llama-8b")
    page.fill("#id_concurrency", "64")
    page.click("#answer-parts a:has-text('Find machines')")
    page.wait_for_url("**/workloads/")
    assert '"concurrency": 64' in page.input_value("#id_workload")
    assert seen.complaints == []


def test_an_error_appears_beside_its_control_and_goes(visit: Visitor, eight: Listing) -> None:
    page = visit().open(f"{MEMORY}?workload=serve-llama-8b")
    page.fill("#id_tp", "3")
    settles(page, "A control cannot be used")
    assert "cannot be divided by 3" in page.inner_text("#id_tp_error")
    page.fill("#id_tp", "2")
    settles(page, "under TP 2")
    assert page.inner_text("#id_tp_error") == ""


def test_a_slider_moves_its_number_by_keyboard(visit: Visitor, eight: Listing) -> None:
    page = visit().open(f"{MEMORY}?workload=serve-llama-8b")
    page.focus("#id_concurrency")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert page.input_value("#id_concurrency") == "64"
    page.wait_for_url("**concurrency=64**")


def test_a_config_is_judged_while_it_is_edited(visit: Visitor, eight: Listing) -> None:
    seen = visit()
    page = seen.open(f"{MEMORY}?paste")
    page.fill("#id_model", "{")
    settles(page, "A control cannot be used")
    page.fill("#id_model", '{"model": {"preset": "llama-3.1-8b"}}')
    settles(page, "asks each GPU to report")
    page.fill("#id_concurrency", "8")
    page.click("button:has-text('Find machines')")
    page.wait_for_url("**/workloads/")
    assert "One GPU is enough" in page.inner_text("h1")


def test_shaping_works_without_scripts(visit: Visitor, eight: Listing) -> None:
    page = visit(scripts=False).open(MEMORY)
    assert page.locator(".slider").count() == 0
    page.click("button:has-text('Fine-tune')")
    assert "task=finetune" in page.url
    page.fill("#id_lora_rank", "64")
    page.click("text=Work out the memory")
    assert "lora_rank=64" in page.url
    assert "asks each GPU to report" in page.inner_text("h1")
    page.click("text=Paste a config.json")
    page.fill("#id_model", json.dumps({"model": {"preset": "llama-3.1-8b"}}))
    page.click("text=Work out the memory")
    assert "asks each GPU to report" in page.inner_text("h1")


def test_plans_work_without_scripts(visit: Visitor, eight: Listing) -> None:
    page = visit(scripts=False).open("/plans")
    page.select_option("#id_gpu", "H100")
    page.fill("#id_count", "8")
    page.click("text=Try every plan")
    assert "the narrowest plan that holds" in page.inner_text("h1")
    page.click("#plans table a >> nth=1")
    assert "plan=" in page.url
    assert page.locator("#plan-heading").count() == 1


def test_plans_are_reached_and_left_by_keyboard(visit: Visitor, eight: Listing) -> None:
    page = visit().open(f"/plans?listing={eight.pk}")
    order = []
    for _ in range(60):
        page.keyboard.press("Tab")
        order.append(
            page.evaluate("(e => e.id || e.innerText || e.tagName)(document.activeElement)")
        )
    assert order.index("id_workload") < order.index("Try every plan") < order.index("one GPU")
    assert "Download SVG" in order


def test_a_listing_leads_to_its_plans_and_its_scaling(visit: Visitor, eight: Listing) -> None:
    seen = visit()
    page = seen.open(eight.get_absolute_url())
    page.click("text=Every plan, drawn")
    assert f"listing={eight.pk}" in page.url
    page = seen.open(eight.get_absolute_url())
    page.click("text=Runs and scaling")
    assert "contradicts the catalog" in page.inner_text("h1")


def test_hostile_words_are_inert(visit: Visitor) -> None:
    evil = make_listing(make_source(), title=HOSTILE[:300], region=HOSTILE[:120])
    seen = visit()
    document = {"task": "serve", "model": {"preset": "llama-3.1-8b"}, "name": HOSTILE[:200]}
    for address in (f"/plans?listing={evil.pk}", f"/evidence/listings/{evil.pk}/"):
        page = seen.open(address, settled=True)
        assert page.evaluate("window.hit") is None
        assert page.locator("main :is(img, [hx-trigger=load])").count() == 0
    page = seen.open(f"{MEMORY}?paste")
    page.fill("#id_model", json.dumps(document))
    settles(page, "asks each GPU to report")
    assert page.evaluate("window.hit") is None
    assert page.locator("main :is(img, [hx-trigger=load])").count() == 0
    assert not [url for url in seen.requests if "hit" in url or url.endswith("/x")]
    assert seen.complaints == []


def test_find_machines_takes_what_was_typed_last(visit: Visitor, eight: Listing) -> None:
    page = visit().open(f"{MEMORY}?workload=serve-llama-8b&concurrency=16")
    page.fill("#id_concurrency", "7")
    page.click("button:has-text('Find machines')")
    page.wait_for_url("**/workloads/")
    assert '"concurrency": 7' in page.input_value("#id_workload")
