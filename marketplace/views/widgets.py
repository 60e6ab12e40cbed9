"""Controls that are written in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

CHOSEN = mark_safe(" selected")


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
        options = format_html_join(
            "",
            '<option value="{}"{}>{}</option>',
            ((key, CHOSEN if str(key) in chosen else "", label) for key, label in self.choices),
        )
        given = flatatt({**self.attrs, **(attrs or {})})
        return format_html('<select name="{}"{}>{}</select>', name, given, options)
