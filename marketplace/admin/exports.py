"""Listings as a table file in which no cell is a formula."""

from __future__ import annotations

from typing import Any

from import_export import fields, resources
from import_export.forms import SelectableFieldsExportForm

from marketplace.models import Listing

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def inert(value: Any) -> Any:
    """A text that a spreadsheet would run is quoted; scraped text begins as its author likes."""
    starts = isinstance(value, str) and value.lstrip(" \u00a0\ufeff").startswith(FORMULA_STARTS)
    return f"'{value}" if starts else value


class ListingResource(resources.ModelResource):
    provider = fields.Field(attribute="provider__slug")
    source = fields.Field(attribute="source__key")

    class Meta:
        model = Listing
        fields = (
            "provider",
            "source",
            "sku",
            "region",
            "zone",
            "title",
            "gpu_model",
            "gpu_count",
            "nodes",
            "vram_bytes_per_gpu",
            "form_factor",
            "link",
            "inter_node",
            "availability",
            "vcpus",
            "ram_bytes",
            "local_storage_bytes",
            "machine_hour_amount",
            "machine_hour_currency",
            "first_seen",
            "last_seen",
            "gone_at",
        )
        export_order = fields

    def get_queryset(self) -> Any:
        return super().get_queryset().select_related("provider", "source")

    def export_field(self, *arguments: Any, **keywords: Any) -> Any:
        return inert(super().export_field(*arguments, **keywords))


class ExportForm(SelectableFieldsExportForm):
    """Without the switch for all fields: it has no name and acts by an inline handler, which the
    content security policy keeps from running."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        for field in self.fields.values():
            field.initial_field = False  # what the library marks
