"""One page as records and as what the page says of itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from urllib.parse import urljoin

from evaluator.findings import Code, Finding, finding
from marketplace.catalog.base import Page
from marketplace.catalog.cards import find_cards
from marketplace.catalog.cells import read_card
from marketplace.catalog.dates import read_page_date
from marketplace.catalog.document import Document, Element, read_document
from marketplace.catalog.identity import is_safe
from marketplace.catalog.lines import Line, read_lines
from marketplace.catalog.offers import NO_CONTEXT, PriceContext, joined, read_context
from marketplace.catalog.pagination import next_address
from marketplace.catalog.profile import NO_PROFILE, Profile
from marketplace.catalog.profiled import read_rows, relabelled
from marketplace.catalog.records import Record
from marketplace.catalog.state import read_state
from marketplace.catalog.structured import read_items, read_structured
from marketplace.catalog.tables import read_tables

_COUNT = re.compile(
    r"(?:showing\s|all\s|found\s)?(?:\d{1,6}\s?(?:[-–]|to)\s?\d{1,6}\s(?:of|von|sur|from)\s|\d{1,6}\s(?:of|von|/)\s)?"
    r"(?P<count>\d{1,6})\s(?:[a-z]{2,12}\s){0,2}?(?:servers?|machines?|instances?|results?"
    r"|listings?|offers?|configurations?|products?|items?|nodes|plans?|systems?|entries|treffer"
    r"|angebote|résultats)(?:\s(?:found|available|listed|in\stotal|total|match\w{0,6}))?\W{0,2}",
    re.I,
)
_CHALLENGE = re.compile(
    r"just a moment|checking your browser|verify(?:ing)? (?:that )?you are (?:a )?human|captcha"
    r"|cf-chl|challenge-platform|attention required|access denied|are you a robot|unusual traffic"
    r"|enable javascript and cookies|ddos protection|security check|bot detection"
    r"|request unsuccessful",
    re.I,
)
_NOTE_LENGTH = 200


@dataclass(frozen=True, slots=True)
class PageReading:
    """What one body holds. `torn` is the row in which it breaks off.

    `stated_count` is the page's own number of listings.
    """

    visible: tuple[Record, ...] = ()
    torn: Record | None = None
    structured: tuple[Record, ...] = ()
    state: tuple[Record, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    context: PriceContext = NO_CONTEXT
    stated_count: int | None = None
    following: str | None = None
    whole: bool = True
    challenged: bool = False
    dated: date | None = None

    @property
    def records(self) -> tuple[Record, ...]:
        """Those that a visitor sees, else those for machines only."""
        return self.visible or self.structured or self.state

    @property
    def holds_something(self) -> bool:
        return bool(self.visible or self.structured or self.state)


def read_page(page: Page, number: int = 0, profile: Profile = NO_PROFILE) -> PageReading:
    """All records of one body, where they stand, and the page's words about itself."""
    document = read_document(page.body, page.content_type)
    reading = (
        _profiled(document, page, number, profile)
        if profile.rows or profile.path
        else _unguided(document, page, number)
    )
    return _in_terms_of(profile, reading)


def _in_terms_of(profile: Profile, reading: PageReading) -> PageReading:
    """What the page says of its prices outweighs the profile, which speaks where it is silent."""
    return replace(
        reading,
        visible=tuple(relabelled(reading.visible, profile)),
        structured=tuple(relabelled(reading.structured, profile)),
        state=tuple(relabelled(reading.state, profile)),
        context=joined(reading.context, profile.context),
    )


def _profiled(document: Document, page: Page, number: int, profile: Profile) -> PageReading:
    """Only the rows that the profile names. None of them means that the layout is another one."""
    records = tuple(_placed(read_rows(document, profile), page, number))
    torn = records[-1] if records and document.torn else None
    return PageReading(
        visible=records[:-1] if torn else records,
        torn=torn,
        findings=tuple(_page_findings(document)),
        following=next_address(document, page),
        whole=document.whole,
        challenged=bool(_CHALLENGE.search(document.text_start)),
        dated=read_page_date(document.dates, ()),
    )


def _unguided(document: Document, page: Page, number: int) -> PageReading:
    tables = list(read_tables(document.root))
    _take_out([table.element for table in tables])
    lines = read_lines([document.root])
    cards = find_cards(lines)
    roots = frozenset(root for card in cards for root in card.roots)
    visible = [record for table in tables for record in table.records]
    visible += [read_card(card, roots) for card in cards]
    outside = list(_outside(lines, roots))
    structured, broken = read_structured(document.scripts)
    state = read_state(document.scripts)
    # Microdata marks up what is visible: like a script's data it adds to that and lists nothing.
    items = [] if structured or state.records else read_items(document.items)
    placed = tuple(_placed(visible, page, number))
    torn = placed[-1] if placed and document.torn else None
    return PageReading(
        visible=placed[:-1] if torn else placed,
        torn=torn,
        structured=tuple(_placed(structured, page, number)),
        state=tuple(_placed([*state.records, *items], page, number)),
        left_out=state.left_out,
        findings=(*_page_findings(document), *broken, *state.findings),
        context=read_context(line.text for line in outside if len(line.text) <= _NOTE_LENGTH),
        stated_count=_stated_count(outside),
        following=next_address(document, page),
        whole=document.whole,
        challenged=bool(_CHALLENGE.search(document.text_start)),
        dated=read_page_date(document.dates, (line.text for line in outside)),
    )


def _take_out(elements: list[Element]) -> None:
    for element in elements:
        parent = element.getparent()
        if parent is not None:
            parent.remove(element)


def _outside(lines: list[Line], roots: frozenset[Element]) -> Iterator[Line]:
    """Lines that belong to no card."""
    for line in lines:
        chain = (line.element, *line.element.iterancestors())
        if not any(element in roots for element in chain):
            yield line


def _placed(records: list[Record], page: Page, number: int) -> Iterator[Record]:
    """With absolute links, resolved against the page itself: a `<base>` may be another's."""
    for record in records:
        url = urljoin(page.url, record.url) if record.url and is_safe(record.url) else ""
        yield replace(record, url=url[:1000], page=number)


def _page_findings(document: Document) -> Iterator[Finding]:
    if document.replaced:
        yield finding(Code.ENCODING_REPLACED, count=document.replaced)
    if document.hid_text:
        yield finding(Code.HIDDEN_TEXT_IGNORED)
    if not document.whole:
        yield finding(Code.PAGE_TRUNCATED)


def _stated_count(lines: list[Line]) -> int | None:
    counts = [int(match["count"]) for line in lines if (match := _COUNT.fullmatch(line.text[:80]))]
    return counts[0] if counts else None
