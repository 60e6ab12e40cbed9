"""Ten minutes of somebody who has never read about tensor parallelism, as one walk.

Every step leaves a picture in test-results/newcomer/, for people to look at.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from playwright.sync_api import Page

from marketplace import sync
from marketplace.models import Listing, Source
from tests.marketplace.conftest import adapter, site, source  # noqa: F401  fixtures of the sync
from tests.marketplace.site import Site
from tests.marketplace.site import page as answer
from tests.pages.catalog import make_listing, make_source

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PICTURES = Path(__file__).parent.parent.parent / "test-results" / "newcomer"
TRAINED = "train-llama-70b"
CATALOG = "one-1|eu|H100|1|80|2.49\neight-8|eu|H100|8|80|19.92\n"

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
def synced(source: Source, site: Site) -> Source:  # noqa: F811
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
