"""The host checklist: each item passes, fails or is unknown. Unknown never fails."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class HostWord(StrEnum):
    PASS = "pass"  # noqa: S105  # the word of a checklist, not a password
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class HostItem:
    """One line of the checklist. `name` is what is asked, `reason` one sentence."""

    name: str
    word: HostWord
    reason: str


@dataclass(frozen=True, slots=True)
class HostCounts:
    """How many items passed, failed, are unknown. Never a percentage."""

    passed: int
    failed: int
    unknown: int


def count(items: Iterable[HostItem]) -> HostCounts:
    words = [item.word for item in items]
    return HostCounts(*(words.count(word) for word in HostWord))
