"""A catalog whose every text tries to be more than text, and what a page must not make of it."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from bs4 import BeautifulSoup, Tag
from django.contrib.auth.models import User
from django.utils import timezone

from marketplace.frozen import SHOWN
from marketplace.models import (
    AccuracyReport,
    Evidence,
    Fact,
    GpuAlias,
    Host,
    Listing,
    Outbox,
    Provider,
    RentedMachine,
    SavedShortlist,
    SyncRun,
    Workload,
)
from tests.pages.catalog import make_listing, make_run, make_source, set_aside
from tests.pages.everything import FIGURES, OUTCOME

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
    make_listing(source, "unnamed", title=text(300), gpu_model=None, words=words)
    for at, region in enumerate((text(100), f"{text(100)}2")):
        small = {"gpu_count": 1, "link": None, "region": region, "title": text(300)}
        cards = {"gpu_model": "L4", "vram_bytes_per_gpu": 24 * 10**9, "amount": Decimal("0.7")}
        make_listing(source, f"small-{at}", zone=text(120), words=words, **small, **cards)
    evil.prices.update(words=text(300), term=text(60))
    set_aside(source.runs.get(), text(200), words={text(60): LONG}, region=text(120))
    made = make_run(source, outcome="failed", reason=text(500))
    set_aside(made, text(200), words={text(60): LONG}, region=text(120))
    source.snapshots.update(content_type=text(200), url=f"https://evil.example/{text(200)}")
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
    evil.corrections = {
        "vcpus": {"value": 8, "source": text(200), "why": LONG, "until": text(40)},
        "price_per_hour": {"value": "18.00 USD", "source": text(200), "why": LONG},
    }
    evil.save()
    _look_at(evil, owner)
    _ask(owner)
    _keep_house()
    return evil


def _look_at(evil: Listing, owner: User) -> None:
    """Evidence of the owner's own, all that it names in a stranger's words."""
    look = Evidence.objects.create(
        listing=evil,
        machine=RentedMachine.objects.create(listing=evil, opened_by=owner),
        kind=text(200),
        cleaned_text=LONG,
        ran_by="renter",
        uploaded_by=owner,
        state="accepted",
        driver=text(60),
        image=text(200),
    )
    look.reviews.create(before="pending", after="accepted", reason=text(500), reviewed_by=owner)
    look.figures.create(workload="serve-llama-8b", plan="one", metric="time per token", value=0.01)
    for name, value in (("gpu_model", "A100"), ("vcpus", 8)):
        Fact.objects.create(
            listing=evil,
            evidence=look,
            name=name,
            value=value,
            grade=2,
            source=text(300),
            ran_by="renter",
            as_of=timezone.now(),
            caveat=text(300),
        )


def _ask(owner: User) -> None:
    """A job of the owner's own, which failed."""
    document = {"task": "serve", "name": text(200), "model": {"preset": "llama-3.1-8b"}}
    job = Workload.objects.create(
        slug="evil", name=text(200), owner=owner, document=document, fingerprint="0"
    )
    job.evaluations.create(evaluator_version=text(40), state="failed", error=text(500))


def _keep_house() -> None:
    """What curators and machines note."""
    GpuAlias.objects.create(spelling=text(80), model=text(80), note=text(300))
    Host.objects.create(name=text(260), reason=text(300), rest_until=timezone.now())
    Outbox.objects.create(task=text(80), last_error=text(300))
    SyncRun.objects.update(drift={"new": [text(200)], "gone": [LONG]}, worker=text(80))
    outcome = {**OUTCOME, "id": LONG, "kind": text(60), "within": False, "why": LONG}
    AccuracyReport.objects.create(
        kind="memory",
        evaluator_version=text(40),
        kept_at=timezone.now(),
        summary={
            **FIGURES,
            "not_judged": {},
            "by_kind": {text(60): FIGURES},
            "outcomes": [{**outcome, "source": LONG}],
        },
    )


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
