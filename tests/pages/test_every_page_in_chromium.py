"""Every page and state in a browser: readable, narrow, dark, without scripts, and at home."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from django.test import Client

from marketplace.models import Listing
from tests.pages.conftest import Visit, Visitor
from tests.pages.everything import addresses, make_everything, save_an_answer
from tests.pages.states import STATES, reach
from tests.pages.test_evidence_walk import PASSWORD, signed_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def eight() -> Listing:
    return make_everything(User.objects.create_user("ada", password=PASSWORD))


@pytest.fixture
def pages(eight: Listing) -> dict[str, str]:
    client = Client()
    client.force_login(User.objects.get(username="ada"))
    return addresses(eight, save_an_answer(client))


def excess(seen: Visit) -> int:
    found: int = seen.page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return found


BY_MOUSE_ALONE = """() => {
  const stops = "a[href], button, summary, input, select, textarea, label, [tabindex]";
  const acts = (one) => getComputedStyle(one).cursor === "pointer" && !one.closest(stops);
  const skipped = (one) => one.tabIndex < 0 && one.id !== "main";
  return [...document.body.querySelectorAll("*")]
    .filter((one) => acts(one) || (one.matches(stops) && !one.matches("label") && skipped(one)))
    .map((one) => ["by mouse alone", one.outerHTML.slice(0, 120)]);
}"""
"""What looks as if it can be pressed and is no stop of Tab; `main` is where one skips to."""


AT_REST = """() => !document.querySelector(".htmx-request, .htmx-swapping, .htmx-settling")
  && document.getAnimations().every((one) => one.playState !== "running")"""
"""What is asked anew is dimmed for a moment, and has less contrast then."""


def faults(seen: Visit) -> tuple[int, list[tuple[str, str]]]:
    """Pixels beyond the window, and broken rules of axe, with everything unfolded."""
    page = seen.page
    page.wait_for_function(NOTHING_ASKED)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.wait_for_function(AT_REST)
    broken = Axe().run(page).response["violations"]
    told = [(one["id"], node["html"][:120]) for one in broken for node in one["nodes"][:1]]
    return excess(seen), told + [(rule, html) for rule, html in page.evaluate(BY_MOUSE_ALONE)]


NOTHING_ASKED = "!document.querySelector('.htmx-request:not([hx-trigger^=every])')"
"""What waits for its answer is dimmed, and has less contrast for as long."""
SOUND: tuple[int, list[tuple[str, str]]] = (0, [])
REFUSED = re.compile(r"status of (400|403|404|413|422|500)")
"""The browser itself complains of an answer that is an error."""


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_every_page_passes_axe_fits_and_asks_nobody_else(
    visit: Visitor, pages: dict[str, str], eight: Listing, scheme: str, width: int
) -> None:
    seen, found = signed_in(visit, "ada", scheme=scheme, width=width), {}
    for name, address in pages.items():
        seen.open(address)
        found[name] = faults(seen)
    for name in STATES:
        reach(name, seen, eight)
        found[name] = faults(seen)
    assert found == dict.fromkeys(found, SOUND)
    assert seen.strangers == []
    assert [said for said in seen.complaints if not REFUSED.search(said)] == []


def test_every_page_answers_without_scripts(
    visit: Visitor, pages: dict[str, str], eight: Listing
) -> None:
    without = signed_in(visit, "ada", scripts=False)
    for name, address in pages.items():
        page = without.open(address)
        assert page.locator("h1").inner_text(), name
        for form in page.locator("main form").all():
            assert form.locator("button[type=submit]").count(), name
    for name in STATES:
        reach(name, without, eight)


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_an_empty_catalog_and_the_door_pass_too(visit: Visitor, scheme: str, width: int) -> None:
    """What a stranger meets before the first sync, and at the door."""
    seen, found = visit(scheme=scheme, width=width), {}
    empty = ["/", "/listings/", "/plans/", "/workloads/memory/", "/evidence/", "/status"]
    for address in [*empty, "/accuracy", "/learn/", "/compare/", "/saved/"]:
        seen.open(address)
        found[address] = faults(seen)
    page = seen.open("/login/")
    page.fill("#id_username", "nobody")
    page.fill("#id_password", "wrong")
    page.click("main button:has-text('Sign in')")
    page.wait_for_selector("main .errorlist")
    found["refused at the door"] = faults(seen)
    assert found == dict.fromkeys(found, SOUND)
    assert seen.strangers == []
    assert [said for said in seen.complaints if not REFUSED.search(said)] == []


def test_two_candidates_are_compared_by_keyboard_alone(
    visit: Visitor, pages: dict[str, str]
) -> None:
    page = visit().open(pages["shortlist"])
    for _ in range(2):
        _tab_to(visit, "input[name=pick]:not(:checked)")
        page.keyboard.press("Space")
    _tab_to(visit, "button:has-text('Compare the ticked')")
    page.keyboard.press("Enter")
    page.wait_for_selector("table.compared")
    assert "differ in" in page.inner_text("h1")


def _tab_to(visit: Visitor, selector: str) -> None:
    page = visit.opened[-1]
    for _ in range(300):
        page.keyboard.press("Tab")
        if page.locator(f"{selector}:focus").count():
            return
    raise AssertionError(f"{selector} is out of reach")
