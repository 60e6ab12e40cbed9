"""What was run on machines, and the facts that it gave."""

from __future__ import annotations

from django.contrib import admin

from marketplace.admin.bases import KeptAdmin
from marketplace.models import Evidence, Fact


@admin.register(Evidence)
class EvidenceAdmin(KeptAdmin):
    list_display = (
        "kind",
        "listing",
        "ran_by",
        "uploaded_by",
        "ran_at",
        "uploaded_at",
        "expires_at",
    )
    list_filter = ("kind", "ran_by", "listing__provider")
    search_fields = ("listing__sku", "sha256")
    list_select_related = ("listing", "uploaded_by")
    date_hierarchy = "uploaded_at"


@admin.register(Fact)
class FactAdmin(KeptAdmin):
    list_display = ("name", "value", "grade", "listing", "ran_by", "as_of", "expires_at", "caveat")
    list_filter = ("name", "grade", "ran_by", "listing__provider")
    search_fields = ("name", "listing__sku", "source")
    list_select_related = ("listing",)
    date_hierarchy = "as_of"
