"""Holds the evaluator's figures against measured cases and prints what misses."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from marketplace.accuracy.keeping import keep
from marketplace.accuracy.kinds import KINDS
from marketplace.accuracy.summary import KindSummary, Summary

NOTHING_MATCHES, USAGE, PARTLY_FAILED = 1, 2, 3


class Command(BaseCommand):
    help = "Judge cases of one kind: accuracy KIND PATH. Misses are answers; they exit with 0."
    requires_system_checks = ()  # pages take no part, and the database only with --keep

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("kind", choices=list(KINDS))
        parser.add_argument("path", type=Path, help="a case file or a folder of them")
        parser.add_argument("--keep", action="store_true", help="show the result on /accuracy")
        parser.add_argument("--json", action="store_true", help="print the summary as JSON")

    def handle(self, *args: Any, kind: str, path: Path, **options: Any) -> None:
        summary = _score(kind, path)
        if not summary.matched:
            raise CommandError(f"{path} holds no case", returncode=NOTHING_MATCHES)
        if options["keep"]:
            keep(summary, timezone.now())
        lines = [json.dumps(summary.as_dict())] if options["json"] else _report(summary, path)
        for line in lines:
            self.stdout.write(line)
        for line in summary.unreadable:
            self.stderr.write(f"not read: {line}")
        if summary.unreadable:
            sys.exit(PARTLY_FAILED)


def _score(kind: str, path: Path) -> Summary:
    try:
        return KINDS[kind](path)
    except OSError as problem:
        reason = problem.strerror or problem
        raise CommandError(f"{path} cannot be read: {reason}", returncode=USAGE) from problem


def _report(summary: Summary, path: Path) -> list[str]:
    """The request, a line for each kind, each miss, and how much was not judged."""
    head = f"{summary.kind} cases of {path}"
    rows = [_row(name, figures) for name, figures in summary.by_kind.items()]
    titles = f"{'kind':28}{'within':>10}{'median |err|':>14}{'bias':>9}{'worst':>9}{'inside':>8}"
    titles += f"{'width':>8}"
    misses = [
        f"misses  {miss.id}: predicted {miss.predicted}, measured {miss.measured}: {miss.why}"
        for miss in (*summary.misses, *summary.misses_beside)
    ]
    left_out = [
        f"not judged  {count} of kind {name}: outside what is modelled, never counted as within"
        for name, count in summary.not_judged.items()
    ]
    cuts = [_row(name, figures) for name, figures in summary.cuts.items()]
    groups = [_group_words(summary.groups)] if summary.groups else []
    shown, hidden = summary.cases, sum(summary.not_judged.values())
    end = f"{summary.within_tolerance} of {shown} within tolerance; {hidden} not judged."
    return [head, titles, *rows, *cuts, *misses, *left_out, *groups, *summary.notes, end]


def _group_words(groups: Mapping[str, int]) -> str:
    whole, right = groups["groups"], groups["right"]
    return f"groups  {right} of {whole}: our pick is within 10 % of the best measured one"


def _row(name: str, figures: KindSummary) -> str:
    within = f"{figures.within_tolerance}/{figures.cases}"
    errors = (figures.median_abs_rel_err, figures.bias, figures.worst)
    texts = [_percent(error, digits=2) for error in errors]
    inside = _percent(figures.inside_range, digits=0)
    width = "-" if figures.median_width is None else f"{figures.median_width:.3f}"
    head = f"{name:28}{within:>10}{texts[0]:>14}{texts[1]:>9}{texts[2]:>9}{inside:>8}"
    return f"{head}{width:>8}"


def _percent(share: float | None, digits: int) -> str:
    return "-" if share is None else f"{share:.{digits}%}"
