"""Bring a list of machines from a CSV or JSON file, with a mapping and a dry run."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils.text import slugify

from marketplace.catalog.profile import InvalidProfile, read_profile
from marketplace.models import Provider, Source

USAGE = 2


class Command(BaseCommand):
    help = (
        "Import listings from FILE into the source KEY, which is made where it is missing. "
        "The mapping stays with the source. --dry-run shows the differences and writes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("key", metavar="KEY")
        parser.add_argument("path", metavar="FILE", type=Path)
        parser.add_argument("--provider", help="name of the provider of a new source")
        parser.add_argument("--map", dest="mapping", type=Path, help="a profile as JSON")
        parser.add_argument("--dry-run", action="store_true", help="show the changes, write none")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *, key: str, path: Path, dry_run: bool, **options: Any) -> None:
        if not path.is_file():
            raise CommandError(f"FILE: read {path}, expected a file", returncode=USAGE)
        profile = _mapping(options["mapping"])
        with transaction.atomic():
            source = _source(key, options["provider"], profile)
            if dry_run:
                self._sync(source, path, dry_run, options["as_json"])
                transaction.set_rollback(True)
                return
        self._sync(source, path, dry_run, options["as_json"])

    def _sync(self, source: Source, path: Path, dry_run: bool, as_json: bool) -> None:
        call_command(
            "sync_catalog",
            source.key,
            path=path,
            dry_run=dry_run,
            as_json=as_json,
            stdout=self.stdout,
            stderr=self.stderr,
        )


def _mapping(path: Path | None) -> dict[str, Any] | None:
    """The profile in a file, None where no file is named. Raises CommandError."""
    if path is None:
        return None
    try:
        return read_profile(json.loads(path.read_text("utf-8"))).as_json()
    except (OSError, ValueError) as error:
        said = str(error) if isinstance(error, InvalidProfile) else f"read no JSON in {path}"
        raise CommandError(f"--map: {said}", returncode=USAGE) from error


def _source(key: str, provider: str | None, profile: dict[str, Any] | None) -> Source:
    """The source of that key, made with its provider where it is missing. Raises CommandError."""
    source = Source.objects.filter(key=key).first() or _new_source(key, provider)
    if source.adapter != "import":
        read = f"{key}, which is read by {source.adapter}"
        raise CommandError(f"KEY: read {read}, expected a source of imports", returncode=USAGE)
    if profile is not None and source.profile != profile:
        source.profile = profile
        source.save(update_fields=["profile"])
    return source


def _new_source(key: str, name: str | None) -> Source:
    if slugify(key) != key or not name:
        expected = "a key of small letters, digits and hyphens, and --provider NAME"
        raise CommandError(
            f"KEY: read {key!r}, a new source; expected {expected}", returncode=USAGE
        )
    provider, _ = Provider.objects.get_or_create(slug=slugify(name)[:64], defaults={"name": name})
    return Source.objects.create(
        provider=provider, key=key, kind="feed", adapter="import", enabled=False
    )
