"""Columns that a visitor may show, filter by an expression, and sort by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from marketplace.expressions import (
    LONGEST,
    InvalidExpression,
    Node,
    parse_numbers,
    parse_words,
)

AGO = "hours ago"


@dataclass(frozen=True, slots=True)
class Column:
    """`numbers` tells how its filter is read, `unit` in which unit; `""` hints at words.

    `shown` is the choice of a first visit. `fixed` columns are always there. A column without
    `filtered` can be shown and not asked for.
    """

    key: str
    label: str
    numbers: bool = False
    unit: str = ""
    hint: str = ""
    shown: bool = True
    fixed: bool = False
    filtered: bool = True

    @property
    def head(self) -> str:
        """Above the column; ages are printed with units of their own."""
        return self.label if self.unit == AGO else self.title

    @property
    def title(self) -> str:
        return f"{self.label}, {self.unit}" if self.unit else self.label


class Drawn(dict[str, bool]):
    """The columns of a table by their keys, for a template to ask. It is never changed, so that
    rows can be kept under it.
    """

    @classmethod
    def of(cls, keys: Iterable[str]) -> Drawn:
        return cls(dict.fromkeys(keys, True))

    def __hash__(self) -> int:  # type: ignore[override]  # a dict has none
        return hash(frozenset(self))


class ExpressionField(forms.CharField):
    """Text to a tree of checks; None where nothing was typed."""

    def __init__(self, *, numbers: bool, **keywords: Any) -> None:
        self.parse = parse_numbers if numbers else parse_words
        super().__init__(required=False, max_length=LONGEST, **keywords)

    def clean(self, value: object) -> Node | None:
        text = super().clean(value)
        try:
            return self.parse(text) if text else None
        except InvalidExpression as error:
            raise ValidationError(str(error), code="expression") from error


class ColumnForm(forms.Form):
    """One expression for each column, and which columns are shown."""

    show = forms.MultipleChoiceField(
        label="Columns", required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, data: Mapping[str, Any] | None, columns: Sequence[Column]) -> None:
        super().__init__(data)
        self.columns = columns
        chosen = [(one.key, one.label) for one in columns if not one.fixed]
        self.fields["show"].choices = chosen  # type: ignore[attr-defined]
        for one in columns:
            if one.filtered:
                self.fields[one.key] = _field(one)
        self.full_clean()

    def clean_show(self) -> list[str]:
        """Empty where the usual columns are ticked: a form sends them unasked."""
        ticked: list[str] = self.cleaned_data["show"]
        usual = {one.key for one in self.columns if one.shown and not one.fixed}
        return [] if set(ticked) == usual else ticked

    @property
    def shown(self) -> set[str]:
        """Keys of the columns to draw: those ticked, or the usual ones where none is."""
        ticked = set(self.cleaned_data.get("show") or ())
        usual = {one.key for one in self.columns if one.shown}
        return (ticked or usual) | {one.key for one in self.columns if one.fixed}

    @property
    def filters(self) -> dict[str, Node]:
        """By column, the expressions that could be read."""
        read = self.cleaned_data
        return {one.key: read[one.key] for one in self.columns if read.get(one.key)}

    @property
    def typed(self) -> dict[str, str]:
        """The filter of each column as it was typed; a column without one is not there."""
        return {one.key: self[one.key].value() or "" for one in self.columns if one.filtered}

    @property
    def lines(self) -> list[tuple[Column, forms.BoundField | None, bool]]:
        """Each column with its filter's field and whether it is shown, for the picker."""
        shown = self.shown
        fields = ((one, self[one.key] if one.filtered else None) for one in self.columns)
        return [(one, field, one.key in shown) for one, field in fields]

    @property
    def used(self) -> bool:
        """Whether anything differs from the first visit's choice."""
        return bool(self.errors or self.filters or self.cleaned_data.get("show"))


def _field(column: Column) -> ExpressionField:
    hint = column.hint or (">=8, 2..4, not 1" if column.numbers else "a or b, not c")
    named = f"filter-of name-{column.key}"
    attributes = {"placeholder": hint, "spellcheck": "false", "aria-labelledby": named}
    widget = forms.TextInput(attrs=attributes)
    return ExpressionField(numbers=column.numbers, label=column.title, widget=widget)


def sort_of(text: str, allowed: Iterable[str], usual: str) -> tuple[str, bool]:
    """The column to sort by and whether backwards: "cost", or "-cost"."""
    name = text.removeprefix("-")
    known = bool(name) and name in set(allowed)
    return (name, text.startswith("-")) if known else (usual, False)
