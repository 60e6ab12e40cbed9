"""Every page and state in a browser: readable, narrow, dark, without scripts, and at home."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from django.test import Client

from tests.pages.conftest import Visit, Visitor
from tests.pages.everything import addresses, make_everything, save_an_answer
from tests.pages.test_evidence_walk import PASSWORD, signed_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def pages() -> dict[str, str]:
    ada = User.objects.create_user("ada", password=PASSWORD)
    eight, client = make_everything(ada), Client()
    client.force_login(ada)
    found = addresses(eight, save_an_answer(client))
    return found | {"evidence, pasted": f"{eight.get_absolute_url()}evidence/"}


def excess(seen: Visit) -> int:
    found: int = seen.page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return found


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_every_page_passes_axe_fits_and_asks_nobody_else(
    visit: Visitor, pages: dict[str, str], scheme: str, width: int
) -> None:
    seen, found = signed_in(visit, "ada", scheme=scheme, width=width), {}
    for name, address in pages.items():
        page = seen.open(address)
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        broken = Axe().run(page).response["violations"]
        told = [(one["id"], node["html"][:120]) for one in broken for node in one["nodes"][:1]]
        if told or excess(seen):
            found[name] = (excess(seen), told)
    assert found == {}
    assert seen.strangers == []
    assert [said for said in seen.complaints if "422" not in said and "404" not in said] == []


def test_every_page_answers_without_scripts(visit: Visitor, pages: dict[str, str]) -> None:
    without = signed_in(visit, "ada", scripts=False)
    for name, address in pages.items():
        page = without.open(address)
        assert page.locator("h1").inner_text(), name
        for form in page.locator("main form").all():
            assert form.locator("button[type=submit]").count(), name


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
