"""Runs workloads over listings and keeps the verdicts by workload, configuration and version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from evaluator.jobs import Workload
from evaluator.shortlist import Shortlist
from evaluator.verdict import MachineVerdict
from marketplace import models
from marketplace.models import Evaluation, Listing


def shortlist_for(
    workload: Workload, listings: QuerySet[Listing] | None = None, limit: int = 20
) -> Shortlist:
    """Ranks the listings (default: all current ones). Judges only what no kept verdict covers."""
    raise NotImplementedError


def judge_listing(workload: Workload, listing: Listing) -> MachineVerdict:
    """All plans on one listing, judged now, for the page that shows them."""
    raise NotImplementedError


def keep_workload(
    document: Mapping[str, Any], owner: User | None = None, preset_slug: str = ""
) -> models.Workload:
    """The row of a workload document; the same document of the same owner gives the same row.

    Raises InvalidWorkload, naming field, value read and value expected.
    """
    raise NotImplementedError


def keep_presets() -> list[models.Workload]:
    """Rows of all presets, made or refreshed."""
    raise NotImplementedError


def request_evaluation(workload: models.Workload) -> Evaluation:
    """A queued evaluation with an outbox message beside it, in one transaction."""
    raise NotImplementedError


def evaluate(evaluation_id: int) -> None:
    """Judges every current configuration, chunk by chunk. Safe to run twice."""
    raise NotImplementedError


def cancel(evaluation_id: int) -> bool:
    """Stops an evaluation before its next chunk. False if it had ended already."""
    raise NotImplementedError
