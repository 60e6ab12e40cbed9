"""What curators know better than any catalog."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Lower
from simple_history.models import HistoricalRecords


class GpuAlias(models.Model):
    """A spelling that a catalog uses for a card, and the card that it means.

    It speaks only where a text names no known card by itself.
    """

    spelling = models.CharField(max_length=80, help_text="As the catalog writes it.")
    model = models.CharField(max_length=80, help_text="A model of the list of known GPUs.")
    note = models.CharField(max_length=300, blank=True, help_text="How that is known.")
    created_at = models.DateTimeField(auto_now_add=True)

    history = HistoricalRecords()

    class Meta:
        ordering = ["spelling"]
        verbose_name = "GPU alias"
        verbose_name_plural = "GPU aliases"
        constraints = [
            models.UniqueConstraint(Lower("spelling"), name="gpu_alias_spelling_once"),
        ]

    def __str__(self) -> str:
        return f"{self.spelling} is {self.model}"
