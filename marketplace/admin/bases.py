"""What several admin pages share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import CharField, Field
from django.http import HttpRequest

from marketplace.models import QuarantinedRow


class KeptAdmin(admin.ModelAdmin):
    """Rows that are history: shown, searched, and changed by nobody."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class StatedFilter(admin.AllValuesFieldListFilter):
    """A value that is empty is a link with a name too, for whoever hears the list or tabs to it."""

    def choices(self, changelist: Any) -> Iterator[Any]:
        for one in super().choices(changelist):
            yield {**one, "display": one["display"] or "not stated"}


def _has_any_text(field: Field[Any, Any]) -> bool:
    return isinstance(field, CharField) and not field.choices


admin.FieldListFilter.register(_has_any_text, StatedFilter, take_priority=True)


def as_text(body: bytes, limit: int = 20_000) -> str:
    """The beginning of a stored body. The template escapes it: a page is only ever text here."""
    shown = (
        bytes(body[:limit]).decode("utf-8", "replace").replace("\x00", "\N{REPLACEMENT CHARACTER}")
    )
    return shown if len(body) <= limit else f"{shown}\n… {len(body) - limit} more bytes"


AROUND = 400
"""Characters before and after a row in the page that it was read from."""


def snippet_of(body: bytes, row: QuarantinedRow) -> str:
    """The part of a stored body in which a row stands, as text; "" where none of its words do."""
    text = body.decode("utf-8", "replace").replace("\x00", "\N{REPLACEMENT CHARACTER}")
    words = [row.sku, *(row.words.get(name, "") for name in ("title", "gpu", "price"))]
    at = next((place for one in words if one and (place := text.find(one)) >= 0), -1)
    return text[max(0, at - AROUND) : at + AROUND] if at >= 0 else ""
