"""The desk of curators in a browser: what our tables, forms and styles add to Django's pages."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page

from marketplace.models import Evidence, QuarantinedRow, Snapshot
from tests.pages.conftest import Visitor
from tests.pages.everything import make_everything
from tests.pages.test_every_page_in_chromium import excess
from tests.pages.test_evidence_walk import PASSWORD, signed_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

DJANGOS = {
    "link-in-text-block": '<a href="/admin/',
    "empty-table-header": "<th",
    "scrollable-region-focusable": 'class="js-inline-admin-formset',
    "aria-input-field-name": 'class="select2-selection',
}
"""Rules that Django's own templates break, each with what stands in its markup: the crumbs, a
column without a head, an inline table on a narrow screen, a choice with a search."""


@pytest.fixture
def addresses() -> dict[str, str]:
    """Lists and forms to which the desk adds something."""
    eight = make_everything(User.objects.create_superuser("cora", password=PASSWORD))
    Snapshot.objects.update(content_type="")
    lists = ("listing", "snapshot", "evidence", "quarantinedrow", "gpualias", "price", "source")
    forms = {
        "listing": eight,
        "evidence": Evidence.objects.order_by("pk")[0],
        "quarantinedrow": QuarantinedRow.objects.get(),
        "snapshot": Snapshot.objects.get(source=eight.source),
        "source": eight.source,
    }
    own = {name: reverse(f"admin:marketplace_{name}_changelist") for name in lists}
    for name, row in forms.items():
        own[f"{name}, one"] = reverse(f"admin:marketplace_{name}_change", args=[row.pk])
    for name in ("profile", "import"):
        own[name] = reverse(f"admin:marketplace_source_{name}", args=[eight.source.pk])
    return own | {"export": reverse("admin:marketplace_listing_export"), "home": "/admin/"}


def ours(broken: dict[str, Any]) -> list[str]:
    nodes = [node["html"][:120] for node in broken["nodes"]]
    return [html for html in nodes if DJANGOS.get(broken["id"], "\0") not in html]


def acting_inline(page: Page) -> int:
    """Attributes and elements that the content security policy keeps from acting."""
    found: int = page.evaluate(
        """() => [...document.querySelectorAll('*')].filter(one =>
             [...one.attributes].some(({name}) => name.startsWith('on'))
             || (one.matches('script:not([src])') && !/json/.test(one.type))).length"""
    )
    return found


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_what_the_desk_adds_passes_axe_and_stays_at_home(
    visit: Visitor, addresses: dict[str, str], scheme: str, width: int
) -> None:
    seen, found = signed_in(visit, "cora", scheme=scheme, width=width), {}
    for name, address in addresses.items():
        page = seen.open(address)
        inline = acting_inline(page)
        broken = Axe().run(page).response["violations"]
        told = [(one["id"], html) for one in broken for html in ours(one)]
        if told or inline or excess(seen):
            found[name] = (told, inline, excess(seen))
    assert found == {}
    assert seen.strangers == []


def test_a_profile_is_previewed_by_keyboard_and_without_scripts(
    visit: Visitor, addresses: dict[str, str]
) -> None:
    for scripts in (True, False):
        seen = signed_in(visit, "cora", scripts=scripts)
        page = seen.open(addresses["profile"])
        page.focus("#id_profile")
        page.keyboard.press("Control+A")
        page.keyboard.type('{"nonsense": 1}')
        page.keyboard.press("Tab")
        if not scripts:
            page.keyboard.press("Enter")
        page.wait_for_selector("#preview .errorlist:has-text('nonsense')")
        assert seen.complaints == []
