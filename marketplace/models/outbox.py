"""Work that a request left behind in its own transaction, for a poller to publish."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Outbox(models.Model):
    """A message of ids only. Published after commit, so a worker never starts before the row."""

    task = models.CharField(max_length=80)
    arguments = models.JSONField(default=list, help_text="Ids only.")
    created_at = models.DateTimeField(auto_now_add=True)
    published_at = models.DateTimeField(null=True, blank=True)
    handled_at = models.DateTimeField(
        null=True, blank=True, help_text="A worker ended the task, well or badly."
    )
    attempts = models.PositiveIntegerField(default=0)
    last_error = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "outbox"
        indexes = [
            models.Index(
                fields=["id"], condition=Q(published_at__isnull=True), name="outbox_waiting"
            )
        ]

    def __str__(self) -> str:
        return f"{self.task}{tuple(self.arguments)}"
