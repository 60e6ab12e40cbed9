"""Getting the pages of a source, from the network, from files or from what was stored."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from time import monotonic
from typing import Protocol
from urllib.parse import urljoin, urlsplit

from django.conf import settings

from marketplace.catalog.base import Adapter, Page
from marketplace.catalog.failures import Damaged, FetchError, TooSlow
from marketplace.catalog.fetch import NOTHING_KNOWN, Fetched, Permit, Validators
from marketplace.catalog.retries import fetch_again
from marketplace.catalog.robots import heed_robots
from marketplace.models import Snapshot, Source, SyncRun
from marketplace.models.catalog import Outcome
from marketplace.readers import asking_of
from marketplace.sync import turns
from marketplace.sync.reading import ReaderBroke, ReaderDied, apart

PAGE_CAP = 50
"""More pages than any catalog we know; a list that goes on and on is never taken for whole."""

VISIT_SECONDS = 180
"""For all pages of one source. With the slowest last page it ends before a task is stopped."""


@dataclass(frozen=True, slots=True)
class Visit:
    """The pages of a source in order. `changed` is False when all are those published last.

    `accepted` is a person's word that what looks wrong is right; `older` says why the site seems
    to have sent a page of before.
    """

    pages: tuple[Page, ...]
    seen_at: datetime
    headers: tuple[dict[str, str], ...]
    complete: bool = True
    changed: bool = True
    asked_site: bool = False
    accepted: bool = False
    older: str = ""


def permit_for(source: Source) -> Permit:
    """Only the source's own host; a bundled one instead its local server, in embedded mode only."""
    if source.bundled:
        return Permit(loopback=settings.SAMPLE_SERVER_ADDRESS if settings.EMBEDDED else None)
    return Permit(frozenset({urlsplit(source.url).hostname or ""}))


def visit_site(source: Source, adapter: Adapter, now: datetime) -> Visit:
    """Fetch every page, as the pages themselves name the next. Raises FetchError."""
    host = urlsplit(source.url).netloc
    turns.check_rest(host, now)
    try:
        visit = _visit(source, adapter, now)
    except FetchError as failure:
        turns.note_failure(host, failure, now)
        raise
    turns.note_success(host)
    return visit


def _visit(source: Source, adapter: Adapter, now: datetime) -> Visit:
    permit, ask = permit_for(source), _asker(source)
    heed_robots(source.url, permit, ask)
    permit = replace(permit, asking=asking_of(source))
    known = _published_last(source)
    pages: dict[str, Page] = {}
    answers: list[Fetched] = []
    url: str | None = source.url
    ends = monotonic() + VISIT_SECONDS
    while url and url not in pages and len(pages) < PAGE_CAP:
        if monotonic() > ends:
            raise TooSlow(f"{len(pages)} pages took longer than {VISIT_SECONDS} s")
        answer = _whole(ask(url, permit, _validators(known.get(url))))
        answers.append(answer)
        pages[url] = _page(answer, known.get(url))
        url = _next_address(adapter, pages[url])
    return Visit(
        pages=tuple(pages.values()),
        seen_at=now,
        headers=tuple(dict(answer.headers) for answer in answers),
        complete=url is None or url in pages,
        changed=any(answer.status != 304 for answer in answers),
        asked_site=True,
        older=_older(pages, answers, known),
    )


class Ask(Protocol):
    def __call__(self, url: str, permit: Permit, validators: Validators = ...) -> Fetched: ...


def _asker(source: Source) -> Ask:
    """A fetch that waits for its turn at the site, retries included."""
    host, pause = urlsplit(source.url).netloc, pause_for(source)

    def ask(url: str, permit: Permit, validators: Validators = NOTHING_KNOWN) -> Fetched:
        with turns.turn(host, pause):
            return fetch_again(url, permit, validators)

    return ask


def pause_for(source: Source) -> float:
    """Seconds between two requests to the site; our own sample server needs none."""
    return 0.0 if source.bundled else float(settings.HOST_PAUSE_SECONDS)


def _older(
    pages: Mapping[str, Page], answers: Sequence[Fetched], known: Mapping[str, Snapshot]
) -> str:
    """A page that dates itself before the one that was published came out of some old cache."""
    for url, answer in zip(pages, answers, strict=True):
        before, now = (
            http_date(headers.get("last-modified", ""))
            for headers in (known[url].headers if url in known else {}, answer.headers)
        )
        # A date from the future was a wrong clock: nothing is older than it for ever.
        if before and before > known[url].fetched_at:
            continue
        if answer.status == 200 and before and now and now < before:
            return f"The site sent a page of {now:%Y-%m-%d %H:%M}, older than the published one."
    return ""


def http_date(text: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return at.replace(tzinfo=at.tzinfo or UTC)


def _published_last(source: Source) -> dict[str, Snapshot]:
    """Bodies of the last good run by address. Only these may answer for a page that says 304:
    a body that was held back would pass for published."""
    good = source.runs.filter(outcome__in=[Outcome.PUBLISHED, Outcome.UNCHANGED])
    run = good.order_by("-fence").first()
    return {snapshot.url: snapshot for snapshot in run.snapshots.all()} if run else {}


def _validators(known: Snapshot | None) -> Validators:
    headers = known.headers if known else {}
    return Validators(headers.get("etag", ""), headers.get("last-modified", ""))


def _page(answer: Fetched, known: Snapshot | None) -> Page:
    if answer.status == 304 and known:
        return Page(known.url, bytes(known.body), known.content_type)
    return Page(answer.url, answer.body, answer.headers.get("content-type", ""))


def _next_address(adapter: Adapter, page: Page) -> str | None:
    """None at the end of the list, "" where a page leaves that open.

    A page that cannot be read ends the visit and not the run: its bytes are still to be kept.
    """
    try:
        following = apart(lambda: adapter.next_page(page))
        return urljoin(page.url, following) if following else None
    except (ValueError, ReaderBroke, ReaderDied):
        return ""


def _whole(answer: Fetched) -> Fetched:
    """A body that nobody delimited is whole only if its format shows its end. Raises Damaged."""
    ends = (b"</html>", b"}", b"]")
    if answer.status == 304 or answer.delimited or answer.body.rstrip().lower().endswith(ends):
        return answer
    raise Damaged("the server did not say where the body ends, and the body does not show it")


def visit_file(source: Source, path: Path, now: datetime) -> Visit:
    """The page in a file; NAME.p2.EXT, NAME.p3.EXT … beside it are the pages that follow.

    Its sighting is as old as the file's last change. Raises OSError.
    """
    files = [path, *_following(path)]
    changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return Visit(
        pages=tuple(_page_of_file(source, path, each) for each in files),
        seen_at=min(changed, now),
        headers=({},) * len(files),
    )


def _following(path: Path) -> Iterator[Path]:
    for number in range(2, PAGE_CAP + 1):
        page = path.with_name(f"{path.stem}.p{number}{path.suffix}")
        if not page.is_file():
            return
        yield page


def _page_of_file(source: Source, first: Path, path: Path) -> Page:
    base = source.url or f"file:{first.name}"
    url = base if path == first else urljoin(base, path.name)
    kind = mimetypes.guess_type(path.name)[0] or ""
    return Page(url, path.read_bytes(), kind)


def visit_stored(run: SyncRun) -> Visit:
    """The bodies that an earlier run kept, seen when it saw them. No network."""
    kept = SyncRun.snapshots.through.objects.filter(syncrun=run).order_by("pk")
    snapshots = [row.snapshot for row in kept.select_related("snapshot")]
    return Visit(
        pages=tuple(Page(each.url, bytes(each.body), each.content_type) for each in snapshots),
        seen_at=run.started_at,
        headers=tuple(each.headers for each in snapshots),
        complete=bool(run.counts.get("complete", True)),
        older=run.counts.get("older", ""),
    )


def keep(run: SyncRun, visit: Visit) -> tuple[Snapshot, ...]:
    """Store the bodies before anything is read from them; equal bytes reuse their row."""
    snapshots = tuple(
        _snapshot(run.source_id, page, headers, visit.seen_at)
        for page, headers in zip(visit.pages, visit.headers, strict=True)
    )
    # Row by row, since `add` would lose the order of the pages.
    through = SyncRun.snapshots.through
    through.objects.bulk_create(
        through(syncrun_id=run.pk, snapshot_id=key)
        for key in dict.fromkeys(snapshot.pk for snapshot in snapshots)
    )
    run.counts = {"pages": len(snapshots), "complete": visit.complete}
    if visit.older:
        run.counts["older"] = visit.older
    run.save(update_fields=["counts"])
    return snapshots


def keep_instead(run: SyncRun, visit: Visit) -> tuple[Snapshot, ...]:
    """The bodies of a second look are those of the run; the first ones stay stored."""
    run.snapshots.clear()
    return keep(run, visit)


def _snapshot(source_id: int, page: Page, headers: dict[str, str], seen_at: datetime) -> Snapshot:
    snapshot, _ = Snapshot.objects.get_or_create(
        source_id=source_id,
        url=page.url[:1000],
        sha256=hashlib.sha256(page.body).hexdigest(),
        defaults={
            "body": page.body,
            "byte_count": len(page.body),
            "content_type": page.content_type[:200],
            "headers": headers,
            "fetched_at": seen_at,
        },
    )
    return snapshot
