"""A line of the host checklist: what is asked, the word, why, how well it is known, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from evaluator.facts import Fact, Grade
from evaluator.findings import Code, Finding, finding


class HostWord(StrEnum):
    PASS = "pass"  # noqa: S105  # the word of a checklist, not a password
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class HostItem:
    """One line of the checklist. `name` is what is asked, `reason` one sentence.

    `facts` are the machine's attributes that the word stands on, `grade` is that of the weakest
    of them. `remedy` says what would turn the word into a pass; a fail always has one.
    """

    name: str
    word: HostWord
    reason: str
    grade: Grade = Grade.UNKNOWN
    remedy: str = ""
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostCounts:
    """How many items passed, failed, are unknown. Never a percentage."""

    passed: int
    failed: int
    unknown: int


def count(items: Iterable[HostItem]) -> HostCounts:
    words = [item.word for item in items]
    return HostCounts(*(words.count(word) for word in HostWord))


def failures(items: Iterable[HostItem]) -> list[HostItem]:
    return [item for item in items if item.word is HostWord.FAIL]


def host_findings(items: Iterable[HostItem]) -> tuple[Finding, ...]:
    """One finding that names everything the listing does not state."""
    unknown = [item.name for item in items if item.word is HostWord.UNKNOWN]
    return (finding(Code.HOST_UNKNOWN, items=", ".join(unknown)),) if unknown else ()


@dataclass(frozen=True, slots=True)
class Asked:
    """What an item asks, and of which attributes; makes the item once the word is known."""

    name: str
    facts: tuple[str, ...] = ()
    remedy: str = ""

    def passes(self, reason: str, grade: Grade) -> HostItem:
        return HostItem(self.name, HostWord.PASS, reason, grade, "", self.facts)

    def fails(self, reason: str, grade: Grade, remedy: str = "") -> HostItem:
        return HostItem(self.name, HostWord.FAIL, reason, grade, remedy or self.remedy, self.facts)

    def unknown(self, reason: str, grade: Grade = Grade.UNKNOWN, remedy: str = "") -> HostItem:
        return HostItem(
            self.name, HostWord.UNKNOWN, reason, grade, remedy or self.remedy, self.facts
        )


def weakest(*facts: Fact[Any]) -> Grade:
    """The grade of what is known least."""
    return min((fact.grade for fact in facts), default=Grade.UNKNOWN)
