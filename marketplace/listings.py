"""Queries over listings: what is offered now, with its current prices, in few round trips."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import QuerySet

from marketplace.models import Listing, Price


def current() -> QuerySet[Listing]:
    """Listings that their source still shows, with provider and source joined."""
    return Listing.objects.filter(gone_at__isnull=True).select_related("provider", "source")


def detailed() -> QuerySet[Listing]:
    """Any listing with all that its page shows: source, snapshot, prices, evidence, facts."""
    return Listing.objects.select_related("provider", "source", "seen_in").prefetch_related(
        "prices", "facts", "evidence"
    )


def current_prices(listings: Iterable[int]) -> QuerySet[Price]:
    """Prices that are in force for the listings of these keys."""
    return Price.objects.filter(listing__in=listings, superseded_at__isnull=True)
