"""The word for the link that a plan needs, with its reason and what would settle it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from evaluator.facts import Grade
from evaluator.findings import Finding
from evaluator.links import Use


class LinkWord(StrEnum):
    """Is the link that a plan needs there? From no worry to the end of the plan."""

    NOT_NEEDED = "not_needed"
    PROVEN = "proven"
    CLAIMED = "claimed"
    UNKNOWN = "unknown"
    INSUFFICIENT = "insufficient"
    CONTRADICTED = "contradicted"

    @property
    def stops(self) -> bool:
        """Whether a plan with this word cannot be recommended."""
        return self in (LinkWord.INSUFFICIENT, LinkWord.CONTRADICTED)


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """One group of a plan: what it does, what it moves in numbers, and the word for its link.

    `use` is what the group does over its link.
    """

    name: str
    word: LinkWord
    need: str
    reason: str
    settled_by: str = ""
    cleared_by: str = ""
    machines: int = 1
    use: Use | None = None


SEVERITY = {word: place for place, word in enumerate(LinkWord)}


@dataclass(frozen=True, slots=True)
class LinkVerdict:
    """`need` says in numbers what the plan moves; `settled_by` is the command that would tell, and
    `cleared_by` the result of it that would clear the doubt.

    `grade` is that of the weakest fact which the word rests on. `groups` are the GPU indices that
    the plan should pin, where the pairs are known. `parts` has the same for every group, in the
    order of the plan.
    """

    word: LinkWord
    reason: str
    need: str = ""
    grade: Grade = Grade.UNKNOWN
    settled_by: str = ""
    findings: tuple[Finding, ...] = ()
    cleared_by: str = ""
    groups: tuple[tuple[int, ...], ...] = ()
    parts: tuple[GroupVerdict, ...] = ()


Doubt = LinkVerdict | GroupVerdict


def cost_to_settle(
    verdict: Doubt, machine_hour: Decimal | None, machines: int = 1
) -> Decimal | None:
    """What it costs to settle a link: one rented hour of the machines that the test needs.

    None where nothing has to be settled, or the rate of an hour is not known.
    """
    if not verdict.settled_by or machine_hour is None:
        return None
    return machine_hour * machines
