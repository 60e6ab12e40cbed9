"""Rows that were read and not believed: what stood there, which rule fired, and a person's word."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import F, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe

from evaluator.findings import Finding
from marketplace import outbox, sync
from marketplace.admin.bases import KeptAdmin, snippet_of
from marketplace.models import QuarantinedRow
from marketplace.models.catalog import Decision


@admin.register(QuarantinedRow)
class QuarantinedRowAdmin(KeptAdmin):
    list_display = ("sku", "region", "zone", "rule", "source", "seen", "decision", "decided_by")
    fields = (
        *("source", "seen", "sku", "region", "zone", "rule", "remedy", "cells", "snippet"),
        *("decision", "decided_by", "decided_at"),
    )
    actions = ("accept_rows", "reject_rows", "read_again", "accept_held")
    list_filter = (("decision", admin.EmptyFieldListFilter), "reason", "run__source")
    search_fields = ("sku", "region", "run__source__key")
    list_select_related = ("run__source",)
    date_hierarchy = "run__started_at"

    def get_queryset(self, request: HttpRequest) -> QuerySet[QuarantinedRow]:
        """What the newest run of each source set aside; older ones by their run."""
        rows = QuarantinedRow.objects.all()
        if "run__id__exact" in request.GET or not request.path.endswith("/quarantinedrow/"):
            return rows
        return rows.filter(run__fence=F("run__source__fence"))

    @admin.display(description="rule that fired", ordering="reason")
    def rule(self, row: QuarantinedRow) -> str:
        return f"{row.reason}: {Finding.from_dict(row.finding).sentence}"

    @admin.display(description="what helps")
    def remedy(self, row: QuarantinedRow) -> str:
        return Finding.from_dict(row.finding).remedy or "Look at the page, then read it again."

    @admin.display(description="the provider's words")
    def cells(self, row: QuarantinedRow) -> str:
        pairs = sorted(row.words.items())
        return format_html_join(mark_safe("<br>"), "<b>{}</b>: <bdi>{}</bdi>", pairs)

    @admin.display(description="where it stands in the stored page")
    def snippet(self, row: QuarantinedRow) -> str:
        bodies = (bytes(one.body) for one in row.run.snapshots.all())
        found = next(filter(None, (snippet_of(body, row) for body in bodies)), "")
        return format_html("<pre>{}</pre>", found) if found else "not found as it was read"

    @admin.action(
        description="Accept these rows: publish them and hold the others back",
        permissions=["desk"],
    )
    def accept_rows(self, request: HttpRequest, queryset: QuerySet[QuarantinedRow]) -> None:
        """Only a price can be believed after all: other rows hold no value to publish."""
        believable = queryset.filter(reason__in=[code.value for code in sync.ACCEPTABLE])
        others = queryset.count() - believable.count()
        if others:
            told = (
                f"{others} cannot be accepted: nothing in them could be read. Re-parse or reject."
            )
            self.message_user(request, told, messages.WARNING)
        self._decide(request, believable, Decision.ACCEPTED)

    @admin.action(
        description="Reject these rows: they stay out and are not asked about again",
        permissions=["desk"],
    )
    def reject_rows(self, request: HttpRequest, queryset: QuerySet[QuarantinedRow]) -> None:
        self._decide(request, queryset, Decision.REJECTED)

    def _decide(
        self, request: HttpRequest, rows: QuerySet[QuarantinedRow], decision: Decision
    ) -> None:
        """A word on each row, and a message to a worker, who reads the stored pages again."""
        found = list(rows.values_list("pk", flat=True))
        with transaction.atomic():
            chosen = QuarantinedRow.objects.filter(pk__in=found)
            for row in chosen:
                self.log_change(request, row, f"Said: {decision.value}.")
            chosen.update(
                decision=decision.value,
                decided_by=request.user.get_username(),
                decided_at=timezone.now(),
            )
            if found and decision is Decision.ACCEPTED:
                self._leave(request, "reparse_source", chosen)

    @admin.action(description="Re-parse the sources of these rows", permissions=["desk"])
    def read_again(self, request: HttpRequest, queryset: QuerySet[QuarantinedRow]) -> None:
        self._leave(request, "reparse_source", queryset)

    @admin.action(
        description="Accept: publish the stored pages of these rows' sources", permissions=["desk"]
    )
    def accept_held(self, request: HttpRequest, queryset: QuerySet[QuarantinedRow]) -> None:
        self._leave(request, "accept_held", queryset)

    def has_desk_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("marketplace.change_source")

    def _leave(self, request: HttpRequest, task: str, queryset: QuerySet[QuarantinedRow]) -> None:
        sources = set(queryset.values_list("run__source", flat=True))
        with transaction.atomic():
            for source in sorted(sources):
                outbox.enqueue(task, source)
        self.message_user(request, f"{len(sources)} left for the next free worker.")

    @admin.display(ordering="run__source__key")
    def source(self, row: QuarantinedRow) -> str:
        return row.run.source.key

    @admin.display(ordering="run__started_at")
    def seen(self, row: QuarantinedRow) -> Any:
        return row.run.started_at
