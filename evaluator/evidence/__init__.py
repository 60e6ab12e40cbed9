"""Terminal output in, facts out. Pure: text to readings, no files, clock or network."""

from evaluator.evidence.pastes import LARGEST_BYTES, read_evidence
from evaluator.evidence.readings import (
    BandwidthMatrix,
    BenchmarkRow,
    Format,
    Matrix,
    MigInstance,
    Nearest,
    Nic,
    NvlinkStatus,
    PcieLink,
    Problem,
    Reading,
    Scrubbed,
    Sign,
    Span,
    Standing,
    Transport,
    Trouble,
    UnreadableEvidence,
)
from evaluator.evidence.scrubbing import scrub

__all__ = [
    "LARGEST_BYTES",
    "BandwidthMatrix",
    "BenchmarkRow",
    "Format",
    "Matrix",
    "MigInstance",
    "Nearest",
    "Nic",
    "NvlinkStatus",
    "PcieLink",
    "Problem",
    "Reading",
    "Scrubbed",
    "Sign",
    "Span",
    "Standing",
    "Transport",
    "Trouble",
    "UnreadableEvidence",
    "read_evidence",
    "scrub",
]
