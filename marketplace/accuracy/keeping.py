"""Summaries in the database, and what the page reads from them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from evaluator.reports import evaluator_version
from marketplace.accuracy.summary import Summary
from marketplace.models import AccuracyReport


def keep(summary: Summary, now: datetime) -> AccuracyReport:
    """The summary becomes the one that the page shows for its kind."""
    stored = {**summary.as_dict(), "outcomes": [asdict(one) for one in summary.outcomes]}
    report, _ = AccuracyReport.objects.update_or_create(
        kind=summary.kind,
        defaults={
            "summary": stored,
            "kept_at": now,
            "evaluator_version": evaluator_version()[:40],
        },
    )
    return report
