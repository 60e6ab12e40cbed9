"""The host checklist as rows of a page: fails first, each with the facts that it stands on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluator.candidates import Candidate
from evaluator.facts import Fact
from evaluator.first_step import FirstStep
from evaluator.host import HostCounts, HostItem, HostWord, count
from evaluator.machine import Machine
from evaluator.storage import LOCAL
from marketplace.seen import printed

FIRST = {HostWord.FAIL: 0, HostWord.UNKNOWN: 1, HostWord.PASS: 2}


@dataclass(frozen=True, slots=True)
class Ground:
    """One fact under an item: its label, its value in words, and where it is from."""

    label: str
    text: str
    fact: Fact[Any]


@dataclass(frozen=True, slots=True)
class Line:
    """`how` says where the item's own numbers come from, where no fact of the machine does."""

    item: HostItem
    grounds: tuple[Ground, ...]
    how: str = ""


@dataclass(frozen=True, slots=True)
class Checklist:
    """The items of one plan, `plan` in words."""

    plan: str
    counts: HostCounts
    lines: tuple[Line, ...]


def checklist_of(candidate: Candidate, machine: Machine, start: FirstStep | None) -> Checklist:
    """What fails, then what is open, then what passes; in each the order of the questions.

    `start` is the way to the first step, which the item of the disk tells.
    """
    ordered = sorted(candidate.host, key=lambda item: FIRST[item.word])
    told = {LOCAL.name: start.derivation} if start else {}
    lines = tuple(
        Line(item, tuple(_grounds(item, machine)), told.get(item.name, "")) for item in ordered
    )
    return Checklist(candidate.plan.plan.label, count(candidate.host), lines)


def _grounds(item: HostItem, machine: Machine) -> list[Ground]:
    """Topologies are shown as a picture of their own; only that one was seen is said here."""
    known = [(name, getattr(machine, name)) for name in item.facts]
    return [Ground(*_printed(name, fact), fact) for name, fact in known if fact.known]


def _printed(name: str, fact: Fact[Any]) -> tuple[str, str]:
    return ("Links, pair by pair", "see below") if name == "topology" else printed(name, fact.value)
