"""Every deed by keyboard alone: no pointer touches a page here, and what has the focus shows it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page

from marketplace.models import Listing
from tests.pages.catalog import make_listing, make_source
from tests.pages.conftest import Visit, Visitor
from tests.pages.test_evidence_walk import PASSWORD, SAMPLES

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
MOST_TABS = 250
HAS_FOCUS = """([css, text]) => {
  const here = document.activeElement;
  return here.matches(css) && (here.innerText || here.value || "").includes(text);
}"""
IS_SEEN = """() => {
  const look = getComputedStyle(document.activeElement);
  return look.outlineStyle !== "none" || look.boxShadow !== "none";
}"""


@dataclass
class Hands:
    """Tab, Space, Enter, arrows and letters."""

    page: Page

    def to(self, css: str, text: str = "") -> None:
        """Tabs on until that has the focus. Not there after all stops: out of reach."""
        for _ in range(MOST_TABS):
            self.press("Tab")
            if self.page.evaluate(HAS_FOCUS, [css, text]):
                assert self.page.evaluate(IS_SEEN), f"{css} hides that it has the focus"
                return
        raise AssertionError(f"{css} {text} is out of reach")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def act(self, css: str, text: str = "", key: str = "Enter") -> None:
        self.to(css, text)
        self.press(key)

    def write(self, css: str, words: str) -> None:
        self.to(css)
        self.press("Control+A")
        self.page.keyboard.insert_text(words)

    def sees(self, selector: str) -> None:
        self.page.wait_for_selector(selector)


@pytest.fixture
def eight() -> Listing:
    source = make_source()
    make_listing(source, "one", gpu_count=1, link=None, amount=Decimal("2.49"))
    make_listing(source, "rival", amount=Decimal("25.00"), title="8x H100 rival")
    return make_listing(source, title="8x H100 eight")


def signs_in(seen: Visit, name: str, **rights: bool) -> Hands:
    User.objects.create_user(name, password=PASSWORD, **rights)
    hands = Hands(seen.open("/"))
    hands.act("a.account")
    hands.sees("#id_username")
    hands.write("#id_username", name)
    hands.write("#id_password", PASSWORD)
    hands.press("Enter")
    hands.sees(f".account:has-text('{name}')")
    return hands


def test_a_shortlist_is_asked_shaped_compared_kept_and_shared(
    visit: Visitor, eight: Listing
) -> None:
    seen = visit()
    hands, page = signs_in(seen, "ada"), seen.page
    hands.to("#id_workload")
    hands.press("ArrowDown")
    page.wait_for_url("**workload=**")
    seen.open("/")
    hands.act("details.columns summary")
    hands.act("input[name=show][value=provider]", key="Space")
    hands.sees("#ranked th:has-text('Provider')")
    hands.write("#id_hourly", "2..30")
    hands.press("Enter")
    hands.sees("a.chip:has-text('Per hour: 2..30')")
    hands.act("#ranked thead a", "Per hour")
    hands.sees("#ranked th[aria-sort=ascending] >> text=Per hour")
    shaped = page.url
    for _ in range(2):
        hands.act("input[name=pick]:not(:checked)", key="Space")
    hands.act("button", "Compare the ticked")
    hands.sees("h1:has-text('differ in')")
    seen.open(shaped.removeprefix(seen.home))
    hands.act("a.chip", "Per hour: 2..30")
    page.wait_for_url(lambda url: "2..30" not in url)
    hands.act("button", "Save this answer")
    hands.sees("#share-title")
    hands.act("button", "Make a link")
    hands.sees("[aria-label='Link to copy']")
    hands.act("button", "Take the link back")
    hands.sees("button:has-text('Make a link')")
    hands.act("button", "Sign out")
    hands.sees("a.account:has-text('Sign in')")
    assert seen.complaints == []


def test_evidence_is_pasted_looked_at_and_kept(visit: Visitor, eight: Listing) -> None:
    seen = visit()
    hands = signs_in(seen, "ada")
    seen.open(eight.get_absolute_url())
    hands.act("a", "Paste or upload the output")
    hands.sees("#id_text")
    hands.write("#id_text", (SAMPLES / "8-gpus-nvlink-pairs.txt").read_text("utf-8"))
    hands.act("button", "Show what it says")
    hands.sees("h1:has-text('The output shows')")
    hands.act("button", "Keep these facts")
    hands.sees(".said:has-text('for you alone so far')")
    assert seen.complaints == []


def test_an_evaluation_is_asked_for_watched_and_cancelled(visit: Visitor, eight: Listing) -> None:
    seen = visit()
    hands, page = signs_in(seen, "ada"), seen.page
    seen.open("/workloads/memory/?workload=serve-llama-8b")
    hands.act("input.slider", key="ArrowRight")
    page.wait_for_url("**workloads/memory/?**=**&**")
    hands.act("main button", "judge every listing in the background")
    hands.sees("h1:has-text('It waits for a worker')")
    hands.to("button", "Cancel")
    with page.expect_response(lambda one: "/evaluations/" in one.url):
        assert page.evaluate("getComputedStyle(document.querySelector('#progress')).opacity") == "1"
    page.wait_for_function("() => !document.querySelector('.htmx-request, .htmx-swapping')")
    assert page.evaluate(HAS_FOCUS, ["button", "Cancel"]), "asking again takes the focus away"
    hands.press("Enter")
    hands.sees("h1:has-text('Cancelled after 0')")
    assert seen.complaints == []


def test_a_plan_is_opened_its_token_followed_and_its_command_copied(
    visit: Visitor, eight: Listing
) -> None:
    seen = visit()
    seen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = seen.open(f"/plans?listing={eight.pk}&workload=serve-llama-8b")
    hands = Hands(page)
    hands.act("#plans table a", "TP 2")
    hands.sees("#plan-heading:has-text('TP 2')")
    hands.act("#times summary", "As table")
    assert page.locator("#times details[open] table").is_visible()
    hands.act("#launch .copies")
    hands.sees("#launch .copies:has-text('Copied')")
    assert "tensor-parallel" in page.evaluate("navigator.clipboard.readText()")
    assert seen.complaints == []


def test_a_curator_locks_a_price(visit: Visitor, eight: Listing) -> None:
    seen = visit()
    hands = signs_in(seen, "cora", is_staff=True, is_superuser=True)
    seen.open(f"/admin/marketplace/listing/{eight.pk}/change/")
    hands.to("#id_lock_attribute")
    hands.page.keyboard.type("price")
    hands.write("#id_lock_value", "17.25 USD")
    hands.write("#id_lock_why", "the provider's mail")
    hands.act("input[name=_save]")
    hands.sees(".messagelist")
    eight.refresh_from_db()
    assert "17.25" in str(eight.corrections)
