"""Providers and sources of the registry as rows, each with its place in the schedule."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.db import transaction

from marketplace import schedule
from marketplace.catalog.registry import DEFINITIONS, SourceDefinition
from marketplace.models import Provider, Source


def keep_known_sources(definitions: Iterable[SourceDefinition] = DEFINITIONS) -> list[Source]:
    """Rows of all definitions and the whole schedule, made where they are missing."""
    with transaction.atomic():
        schedule.keep_outbox_poller()
        return [keep_source(definition) for definition in definitions]


def keep_source(definition: SourceDefinition) -> Source:
    """The row of a definition. What a curator has changed stays; only a bundled source, which
    nobody curates, follows the registry and the address of the sample server."""
    source, created = Source.objects.get_or_create(
        key=definition.key, defaults={"provider": _provider(definition), **_columns(definition)}
    )
    if definition.bundled and not created:
        _follow(source, definition)
    schedule.keep_in_step(source)
    return source


def _provider(definition: SourceDefinition) -> Provider:
    provider, _ = Provider.objects.get_or_create(
        slug=definition.provider, defaults={"name": definition.provider_name}
    )
    return provider


def _columns(definition: SourceDefinition) -> dict[str, object]:
    return {
        "kind": definition.kind,
        "adapter": definition.adapter,
        "url": definition.address(settings.SAMPLE_SERVER_URL),
        "interval_minutes": definition.interval_minutes,
        "bundled": definition.bundled,
        "enabled": definition.enabled,
        "profile": dict(definition.profile),
    }


def _follow(source: Source, definition: SourceDefinition) -> None:
    wanted = {name: _columns(definition)[name] for name in ("adapter", "url")}
    if any(getattr(source, name) != value for name, value in wanted.items()):
        for name, value in wanted.items():
            setattr(source, name, value)
        source.save()
