"""Many rows read as columns, and which of them are others than they were.

A database digests each row for that, of the very values that are read: whoever changed one, and
however, its digest is another one. No writer has to say what it changed.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from secrets import randbits
from typing import Any

import numpy as np
from django.db.models import BigIntegerField, FloatField, Func, QuerySet
from django.db.models.functions import Cast

from marketplace.words import Column

ROWS_AT_ONCE = 5_000
FEW = 0.25
"""The share of rows up to which it is quicker to read them alone."""


class Plainly:
    """As the database gives it: to look at each number in Python takes longer than to fetch it."""

    def get_db_converters(self, connection: Any) -> list[Any]:
        return []


class Amount(Plainly, Cast):
    pass


class Moment(Plainly, Func):
    """A time as seconds since 1970."""

    template = "EXTRACT(EPOCH FROM %(expressions)s)::double precision"
    output_field = FloatField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """A text there: whole seconds, and behind them their fraction if it has one. The seconds
        are read alone, as SQLite counts a fraction of .9995 and more as one more of them.
        """
        text = "%(expressions)s"
        sums = f"strftime('%%%%s', substr({text}, 1, 19)) + CAST(substr({text}, 20) AS REAL)"
        return self.as_sql(compiler, connection, template=sums, **context)


class Digest(Plainly, Func):
    """One number for all values of a row: another one where any of them differs."""

    output_field = BigIntegerField()
    template = f"hash_record_extended(ROW(%(expressions)s), {randbits(62)})"

    @classmethod
    def of(cls, columns: Iterable[Any]) -> Digest:
        """Of the columns as they are stored: a text or a number made of one takes longer."""
        stored = (one.source_expressions[0] if isinstance(one, Func) else one for one in columns)
        return cls(*stored)

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        connection.ensure_connection()
        connection.connection.create_function("digest_of", -1, _digest)
        return self.as_sql(compiler, connection, template="digest_of(%(expressions)s)", **context)


def _digest(*values: Any) -> int:
    return hash(values)


@contextmanager
def uncollected() -> Iterator[None]:
    """Nothing of what many rows are read into can be garbage yet: to look for it takes a quarter of
    the time.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def parts_of(rows: QuerySet[Any, Any]) -> Iterator[list[Any]]:
    """Some rows at a time, so that never all of them are held as rows."""
    left = rows.iterator(chunk_size=ROWS_AT_ONCE)
    while part := list(islice(left, ROWS_AT_ONCE)):
        yield part


def in_parts(keys: Column) -> Iterator[list[int]]:
    """A database takes so many keys at once."""
    for start in range(0, len(keys), ROWS_AT_ONCE):
        yield keys[start : start + ROWS_AT_ONCE].tolist()


def columns_of(rows: QuerySet[Any, Any], **kinds: Any) -> list[Column]:
    """Some numbers of all rows, in the order of their keys."""
    parts = [
        [np.array(held, dtype=kind) for held, kind in zip(columns, kinds.values(), strict=True)]
        for part in parts_of(rows.order_by("pk").values_list(*kinds))
        for columns in [zip(*part, strict=True)]
    ]
    nothing = [np.array([], dtype=kind) for kind in kinds.values()]
    return [np.concatenate(column) for column in zip(nothing, *parts, strict=True)]


def found_in(held: tuple[Column, Column], now: tuple[Column, Column]) -> tuple[Column, Column]:
    """Of keys and digests: where each of now stands in what is held, and whether it is the same."""
    (held_keys, held_digests), (keys, digests) = held, now
    at = np.searchsorted(held_keys, keys).clip(max=len(held_keys) - 1)
    return at, (held_keys[at] == keys) & (held_digests[at] == digests)
