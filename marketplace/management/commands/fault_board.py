"""Tries every fault that Linkproof promises to survive and prints how each one went."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from marketplace.faults.board import Line, board, is_ready, totals
from marketplace.faults.catalogue import FAULTS
from marketplace.faults.trials import NoTrials, run_trials


class Command(BaseCommand):
    help = "Run the trials of all faults on real sockets, databases and workers. Takes minutes."

    def add_arguments(self, parser: CommandParser) -> None:
        numbers = [fault.number for fault in FAULTS]
        parser.add_argument(
            "--only", nargs="+", default=[], metavar="F03", choices=numbers, help="these faults"
        )
        parser.add_argument("--json", action="store_true", help="for a machine to read")

    def handle(self, *args: Any, **options: Any) -> None:
        only: Sequence[str] = options["only"]
        try:
            lines = board(run_trials(only), only)
        except NoTrials as error:
            raise CommandError(f"No trial ran: {error}") from error
        self.stdout.write(_as_json(lines) if options["json"] else "\n".join(_table(lines)))
        if not is_ready(lines):
            raise CommandError("A fault was not survived, or a starred one was not tried.")


def _as_json(lines: Sequence[Line]) -> str:
    told = [
        {
            "fault": line.fault.number,
            "starred": line.fault.first,
            "name": line.fault.name,
            "result": line.result.value,
            "trials": [{"name": one.name, "outcome": one.outcome} for one in line.trials],
        }
        for line in lines
    ]
    return json.dumps({"faults": told, "totals": totals(lines)}, indent=1, ensure_ascii=False)


def _table(lines: Sequence[Line]) -> Iterator[str]:
    for line in lines:
        star = "*" if line.fault.first else " "
        counts = [f"{line.count(word)} {word}" for word in ("passed", "failed", "skipped")]
        tried = ", ".join(told for told in counts if not told.startswith("0")) or "no trial"
        yield f"{line.fault.number}{star} {line.result.value:<12}  {line.fault.name} ({tried})"
        yield from (f"       failed: {one.name}" for one in line.trials if one.outcome == "failed")
    yield ", ".join(f"{count} {result}" for result, count in totals(lines).items())
