"""One value that changes with everything that an anonymous visitor can see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeAlias

from django.db import connection
from django.db.models import F

from marketplace.models import (
    Evaluation,
    Evidence,
    EvidenceReview,
    Listing,
    Price,
    Provider,
    Source,
    SyncRun,
)

Version: TypeAlias = tuple[Any, ...]

_asked_here: ContextVar[list[Version] | None] = ContextVar("catalog_version", default=None)
"""The version that a page asked for, once it did; None outside of pages."""


@contextmanager
def one_version() -> Iterator[None]:
    """Inside it the version is asked at most once: a page is made of one state of the catalog.

    What changes meanwhile is read under the older version, so that the next page reads it again.
    """
    token = _asked_here.set([])
    try:
        yield
    finally:
        _asked_here.reset(token)


def catalog_version() -> Version:
    """Differs after every sync, price, evaluation, piece of evidence and row that was saved.

    Each part is the end of an index, so that one query tells it however large the tables are. Rows
    that are changed in bulk belong to a run, whose end is seen.
    """
    here = _asked_here.get()
    if here is None:
        return _now()
    if not here:
        here.append(_now())
    return here[0]


def _now() -> Version:
    sql, parameters = _asked(connection.vendor)
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return tuple(cursor.fetchone())


@cache
def _asked(vendor: str) -> tuple[str, tuple[Any, ...]]:
    """The query as text: putting it together takes longer than asking it."""
    parts = list(_parts())
    told = (f"(SELECT {what} FROM ({text}) AS newest)" for what, (text, _) in parts)  # noqa: S608
    return f"SELECT {', '.join(told)}", tuple(value for _, (_, values) in parts for value in values)


NEWEST = 16
"""Rows of one end: of two that are written at once, the one with the smaller key may be seen later.
Then the newest row is the same as before, and the sum of the newest keys is another one.
"""


def _parts() -> Iterator[tuple[str, tuple[str, Any]]]:
    ended = SyncRun.objects.filter(finished_at__isnull=False).order_by("-finished_at")
    growing = [
        table.objects.order_by("-pk") for table in (Listing, Price, Evidence, EvidenceReview)
    ]
    saved = [one.history.order_by("-history_id") for one in (Listing, Source, Provider)]
    for rows in (*growing, ended, *saved):
        yield "SUM(stamp)", rows.values(stamp=F("pk"))[:NEWEST].query.sql_with_params()
    newest = Evaluation.objects.order_by("-pk").values(stamp=F("finished_at"))[:1]
    yield "stamp", newest.query.sql_with_params()
