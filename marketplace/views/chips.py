"""Applied filters as chips, with the address that takes each one away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpRequest, QueryDict

PLACE_KEYS = ("after",)
"""Where in the table one stands: no filter, and without meaning once a filter changes."""


@dataclass(frozen=True, slots=True)
class Chip:
    """`remove` is the address without this filter; empty for what always applies."""

    words: str
    remove: str = ""
    key: str = ""


def chips_of(request: HttpRequest, form: forms.Form) -> list[Chip]:
    """One chip for each filter of the address that the form could read.

    The workload is what is asked about, not a filter on it.
    """
    return [
        Chip(f"{field.label}: {_said_in(form, name, field)}", without(request, name), name)
        for name, field in form.fields.items()
        if name != "workload" and form.cleaned_data.get(name) not in (None, "", [])
    ]


def _said_in(form: forms.Form, name: str, field: forms.Field) -> str:
    """All values of a field that takes several."""
    given: Any = form.data
    return ", ".join(said(field, value) for value in given.getlist(name))


def said(field: forms.Field, value: str) -> str:
    """A value in the words that the form shows for it; a whole number with its thousands apart."""
    if isinstance(field, forms.IntegerField) and value.isascii() and value.isdigit():
        return f"{int(value):,}"
    options: Iterable[tuple[object, object]] = getattr(field, "choices", ())
    return next((str(label) for key, label in options if str(key) == value), value)


def without(request: HttpRequest, *names: str) -> str:
    """This page's address without some of its keys, back at the first row."""
    return changed(request, dict.fromkeys(names, ""))


def changed(request: HttpRequest, values: Mapping[str, object]) -> str:
    """This page's address with some keys set anew; an empty value takes the key away."""
    query = request.GET.copy()
    for name in (*PLACE_KEYS, *values):
        query.pop(name, None)
    for name, value in values.items():
        if value != "":
            query[name] = str(value)
    return f"{request.path}?{_filled(query).urlencode()}".removesuffix("?")


def _filled(query: QueryDict) -> QueryDict:
    """A form sends its empty fields too; they would only lengthen the address."""
    for name in [name for name, value in query.items() if value == ""]:
        del query[name]
    return query


def not_understood(request: HttpRequest, known: Iterable[str]) -> list[str]:
    """Keys of the address that mean nothing here: said on the page, since a filter that is
    silently dropped answers another question than the one asked."""
    return sorted(set(request.GET) - set(known))
