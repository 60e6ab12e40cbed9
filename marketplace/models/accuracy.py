"""What the accuracy command found, kept for the page that shows it."""

from __future__ import annotations

from django.db import models


class AccuracyReport(models.Model):
    """The newest summary of one kind of cases. `summary` holds the answer to every case, so that
    misses are shown too; the case files themselves are not part of the installation."""

    kind = models.CharField(max_length=20, unique=True)
    evaluator_version = models.CharField(max_length=40)
    kept_at = models.DateTimeField()
    summary = models.JSONField()

    class Meta:
        ordering = ["kind"]

    def __str__(self) -> str:
        return self.kind
