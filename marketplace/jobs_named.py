"""What ran while speeds were measured, by the name under which it is kept: a preset, or a workload
that somebody saved."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Q, QuerySet

from evaluator.fields import InvalidWorkload
from evaluator.jobs import Workload
from evaluator.workload import parse_workload, workload_presets
from marketplace import models
from marketplace.evaluations import judge_listing
from marketplace.evidence import NotKept, Ran
from marketplace.models import Listing

Reader = User | AnonymousUser | None
"""None reads all: whoever has a shell of the installation has its database."""
MOST_NAMED = 50


@dataclass(frozen=True, slots=True)
class Job:
    """`workload` is None where the reader may not know it. Only a preset has an address."""

    name: str
    workload: Workload | None
    preset: bool = False


PRIVATE = Job("a workload of its uploader's", None)


def jobs_named(slugs: Collection[str], reader: Reader) -> dict[str, Job]:
    """By slug. Whoever may see a speed need not be allowed to read what ran."""
    presets = workload_presets()
    found = {slug: _preset(slug) for slug in slugs if slug in presets}
    others = [slug for slug in slugs if slug not in presets]
    if others:
        rows = _readable(reader).filter(slug__in=others)
        known = {row.slug: _saved(row) for row in rows}
        found |= {slug: known.get(slug, PRIVATE) for slug in others}
    return found


def _preset(slug: str) -> Job:
    workload = parse_workload(workload_presets()[slug])
    return Job(workload.name, workload, preset=True)


def _saved(row: models.Workload) -> Job:
    """A file that an earlier version took may be refused by this one: its name is still known."""
    try:
        return Job(row.name, parse_workload(row.document))
    except InvalidWorkload:
        return Job(row.name, None)


def _readable(reader: Reader) -> QuerySet[models.Workload]:
    rows = models.Workload.objects.filter(preset=False)
    if reader is None:
        return rows
    own = Q(owner__isnull=True)
    return rows.filter(own | Q(owner=reader.pk) if reader.pk else own)


def own_jobs(owner: User) -> list[tuple[str, str]]:
    """Saved workloads by slug and name, newest first, for a form to choose from."""
    rows = models.Workload.objects.filter(preset=False, owner=owner).order_by("-pk")
    return [(row.slug, f"{row.name} (saved)") for row in rows[:MOST_NAMED]]


def ran_on(listing: Listing, slug: str, plan: str, reader: Reader) -> Ran:
    """Raises NotKept for a workload that the reader cannot name, or a plan that is not there."""
    workload = jobs_named([slug], reader)[slug].workload
    if workload is None:
        told = ", ".join(workload_presets())
        raise NotKept(
            f"Workload that ran: read {slug[:40]!r}, expected a saved one or one of {told}."
        )
    keys = [one.plan.key for one in judge_listing(workload, listing).plans]
    if plan not in keys:
        told = ", ".join(keys[:6])
        raise NotKept(f"The plan {plan[:40]!r} is none of this machine. Expected one of {told}, …")
    return Ran(slug, plan)
