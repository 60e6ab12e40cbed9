"""Numbers in forms: what cannot be used is said back, with what was expected."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from evaluator.fields import shown


class WholeNumber(forms.IntegerField):
    """Digits 0 to 9 only: those of other scripts are refused, as in a workload file."""

    kind = "a whole number"

    def clean(self, value: Any) -> int | None:
        return _plainly(super().clean, value, self.kind, self.min_value, self.max_value)  # type: ignore[no-any-return]


class PlainNumber(forms.FloatField):
    kind = "a number"

    def clean(self, value: Any) -> float | None:
        return _plainly(super().clean, value, self.kind, self.min_value, self.max_value)  # type: ignore[no-any-return]


def _plainly(clean: Any, value: Any, kind: str, low: Any, high: Any) -> Any:
    try:
        if not str(value).isascii():
            raise ValidationError("digits of another script")
        return clean(value)
    except ValidationError as problem:
        expected = f"{kind} from {_said(low)} to {_said(high)}"
        raise ValidationError(f"Read {shown(value)}, expected {expected}.") from problem


def _said(end: float | None) -> str:
    return "any" if end is None else f"{end:,}" if isinstance(end, int) else f"{end:g}"
