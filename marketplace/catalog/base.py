"""The vocabulary of catalog reading: what a provider says (Offer), what it means (Entry)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Protocol, runtime_checkable

from evaluator.findings import Finding
from evaluator.machine import Availability, LinkClass
from evaluator.prices import Quote


@dataclass(frozen=True, slots=True)
class Mark:
    """A raw row by its digest, "" for none. `hint` is what it told and took of its whole file."""

    digest: str = ""
    hint: str = ""


NO_MARK = Mark()


@dataclass(frozen=True, slots=True)
class Known:
    """Rows that were read before and need no reading: digest to hint.

    `salt` stands for all that a reading depends on besides the row; another one makes other
    digests, so nothing is known then.
    """

    salt: str = ""
    hints: Mapping[str, str] = field(default_factory=dict)


NOTHING_READ = Known()


@dataclass(frozen=True, slots=True)
class Entry:
    """One machine, or several alike, as a catalog describes it. None is unknown throughout.

    `mark` names the raw row that it was read from, where its reader can tell one by its bytes.
    `vram_bytes_per_gpu` is the published label size of the card times 10^9 where the figure names
    a known size, else the bytes stated; a memory budget uses the card's reported size instead.
    `gpu_count` counts every GPU of the rental, over all its `nodes`.
    `words` holds the provider's own text for each attribute, `page` the index of the page that it
    stands on.
    """

    sku: str
    region: str = ""
    zone: str = ""
    title: str = ""
    url: str = ""
    gpu_model: str | None = None
    gpu_count: int | None = None
    nodes: int = 1
    gpu_fraction: str = ""
    vram_bytes_per_gpu: int | None = None
    vram_reported_bytes: int | None = None
    form_factor: str | None = None
    link: LinkClass | None = None
    inter_node: str | None = None
    availability: Availability = Availability.UNKNOWN
    quantity: int | None = None
    vcpus: int | None = None
    ram_bytes: int | None = None
    local_storage_bytes: int | None = None
    quotes: tuple[Quote, ...] = ()
    findings: tuple[Finding, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    page: int = 0
    mark: Mark = NO_MARK


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A row that was read but is not believed. `reason` is the finding that says why."""

    sku: str
    reason: Finding
    region: str = ""
    zone: str = ""
    words: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """One fetched body. `url` is the address after redirects."""

    url: str
    body: bytes
    content_type: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """What a source's pages hold. `left_out` counts rows that are no GPU machines, by reason.

    `complete` says whether the pages were proved whole, so that an absent listing is really gone.
    `hold` is a reason to publish nothing of it until a person looked, `fingerprint` names the
    structure that was read, `fields` its names one by one. `skipped` are digests of rows that
    stand here as they were read before. `dated` is the newest day that the pages give themselves.
    """

    entries: tuple[Entry, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    complete: bool = True
    hold: Finding | None = None
    fingerprint: str = ""
    fields: tuple[tuple[str, ...], ...] = ()
    skipped: tuple[str, ...] = ()
    dated: date | None = None


class Adapter(Protocol):
    """Reads one kind of source. Pure: bytes to a batch, no network, no clock, no database."""

    def next_page(self, page: Page) -> str | None:
        """Address of the page that follows, as the page itself names it."""

    def read(self, pages: Sequence[Page]) -> Batch:
        """All that the pages hold, in reading order. Raises UnreadablePage when that is nothing."""


@runtime_checkable
class RowAdapter(Adapter, Protocol):
    """An adapter of long lists: it knows rows by their bytes, and gives what it read in parts."""

    def parts(self, pages: Sequence[Page], known: Known) -> Iterator[Batch]:
        """All that the pages hold. Of two rows of one identity, both stand in one part."""


class UnreadablePage(ValueError):
    """No body of this source can be read: the last good listings stay.

    `detail` says what was read and what was expected.
    """

    def __init__(self, finding: Finding, detail: str = "") -> None:
        super().__init__(f"{finding.sentence} {detail}".strip())
        self.finding, self.detail = finding, detail

    def __reduce__(self) -> tuple[type[UnreadablePage], tuple[Finding, str]]:
        """It comes out of the child process that read the page."""
        return UnreadablePage, (self.finding, self.detail)
