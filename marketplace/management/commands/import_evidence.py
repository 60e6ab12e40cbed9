"""Read a pasted output, show the facts, and store them on a machine of a listing."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evaluator.connections import to_plain
from evaluator.facts import RanBy
from marketplace.evidence import LARGEST_PASTE, NotKept, Origin, Preview, Ran, keep, preview
from marketplace.jobs_named import ran_on
from marketplace.management.tables import as_table, plain
from marketplace.models import Evidence, Listing
from marketplace.seen import seen_lines

NOTHING_MATCHES, USAGE, PARTLY = 1, 2, 3
RUN_BY = ("provider", "renter", "third-party")


class Command(BaseCommand):
    help = "Reads a pasted output, shows its facts, and stores them for a curator to review."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("listing", help="a listing's number or its key in the catalog")
        parser.add_argument("file", type=Path, help="a text file with the output")
        parser.add_argument("--by", choices=RUN_BY, default="renter", help="who ran it")
        parser.add_argument("--workload", default="", help="what ran: a preset or a saved slug")
        parser.add_argument("--plan", default="", help="the plan that ran, such as tp2")
        parser.add_argument("--dry-run", action="store_true", help="store nothing")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        """Exit codes: 0 stored or shown, 1 no fact in it, 2 usage, 3 damaged or not matching."""
        row = _listing(options["listing"])
        shown = _preview(row, options["file"])
        origin = Origin(None, RanBy(options["by"]), ran=_ran(row, options))
        kept = None if options["dry_run"] else _kept(row, shown, origin)
        write = _json if options["as_json"] else _table
        self.stdout.write(write(row, shown, kept))
        if not shown.storable:
            words = " ".join(problem.sentence for problem in shown.problems)
            raise CommandError(plain(words) or "no fact in it", returncode=NOTHING_MATCHES)
        if shown.mismatch or shown.problems:
            words = "; ".join((*shown.mismatch, *(one.sentence for one in shown.problems)))
            raise CommandError(plain(words), returncode=PARTLY)


def _listing(name: str) -> Listing:
    found = Listing.objects.select_related("provider", "seen_in").filter(
        **({"pk": int(name)} if name.isascii() and name.isdigit() else {"sku": name})
    )
    rows = list(found[:2])
    if len(rows) == 1:
        return rows[0]
    words = "no listing has it" if not rows else "several listings have it; give a number"
    raise CommandError(f"LISTING: read {plain(name)!r}, {words}", returncode=USAGE)


def _preview(row: Listing, path: Path) -> Preview:
    try:
        if path.stat().st_size > LARGEST_PASTE:
            raise CommandError(f"{path}: above {LARGEST_PASTE} bytes", returncode=USAGE)
        return preview(row, path.read_bytes().decode("utf-8", "replace"))
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", returncode=USAGE) from error


def _ran(row: Listing, options: dict[str, Any]) -> Ran | None:
    """What ran, where it is named: both or neither."""
    slug, plan = options["workload"], options["plan"]
    if not slug and not plan:
        return None
    if not slug or not plan:
        raise CommandError("--workload and --plan: read one, expected both", returncode=USAGE)
    try:
        return ran_on(row, slug, plan, None)
    except NotKept as refused:
        raise CommandError(plain(str(refused)), returncode=USAGE) from refused


def _kept(row: Listing, shown: Preview, origin: Origin) -> Evidence | None:
    if not shown.storable:
        return None
    try:
        return keep(row, shown, origin)
    except NotKept as refused:
        raise CommandError(str(refused), returncode=PARTLY) from refused


def _table(row: Listing, shown: Preview, kept: Evidence | None) -> str:
    return "\n".join(_lines(row, shown, kept))


def _lines(row: Listing, shown: Preview, kept: Evidence | None) -> Iterator[str]:
    yield plain(f"Evidence for {row} at {row.provider.name} (listing {row.pk})")
    removed = ", ".join(f"{count} × {kind}" for kind, count in shown.removed)
    yield f"Taken out before storage: {removed or 'nothing'}."
    lines = seen_lines(shown.sighting.facts) if shown.sighting else []
    if lines:
        cells = [[line.label, line.text, line.grade.word, line.caveat] for line in lines]
        yield as_table(("attribute", "value", "grade", "caveat"), cells)
    yield from (f"{one.metric}: {one.value:,.4g} {one.unit}" for one in shown.figures)
    yield from (plain(f"! {found.sentence} {found.remedy}") for found in shown.findings)
    yield from (plain(f"! {problem.sentence}") for problem in shown.problems)
    state = f"kept as evidence {kept.pk} on {kept.machine}, {kept.state}" if kept else "not kept"
    held = len(lines) + len(shown.figures)
    yield f"shown {held} of {held} facts; {state}"


def _json(row: Listing, shown: Preview, kept: Evidence | None) -> str:
    facts = shown.sighting.facts if shown.sighting else ()
    document = {
        "listing": row.pk,
        "formats": list(shown.sighting.formats) if shown.sighting else [],
        "facts": [
            {
                "name": one.name,
                "value": to_plain(one.value),
                "grade": one.grade.word,
                "caveat": one.caveat,
            }
            for one in facts
        ],
        "speeds": [
            {"metric": one.metric, "value": one.value, "unit": one.unit} for one in shown.figures
        ],
        "mismatch": list(shown.mismatch),
        "problems": [one.sentence for one in shown.problems],
        "removed": dict(shown.removed),
        "text": shown.text,
        "evidence": kept.pk if kept else None,
        "machine": kept.machine_id if kept else None,
    }
    return json.dumps(document, indent=2, ensure_ascii=False)
