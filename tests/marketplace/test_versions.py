"""The catalog's version: what was written before something newer, and seen after it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from marketplace.models import SyncRun
from marketplace.models.catalog import Outcome
from marketplace.versions import catalog_version
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db


def test_a_save_that_is_seen_after_a_newer_one_changes_the_version() -> None:
    row = make_listing(make_source())
    newest = row.history.latest("history_id")
    key = newest.history_id
    seen = [catalog_version()]
    for later in (key + 2, key + 1):
        newest.history_id, newest.pk = later, later
        newest.save(force_insert=True)
        seen.append(catalog_version())
    assert len(set(seen)) == 3


def test_a_run_that_is_seen_after_one_that_ended_later_changes_the_version() -> None:
    source, now = make_source(), timezone.now()
    seen = [catalog_version()]
    for fence, at in enumerate((now, now - timedelta(seconds=1)), 10):
        SyncRun.objects.create(
            source=source,
            fence=fence,
            outcome=Outcome.FAILED,
            started_at=now,
            lease_until=now,
            finished_at=at,
        )
        seen.append(catalog_version())
    assert len(set(seen)) == 3


def test_nothing_written_is_the_same_version() -> None:
    make_listing(make_source())
    assert catalog_version() == catalog_version()
