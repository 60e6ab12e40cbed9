"""What was run on a machine, and the facts that it gave."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from evaluator.facts import RanBy
from marketplace.models.catalog import Listing
from marketplace.models.choices import GRADES, choices, one_of


class Evidence(models.Model):
    """A cleaned terminal output, bound to one listing and to the one who brought it."""

    listing = models.ForeignKey(Listing, on_delete=models.PROTECT, related_name="evidence")
    kind = models.CharField(max_length=40)
    cleaned_text = models.TextField()
    sha256 = models.CharField(max_length=64)
    ran_by = models.CharField(max_length=12, choices=choices(RanBy))
    uploaded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True
    )
    ran_at = models.DateTimeField(null=True, blank=True)
    uploaded_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-uploaded_at"]
        verbose_name_plural = "evidence"
        constraints = [
            one_of("ran_by", RanBy, "evidence_ran_by_known"),
            models.UniqueConstraint(fields=["listing", "sha256"], name="evidence_once"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} for {self.listing_id}"


class Fact(models.Model):
    """One value with its grade. Two facts that disagree are both kept."""

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
