"""The front door: which outputs a pasted text holds, and what each of them says."""

from __future__ import annotations

from evaluator.evidence.readings import Problem, Reading, Trouble, UnreadableEvidence

LARGEST_BYTES = 2_000_000
"""A whole NCCL log of eight nodes stays below; a larger text is refused before it is read."""


def read_evidence(text: str) -> tuple[Reading, ...]:
    """Every output of a paste, in the order of the text.

    Raises UnreadableEvidence where nothing in it may be believed.
    """
    if len(text) > LARGEST_BYTES:
        expected = f"at most {LARGEST_BYTES:,} characters"
        raise UnreadableEvidence([Problem(Trouble.TOO_LARGE, 0, f"{len(text):,}", expected)])
    raise UnreadableEvidence([Problem(Trouble.UNSUPPORTED_FORMAT)])
