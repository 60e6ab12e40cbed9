"""How each finding about who brought evidence comes to be: pastes under a listing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from django.contrib.auth.models import User

from evaluator.facts import RanBy
from evaluator.findings import Code
from marketplace import rankings
from marketplace.evidence import Origin, keep, preview, review, seen_elsewhere
from marketplace.models import Evidence
from marketplace.models.evidence import EvidenceState
from marketplace.rented import pending_among
from tests.codes.pages import Made, Maker
from tests.pages.catalog import make_listing, make_source

SAMPLES = Path(__file__).parent.parent / "samples" / "evidence"
PAIRS = (SAMPLES / "8-gpus-nvlink-pairs.txt").read_text("utf-8")
TWO_GPUS = (SAMPLES / "2-gpus-nvlink.txt").read_text("utf-8")


def _kept() -> Evidence:
    row = make_listing(make_source())
    return keep(row, preview(row, PAIRS), Origin(User.objects.create_user("ada"), RanBy.RENTER))


def _mismatched() -> Made:
    return preview(make_listing(make_source()), TWO_GPUS).findings


def _own() -> Made:
    kept = _kept()
    return rankings.notes_of(kept.machine, pending_among([kept.machine]))


def _elsewhere() -> Made:
    kept = _kept()
    review(kept.pk, EvidenceState.ACCEPTED, None)
    return seen_elsewhere(kept.listing)


ROWS: Mapping[Code, Maker] = {
    Code.EVIDENCE_MISMATCH: _mismatched,
    Code.OWN_EVIDENCE: _own,
    Code.MEASURED_ELSEWHERE: _elsewhere,
}
