"""Ten minutes of somebody who has never read about tensor parallelism, as one walk.

Every step leaves a picture in test-pictures/newcomer/, for people to look at.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Page

from marketplace import outbox, sync
from marketplace.models import Listing, Source
from marketplace.tasks import send
from tests.marketplace import conftest
from tests.marketplace.site import Site
from tests.marketplace.site import page as answer
from tests.pages.catalog import make_listing, make_source
from tests.pages.conftest import Visit, Visitor
from tests.pages.test_evidence_walk import PASSWORD, SAMPLES, signed_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PICTURES = Path(__file__).parent.parent.parent / "test-pictures" / "newcomer"
"""Outside of test-results/, which every process of the browser plugin empties when it begins."""
TRAINED = "train-llama-70b"
CATALOG = "one-1|eu|H100|1|80|2.49\neight-8|eu|H100|8|80|19.92\n"

adapter, site, source = conftest.adapter, conftest.site, conftest.source
"""Fixtures of a sync over a real socket."""

Shoot = Callable[[Page, str], None]


@pytest.fixture
def shoot() -> Shoot:
    """Keeps one picture per step, numbered in the order of the walk."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for old in PICTURES.glob("*.png"):
        old.unlink()
    taken: list[str] = []

    def take(page: Page, name: str) -> None:
        taken.append(name)
        page.screenshot(path=PICTURES / f"{len(taken):02d}-{name}.png", full_page=True)

    return take


@pytest.fixture
def synced(source: Source, site: Site) -> Source:
    """A catalog that came in over a real socket: one GPU, and eight of which no link is stated."""
    site.answers["/list"] = answer(CATALOG, "text/plain")
    sync.sync_source(source.pk)
    return source


@pytest.fixture
def eight(synced: Source) -> Listing:
    """Eight GPUs whose catalog declares a switch, and a dearer rival whose catalog does too."""
    other = make_source("brook")
    make_listing(other, "rival", amount=Decimal("29.00"), title="8x H100 rival")
    return make_listing(other, "declared", amount=Decimal("18.00"), title="8x H100 declared")


def ranking(seen: Visit) -> list[str]:
    """The rows in order, everything that is folded away included."""
    page = trained(seen)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    rows = page.locator("#results tbody tr").all()
    return [" ".join(row.inner_text().split()) for row in rows]


def trained(seen: Visit) -> Page:
    return seen.open(f"/?workload={TRAINED}")


def one_gpu_wins(seen: Visit, shoot: Shoot) -> None:
    page = seen.open("/learn")
    shoot(page, "learn")
    page.click("text=Its shortlist >> nth=0")
    assert "One GPU is enough" in page.inner_text("h1")
    assert "Best single GPU" in page.inner_text("#results")
    shoot(page, "one-gpu-wins")
    page.locator("#results tr.single td[data-label=Plan] a").click()
    assert "no plan is narrower" in page.inner_text("h1")
    shoot(page, "why-one-gpu")


def plans_lean_on_unproven_links(seen: Visit, shoot: Shoot, row: Listing) -> None:
    page = seen.open("/")
    page.select_option("#id_workload", TRAINED)
    page.wait_for_url(f"**workload={TRAINED}**")
    page.wait_for_selector("#results th.machine")
    assert "conditional" in page.inner_text("#results")
    shoot(page, "train-70b")
    page = seen.open(f"/plans?listing={row.pk}&workload={TRAINED}")
    assert re.search("Its link is (claimed|unknown)", page.inner_text("h1"))
    shoot(page, "plans-with-unproven-links")


def pasting_changes_verdict_and_ranking(ada: Visit, shoot: Shoot, row: Listing) -> None:
    before = ranking(ada)
    page = ada.open(row.get_absolute_url())
    page.click("text=Paste or upload the output")
    page.fill("#id_text", (SAMPLES / "8-gpus-nvlink-pairs.txt").read_text("utf-8"))
    page.click("text=Show what it says")
    shoot(page, "what-the-matrix-says")
    page.click("text=Keep these facts")
    page = ada.open(f"{row.get_absolute_url()}?workload={TRAINED}")
    assert "The evidence and the catalog disagree" in page.inner_text(".banner")
    shoot(page, "the-verdict-changed")
    after = ranking(ada)
    assert [line.split(" ", 1)[-1] for line in after] != [line.split(" ", 1)[-1] for line in before]
    assert "no curator has accepted" in " ".join(after)
    shoot(trained(ada), "the-ranking-changed")


def compares_two(seen: Visit, shoot: Shoot) -> None:
    page = trained(seen)
    for box in page.locator("#results input[name=pick]").all()[:2]:
        box.check()
    page.click("text=Compare the ticked")
    assert re.search("2 candidates .* differ in", page.inner_text("h1"))
    shoot(page, "compared")


def copies_the_launch_command(seen: Visit, shoot: Shoot, row: Listing) -> None:
    seen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = seen.open(f"/plans?listing={row.pk}&plan=tp2#launch")
    page.locator("#launch .copies").first.click()
    page.wait_for_selector("#launch .copies:has-text('Copied')")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("#launch pre.copy").first.inner_text().rstrip()
    assert "tensor-parallel" in copied
    shoot(page, "launch-command-copied")


def a_curator_locks_a_price(cora: Visit, shoot: Shoot, row: Listing) -> None:
    page = cora.open(f"/admin/marketplace/listing/{row.pk}/change/")
    page.select_option("#id_lock_attribute", "price_per_hour")
    page.fill("#id_lock_value", "17.25 USD")
    page.fill("#id_lock_why", "the provider's mail")
    shoot(page, "a-curator-locks-a-price")
    page.click("input[name=_save]")
    page.wait_for_selector(".messagelist")


def a_sync_keeps_it(cora: Visit, shoot: Shoot, source: Source, row: Listing) -> None:
    page = cora.open("/admin/marketplace/source/")
    page.locator("tr", has_text=source.key).locator("input.action-select").check()
    page.select_option("select[name=action]", "sync_now")
    page.click("button:has-text('Go')")
    page.wait_for_selector(".messagelist")
    outbox.publish(send, timezone.now())
    assert source.runs.count() == 2
    page = cora.open(f"{row.get_absolute_url()}#prices-title")
    assert "17.25 USD per rental and hour is what a curator locked" in page.inner_text("main")
    assert "23.00 USD" in page.inner_text("main")
    shoot(page, "the-lock-survives-a-sync")


def test_the_first_ten_minutes(
    visit: Visitor,
    eight: Listing,
    synced: Source,
    site: Site,
    shoot: Shoot,
) -> None:
    User.objects.create_user("ada", password=PASSWORD)
    User.objects.create_superuser("cora", password=PASSWORD)
    stranger, ada, cora = visit(), signed_in(visit, "ada"), signed_in(visit, "cora")
    one_gpu_wins(stranger, shoot)
    plans_lean_on_unproven_links(stranger, shoot, eight)
    pasting_changes_verdict_and_ranking(ada, shoot, eight)
    compares_two(ada, shoot)
    copies_the_launch_command(ada, shoot, eight)
    listed = Listing.objects.get(source=synced, sku="eight-8")
    a_curator_locks_a_price(cora, shoot, listed)
    site.answers["/list"] = answer(CATALOG.replace("19.92", "23.00"), "text/plain")
    a_sync_keeps_it(cora, shoot, synced, listed)
    assert [seen.complaints for seen in (stranger, ada)] == [[], []]
    assert stranger.strangers == ada.strangers == []
    assert len(list(PICTURES.glob("*.png"))) == 12
