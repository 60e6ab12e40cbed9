"""The day that a source's pages give themselves, as its runs noted it.

A page that was fetched today may be a list of last year: its listings stay, and this is said.
"""

from __future__ import annotations

from datetime import date
from typing import Any

from django.db.models import QuerySet

from evaluator.findings import Finding
from marketplace.catalog.dates import judge_age
from marketplace.models import SyncRun
from marketplace.models.catalog import Outcome
from marketplace.shelf import shelf

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


def old_news(source_id: int, today: date) -> list[Finding]:
    """The finding that the pages of a source date themselves long ago; empty where they do not."""
    days = shelf().days  # made anew after every run that ends
    if source_id not in days:
        days[source_id] = last_day(source_id)
    aged = judge_age(days[source_id], today)
    return [aged] if aged else []


def _days(source_id: int) -> QuerySet[SyncRun, str | None]:
    runs = SyncRun.objects.filter(source=source_id, outcome__in=READ).order_by("-fence")
    return runs.values_list(f"counts__{NOTED_AS}", flat=True)


def _day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text else None
