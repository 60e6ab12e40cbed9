"""Evaluate a workload on every current listing and print the ranked shortlist."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from evaluator.fields import InvalidWorkload
from evaluator.jobs import Workload
from evaluator.workload import parse_workload, workload_presets
from marketplace.checks import TAG as ENVIRONMENT
from marketplace.management.shortlist_shapes import SHAPES, closing_words
from marketplace.rankings import shortlist_for

NOTHING_MATCHES, USAGE = 1, 2
LARGEST_FILE = 2_000_000


class Command(BaseCommand):
    requires_system_checks = (ENVIRONMENT,)  # pages, forms and addresses take no part
    help = "Ranks the current listings for a workload: a JSON file, or the name of a preset."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workload", help="a workload file, or a preset")
        parser.add_argument("--limit", type=int, default=20, help="rows to show (default 20)")
        parser.add_argument(
            "--format", choices=["table", "json", "csv", "md"], default="table", dest="shape"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["limit"] < 1:
            raise CommandError("--limit must be at least 1", returncode=USAGE)
        workload = _workload(options["workload"])
        result = shortlist_for(workload, limit=options["limit"], weigh=True)
        self.stdout.write(SHAPES[options["shape"]](workload, result, timezone.now()))
        if options["shape"] == "csv":
            self.stderr.write(closing_words(result))
        if not any(row.status.serves for row in (*result.rows, *result.unranked)):
            raise CommandError("no listing serves this workload", returncode=NOTHING_MATCHES)


def _workload(name: str) -> Workload:
    try:
        return parse_workload(workload_presets().get(name) or _document(Path(name)))
    except InvalidWorkload as error:
        raise CommandError(str(error), returncode=USAGE) from error


def _document(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > LARGEST_FILE:
            read = f"read {path.stat().st_size:,} bytes"
            expected = f"expected at most {LARGEST_FILE:,}"
            raise CommandError(f"{path}: {read}, {expected}", returncode=USAGE)
        document: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        known = ", ".join(workload_presets())
        words = f"{path}: {error}; expected a JSON file or a preset ({known})"
        raise CommandError(words, returncode=USAGE) from error
    return document
