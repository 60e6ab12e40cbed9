"""What a profile would give on the pages that are stored. No network, nothing written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marketplace.catalog.base import Batch, Page, UnreadablePage
from marketplace.catalog.failures import Refused
from marketplace.catalog.profile import InvalidProfile
from marketplace.catalog.proposing import propose_profile
from marketplace.catalog.registry import adapter_for
from marketplace.models import Source, SyncRun
from marketplace.readers import aliases
from marketplace.sync.reading import ReaderBroke, ReaderDied, apart, read_apart
from marketplace.sync.visits import visit_stored


@dataclass(frozen=True, slots=True)
class Preview:
    """What was read, or the `problems` that nothing was. `pages` counts the stored bodies."""

    pages: int = 0
    batch: Batch | None = None
    problems: tuple[str, ...] = ()


def preview(source: Source, profile: Mapping[str, Any]) -> Preview:
    """The newest stored pages read with a profile that is not saved yet."""
    pages = stored_pages(source)
    if not pages:
        return Preview(problems=("No page of this source is stored yet. Sync it once.",))
    try:
        reader = adapter_for(source.adapter, profile, aliases())
        return Preview(len(pages), read_apart(reader, pages).batch)
    except InvalidProfile as invalid:
        return Preview(len(pages), problems=tuple(invalid.messages))
    except (UnreadablePage, ReaderDied, ReaderBroke, Refused) as nothing:
        return Preview(len(pages), problems=(str(nothing),))


def proposal(source: Source) -> tuple[dict[str, Any], str]:
    """A profile that the stored pages suggest, or ({}, why there is none)."""
    pages = stored_pages(source)
    if not pages:
        return {}, "No page of this source is stored yet. Sync it once."
    try:
        return apart(lambda: propose_profile(pages)).as_json(), ""
    except (UnreadablePage, ReaderDied, ReaderBroke, Refused) as nothing:
        return {}, str(nothing)


def stored_pages(source: Source) -> Sequence[Page]:
    """Of the newest visit that kept any, whether it was published or held."""
    visited = SyncRun.objects.filter(source=source.pk, snapshots__isnull=False)
    last = visited.order_by("-fence").first()
    return visit_stored(last).pages if last else ()
