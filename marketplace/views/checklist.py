"""The host checklist as rows of a page: fails first, each with the facts that it stands on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluator.candidates import Candidate
from evaluator.facts import Fact
from evaluator.host import HostCounts, HostItem, HostWord, count
from evaluator.machine import Machine
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
    item: HostItem
    grounds: tuple[Ground, ...]


@dataclass(frozen=True, slots=True)
class Checklist:
    """The items of one plan, `plan` in words."""

    plan: str
    counts: HostCounts
    lines: tuple[Line, ...]


def checklist_of(candidate: Candidate, machine: Machine) -> Checklist:
    """What fails, then what is open, then what passes; in each the order of the questions."""
    ordered = sorted(candidate.host, key=lambda item: FIRST[item.word])
    lines = tuple(Line(item, tuple(_grounds(item, machine))) for item in ordered)
    return Checklist(candidate.plan.plan.label, count(candidate.host), lines)


def _grounds(item: HostItem, machine: Machine) -> list[Ground]:
    """Topologies are shown as a picture of their own; only that one was seen is said here."""
    known = [(name, getattr(machine, name)) for name in item.facts]
    return [Ground(*_printed(name, fact), fact) for name, fact in known if fact.known]


def _printed(name: str, fact: Fact[Any]) -> tuple[str, str]:
    return ("Links, pair by pair", "see below") if name == "topology" else printed(name, fact.value)
