"""Listings, which a curator corrects and never overwrites, and their prices."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe
from import_export.admin import ExportMixin
from import_export.formats.base_formats import CSV, JSON
from simple_history.admin import SimpleHistoryAdmin

from evaluator.units import GB
from marketplace import sync
from marketplace.admin.bases import KeptAdmin
from marketplace.admin.exports import ExportForm, ListingResource
from marketplace.corrections import InvalidCorrections, correctable, read_corrections
from marketplace.machines import lock_of
from marketplace.models import Listing, Price


class CorrectionsForm(forms.ModelForm):
    corrections = forms.JSONField(required=False, widget=forms.Textarea(attrs={"rows": 8}))
    lock_attribute = forms.ChoiceField(
        required=False,
        choices=lambda: [("", "–"), *((name, name) for name in sorted(correctable()))],
        help_text="One more value that no sync changes.",
    )
    lock_value = forms.CharField(
        required=False, help_text="Empty: the catalog's value is not believed."
    )
    lock_why = forms.CharField(required=False, max_length=300)
    lock_until = forms.DateField(
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text="Its last day; then the catalog's value counts again.",
    )
    who = "a curator"

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        if "corrections" in self.fields:
            self.fields["corrections"].help_text = (
                'Such as {"link": "nvlink", "vcpus": {"value": 96, "why": "mail of 3 May"}}. '
                "null: the catalog's value is not believed. No sync changes these. Attributes: "
                + ", ".join(sorted(correctable()))
            )

    def clean_corrections(self) -> dict[str, Any]:
        return self._read(self.cleaned_data["corrections"] or {})

    def clean(self) -> dict[str, Any]:
        """The lock of the small fields joins the others, in place of one on the same attribute."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        name = given.get("lock_attribute")
        if name and "corrections" in given:
            try:
                given["corrections"] |= self._read({name: _lock(given)})
            except ValidationError as invalid:
                self.add_error("lock_value", invalid)
        return given

    def _read(self, document: Any) -> dict[str, Any]:
        try:
            return read_corrections(document, who=self.who, now=timezone.now())
        except InvalidCorrections as invalid:
            raise ValidationError(invalid.messages) from invalid


def _lock(given: dict[str, Any]) -> dict[str, Any]:
    """A typed value as what it is: 8 is a number, true a truth, nvlink a text."""
    text = given.get("lock_value", "").strip()
    try:
        value = json.loads(text) if text else None
    except ValueError:
        value = text
    until = given.get("lock_until")
    return {
        "value": value,
        "why": given.get("lock_why", "").strip(),
        "until": until.isoformat() if until else "",
    }


class PriceInline(admin.TabularInline):
    model = Price
    fields = readonly_fields = (
        "purchase",
        "term",
        "amount",
        "currency",
        "unit",
        "basis",
        "machine_per_hour",
        "first_seen",
        "superseded_at",
    )
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Listing)
class ListingAdmin(ExportMixin, SimpleHistoryAdmin):
    form = CorrectionsForm
    resource_classes = (ListingResource,)
    export_form_class = ExportForm
    formats = (CSV, JSON)
    list_display = (
        "sku",
        "provider",
        "region",
        "zone",
        "gpu_count",
        "gpu_model",
        "gigabytes_each",
        "link",
        "availability",
        "machine_hour_amount",
        "machine_hour_currency",
        "last_seen",
        "gone_at",
        "is_corrected",
    )
    list_filter = (
        ("gone_at", admin.EmptyFieldListFilter),
        "availability",
        "link",
        "gpu_count",
        "provider",
        "source",
        "gpu_model",
    )
    search_fields = ("sku", "title", "region", "zone", "gpu_model", "provider__name")
    list_select_related = ("provider",)
    date_hierarchy = "last_seen"
    inlines = (PriceInline,)

    def get_readonly_fields(self, request: HttpRequest, obj: Listing | None = None) -> list[str]:
        columns = [field.name for field in Listing._meta.fields if field.name != "corrections"]
        return ["locks", *columns]

    def get_fieldsets(self, request: HttpRequest, obj: Listing | None = None) -> Any:
        small = ("lock_attribute", "lock_value", "lock_why", "lock_until")
        columns = [name for name in self.get_readonly_fields(request, obj) if name != "locks"]
        return (
            ("What a curator knows better", {"fields": ("locks", *small, "corrections")}),
            ("What the catalog says", {"fields": columns}),
        )

    @admin.display(description="locks in force: who, why, until")
    def locks(self, listing: Listing) -> str:
        rows = [
            (name, lock.get("value"), lock.get("source", ""), lock.get("why") or "no reason given",
             lock.get("until") or "for good")
            for name in sorted(listing.corrections)
            if (lock := lock_of(listing, name))
        ]  # fmt: skip
        return (
            format_html_join(mark_safe("<br>"), "<b>{}</b> = {}: {}, {}, until {}", rows) or "none"
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Listing | None = None) -> bool:
        """A listing that vanished keeps its row: its prices and evidence hang on it."""
        return False

    def get_form(self, request: HttpRequest, *arguments: Any, **keywords: Any) -> Any:
        form = super().get_form(request, *arguments, **keywords)
        form.who = f"curator {request.user.get_username()}"
        return form

    def save_model(self, request: HttpRequest, obj: Listing, form: Any, change: bool) -> None:
        """Only the corrections: a sync may have moved every other column meanwhile."""
        sync.refresh(obj, "corrections")

    @admin.display(description="GB each", ordering="vram_bytes_per_gpu")
    def gigabytes_each(self, listing: Listing) -> str | None:
        vram = listing.vram_bytes_per_gpu
        return None if vram is None else f"{vram / GB:g}"

    @admin.display(description="corrected", boolean=True)
    def is_corrected(self, listing: Listing) -> bool:
        return bool(listing.corrections)


@admin.register(Price)
class PriceAdmin(KeptAdmin):
    list_display = (
        "listing",
        "purchase",
        "term",
        "amount",
        "currency",
        "unit",
        "basis",
        "machine_per_hour",
        "first_seen",
        "superseded_at",
    )
    list_filter = (
        ("superseded_at", admin.EmptyFieldListFilter),
        "purchase",
        "basis",
        "unit",
        "currency",
        "listing__provider",
    )
    search_fields = ("listing__sku", "listing__title", "words")
    list_select_related = ("listing",)
    date_hierarchy = "first_seen"
