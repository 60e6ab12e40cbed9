"""What a source offers until now: one slim line a listing, and the whole rows when asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.db.models import (
    BooleanField,
    Exists,
    ExpressionWrapper,
    OuterRef,
    Q,
    prefetch_related_objects,
)

from marketplace.catalog.base import Known
from marketplace.listings import own_facts
from marketplace.models import Fact, Listing, Source
from marketplace.sync.rows import IDENTITY, Key, key_of_row


class Line(NamedTuple):
    """`plain`: no person's word and no fact of its own changes what its catalog says."""

    pk: int
    sku: str
    region: str
    zone: str
    vram_key: int
    current: bool
    priced: bool
    plain: bool
    digest: str
    hint: str

    @property
    def key(self) -> Key:
        return (self.sku, self.region, self.zone, self.vram_key)


class Standing:
    """The listings of one source by identity; of several generations the newest."""

    def __init__(self, source: Source) -> None:
        lines = map(Line._make, _lines(source))
        self.lines: dict[Key, Line] = {line.key: line for line in lines}
        self._by_digest = {
            line.digest: line for line in self.lines.values() if line.digest and _may_skip(line)
        }

    def known(self, salt: str) -> Known:
        """Rows that need no reading, as long as `salt` is what they were read with."""
        return Known(salt, {digest: line.hint for digest, line in self._by_digest.items()})

    def skipped(self, digests: Iterable[str]) -> list[Line]:
        return [self._by_digest[digest] for digest in digests]

    def is_plain(self, key: Key) -> bool:
        """Whether what stands under it, if anything does, is the catalog's word alone."""
        return key not in self.lines or self.lines[key].plain

    def rows(self, keys: Iterable[Key]) -> dict[Key, Listing]:
        """The whole rows of those that are there. Two queries at most."""
        wanted = [self.lines[key].pk for key in keys if key in self.lines]
        found = {key_of_row(row): row for row in Listing.objects.filter(pk__in=wanted).order_by()}
        others = [row for key, row in found.items() if not self.is_plain(key)]
        prefetch_related_objects(others, own_facts())
        return found


def _may_skip(line: Line) -> bool:
    """A lock ends on its day and a fact expires, so rows with either are worked out each time."""
    return line.current and line.plain


def _lines(source: Source) -> Iterable[tuple[object, ...]]:
    facts = Fact.objects.filter(listing=OuterRef("pk"), evidence=None)
    rows = source.listings.order_by("generation").annotate(
        current_=_truth(Q(gone_at=None)),
        priced_=_truth(Q(machine_hour_amount__isnull=False)),
        plain_=_truth(Q(corrections={}) & ~Exists(facts)),
    )
    names = ("pk", *IDENTITY, "current_", "priced_", "plain_", "row_digest", "row_hint")
    return rows.values_list(*names).iterator(chunk_size=5000)


def _truth(condition: Any) -> Any:
    return ExpressionWrapper(condition, output_field=BooleanField())
