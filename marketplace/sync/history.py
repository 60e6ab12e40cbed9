"""Versions of listings, copied inside the database: no row travels for it."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection
from django.utils import timezone

from marketplace.models import Listing

KEYS_PER_STATEMENT = 500


def record_versions(keys: Sequence[int], kind: str, reason: str) -> None:
    """One version for each listing as it stands now; `kind` is "+" for new, "~" for changed."""
    for start in range(0, len(keys), KEYS_PER_STATEMENT):
        _copy(keys[start : start + KEYS_PER_STATEMENT], kind, reason)


def _copy(keys: Sequence[int], kind: str, reason: str) -> None:
    versions = Listing.history.model
    columns = ", ".join(
        connection.ops.quote_name(field.column) for field in versions.tracked_fields
    )
    into, listings = map(
        connection.ops.quote_name, (versions._meta.db_table, Listing._meta.db_table)
    )
    marks = ", ".join(["%s"] * len(keys))
    # Names of our own columns, and marks for the values: nothing read from a page is in it.
    statement = (
        f"INSERT INTO {into} ({columns}, history_date, history_type, history_change_reason)"  # noqa: S608
        f" SELECT {columns}, %s, %s, %s FROM {listings} WHERE id IN ({marks}) ORDER BY id"
    )
    with connection.cursor() as cursor:
        at = connection.ops.adapt_datetimefield_value(timezone.now())
        cursor.execute(statement, [at, kind, reason, *keys])
