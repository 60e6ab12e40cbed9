"""A catalog whose every text tries to be more than text, and what a page must not make of it."""

from __future__ import annotations

from collections.abc import Iterator

from bs4 import BeautifulSoup, Tag
from django.contrib.auth.models import User

from marketplace.frozen import SHOWN
from marketplace.models import Listing, Provider, SavedShortlist
from tests.pages.catalog import make_listing, make_run, make_source, set_aside

TURNED = "\u202e"
MARKUP = (
    '"><img src=x onerror="window.hit=1" class="planted"><script class="planted">window.hit=1'
    '</script><b class="planted" hx-get="/status?hit" hx-trigger="load">x</b>'
    '<a class="planted" href="javascript:window.hit=1">y</a>{{ 7 }}{% now "Y" %}'
    f"<p class='planted' hx-on:load='window.hit=1'>{TURNED}"
)
LONG = (MARKUP + "ha" * 5000)[:10_000]


def text(length: int) -> str:
    return LONG[:length]


def make_hostile_catalog(owner: User) -> Listing:
    """Every column that a stranger's page may fill is filled to its end."""
    source = make_source("evil")
    Provider.objects.filter(pk=source.provider_id).update(name=text(120), notes=LONG)
    source.refresh_from_db()
    words = {"link": LONG, "gpu": LONG, text(60): LONG, "vram": LONG}
    evil = make_listing(
        source,
        text(200),
        title=text(300),
        region=text(120),
        zone=text(120),
        url="javascript:window.hit=1",
        words=words,
    )
    make_listing(source, "other", title=text(300), gpu_model=text(80), words=words)
    make_listing(source, "plain", title="8x H100 plain")
    evil.prices.update(words=text(300), term=text(60))
    set_aside(source.runs.get(), text(200), words={text(60): LONG}, region=text(120))
    make_run(source, outcome="failed", reason=text(500))
    SavedShortlist.objects.create(
        owner=owner,
        name=text(200),
        document={"task": "serve", "name": text(200), "model": {"preset": "llama-3.1-8b"}},
        sentence=LONG,
        rows=[
            dict.fromkeys((*SHOWN, "title", "provider", "place", "machine"), LONG) | {"key": "1"}
        ],
        evaluator_version="1",
        token="a" * 32,
    )
    return evil


def complaints(markup: str) -> list[str]:
    """What of the planted texts became more than text."""
    turned = ["a character that turns the text around it"] if TURNED in markup else []
    return [*turned, *_complaints(BeautifulSoup(markup, "lxml"))]


def _complaints(soup: BeautifulSoup) -> Iterator[str]:
    for tag in soup.find_all(True):
        yield from _of_tag(tag)


def _of_tag(tag: Tag) -> Iterator[str]:
    if "planted" in (tag.get("class") or []):
        yield f"markup of the catalog: {str(tag)[:80]}"
    for name, value in tag.attrs.items():
        worth = value if isinstance(value, str) else " ".join(value)
        if name.startswith(("on", "hx-")) and "hit" in worth:
            yield f"an attribute that acts: {name}={worth[:60]}"
        if name in ("href", "src", "action") and worth.strip().lower().startswith("javascript:"):
            yield f"an address that acts: {worth[:60]}"
