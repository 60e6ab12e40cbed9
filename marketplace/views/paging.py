"""Pages by key: a later page costs what the first one does, and no address asks for more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import Model, Q, QuerySet
from django.db.models.expressions import Combinable, F, OrderBy

Row = TypeVar("Row", bound=Model)

KEY_DIGITS = 18
"""A longer number is no key of ours, and would not fit the database's integers."""


@dataclass(frozen=True, slots=True)
class Sort:
    """An order that an address may ask for. Rows without a value come last."""

    label: str
    by: Combinable
    descending: bool = False

    @property
    def order(self) -> OrderBy:
        value = F("sort_value")
        if self.descending:
            return value.desc(nulls_last=True)
        return value.asc(nulls_last=True)


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """`next_key` goes into the address of the page that follows; None on the last one."""

    rows: list[Row]
    total: int
    next_key: int | None


def page_of(rows: QuerySet[Row], sort: Sort, after: str, size: int) -> Page[Row]:
    """The rows behind the one whose key is `after`; from the beginning when there is none."""
    keyed: QuerySet[Any] = rows.annotate(sort_value=sort.by)
    last = keyed.filter(pk=whole_number(after)).values_list("sort_value", "pk").first()
    behind = keyed.filter(_behind(sort, *last)) if last else keyed
    found = list(behind.order_by(sort.order, "pk")[: size + 1])
    more = found[size - 1].pk if len(found) > size else None
    return Page(found[:size], rows.count(), more)


def _behind(sort: Sort, value: object, key: int) -> Q:
    """Rows that follow one in an order which puts rows without a value last."""
    valueless = Q(sort_value__isnull=True)
    if value is None:
        return valueless & Q(pk__gt=key)
    beyond = "sort_value__lt" if sort.descending else "sort_value__gt"
    return Q(**{beyond: value}) | Q(sort_value=value, pk__gt=key) | valueless


def whole_number(text: str) -> int:
    """A key from an address; 0, which no row has, for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= KEY_DIGITS else 0


def chosen(sorts: Mapping[str, Sort], word: str) -> tuple[str, Sort]:
    """The order named in an address, or the first one of the list."""
    name = word if word in sorts else next(iter(sorts))
    return name, sorts[name]


def capped(text: str, default: int, most: int) -> int:
    """A count from an address, between 1 and `most`."""
    return min(max(whole_number(text) or default, 1), most)
