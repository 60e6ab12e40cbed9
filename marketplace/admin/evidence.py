"""The review queue: what was run on machines, the facts it gave, and what was decided about it."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html

from marketplace.admin.bases import KeptAdmin
from marketplace.evidence import NotReviewed, review
from marketplace.models import (
    Evidence,
    EvidenceReview,
    Fact,
    MeasuredFigure,
    RentedMachine,
)
from marketplace.models.evidence import EvidenceState


class ReasonForm(ActionForm):
    reason = forms.CharField(required=False, max_length=500, label="Reason")


class KeptInline(admin.TabularInline):
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReviewInline(KeptInline):
    model = EvidenceReview
    fields = readonly_fields = ("reviewed_at", "before", "after", "reason", "reviewed_by")


class FactInline(KeptInline):
    model = Fact
    fields = readonly_fields = ("name", "value", "grade", "as_of", "expires_at", "caveat")


class FigureInline(KeptInline):
    model = MeasuredFigure
    fields = readonly_fields = ("metric", "value", "workload", "plan")


@admin.register(Evidence)
class EvidenceAdmin(KeptAdmin):
    """Pending evidence first. The rows are kept; only their state moves, with a reason."""

    action_form = ReasonForm
    actions = ("accept", "reject", "withdraw")
    list_display = (
        "kind",
        "state",
        "listing",
        "machine",
        "ran_by",
        "uploaded_by",
        "mismatch",
        "uploaded_at",
        "expires_at",
    )
    list_filter = ("state", "ran_by", "listing__provider")
    search_fields = ("listing__sku", "sha256")
    list_select_related = ("listing", "machine", "uploaded_by")
    date_hierarchy = "uploaded_at"
    inlines = (FactInline, FigureInline, ReviewInline)
    exclude = ("cleaned_text",)
    readonly_fields = ("output",)

    @admin.display(description="cleaned text")
    def output(self, evidence: Evidence) -> str:
        """A matrix is read by its columns, so it scrolls; what scrolls is reached by keyboard."""
        return format_html(
            '<pre class="desk-output" tabindex="0" role="group" aria-label="Cleaned text">{}</pre>',
            evidence.cleaned_text,
        )

    class Media:
        css: ClassVar = {"all": ("desk.css",)}

    def has_review_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("marketplace.change_evidence")

    @admin.action(description="Accept: tell others of it", permissions=["review"])
    def accept(self, request: HttpRequest, queryset: QuerySet[Evidence]) -> None:
        self._move(request, queryset, EvidenceState.ACCEPTED)

    @admin.action(description="Reject: it counts for nobody", permissions=["review"])
    def reject(self, request: HttpRequest, queryset: QuerySet[Evidence]) -> None:
        self._move(request, queryset, EvidenceState.REJECTED)

    @admin.action(description="Withdraw: take an acceptance back", permissions=["review"])
    def withdraw(self, request: HttpRequest, queryset: QuerySet[Evidence]) -> None:
        self._move(request, queryset, EvidenceState.WITHDRAWN)

    def _move(
        self, request: HttpRequest, queryset: QuerySet[Evidence], after: EvidenceState
    ) -> None:
        reason = request.POST.get("reason", "").strip()[:500]
        for evidence in queryset:
            try:
                review(evidence.pk, after, request.user, reason)
            except NotReviewed as refused:
                self.message_user(request, f"{evidence}: {refused}", messages.ERROR)
            else:
                self.message_user(request, f"{evidence}: {after}.")


@admin.register(RentedMachine)
class RentedMachineAdmin(KeptAdmin):
    list_display = ("__str__", "listing", "opened_by", "opened_at")
    list_filter = ("listing__provider",)
    search_fields = ("listing__sku",)
    list_select_related = ("listing", "opened_by")


@admin.register(EvidenceReview)
class EvidenceReviewAdmin(KeptAdmin):
    list_display = ("evidence", "before", "after", "reason", "reviewed_by", "reviewed_at")
    list_filter = ("after",)
    search_fields = ("reason", "evidence__listing__sku")
    list_select_related = ("evidence", "reviewed_by")


@admin.register(Fact)
class FactAdmin(KeptAdmin):
    list_display = ("name", "value", "grade", "listing", "ran_by", "as_of", "expires_at", "caveat")
    list_filter = ("name", "grade", "ran_by", "listing__provider")
    search_fields = ("name", "listing__sku", "source")
    list_select_related = ("listing",)
    date_hierarchy = "as_of"


@admin.register(MeasuredFigure)
class MeasuredFigureAdmin(KeptAdmin):
    list_display = ("metric", "value", "workload", "plan", "evidence")
    list_filter = ("metric", "workload")
    search_fields = ("plan", "evidence__listing__sku")
    list_select_related = ("evidence",)
