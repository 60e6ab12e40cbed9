"""A real browser before a real server: one Chromium for this package, a fresh page for each test.

The synchronous driver keeps an event loop running in the thread of the tests, where Django then
refuses its database. It is allowed to for as long as the browser lives, and no longer: the driver's
own fixtures would last until the session ends, under every test that runs after these.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, sync_playwright
from pytest_django.live_server_helper import LiveServer

from marketplace.offers import forget_catalog
from marketplace.views import kept
from tests.services import chromium

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


PATIENCE = 60_000
"""Milliseconds until a wait has failed: a busy machine takes ten times as long as an idle one."""
LEFT_BEHIND = re.compile("htmx:(afterRequest|sendError|sendAbort),")
"""What htmx writes on the console of a request that nobody answered."""


@pytest.fixture(scope="package")
def chrome() -> Iterator[Browser]:
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=FLAGS, headless=True)
        yield browser
        browser.close()
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
    else:
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = before


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a database of its own, with keys that other tests had too."""
    monkeypatch.setattr(kept, "MOST_PAGES", 0)
    forget_catalog()


@dataclass
class Visit:
    """A page in a browser, with everything it asked for and complained about."""

    page: Page
    home: str
    requests: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("request", self._note)
        self.page.on("pageerror", lambda error: self.told.append(str(error)))
        self.page.on("console", self._listen)

    def _note(self, request: Request) -> None:
        self.requests.append(request.url)

    def _listen(self, message: object) -> None:
        if message.type in ("error", "warning"):  # type: ignore[attr-defined]
            self.told.append(message.text)  # type: ignore[attr-defined]

    @property
    def complaints(self) -> list[str]:
        """Without those of a request that was under way when the page was left: a page that asks
        every few seconds may be left at any moment."""
        return [said for said in self.told if not LEFT_BEHIND.match(said)]

    def open(self, address: str, *, settled: bool = False) -> Page:
        """The page once it is loaded; with `settled`, once it has asked for nothing for a while."""
        self.page.goto(self.home + address)
        if settled:
            self.page.wait_for_load_state("networkidle")
        return self.page

    @property
    def strangers(self) -> list[str]:
        """Addresses outside this host that were asked for."""
        own = urlsplit(self.home).netloc
        return [url for url in self.requests if urlsplit(url).netloc != own]


@dataclass
class Visitor:
    """Opens visits with the traits a test needs, and closes them when it ends."""

    browser: Browser
    home: str
    opened: list[Page] = field(default_factory=list)

    def __call__(self, *, width: int = 1280, scheme: str = "light", scripts: bool = True) -> Visit:
        page = self.browser.new_page(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,  # type: ignore[arg-type]
            java_script_enabled=scripts,
            reduced_motion="reduce",
        )
        page.set_default_timeout(PATIENCE)
        self.opened.append(page)
        return Visit(page, self.home)


@pytest.fixture
def visit(chrome: Browser, live_server: LiveServer) -> Iterator[Visitor]:
    visitor = Visitor(chrome, live_server.url)
    yield visitor
    for page in visitor.opened:
        page.context.close()
