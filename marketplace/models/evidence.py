"""Machines that were rented, what was run on them, the facts that it gave, and its review."""

from __future__ import annotations

from enum import StrEnum

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

from evaluator.evidence.engine_runs import UNITS
from evaluator.facts import RanBy
from marketplace.models.catalog import Listing
from marketplace.models.choices import GRADES, choices, one_of


class EvidenceState(StrEnum):
    """Pending evidence counts for its uploader alone; only accepted evidence is told to others."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


COUNTING = (EvidenceState.PENDING.value, EvidenceState.ACCEPTED.value)

HAS_EVIDENCE = "has_evidence"
"""The annotation of a listing that was read together with whether any evidence of it is kept."""


class Change(StrEnum):
    """What happened to a machine since something was run on it."""

    REBOOT = "reboot"
    DRIVER = "driver"
    IMAGE = "image"


class RentedMachine(models.Model):
    """One machine that somebody rented under a listing. A listing is what a catalog offers; two
    machines of one listing may differ in how their GPUs are joined.
    """

    listing = models.ForeignKey(Listing, on_delete=models.PROTECT, related_name="machines")
    opened_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True
    )
    opened_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-opened_at", "-pk"]

    def __str__(self) -> str:
        return f"machine {self.pk}"


class Evidence(models.Model):
    """A cleaned terminal output, bound to one machine and to the one who brought it.

    With a `mismatch` it is kept as a conflict and has no facts. `driver` and `image` say what ran
    then; `expired_by` what happened since.
    """

    listing = models.ForeignKey(Listing, on_delete=models.PROTECT, related_name="evidence")
    machine = models.ForeignKey(RentedMachine, on_delete=models.PROTECT, related_name="evidence")
    kind = models.CharField(max_length=200)
    cleaned_text = models.TextField()
    sha256 = models.CharField(max_length=64)
    ran_by = models.CharField(max_length=12, choices=choices(RanBy))
    uploaded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True
    )
    state = models.CharField(
        max_length=10, choices=choices(EvidenceState), default=EvidenceState.PENDING.value
    )
    mismatch = models.CharField(max_length=500, blank=True)
    driver = models.CharField(max_length=60, blank=True)
    image = models.CharField(max_length=200, blank=True)
    ran_at = models.DateTimeField(null=True, blank=True)
    uploaded_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    expired_by = models.CharField(max_length=10, choices=choices(Change), blank=True)

    class Meta:
        ordering = ["-uploaded_at", "-pk"]
        verbose_name_plural = "evidence"
        constraints = [
            one_of("ran_by", RanBy, "evidence_ran_by_known"),
            one_of("state", EvidenceState, "evidence_state_known"),
            models.UniqueConstraint(fields=["machine", "sha256"], name="evidence_once"),
        ]
        indexes = [models.Index(fields=["listing", "state"], name="evidence_by_state")]

    def __str__(self) -> str:
        return f"{self.kind} for {self.listing_id}"

    def get_absolute_url(self) -> str:
        return reverse("evidence", args=[self.pk])

    @property
    def counts(self) -> bool:
        """Whether its uploader is judged by it."""
        return self.state in COUNTING and not self.mismatch


class EvidenceReview(models.Model):
    """One decision about evidence. Rows are added and never changed."""

    evidence = models.ForeignKey(Evidence, on_delete=models.CASCADE, related_name="reviews")
    before = models.CharField(max_length=10, choices=choices(EvidenceState))
    after = models.CharField(max_length=10, choices=choices(EvidenceState))
    reason = models.CharField(max_length=500, blank=True)
    reviewed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True
    )
    reviewed_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["evidence", "reviewed_at", "pk"]
        constraints = [
            one_of("before", EvidenceState, "review_before_known"),
            one_of("after", EvidenceState, "review_after_known"),
        ]

    def __str__(self) -> str:
        return f"{self.evidence_id}: {self.before} to {self.after}"


class MeasuredFigure(models.Model):
    """A speed that an engine or a trainer printed, with the workload and the plan that ran.

    `workload` is the slug of a preset or of a saved workload, `plan` a plan's key: what was
    predicted is worked out again wherever it is shown.
    """

    evidence = models.ForeignKey(Evidence, on_delete=models.CASCADE, related_name="figures")
    workload = models.CharField(max_length=80)
    plan = models.CharField(max_length=80)
    metric = models.CharField(max_length=40)
    value = models.FloatField(help_text="Seconds, or tokens/s.")

    class Meta:
        ordering = ["evidence", "pk"]
        constraints = [
            models.CheckConstraint(condition=Q(value__gt=0), name="measured_figure_positive"),
            models.UniqueConstraint(fields=["evidence", "metric"], name="measured_figure_once"),
        ]

    def __str__(self) -> str:
        return f"{self.metric}: {self.value:g}"

    @property
    def unit(self) -> str:
        return UNITS[self.metric]


class Fact(models.Model):
    """One value with its grade. Two facts that disagree are both kept.

    A fact without evidence is a curator's and speaks of the listing; one with evidence speaks of
    the machine that the evidence is bound to.
    """

    listing = models.ForeignKey(Listing, on_delete=models.CASCADE, related_name="facts")
    evidence = models.ForeignKey(
        Evidence, on_delete=models.CASCADE, related_name="facts", null=True, blank=True
    )
    name = models.CharField(max_length=60, help_text="A field of evaluator.machine.Machine.")
    value = models.JSONField()
    grade = models.PositiveSmallIntegerField(choices=GRADES)
    source = models.CharField(max_length=300)
    ran_by = models.CharField(max_length=12, choices=choices(RanBy))
    as_of = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    caveat = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["listing", "name", "-grade", "-as_of"]
        constraints = [
            models.CheckConstraint(condition=Q(grade__in=[1, 2, 3]), name="fact_grade_known"),
            one_of("ran_by", RanBy, "fact_ran_by_known"),
        ]
        indexes = [models.Index(fields=["listing", "name"], name="fact_by_name")]

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"
