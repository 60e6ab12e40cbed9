"""Lists that a person brings as CSV or JSON, with a profile that says what each column means."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from io import StringIO
from typing import Any

from evaluator.findings import Code, finding
from marketplace.catalog.adapters.page import without_repetitions
from marketplace.catalog.base import Batch, Entry, Page, Quarantined, UnreadablePage
from marketplace.catalog.document import decode
from marketplace.catalog.normalise import LeftOut, Outcome, normalise
from marketplace.catalog.profile import NO_PROFILE, Profile
from marketplace.catalog.profiled import (
    fingerprint_of,
    hold_of,
    items_at,
    names_of,
    read_objects,
    relabelled,
)
from marketplace.catalog.reading.names import Aliases
from marketplace.catalog.records import Record

MOST_COLUMNS = 200


@dataclass(frozen=True, slots=True)
class ImportAdapter:
    """An `Adapter`. A body that begins with a brace or a bracket is JSON, any other one CSV."""

    profile: Profile = NO_PROFILE
    aliases: Aliases = field(default_factory=dict)

    def next_page(self, page: Page) -> str | None:
        return None

    def read(self, pages: Sequence[Page]) -> Batch:
        """All rows. Raises UnreadablePage where none is a machine: the mapping does not fit."""
        records = [record for page in pages for record in _records(page, self.profile)]
        outcomes = [self._outcome(record) for record in records]
        kept = [one for one in outcomes if not isinstance(one, LeftOut)]
        left = [one.reason for one in outcomes if isinstance(one, LeftOut)]
        if not kept:
            detail = f"Rows: read {len(records)}, expected some that name a GPU."
            raise UnreadablePage(finding(Code.LAYOUT_CHANGED), detail)
        believed, repeated = without_repetitions(kept)
        entries = tuple(one for one in believed if isinstance(one, Entry))
        seen = fingerprint_of(records)
        return Batch(
            entries=entries,
            quarantined=tuple(one for one in believed if isinstance(one, Quarantined)),
            left_out={reason: left.count(reason) for reason in sorted(set(left))},
            findings=tuple(repeated),
            hold=hold_of(self.profile, entries, len(believed), seen),
            fingerprint=seen,
            fields=names_of(records),
        )

    def _outcome(self, record: Record) -> Outcome:
        if not record.sku:
            reason = finding(Code.ROW_UNREADABLE, field="sku", value="nothing", expected="an id")
            return Quarantined("", reason, record.region, words={"row": record.words[:300]})
        return normalise([record], self.profile.context, self.aliases)


def _records(page: Page, profile: Profile) -> Iterator[Record]:
    text = decode(page.body, page.content_type).text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    items = _json(text, profile) if text.lstrip()[:1] in ("{", "[") else list(_csv(text))
    return (
        replace(record, language="en")
        for record in relabelled(read_objects(items, profile), profile)
    )


def _json(text: str, profile: Profile) -> list[dict[str, Any]]:
    try:
        data = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        detail = f"Read no JSON: {str(error)[:120]}"
        raise UnreadablePage(finding(Code.LAYOUT_CHANGED), detail) from error
    return items_at(data, profile.path)


def _csv(text: str) -> Iterator[dict[str, Any]]:
    """Rows by the names in the first line. A row of another length is torn and is not read."""
    lines = text.splitlines()
    dialect = max((",", ";", "\t"), key=lines[0].count) if lines else ","
    rows = csv.reader(StringIO(text, newline=""), delimiter=dialect)
    try:
        header = [name.strip() for name in next(rows, [])][:MOST_COLUMNS]
        for row in rows:
            if len(row) == len(header):
                yield dict(zip(header, row, strict=True))
            elif any(cell.strip() for cell in row):
                torn = {"row": " | ".join(row)[:300]}
                yield torn
    except csv.Error as error:
        detail = f"Read no CSV: {str(error)[:120]}"
        raise UnreadablePage(finding(Code.LAYOUT_CHANGED), detail) from error
