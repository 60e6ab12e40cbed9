"""What `make run` calls: migrate, sync the samples, print shortlists, serve."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from marketplace import quickstart

USAGE, PARTLY_FAILED = 2, 3


class Command(BaseCommand):
    help = "Syncs the bundled catalogs, prints a shortlist for each preset, and serves the site."

    def handle(self, *args: Any, **options: Any) -> None:
        port = _port()
        if not settings.EMBEDDED:
            raise CommandError(
                "quickstart is for the embedded mode: unset DATABASE_URL and REDIS_URL, or start "
                "the services that the README names.",
                returncode=USAGE,
            )
        quickstart.prepare(self._say)
        with quickstart.sample_server():
            well = quickstart.sync_samples(self._say)
            quickstart.judge_presets(self._say)
            if os.environ.get("ONCE") != "1":
                _serve(port, self._say)
        if not well:
            raise CommandError("a sample catalog could not be synced", returncode=PARTLY_FAILED)

    def _say(self, words: str) -> None:
        self.stdout.write(words)
        self.stdout.flush()


def _port() -> int:
    text = os.environ.get("PORT", "8000")
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65536:
        raise CommandError(f"PORT: read {text!r}, expected 1 to 65535", returncode=USAGE)
    return int(text)


def _serve(port: int, say: Any) -> None:
    try:
        quickstart.serve(port, say)
    except quickstart.PortTaken as taken:
        raise CommandError(str(taken), returncode=USAGE) from taken
