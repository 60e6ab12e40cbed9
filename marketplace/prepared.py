"""Queries by keys whose text is put together once.

Django writes a query anew each time that it is asked, which takes several times as long as an index
takes to answer it. Here it writes one with stand-ins for the keys and keeps how the columns are
read; later visits put their keys in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from django.db import connection
from django.db.models import Model, QuerySet
from django.db.models.query import ModelIterable, get_related_populators

Row = TypeVar("Row")
Reader: TypeAlias = Callable[[Sequence[Any]], Any]

STANDS_IN = -(2**40)
"""No key of a row. Small enough for every column of keys, so that Django does not refuse it."""
LARGEST_KEY = 2**63 - 1


@dataclass(frozen=True, slots=True)
class _Written:
    """`places` says for each parameter which key goes there; None keeps what stands in it."""

    text: str
    parameters: tuple[Any, ...]
    places: tuple[int | None, ...]
    convert: Callable[[Iterable[Any]], Iterable[Any]]
    read: Reader

    def ask(self, keys: Sequence[int]) -> list[Any]:
        held = zip(self.parameters, self.places, strict=True)
        given = [old if at is None else type(old)(keys[at]) for old, at in held]
        with connection.cursor() as cursor:
            cursor.execute(self.text, given)
            return [self.read(row) for row in self.convert(cursor.fetchall())]


class Prepared(Generic[Row]):
    """`make` gives the query for some keys: rows with what is joined to them, or tuples of values.

    What it prefetches is not asked.
    """

    def __init__(self, make: Callable[..., QuerySet[Any, Row]]) -> None:
        self._make = make
        self._written: dict[int, _Written] = {}

    def rows(self, *keys: int) -> list[Row]:
        """As many keys as `make` takes. A key that no column can hold has no rows."""
        if any(key > LARGEST_KEY for key in keys):
            return []
        if len(keys) not in self._written:
            self._written[len(keys)] = _write(self._make, len(keys))
        return self._written[len(keys)].ask(keys)


def _write(make: Callable[..., QuerySet[Any, Any]], count: int) -> _Written:
    keys = [STANDS_IN - at for at in range(count)]
    rows: Any = make(*keys)
    compiler = rows.query.get_compiler(connection=connection)
    text, parameters = compiler.as_sql()
    converters = compiler.get_converters([column for column, *_ in compiler.select])
    return _Written(
        text,
        tuple(parameters),
        tuple(keys.index(one) if one in keys else None for one in parameters),
        partial(compiler.apply_converters, converters=converters) if converters else iter,
        _instances(compiler) if rows._iterable_class is ModelIterable else tuple,
    )


def _instances(compiler: Any) -> Reader:
    """How a row becomes an instance with those that were joined to it and its annotations."""
    kind, fields = compiler.klass_info["model"], compiler.klass_info["select_fields"]
    start, end = fields[0], fields[-1] + 1
    names = [column.target.attname for column, *_ in compiler.select[start:end]]
    populators: Any = get_related_populators
    joined = populators(compiler.klass_info, compiler.select, connection.alias)
    annotated = tuple((compiler.annotation_col_map or {}).items())

    def read(row: Sequence[Any]) -> Model:
        made: Model = kind.from_db(connection.alias, names, row[start:end])
        for one in joined:
            one.populate(row, made)
        for name, place in annotated:
            setattr(made, name, row[place])
        return made

    return read
