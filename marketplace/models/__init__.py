"""Rows: the catalog and its history, evidence, workloads and their verdicts, the outbox."""

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
from marketplace.models.evidence import Evidence, Fact
from marketplace.models.hosts import Host
from marketplace.models.outbox import Outbox

__all__ = [
    "Evaluation",
    "Evidence",
    "Fact",
    "GpuAlias",
    "Host",
    "Listing",
    "Outbox",
    "Price",
    "Provider",
    "QuarantinedRow",
    "Snapshot",
    "Source",
    "SyncRun",
    "Verdict",
    "Workload",
]
