"""Sites that are visited: when the next request may go out, and whether one rests."""

from __future__ import annotations

from django.db import models


class Host(models.Model):
    """One site, shared by all sources on it, so that none of them asks too soon."""

    name = models.CharField(max_length=260, unique=True, help_text="Host, with an odd port.")
    next_at = models.DateTimeField(
        null=True, blank=True, help_text="No request before this time, whichever source asks."
    )
    rest_until = models.DateTimeField(
        null=True, blank=True, help_text="The site asked to be left alone, or kept failing."
    )
    failures = models.PositiveIntegerField(default=0, help_text="Visits in a row that failed.")
    reason = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
