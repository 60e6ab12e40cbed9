"""The host checklist as rows of a page: fails first, each with the facts that it stands on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from evaluator.facts import Fact
from evaluator.host import HostItem, HostWord
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


def checklist_of(items: Iterable[HostItem], machine: Machine) -> list[Line]:
    """What fails, then what is open, then what passes; in each the order of the questions."""
    ordered = sorted(items, key=lambda item: FIRST[item.word])
    return [Line(item, tuple(_grounds(item, machine))) for item in ordered]


def _grounds(item: HostItem, machine: Machine) -> list[Ground]:
    """Topologies are shown as a picture of their own; only that one was seen is said here."""
    known = [(name, getattr(machine, name)) for name in item.facts]
    return [Ground(*_printed(name, fact), fact) for name, fact in known if fact.known]


def _printed(name: str, fact: Fact[Any]) -> tuple[str, str]:
    return ("Links, pair by pair", "see below") if name == "topology" else printed(name, fact.value)
