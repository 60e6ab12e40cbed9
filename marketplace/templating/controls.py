"""The controls of forms, written in one pass: a template for each takes longer than a whole row."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from django import forms
from django.forms.renderers import TemplatesSetting
from django.http import HttpRequest
from django.utils.safestring import SafeString, mark_safe

INPUTS = frozenset(f"django/forms/widgets/{name}.html" for name in ("text", "number", "hidden"))


class Controls(TemplatesSetting):
    """Plain inputs as Django's templates would write them; all else by those templates."""

    def render(
        self, template_name: str, context: dict[str, Any], request: HttpRequest | None = None
    ) -> str:
        if template_name in INPUTS:
            return _input(context["widget"])
        return super().render(template_name, context, request)


def _input(widget: Mapping[str, Any]) -> SafeString:
    value = widget["value"]
    given = "" if value is None else f' value="{escape(str(value))}"'
    attributes = attributes_of(widget["attrs"])
    start = f'<input type="{widget["type"]}" name="{escape(widget["name"])}"'
    return mark_safe(f"{start}{given}{attributes}>")  # noqa: S308  each part is escaped


def attributes_of(given: Mapping[str, Any]) -> str:
    """Each with its value, one that is true by its name alone, none that is false."""
    return "".join(
        f" {escape(name)}" if value is True else f' {escape(name)}="{escape(str(value))}"'
        for name, value in given.items()
        if value is not False
    )


class PlainSelect(forms.Select):
    """A select without groups. A template for each option takes longer than a whole page."""

    def render(
        self,
        name: str,
        value: Any,
        attrs: Mapping[str, Any] | None = None,
        renderer: Any = None,
    ) -> SafeString:
        chosen = set(self.format_value(value))
        options = "".join(_option(str(key), str(label), chosen) for key, label in self.choices)
        given = attributes_of({**self.attrs, **(attrs or {})})
        written = f'<select name="{escape(name)}"{given}>{options}</select>'
        return mark_safe(written)  # noqa: S308  each part is escaped


def _option(key: str, label: str, chosen: set[str]) -> str:
    selected = " selected" if key in chosen else ""
    return f'<option value="{escape(key)}"{selected}>{escape(label)}</option>'
