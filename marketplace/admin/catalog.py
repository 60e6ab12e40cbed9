"""Providers, sources and what was fetched from them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import path, reverse
from django.utils import timezone
from django.utils.html import format_html
from simple_history.admin import SimpleHistoryAdmin

from marketplace import outbox, schedule
from marketplace.admin.bases import KeptAdmin, as_text
from marketplace.admin.imports import import_page
from marketplace.admin.profiles import checked_profile, profile_page
from marketplace.catalog.failures import Refused
from marketplace.catalog.fetch import Permit, checked_url
from marketplace.catalog.registry import ADAPTERS
from marketplace.models import Host, Provider, QuarantinedRow, Snapshot, Source, SyncRun
from marketplace.readers import missing_key
from marketplace.standings import next_due

# An address typed without a scheme means https, as it will in Django 6.
HTTPS_ASSUMED: dict[Any, Any] = {models.URLField: {"assume_scheme": "https"}}


@admin.register(Provider)
class ProviderAdmin(SimpleHistoryAdmin):
    formfield_overrides = HTTPS_ASSUMED
    list_display = ("name", "slug", "website", "source_count", "listing_count")
    search_fields = ("name", "slug")
    prepopulated_fields = {"slug": ("name",)}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Provider]:
        current = Q(listings__gone_at__isnull=True)
        return Provider.objects.annotate(
            sources_=Count("sources", distinct=True),
            listings_=Count("listings", filter=current, distinct=True),
        )

    @admin.display(description="sources", ordering="sources_")
    def source_count(self, provider: Any) -> int:
        return int(provider.sources_)

    @admin.display(description="current listings", ordering="listings_")
    def listing_count(self, provider: Any) -> int:
        return int(provider.listings_)


class SourceForm(forms.ModelForm):
    adapter = forms.ChoiceField(choices=lambda: [(name, name) for name in ADAPTERS])

    def clean_profile(self) -> dict[str, Any]:
        return checked_profile(self.cleaned_data["profile"])

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        variable = missing_key(given.get("adapter") or "")
        if given.get("enabled") and variable:
            self.add_error("enabled", f"{variable} is not set: without a key it stays off.")
        return given

    def clean_url(self) -> str:
        """The same gate as at the socket, so that a mistake shows before the first visit."""
        url: str = self.cleaned_data["url"]
        if url:
            try:
                checked_url(url, Permit(frozenset({urlsplit(url).hostname or ""})))
            except Refused as refused:
                raise ValidationError(str(refused)) from refused
        return url


@admin.register(Source)
class SourceAdmin(SimpleHistoryAdmin):
    form = SourceForm
    formfield_overrides = HTTPS_ASSUMED
    list_display = (
        "key",
        "enabled",
        "last_success_at",
        "next_visit",
        "newest_outcome",
        "moved",
        "first_bad_row",
        "adapter",
        "provider",
        "interval_minutes",
        "robots",
    )
    list_filter = ("enabled", "kind", "adapter", "robots", "bundled", "provider")
    search_fields = ("key", "provider__name", "url")
    list_select_related = ("provider",)
    date_hierarchy = "last_success_at"
    autocomplete_fields = ("provider",)
    readonly_fields = ("bundled", "robots", "fence", "last_success_at")
    actions = ("sync_now", "read_again", "accept_held", "reject_held")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Source]:
        newest = SyncRun.objects.filter(source=OuterRef("pk")).order_by("-fence")
        bad = QuarantinedRow.objects.filter(
            run__source=OuterRef("pk"), run__fence=OuterRef("fence")
        ).order_by("pk")
        return Source.objects.annotate(
            outcome_=Subquery(newest.values("outcome")[:1]),
            counts_=Subquery(newest.values("counts")[:1]),
            started_=Subquery(newest.values("started_at")[:1]),
            bad_=Subquery(bad.values("pk")[:1]),
            bad_sku_=Subquery(bad.values("sku")[:1]),
            bad_reason_=Subquery(bad.values("reason")[:1]),
        )

    @admin.display(description="next visit", empty_value="not planned")
    def next_visit(self, source: Any) -> Any:
        return next_due(source, source.started_, timezone.now())

    @admin.display(description="new, changed, gone, held back")
    def moved(self, source: Any) -> str:
        counts = source.counts_ or {}
        held = sum(counts.get("quarantined", {}).values())
        numbers = [counts.get(name, 0) for name in ("new", "changed", "gone")]
        return ", ".join(map(str, [*numbers, held]))

    @admin.display(description="first bad row", empty_value="none")
    def first_bad_row(self, source: Any) -> str | None:
        if source.bad_ is None:
            return None
        address = reverse("admin:marketplace_quarantinedrow_change", args=[source.bad_])
        said = f"{source.bad_sku_ or 'without an id'}: {source.bad_reason_}"
        return format_html('<a href="{}">{}</a>', address, said)

    @admin.display(description="newest run", ordering="outcome_", empty_value="never")
    def newest_outcome(self, source: Any) -> str | None:
        outcome: str | None = source.outcome_
        return outcome

    def get_urls(self) -> list[Any]:
        pages = {"profile": profile_page, "import": import_page}
        view = self.admin_site.admin_view
        own = [
            path(f"<int:source_id>/{name}/", view(page), name=f"marketplace_source_{name}")
            for name, page in pages.items()
        ]
        return [*own, *super().get_urls()]

    def save_model(self, request: HttpRequest, obj: Source, form: Any, change: bool) -> None:
        """A source that was just switched on is visited at once, not after its first interval."""
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            schedule.keep_in_step(obj)
            if obj.enabled and (not change or "enabled" in form.changed_data):
                outbox.enqueue("sync_source", obj.pk)

    def delete_model(self, request: HttpRequest, obj: Source) -> None:
        schedule.forget(obj.pk)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Source]) -> None:
        for source in queryset:
            schedule.forget(source.pk)
        super().delete_queryset(request, queryset)

    @admin.action(description="Sync now", permissions=["change"])
    def sync_now(self, request: HttpRequest, queryset: QuerySet[Source]) -> None:
        self._leave(request, "sync_source", queryset)

    @admin.action(description="Re-parse the stored pages (no network)", permissions=["change"])
    def read_again(self, request: HttpRequest, queryset: QuerySet[Source]) -> None:
        self._leave(request, "reparse_source", queryset)

    @admin.action(
        description="Accept what was held: publish the stored pages", permissions=["change"]
    )
    def accept_held(self, request: HttpRequest, queryset: QuerySet[Source]) -> None:
        self._leave(request, "accept_held", queryset)

    @admin.action(
        description="Reject what was held: these pages are not asked about again",
        permissions=["change"],
    )
    def reject_held(self, request: HttpRequest, queryset: QuerySet[Source]) -> None:
        self._leave(request, "reject_held", queryset)

    def _leave(self, request: HttpRequest, task: str, queryset: QuerySet[Source]) -> None:
        """No request fetches or parses: it leaves a message for a worker."""
        with transaction.atomic():
            for source in queryset:
                outbox.enqueue(task, source.pk)
                self.log_change(request, source, f"Asked for {task}.")
        self.message_user(request, f"{len(queryset)} left for the next free worker.")


@admin.register(Host)
class HostAdmin(KeptAdmin):
    """Which sites are left alone, and why; a rest ends by itself or by this action."""

    list_display = ("name", "rest_until", "failures", "reason", "next_at")
    search_fields = ("name", "reason")
    date_hierarchy = "rest_until"
    actions = ("end_rest",)

    def has_end_rest_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("marketplace.change_host")

    @admin.action(description="End the rest: the site may be asked again", permissions=["end_rest"])
    def end_rest(self, request: HttpRequest, queryset: QuerySet[Host]) -> None:
        queryset.update(rest_until=None, failures=0, reason="")


@admin.register(Snapshot)
class SnapshotAdmin(KeptAdmin):
    list_display = ("source", "url", "fetched_at", "byte_count", "content_type", "digest")
    list_filter = ("source", "content_type")
    search_fields = ("url", "sha256", "source__key")
    list_select_related = ("source",)
    date_hierarchy = "fetched_at"
    exclude = ("body",)
    readonly_fields = ("body_as_text",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Snapshot]:
        return Snapshot.objects.defer("body")

    @admin.display(description="sha256", ordering="sha256")
    def digest(self, snapshot: Snapshot) -> str:
        return snapshot.sha256[:12]

    @admin.display(description="body")
    def body_as_text(self, snapshot: Snapshot) -> str:
        return as_text(bytes(snapshot.body))


@admin.register(SyncRun)
class SyncRunAdmin(KeptAdmin):
    list_display = ("source", "fence", "outcome", "reason", "started_at", "finished_at", "numbers")
    list_filter = ("outcome", "source")
    search_fields = ("source__key", "reason", "worker")
    list_select_related = ("source",)
    date_hierarchy = "started_at"

    @admin.display(description="listings: new, changed, repriced, gone")
    def numbers(self, run: SyncRun) -> str:
        names = ("listings", "new", "changed", "repriced", "gone")
        listings, *moved = (run.counts.get(name, 0) for name in names)
        return f"{listings}: {', '.join(map(str, moved))}"
