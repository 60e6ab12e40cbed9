"""HTML catalog pages of any layout, read without knowing their class names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from evaluator.findings import Code, Finding, finding
from marketplace.catalog.base import Batch, Entry, Page, Quarantined, UnreadablePage
from marketplace.catalog.document import read_document
from marketplace.catalog.matching import group_records, told_apart
from marketplace.catalog.normalise import LeftOut, Outcome, normalise
from marketplace.catalog.pages import PageReading, read_page
from marketplace.catalog.pagination import loops_back, next_address
from marketplace.catalog.profile import NO_PROFILE, Profile
from marketplace.catalog.profiled import fingerprint_of, hold_of, names_of
from marketplace.catalog.reading.names import Aliases

_NO_PAGES = (b"%PDF", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"PK\x03\x04", b"{", b"[", b"\x1f\x8b")
"""PDF, pictures, archives and JSON that call themselves HTML."""

Believed = Entry | Quarantined


@dataclass(frozen=True, slots=True)
class PageAdapter:
    """Reads catalog pages. Holds no state: the same bytes give the same batch.

    `profile` and `aliases` are a curator's: where the rows are, and what odd GPU names mean.
    """

    profile: Profile = NO_PROFILE
    aliases: Aliases = field(default_factory=dict)

    def next_page(self, page: Page) -> str | None:
        """Address of rel=next on the page's own host; the caller stops where it was before."""
        return next_address(read_document(page.body, page.content_type), page)

    def read(self, pages: Sequence[Page]) -> Batch:
        """All listings of the pages. Raises UnreadablePage when no page holds any."""
        readings = [_read(page, number, self.profile) for number, page in enumerate(pages)]
        if not any(reading.holds_something for reading in readings):
            raise UnreadablePage(_why_nothing(readings), _seen_instead(readings))
        outcomes = [
            one
            for number, reading in enumerate(readings)
            for one in _outcomes(reading, number, self.aliases)
        ]
        left_out = _left_out(readings, outcomes)
        believed, repeated = without_repetitions(
            [one for one in outcomes if not isinstance(one, LeftOut)]
        )
        if not believed:
            raise UnreadablePage(finding(Code.LAYOUT_CHANGED), "Rows were read, none names a GPU.")
        following = readings[-1].following if readings else None
        looped = loops_back(pages, following)
        miscount = list(_miscount(readings, believed, left_out))
        own = [one for reading in readings for one in reading.findings]
        loop = [finding(Code.PAGINATION_LOOP, url=following)] if looped else []
        whole = all(reading.whole for reading in readings) and not any(map(_loses_rows, own))
        entries = tuple(one for one in believed if isinstance(one, Entry))
        seen_records = [one for reading in readings for one in reading.records]
        seen = fingerprint_of(seen_records)
        return Batch(
            entries=entries,
            quarantined=tuple(one for one in believed if isinstance(one, Quarantined)),
            left_out=left_out,
            findings=tuple(dict.fromkeys([*own, *repeated, *loop, *miscount])),
            complete=whole and not miscount and (following is None or looped),
            hold=hold_of(self.profile, entries, len(believed), seen),
            fingerprint=seen,
            fields=names_of(seen_records),
            dated=_newest(readings),
        )

    def dated(self, pages: Sequence[Page]) -> date | None:
        """The newest day that the pages give themselves."""
        return _newest([_read(page, number) for number, page in enumerate(pages)])


def _newest(readings: Sequence[PageReading]) -> date | None:
    return max((reading.dated for reading in readings if reading.dated), default=None)


def _read(page: Page, number: int, profile: Profile = NO_PROFILE) -> PageReading:
    if page.body.lstrip()[:8].startswith(_NO_PAGES):
        return PageReading(whole=True)
    return read_page(page, number, profile)


def _why_nothing(readings: Sequence[PageReading]) -> Finding:
    if any(reading.challenged for reading in readings):
        return finding(Code.CHALLENGE_PAGE)
    if any(not reading.whole for reading in readings):
        return finding(Code.PAGE_TRUNCATED)
    return finding(Code.LAYOUT_CHANGED)


def _seen_instead(readings: Sequence[PageReading]) -> str:
    return f"Read {len(readings)} page(s), expected cards, table rows or product data with GPUs."


def _outcomes(reading: PageReading, number: int, aliases: Aliases) -> Iterator[Outcome]:
    groups = group_records(reading)
    firsts = told_apart([group[0] for group in groups])
    for first, group in zip(firsts, groups, strict=True):
        outcome = normalise([first, *group[1:]], reading.context, aliases)
        yield replace(outcome, page=number) if isinstance(outcome, Entry) else outcome
    if reading.torn:
        # Half a row may lack digits of its price: it is kept as doubtful, never published.
        yield Quarantined(reading.torn.sku, finding(Code.PAGE_TRUNCATED))


def _left_out(readings: Sequence[PageReading], outcomes: Iterable[Outcome]) -> dict[str, int]:
    counts = Counter(one.reason for one in outcomes if isinstance(one, LeftOut))
    for reading in readings:
        counts.update(reading.left_out)
    return dict(counts)


def _loses_rows(found: Finding) -> bool:
    """A block that cannot be parsed may have held listings."""
    return found.code is Code.MALFORMED_STRUCTURED_DATA


def _key(one: Believed) -> tuple[str, str, str]:
    return (one.sku, one.region, one.zone)


def without_repetitions(found: Sequence[Believed]) -> tuple[list[Believed], list[Finding]]:
    """The same row twice is one listing. One id with two contents is believed neither time."""
    by_key: dict[tuple[str, str, str], list[Believed]] = {}
    for one in found:
        by_key.setdefault(_key(one), []).append(one)
    kept: list[Believed] = []
    findings: list[Finding] = []
    for key, rivals in by_key.items():
        contents = {_content(one) for one in rivals}
        if len(contents) > 1:
            kept.append(_doubted(rivals))
        else:
            kept.append(rivals[0])
        if len(rivals) > 1:
            findings.append(finding(Code.DUPLICATE_LISTING, key="/".join(filter(None, key))))
    return kept, findings


def _content(one: Believed) -> str:
    """What makes two rows the same offer: all but the words and the address."""
    if isinstance(one, Quarantined):
        return repr(one.reason)
    quotes = tuple(replace(quote, words="") for quote in one.quotes)
    return repr(replace(one, words={}, url="", title="", findings=(), quotes=quotes, page=0))


def _doubted(rivals: Sequence[Believed]) -> Quarantined:
    first = rivals[0]
    reason = finding(Code.DUPLICATE_KEY, key="/".join(filter(None, _key(first))), times=len(rivals))
    return Quarantined(first.sku, reason, first.region, first.zone, first.words)


def _miscount(
    readings: Sequence[PageReading], believed: Sequence[Believed], left_out: dict[str, int]
) -> Iterator[Finding]:
    """The page's own number against rows and ids found, rows without a GPU counted or not."""
    stated = next((one.stated_count for one in readings if one.stated_count is not None), None)
    found = {len(believed), len({one.sku for one in believed})}
    others = left_out.get("no GPU named", 0)
    if stated is not None and stated not in found | {number + others for number in found}:
        yield finding(Code.COUNT_MISMATCH, stated=stated, found=len(believed))
