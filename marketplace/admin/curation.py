"""Spellings of GPU names, and the names that nothing is known of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from simple_history.admin import SimpleHistoryAdmin

from evaluator.gpus import read_label, specs, specs_of
from marketplace import outbox
from marketplace.models import GpuAlias, Listing, Source

NAMES_SHOWN = 50
ROWS_READ = 5000


@dataclass(frozen=True, slots=True)
class Unmapped:
    """A name as catalogs write it, on how many listings of which sources it stands."""

    name: str
    listings: int
    sources: tuple[str, ...]


def unmapped() -> list[Unmapped]:
    """Names of current listings whose card is unknown, the commonest first."""
    rows = Listing.objects.filter(gone_at=None, gpu_model=None).order_by("pk")
    found = rows.values_list("words", "title", "source__key")[:ROWS_READ]
    named = [(_name(words, title), key) for words, title, key in found]
    counts = Counter(name for name, _ in named if name)
    return [
        Unmapped(name, times, tuple(sorted({key for one, key in named if one == name})))
        for name, times in counts.most_common(NAMES_SHOWN)
    ]


def _name(words: dict[str, str], title: str) -> str:
    """What stood where a GPU should, without counts: "2x Zephyr 9" is a Zephyr 9."""
    text = words.get("gpu") or words.get("AcceleratorName") or title
    return text.strip().lstrip("0123456789xX× ").strip()[:80] or text[:80]


class AliasForm(forms.ModelForm):
    model = forms.ChoiceField(
        choices=lambda: [(name, name) for name in sorted({spec.model for spec in specs()})]
    )

    def clean_spelling(self) -> str:
        spelling: str = self.cleaned_data["spelling"].strip()
        known = read_label(spelling).model
        if known:
            raise ValidationError(f"Read {spelling!r}, which already means {known}.")
        if not any(letter.isalnum() for letter in spelling) or not spelling.isprintable():
            raise ValidationError("Expected letters or digits as a catalog writes them.")
        return spelling

    def clean_model(self) -> str:
        model: str = self.cleaned_data["model"]
        if not specs_of(model):
            raise ValidationError(f"Read {model!r}, expected a model of the list of known GPUs.")
        return model


@admin.register(GpuAlias)
class GpuAliasAdmin(SimpleHistoryAdmin):
    form = AliasForm
    list_display = ("spelling", "model", "note", "created_at")
    list_filter = ("model",)
    search_fields = ("spelling", "model", "note")
    date_hierarchy = "created_at"

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = {**(extra_context or {}), "unmapped": unmapped()}
        response: HttpResponse = super().changelist_view(request, context)
        return response

    def save_model(self, request: HttpRequest, obj: GpuAlias, form: Any, change: bool) -> None:
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            _read_again(_concerned(obj))

    def delete_model(self, request: HttpRequest, obj: GpuAlias) -> None:
        with transaction.atomic():
            concerned = list(_concerned(obj))
            super().delete_model(request, obj)
            _read_again(concerned)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        for alias in queryset:
            self.delete_model(request, alias)


def _concerned(alias: GpuAlias) -> Iterable[Source]:
    """Sources with listings whose card is unknown, or is the one that the alias gives."""
    current = Listing.objects.filter(gone_at=None)
    rows = current.filter(gpu_model=None) | current.filter(gpu_model=alias.model)
    return Source.objects.filter(pk__in=rows.values("source"))


def _read_again(sources: Iterable[Source]) -> None:
    for source in sources:
        outbox.enqueue("reparse_source", source.pk)
