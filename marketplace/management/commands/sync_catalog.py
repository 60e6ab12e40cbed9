"""Sync sources now, from the network or from files."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.db.models import Q

from evaluator.findings import recall
from marketplace import sources, sync
from marketplace.catalog.failures import FetchError
from marketplace.catalog.registry import (
    ADAPTERS,
    SourceDefinition,
    UnknownAdapter,
    definitions_for_folder,
    files_without_listings,
)
from marketplace.models import Source, SyncRun
from marketplace.models.catalog import Outcome

NOTHING_MATCHES, USAGE, PARTLY_FAILED = 1, 2, 3
GOOD = (Outcome.PUBLISHED, Outcome.UNCHANGED)
FINDINGS_SHOWN = 5

Report = dict[str, Any]


class Command(BaseCommand):
    help = "Sync sources by key, provider or adapter; without a name, all that are switched on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("names", nargs="*", metavar="SOURCE")
        parser.add_argument("--from", dest="path", type=Path, help="a file or folder to read")
        parser.add_argument("--stored", action="store_true", help="read the stored pages again")
        parser.add_argument("--dry-run", action="store_true", help="show the changes, write none")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *, names: list[str], as_json: bool, **options: Any) -> None:
        path, dry_run = options["path"], options["dry_run"]
        sources.keep_known_sources()
        if path and options["stored"]:
            raise CommandError("--stored: read --from as well, expected one", returncode=USAGE)
        if path:
            reports, bare = _from_path(names, path, dry_run)
        elif options["stored"]:
            reports, bare = [_replay(source, dry_run) for source in _named(names)], []
        else:
            reports, bare = [_sync(source, None, dry_run) for source in _named(names)], []
        write = _write_json if as_json else _write_table
        self.stdout.write(write(_request(names, path, dry_run), reports, bare))
        failed = [report for report in reports if report["outcome"] not in GOOD]
        for report in failed:
            self.stderr.write(f"{report['source']}: {report['outcome']}: {report['reason']}")
        if failed:
            sys.exit(PARTLY_FAILED)


def _named(names: list[str]) -> list[Source]:
    """Sources by key, provider or adapter. Raises CommandError for a name that means none."""
    if not names:
        found = list(Source.objects.filter(enabled=True))
        if not found:
            raise CommandError("No source is switched on.", returncode=NOTHING_MATCHES)
        return found
    chosen = {source.pk: source for name in names for source in _meant(name)}
    return sorted(chosen.values(), key=lambda source: source.key)


def _meant(name: str) -> list[Source]:
    found = list(Source.objects.filter(Q(key=name) | Q(provider__slug=name) | Q(adapter=name)))
    if not found:
        known = ", ".join(Source.objects.values_list("key", flat=True))
        message = f"SOURCE: read {name!r}, expected a source, provider or adapter of: {known}"
        raise CommandError(message, returncode=NOTHING_MATCHES)
    return found


def _from_path(names: list[str], path: Path, dry_run: bool) -> tuple[list[Report], list[str]]:
    """Reports, and the files that hold no listings."""
    if len(names) != 1 or not path.exists():
        read = f"{len(names)} names" if path.exists() else f"{path}, which is not there"
        raise CommandError(f"--from: read {read}, expected one SOURCE and a path", returncode=USAGE)
    name = names[0]
    if name not in ADAPTERS or Source.objects.filter(key=name).exists():
        return [_from_file(source, path, dry_run) for source in _one(name)], []
    try:
        definitions = definitions_for_folder(name, path)
    except UnknownAdapter as error:
        raise CommandError(str(error), returncode=USAGE) from error
    bare = [file.name for file in files_without_listings(path)]
    if not definitions:
        raise CommandError(f"--from: no file in {path} holds listings", returncode=NOTHING_MATCHES)
    return [_from_definition(definition, dry_run) for definition in definitions], bare


def _one(name: str) -> list[Source]:
    found = _meant(name)
    if len(found) > 1:
        keys = ", ".join(source.key for source in found)
        raise CommandError(f"SOURCE: {name!r} means several: {keys}", returncode=USAGE)
    return found


def _from_file(source: Source, path: Path, dry_run: bool) -> Report:
    if path.is_dir():
        raise CommandError(f"--from: read the folder {path}, expected a file", returncode=USAGE)
    return _sync(source, path, dry_run)


def _from_definition(definition: SourceDefinition, dry_run: bool) -> Report:
    with transaction.atomic():
        source = sources.keep_source(definition)
        if dry_run:
            report = _sync(source, definition.file, dry_run)
            transaction.set_rollback(True)
            return report
    return _sync(source, definition.file, dry_run)


def _sync(source: Source, path: Path | None, dry_run: bool) -> Report:
    if not dry_run:
        run = sync.sync_file(source.pk, path) if path else sync.sync_source(source.pk)
        return _report(source, run)
    try:
        return _report(source, sync.rehearse(source.pk, path))
    except (FetchError, OSError) as failure:
        return _entry(source, Outcome.FAILED, str(failure), {}, {})


def _replay(source: Source, dry_run: bool) -> Report:
    """The pages of the newest visit read by what we know now, without the network."""
    read = sync.rehearse_stored if dry_run else sync.reparse
    return _report(source, read(source.pk))


def _report(source: Source, run: SyncRun | None) -> Report:
    if run is None:
        said = "Another worker is at it, or nothing is stored."
        return _entry(source, "busy", said, {}, {})
    told = [recall(stored).sentence for stored in run.findings]
    return {**_entry(source, run.outcome, run.reason, run.counts, run.drift), "findings": told}


def _entry(source: Source, outcome: str, reason: str, counts: Report, drift: Report) -> Report:
    return {
        "source": source.key,
        "provider": source.provider.slug,
        "outcome": str(outcome),
        "reason": reason,
        "counts": counts,
        "drift": drift,
        "findings": [],
    }


def _request(names: list[str], path: Path | None, dry_run: bool) -> Report:
    return {"sources": names, "from": str(path) if path else None, "dry_run": dry_run}


def _totals(reports: list[Report]) -> Report:
    quarantined: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    for report in reports:
        quarantined.update(report["counts"].get("quarantined", {}))
        left_out.update(report["counts"].get("left_out", {}))
    return {
        "sources": len(reports),
        "outcomes": dict(Counter(report["outcome"] for report in reports)),
        "listings": sum(report["counts"].get("listings", 0) for report in reports),
        "quarantined": dict(sorted(quarantined.items())),
        "left_out": dict(sorted(left_out.items())),
    }


def _write_json(request: Report, reports: list[Report], bare: list[str]) -> str:
    answer = {"request": request, "sources": reports, "no_listings": bare}
    return json.dumps({**answer, "totals": _totals(reports)}, indent=1, ensure_ascii=False)


def _write_table(request: Report, reports: list[Report], bare: list[str]) -> str:
    return "\n".join(_lines(request, reports, bare))


def _lines(request: Report, reports: list[Report], bare: list[str]) -> Iterator[str]:
    named = " ".join(request["sources"]) or "all sources that are switched on"
    origin = f", read from {request['from']}" if request["from"] else ""
    yield f"Sync of {named}{origin}{', written nowhere' if request['dry_run'] else ''}"
    yield f"{'source':<32} {'outcome':<10} {'listings':>8} {'new':>6} {'changed':>7} {'gone':>5}"
    for report in reports:
        yield from _source_lines(report, with_drift=request["dry_run"])
    totals = _totals(reports)
    yield f"quarantined: {_told(totals['quarantined'])}; left out: {_told(totals['left_out'])}"
    hidden = (
        f", {len(bare)} hidden because they hold no listings: {', '.join(bare)}" if bare else ""
    )
    yield f"shown {len(reports)} of {len(reports) + len(bare)} sources{hidden}"


def _source_lines(report: Report, *, with_drift: bool) -> Iterator[str]:
    counts = report["counts"]
    numbers = [counts.get(name, 0) for name in ("listings", "new", "changed", "gone")]
    row = "{:>8} {:>6} {:>7} {:>5}".format(*numbers)
    yield f"{report['source']:<32} {report['outcome']:<10} {row}"
    if counts.get("quarantined"):
        yield f"    quarantined: {_told(counts['quarantined'])}"
    yield from (f"    {told}" for told in report["findings"][:FINDINGS_SHOWN])
    if more := report["findings"][FINDINGS_SHOWN:]:
        yield f"    and {len(more)} more findings on its pages"
    if with_drift:
        for change, names in report["drift"].items():
            yield from (f"    {change}: {name}" for name in names)


def _told(counts: dict[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in counts.items()) or "none"
