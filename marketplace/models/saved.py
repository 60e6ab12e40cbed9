"""Answers that people kept, as they stood, and the tokens under which others may read them."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models
from django.urls import reverse

TOKEN_BYTES = 24
"""192 bits: nobody finds a shared answer by trying."""


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


class SavedShortlist(models.Model):
    """One answer of one person. `demands` is the query of its page, `rows` what it showed.

    `rows` never change: they hold the words of the day on which they were kept. Without `token`
    only the owner sees it.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="shortlists"
    )
    name = models.CharField(max_length=200)
    document = models.JSONField(help_text="The workload file.")
    demands = models.TextField(blank=True)
    sentence = models.TextField(blank=True)
    rows = models.JSONField(default=list)
    listings_total = models.PositiveIntegerField(default=0)
    evaluator_version = models.CharField(max_length=40)
    token = models.CharField(max_length=64, unique=True, null=True, blank=True)
    saved_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-saved_at", "-pk"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("saved_one", args=[self.pk])
