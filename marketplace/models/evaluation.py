"""Workloads, the jobs that judge them, and the verdicts kept."""

from __future__ import annotations

from enum import StrEnum

from django.conf import settings
from django.db import models
from django.db.models import Q

from marketplace.models.choices import choices, one_of


class EvaluationState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Workload(models.Model):
    """A workload file as it was given. `fingerprint` names what the evaluator reads of it."""

    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=200)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True
    )
    preset = models.BooleanField(default=False)
    document = models.JSONField()
    fingerprint = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-preset", "name"]
        indexes = [models.Index(fields=["fingerprint"], name="workload_by_fingerprint")]

    def __str__(self) -> str:
        return self.name


class Evaluation(models.Model):
    """One judging of a workload over all configurations, with its progress."""

    workload = models.ForeignKey(Workload, on_delete=models.CASCADE, related_name="evaluations")
    evaluator_version = models.CharField(max_length=40)
    state = models.CharField(
        max_length=10, choices=choices(EvaluationState), default=EvaluationState.QUEUED.value
    )
    configurations_total = models.PositiveIntegerField(default=0)
    configurations_done = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            one_of("state", EvaluationState, "evaluation_state_known"),
            models.CheckConstraint(
                condition=Q(configurations_done__lte=models.F("configurations_total")),
                name="evaluation_progress_bounded",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.workload_id} {self.state}"


class Verdict(models.Model):
    """What one workload's plans come to on one configuration, kept until the evaluator changes."""

    workload_fingerprint = models.CharField(max_length=64)
    configuration = models.CharField(max_length=32)
    evaluator_version = models.CharField(max_length=40)
    status = models.CharField(max_length=12)
    report = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workload_fingerprint", "configuration", "evaluator_version"],
                name="verdict_once",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["ready", "conditional", "unsuitable", "unknown"]),
                name="verdict_status_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.configuration}: {self.status}"
