"""The day that a source's pages give themselves, as its runs noted it.

A page that was fetched today may be a list of last year: its listings stay, and this is said.
"""

from __future__ import annotations

from datetime import date
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from evaluator.findings import Finding
from marketplace.catalog.dates import judge_age
from marketplace.models import SyncRun
from marketplace.models.catalog import Outcome

NOTED_AS = "dated"
"""The key in a run's counts."""
READ = (Outcome.PUBLISHED, Outcome.UNCHANGED)


def noted(dated: date | None) -> dict[str, str]:
    """The day as a run keeps it; nothing where the pages name none."""
    return {NOTED_AS: dated.isoformat()} if dated else {}


def day_of(counts: dict[str, Any]) -> date | None:
    """The day out of a run's counts."""
    return _day(counts.get(NOTED_AS))


def last_day(source_id: int) -> date | None:
    """The day of the pages whose listings stand now."""
    return _day(_days(source_id).first())


def day_of_pages() -> Subquery:
    """The same for each listing of a query, for `old_news`."""
    return Subquery(_days(OuterRef("source_id"))[:1])


def old_news(noted_day: str | None, today: date) -> list[Finding]:
    """The finding that the pages of a listing date themselves long ago; empty where they do not."""
    aged = judge_age(_day(noted_day), today)
    return [aged] if aged else []


def _days(source: int | OuterRef) -> QuerySet[SyncRun, str | None]:
    runs = SyncRun.objects.filter(source=source, outcome__in=READ).order_by("-fence")
    return runs.values_list(f"counts__{NOTED_AS}", flat=True)


def _day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text else None
