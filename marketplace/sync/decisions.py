"""A curator's word on single rows that were set aside: it holds while the row says the same."""

from __future__ import annotations

import json
from typing import Any

from evaluator.findings import Code, Finding
from marketplace.models import Listing, QuarantinedRow, Source
from marketplace.models.catalog import Decision
from marketplace.sync.rows import clean, cleaned_finding

ACCEPTABLE = frozenset({Code.PRICE_JUMPED, Code.PRICE_TERMS_CHANGED, Code.PRICE_OUTLYING})
"""Rows that were read and only not believed. In others there is no value that could be believed."""

Subject = tuple[str, str, str, str]


class Decisions:
    """What curators decided on the rows of one source, the newest word first. One query."""

    def __init__(self, source: Source) -> None:
        rows = QuarantinedRow.objects.filter(run__source=source).exclude(decision="")
        self._words = {_subject(row): row for row in rows.order_by("decided_at", "pk")}

    def admit(self, listing: Listing, found: Finding) -> bool:
        """Whether a person said that this very doubt about this row is none."""
        if not self._words:
            return False
        subject = (listing.sku, listing.region, listing.zone, _text(cleaned_finding(found)))
        said = self._words.get(subject)
        return said is not None and said.decision == Decision.ACCEPTED

    def carry_over(self, row: QuarantinedRow) -> QuarantinedRow:
        """A row that was rejected stays so: nobody is asked about it again."""
        said = self._words.get(_subject(row))
        if said is not None:
            row.decision, row.decided_by = said.decision, said.decided_by
            row.decided_at = said.decided_at
        return row


def _subject(row: QuarantinedRow) -> Subject:
    return (clean(row.sku), row.region, row.zone, _text(row.finding))


def _text(stored: dict[str, Any]) -> str:
    return json.dumps(stored, sort_keys=True, default=str)
