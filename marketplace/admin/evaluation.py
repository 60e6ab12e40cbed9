"""Workloads, the jobs that judge them, kept verdicts, and messages that wait."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from marketplace import evaluations
from marketplace.admin.bases import KeptAdmin
from marketplace.models import (
    AccuracyReport,
    Evaluation,
    Outbox,
    SavedShortlist,
    Verdict,
    Workload,
)


@admin.register(Workload)
class WorkloadAdmin(admin.ModelAdmin):
    list_display = ("name", "slug", "owner", "preset", "created_at")
    list_filter = ("preset",)
    search_fields = ("name", "slug", "owner__username", "fingerprint")
    list_select_related = ("owner",)
    date_hierarchy = "created_at"
    # Slug and document belong together: verdicts are kept by what the document says.
    readonly_fields = ("slug", "preset", "document", "fingerprint", "created_at")
    autocomplete_fields = ("owner",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


@admin.register(SavedShortlist)
class SavedShortlistAdmin(KeptAdmin):
    """That an answer is kept and by whom. Its token opens it, so nobody reads that here."""

    list_display = ("name", "owner", "listings_total", "saved_at")
    search_fields = ("name", "owner__username")
    list_select_related = ("owner",)
    date_hierarchy = "saved_at"
    exclude = ("token",)


@admin.register(Evaluation)
class EvaluationAdmin(KeptAdmin):
    list_display = (
        "workload",
        "state",
        "progress",
        "evaluator_version",
        "created_at",
        "finished_at",
    )
    list_filter = ("state", "evaluator_version")
    search_fields = ("workload__name", "error")
    list_select_related = ("workload",)
    date_hierarchy = "created_at"
    actions = ("cancel",)

    @admin.display(description="configurations")
    def progress(self, evaluation: Evaluation) -> str:
        return f"{evaluation.configurations_done} of {evaluation.configurations_total}"

    @admin.action(description="Cancel", permissions=["cancel"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[Evaluation]) -> None:
        stopped = sum(evaluations.cancel(evaluation.pk) for evaluation in queryset)
        self.message_user(request, f"{stopped} cancelled.")

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("marketplace.change_evaluation")


@admin.register(Verdict)
class VerdictAdmin(KeptAdmin):
    list_display = (
        "workload_fingerprint",
        "configuration",
        "status",
        "evaluator_version",
        "created_at",
    )
    list_filter = ("status", "evaluator_version")
    search_fields = ("workload_fingerprint", "configuration")
    date_hierarchy = "created_at"


@admin.register(Outbox)
class OutboxAdmin(KeptAdmin):
    list_display = ("task", "arguments", "created_at", "published_at", "attempts", "last_error")
    list_filter = (("published_at", admin.EmptyFieldListFilter), "task")
    search_fields = ("task", "last_error")
    date_hierarchy = "created_at"


@admin.register(AccuracyReport)
class AccuracyReportAdmin(KeptAdmin):
    list_display = ("kind", "kept_at", "evaluator_version")
    date_hierarchy = "kept_at"
