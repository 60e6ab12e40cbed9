from __future__ import annotations

import pytest
from django_celery_beat.models import PeriodicTask
from pytest_django import Settings

from marketplace import schedule, sources
from marketplace.catalog.registry import DEFINITIONS, SAMPLES
from marketplace.models import Provider, Source


@pytest.mark.django_db
def test_every_known_source_has_a_row_and_a_place_in_the_schedule() -> None:
    kept = sources.keep_known_sources()
    assert {source.key for source in kept} == {definition.key for definition in DEFINITIONS}
    tasks = PeriodicTask.objects.filter(task="visit_source")
    assert tasks.count() == len(kept)
    assert tasks.filter(enabled=True).count() == len(SAMPLES)
    assert PeriodicTask.objects.get(task="publish_outbox").enabled


@pytest.mark.django_db
def test_keeping_them_again_writes_nothing() -> None:
    sources.keep_known_sources()
    before = list(PeriodicTask.objects.values()), Source.history.count()
    sources.keep_known_sources()
    assert (list(PeriodicTask.objects.values()), Source.history.count()) == before
    assert Provider.objects.count() <= len(DEFINITIONS)


@pytest.mark.django_db
def test_what_a_curator_changed_stays_and_a_bundled_source_follows(settings: Settings) -> None:
    sources.keep_known_sources()
    Source.objects.filter(key="skypilot-verda").update(url="https://mine.example/", enabled=True)
    settings.SAMPLE_SERVER_URL = "http://127.0.0.1:9999"
    sources.keep_known_sources()
    curated = Source.objects.get(key="skypilot-verda")
    assert (curated.url, curated.enabled) == ("https://mine.example/", True)
    bundled = Source.objects.filter(bundled=True)
    assert all(source.url.startswith("http://127.0.0.1:9999/") for source in bundled)


def test_the_schedule_follows_a_source(source: Source) -> None:
    task = schedule.keep_in_step(source)
    assert (task.enabled, task.interval.every, task.interval.period) == (True, 3600, "seconds")
    source.enabled, source.interval_minutes = False, 30
    same = schedule.keep_in_step(source)
    assert (same.pk, same.enabled, same.interval.every) == (task.pk, False, 300)
    schedule.forget(source.pk)
    assert not PeriodicTask.objects.exists()


def test_a_source_without_an_address_is_never_due(source: Source) -> None:
    source.url = ""
    assert not schedule.keep_in_step(source).enabled
