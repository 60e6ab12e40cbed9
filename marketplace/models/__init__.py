"""Rows: the catalog and its history, evidence, workloads and their verdicts, the outbox."""

from marketplace.models.accuracy import AccuracyReport
from marketplace.models.catalog import (
    Listing,
    Price,
    Provider,
    QuarantinedRow,
    Snapshot,
    Source,
    SyncRun,
)
from marketplace.models.curation import GpuAlias
from marketplace.models.evaluation import Evaluation, Verdict, Workload
from marketplace.models.evidence import (
    Evidence,
    EvidenceReview,
    Fact,
    MeasuredFigure,
    RentedMachine,
)
from marketplace.models.hosts import Host
from marketplace.models.outbox import Outbox
from marketplace.models.saved import SavedShortlist

__all__ = [
    "AccuracyReport",
    "Evaluation",
    "Evidence",
    "EvidenceReview",
    "Fact",
    "GpuAlias",
    "Host",
    "Listing",
    "MeasuredFigure",
    "Outbox",
    "Price",
    "Provider",
    "QuarantinedRow",
    "RentedMachine",
    "SavedShortlist",
    "Snapshot",
    "Source",
    "SyncRun",
    "Verdict",
    "Workload",
]
