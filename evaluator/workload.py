"""The workload file: reading it with an error for everything that is not understood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluator.jobs import Workload


def parse_workload(document: Mapping[str, Any]) -> Workload:
    """A workload from the keys of a workload file. Raises InvalidWorkload and nothing else."""
    raise NotImplementedError


def workload_presets() -> Mapping[str, Mapping[str, Any]]:
    """Workload documents by slug, ready for `parse_workload`."""
    raise NotImplementedError
