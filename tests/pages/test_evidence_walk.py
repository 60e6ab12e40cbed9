"""Two people and a curator, one machine, and what each of them may believe about its links."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import Page

from evaluator.facts import RanBy
from marketplace.evidence import Origin, keep, preview
from marketplace.evidence import review as decide
from marketplace.models import Evidence, Listing
from marketplace.models.evidence import EvidenceState
from tests.pages.catalog import make_listing, make_source
from tests.pages.conftest import Visit, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SAMPLES = Path(__file__).parent.parent / "samples" / "evidence"
PASSWORD = "a phrase of no use elsewhere"
SERVED, TRAINED = "serve-llama-8b", "train-llama-70b"
"""A job that eight GPUs share in many ways, and one that ranks by how they are joined."""


@pytest.fixture
def eight() -> Listing:
    """An 8 × H100 machine with a declared switch, a dearer rival, and one single GPU."""
    source = make_source()
    make_listing(source, "one", gpu_count=1, link=None, amount=Decimal("2.49"))
    make_listing(source, "rival", amount=Decimal("29.00"), title="8x H100 rival")
    return make_listing(source, amount=Decimal("19.92"))


@pytest.fixture
def people() -> None:
    for name in ("ada", "bob"):
        User.objects.create_user(name, password=PASSWORD)
    User.objects.create_superuser("cora", password=PASSWORD)


def signed_in(visit: Visitor, name: str, **traits: object) -> Visit:
    seen = visit(**traits)  # type: ignore[arg-type]
    page = seen.open("/login/")
    page.fill("#id_username", name)
    page.fill("#id_password", PASSWORD)
    page.click("main button:has-text('Sign in')")
    page.wait_for_selector(f".account:has-text('{name}')")
    return seen


def word_of(page: Page, plan: str) -> str:
    """The word for the link in the row of a plan, wherever the row is folded away."""
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    row = page.locator("#plans tr", has=page.locator(f"a[href*='plan={plan}#']")).first
    return row.locator("[data-label='Link it needs'] .status").inner_text()


def judged(seen: Visit, row: Listing) -> Page:
    return seen.open(f"{row.get_absolute_url()}?workload={SERVED}")


def ranking(seen: Visit) -> list[str]:
    page = seen.open(f"/?workload={TRAINED}")
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    rows = page.locator("#results tbody tr").all()
    return [" ".join(row.inner_text().split()) for row in rows]


def paste(seen: Visit, row: Listing, name: str) -> Page:
    page = seen.open(row.get_absolute_url())
    page.click("text=Paste or upload the output")
    page.fill("#id_text", (SAMPLES / f"{name}.txt").read_text("utf-8"))
    page.click("text=Show what it says")
    return page


def review(seen: Visit, action: str, reason: str = "") -> None:
    page = seen.open("/admin/marketplace/evidence/")
    page.check("input.action-select")
    page.select_option("select[name=action]", action)
    page.fill("input[name=reason]", reason)
    page.click("button:has-text('Go')")
    page.wait_for_selector(".messagelist")


def shoot(page: Page, name: str) -> None:
    """A picture for people to look at, where a folder for it is named."""
    folder = os.environ.get("LINKPROOF_SCREENSHOTS")
    if folder:
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def test_the_walk_of_one_paste(visit: Visitor, eight: Listing, people: None) -> None:
    ada, bob, cora = (signed_in(visit, name) for name in ("ada", "bob", "cora"))
    page = judged(ada, eight)
    assert word_of(page, "tp8") == "claimed"
    assert "nobody has measured" in page.inner_text("#plans")
    before = ranking(ada)

    page = paste(ada, eight, "8-gpus-nvlink-pairs")
    assert "The output shows" in page.inner_text("h1")
    assert "gpu-node-17" not in page.inner_text("main")
    shoot(page, "preview")
    page.click("text=Keep these facts")

    page = judged(ada, eight)
    assert "The evidence and the catalog disagree" in page.inner_text(".banner")
    assert (word_of(page, "tp8"), word_of(page, "tp2")) == ("contradicted", "proven")
    after = ranking(ada)
    assert after != before
    assert "no curator has accepted" in " ".join(after)

    assert word_of(judged(bob, eight), "tp8") == "claimed"
    assert ranking(bob) == before

    review(cora, "accept")
    page = judged(bob, eight)
    assert "Measured on 1 of 1 machines seen" in page.inner_text("main")
    assert word_of(page, "tp8") == "claimed"
    assert "Seen on one machine" in page.inner_text("main")
    shoot(page, "another-user")

    review(cora, "withdraw", "it was another machine")
    page = judged(bob, eight)
    assert "machines seen" not in page.inner_text("main")
    assert word_of(page, "tp8") == "claimed"
    page = judged(ada, eight)
    assert word_of(page, "tp8") == "claimed"
    assert "it was another machine" in page.inner_text(".timeline")
    assert ranking(ada) == before
    decisions = Evidence.objects.get().reviews.values_list("after", flat=True)
    assert list(decisions) == ["accepted", "withdrawn"]
    assert [one.complaints for one in (ada, bob)] == [[], []]


@pytest.fixture
def seen_machine(eight: Listing, people: None, visit: Visitor) -> Listing:
    page = paste(signed_in(visit, "ada"), eight, "8-gpus-nvlink-pairs")
    page.click("text=Keep these facts")
    return eight


def share_another_machine(row: Listing) -> None:
    """Accepted evidence of somebody else: it stands beside the own one."""
    shown = preview(row, (SAMPLES / "8-gpus-nvswitch.txt").read_text("utf-8"))
    kept = keep(row, shown, Origin(User.objects.get(username="bob"), RanBy.PROVIDER))
    decide(kept.pk, EvidenceState.ACCEPTED, None)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_of_evidence_is_wide_enough_and_readable(
    visit: Visitor, seen_machine: Listing, scheme: str, width: int
) -> None:
    seen = signed_in(visit, "ada", width=width, scheme=scheme)
    address = seen_machine.get_absolute_url()
    kept = Evidence.objects.get()
    share_another_machine(kept.listing)
    found = {}
    for name, path in {
        "listing": f"{address}?workload={SERVED}&plan=tp2",
        "paste": f"{address}evidence/",
        "evidence": kept.get_absolute_url(),
        "index": "/evidence/",
        "shortlist": f"/?workload={TRAINED}",
    }.items():
        page = seen.open(path)
        shoot(page, f"{name}-{width}-{scheme}")
        excess = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        broken = Axe().run(page).response["violations"]
        found[name] = (excess, [(one["id"], one["nodes"][0]["html"][:90]) for one in broken])
    assert found == dict.fromkeys(found, (0, []))


def test_pasting_works_without_scripts(visit: Visitor, eight: Listing, people: None) -> None:
    seen = signed_in(visit, "bob", scripts=False)
    page = paste(seen, eight, "2-gpus-nvlink")
    assert "does not match the listing" in page.inner_text("h1")
    page.click("text=Keep it as a conflict")
    assert "it raises nothing" in page.inner_text(".said")


def test_a_stranger_is_led_to_the_login_and_back(
    visit: Visitor, eight: Listing, people: None
) -> None:
    page = visit().open(eight.get_absolute_url())
    assert "nvidia-smi topo -m" in page.inner_text("pre.copy >> nth=0")
    page.click("#prove-title ~ p a[href*='/login']")
    page.fill("#id_username", "ada")
    page.fill("#id_password", PASSWORD)
    page.click("main button:has-text('Sign in')")
    page.wait_for_selector("text=Paste or upload the output")
