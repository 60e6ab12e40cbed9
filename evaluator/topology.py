"""What a plan asks of the links between GPUs, held against what is known about them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evaluator.facts import Grade
from evaluator.findings import Finding


class LinkWord(StrEnum):
    """Is the link that a plan needs there?"""

    NOT_NEEDED = "not_needed"
    PROVEN = "proven"
    CLAIMED = "claimed"
    UNKNOWN = "unknown"
    INSUFFICIENT = "insufficient"
    CONTRADICTED = "contradicted"


@dataclass(frozen=True, slots=True)
class LinkVerdict:
    """`need` says in numbers what the plan moves; `settled_by` is the command that would tell.

    `grade` is that of the weakest fact which the word rests on.
    """

    word: LinkWord
    reason: str
    need: str = ""
    grade: Grade = Grade.UNKNOWN
    settled_by: str = ""
    findings: tuple[Finding, ...] = ()
