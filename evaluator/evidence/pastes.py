"""The front door: which outputs a pasted text holds, and what each of them says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from evaluator.evidence.amd_topology import read_amd
from evaluator.evidence.environments import read_environment
from evaluator.evidence.failures import complaint, find_failures, find_other_vendor
from evaluator.evidence.hwloc import read_hwloc
from evaluator.evidence.lines import Paste, read_paste
from evaluator.evidence.nccl_log import read_nccl_log
from evaluator.evidence.nccl_tests import read_nccl_tests
from evaluator.evidence.nccl_xml import read_nccl_xml
from evaluator.evidence.nvbandwidth import read_nvbandwidth
from evaluator.evidence.nvidia_csv import read_csv
from evaluator.evidence.nvidia_p2p import read_p2p
from evaluator.evidence.nvidia_query import read_query
from evaluator.evidence.nvidia_table import read_tables
from evaluator.evidence.nvidia_topo import read_topo
from evaluator.evidence.nvlink_status import read_gpu_lists
from evaluator.evidence.p2p_bandwidth import read_p2p_bandwidth
from evaluator.evidence.readings import (
    Format,
    Problem,
    Reading,
    Sign,
    Standing,
    Trouble,
    UnreadableEvidence,
)
from evaluator.evidence.rocm_topology import read_rocm
from evaluator.evidence.shared_memory import read_shared_memory

LARGEST_BYTES = 2_000_000
"""A whole NCCL log of eight nodes stays below; a larger text is refused before it is read."""

MOST_LINES = 50_000
"""Some twenty characters a line at the largest size: no tool writes shorter ones for long."""

READERS: tuple[Callable[[Paste], Iterator[Reading]], ...] = (
    read_topo,
    read_p2p,
    read_gpu_lists,
    read_tables,
    read_csv,
    read_query,
    read_rocm,
    read_amd,
    read_nccl_xml,
    read_hwloc,
    read_nccl_log,
    read_p2p_bandwidth,
    read_nvbandwidth,
    read_nccl_tests,
    read_environment,
    read_shared_memory,
)
"""One pass over the text each: the time grows with the length of the text, not faster."""


def read_evidence(text: str) -> tuple[Reading, ...]:
    """Every output of a paste, in the order of the text.

    Raises UnreadableEvidence where nothing in it may be believed.
    """
    if len(text.encode("utf-8", errors="replace")) > LARGEST_BYTES:
        expected = f"at most {LARGEST_BYTES:,} bytes"
        raise UnreadableEvidence([Problem(Trouble.TOO_LARGE, 0, f"{len(text):,}", expected)])
    paste = read_paste(text)
    if len(paste.lines) > MOST_LINES:
        expected = f"at most {MOST_LINES:,} lines"
        problem = Problem(Trouble.TOO_LARGE, 0, f"{len(paste.lines):,}", expected)
        raise UnreadableEvidence([problem])
    readings, refused = _ask_all(paste)
    if not readings:
        raise _nothing(paste, refused)
    return _marked(paste, readings, refused)


def _ask_all(paste: Paste) -> tuple[list[Reading], list[UnreadableEvidence]]:
    readings: list[Reading] = []
    refused: list[UnreadableEvidence] = []
    for reader in READERS:
        try:
            readings.extend(reader(paste))
        except UnreadableEvidence as problem:
            refused.append(problem)
    return sorted(readings, key=lambda reading: reading.line), refused


def _nothing(paste: Paste, refused: list[UnreadableEvidence]) -> UnreadableEvidence:
    """Why nothing was read: a reader's own words, a failed tool, another vendor, or no output."""
    if refused:
        return refused[0]
    other = find_other_vendor(paste)
    if other:
        return UnreadableEvidence([other], Format.XPU_TOPOLOGY)
    failures = list(find_failures(paste))
    if failures:
        return UnreadableEvidence([problem for problem, _ in failures], failures[0][1])
    expected = "nvidia-smi, rocm-smi, amd-smi, NCCL, nccl-tests, nvbandwidth or lstopo output"
    return UnreadableEvidence([Problem(Trouble.UNSUPPORTED_FORMAT, expected=expected)])


def _marked(
    paste: Paste, readings: list[Reading], refused: list[UnreadableEvidence]
) -> tuple[Reading, ...]:
    """What failed beside a reading is told on the first one: the rest of the paste stands."""
    first, *others = readings
    problems = tuple(problem for one in refused for problem in one.problems)
    signs = set(first.signs)
    if complaint(paste) or any(_is_error(problem) for problem, _ in find_failures(paste)):
        signs.add(Sign.ERROR_LINE)
    first = replace(
        first,
        signs=frozenset(signs),
        problems=(*first.problems, *problems),
        standing=Standing.PARTIAL if problems else first.standing,
    )
    return (first, *others)


def _is_error(problem: Problem) -> bool:
    """A report that names what it could not collect is no error message."""
    return problem.trouble is not Trouble.NOT_COLLECTED
