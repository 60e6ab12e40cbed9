"""Many rows in few statements. An ORM's own bulk insert spends four times as long on building
the statement as the database on carrying it out, and a feed has a hundred thousand rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from django.db import connection
from django.db.models import DateTimeField, DecimalField, JSONField, Model

MOST_VALUES = 20_000
"""In one statement. PostgreSQL takes 65,535, SQLite what its build says."""

ADAPTED = (JSONField, DecimalField, DateTimeField)
"""Kinds of columns whose values a database wants in a form of its own."""

Values = tuple[Any, ...]


class Table:
    """Columns of one model that are written together. `unique` ones name a row, and `renewed`
    ones are written again where it is there; without `unique` every row is new."""

    def __init__(
        self,
        model: type[Model],
        columns: Sequence[str],
        unique: Sequence[str] = (),
        renewed: Sequence[str] = (),
    ) -> None:
        self._model = model
        self._fields: list[Any] = [_field(model, name) for name in columns]
        self._unique = [_field(model, name).column for name in unique]
        self._renewed = [_field(model, name).column for name in renewed]

    def write(self, rows: Sequence[Values]) -> list[Values]:
        """Returns key and unique values of each row, in no order; nothing for rows all new."""
        size = _most_values() // len(self._fields)
        found: list[Values] = []
        for start in range(0, len(rows), size):
            found += self._write(rows[start : start + size])
        return found

    def _write(self, rows: Sequence[Values]) -> list[Values]:
        one = f"({', '.join(['%s'] * len(self._fields))})"
        statement = f"{self._head}{', '.join([one] * len(rows))}{self._tail}"
        with connection.cursor() as cursor:
            cursor.execute(statement, list(self._adapted(rows)))
            return cursor.fetchall() if self._unique else []

    def _adapted(self, rows: Iterable[Values]) -> Iterator[Any]:
        adapt = self._adapters()
        for row in rows:
            yield from (
                each(value) if each else value for each, value in zip(adapt, row, strict=True)
            )

    def _adapters(self) -> list[Callable[[Any], Any] | None]:
        return [_adapter(field) if isinstance(field, ADAPTED) else None for field in self._fields]

    @cached_property
    def _head(self) -> str:
        """Names of our own columns only: values have marks."""
        table = _quoted(self._model._meta.db_table)
        return f"INSERT INTO {table} ({_names(self._columns)}) VALUES "  # noqa: S608

    @cached_property
    def _tail(self) -> str:
        if not self._unique:
            return ""
        renewed = ", ".join(f"{_quoted(name)} = EXCLUDED.{_quoted(name)}" for name in self._renewed)
        return (
            f" ON CONFLICT ({_names(self._unique)}) DO UPDATE SET {renewed}"
            f" RETURNING id, {_names(self._unique)}"
        )

    @property
    def _columns(self) -> list[str]:
        return [field.column for field in self._fields]


def _adapter(field: Any) -> Callable[[Any], Any]:
    return lambda value: field.get_db_prep_save(value, connection)


def _field(model: type[Model], name: str) -> Any:
    return model._meta.get_field(name)


def _names(columns: Iterable[str]) -> str:
    return ", ".join(map(_quoted, columns))


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)


def _most_values() -> int:
    if connection.vendor != "sqlite":
        return MOST_VALUES
    connection.ensure_connection()
    most: int = connection.connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
    return min(MOST_VALUES, most)
