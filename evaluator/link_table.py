"""The link's word for many plans on many kinds of machine, each question asked once.

Where no pairs of a machine were seen, the word depends on what a plan demands and on few facts,
and not on the workload: such words are kept with the hardware.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from evaluator.hardware import Column, Hardware, numbered
from evaluator.link_verdicts import SEVERITY
from evaluator.links import Demand, demands_of
from evaluator.machine import Machine
from evaluator.plans import Plan
from evaluator.topology import demand_word, judge_link
from evaluator.workbook import Workbook


@dataclass(frozen=True, slots=True)
class Words:
    """Places of words in `LinkWord` by demand, asked once for kinds of machine that are alike.

    `number` tells which of the `samples` stands for each kind.
    """

    number: Column
    samples: tuple[Machine, ...]
    _rows: dict[Demand, Column] = field(default_factory=dict)

    @classmethod
    def of(cls, kinds: Sequence[Machine], facts: Callable[[Machine], Hashable]) -> Words:
        number, firsts = numbered(facts(machine) for machine in kinds)
        return cls(number, tuple(kinds[first] for first in firsts))

    def row(self, plan: Plan, demands: Iterable[Demand]) -> Column:
        """The worst word of some demands of a plan, by sample."""
        worst = np.zeros(len(self.samples), dtype=np.int8)
        for demand in demands:
            if demand not in self._rows:
                words = [SEVERITY[demand_word(plan, demand, one)] for one in self.samples]
                self._rows[demand] = np.array(words, dtype=np.int8)
            np.maximum(worst, self._rows[demand], out=worst)
        return worst


@dataclass(frozen=True, slots=True)
class LinkTable:
    """`inside` judges groups that stay in one machine, `between` those that span several.

    `seen` are the kinds of which pairs were seen: they are judged plan by plan.
    """

    kinds: tuple[Machine, ...]
    inside: Words
    between: Words
    seen: tuple[int, ...]
    _rows: dict[Plan, tuple[Column, Column]] = field(default_factory=dict)

    @classmethod
    def of(cls, hardware: Hardware) -> LinkTable:
        kinds = hardware.kinds
        seen = tuple(at for at, machine in enumerate(kinds) if machine.topology.known)
        return cls(kinds, Words.of(kinds, _inside), Words.of(kinds, _between), seen)

    def words(self, book: Workbook, plans: Sequence[Plan]) -> Column:
        """Places of the words in `LinkWord`, by plan (at least one) and kind of machine."""
        rows = [self._row(plan) for plan in plans]
        inside = np.array([row for row, _ in rows], dtype=np.int8)[:, self.inside.number]
        between = np.array([row for _, row in rows], dtype=np.int8)[:, self.between.number]
        found = np.maximum(inside, between)
        for kind in self.seen:
            found[:, kind] = [_word(book, plan, self.kinds[kind]) for plan in plans]
        return found

    def _row(self, plan: Plan) -> tuple[Column, Column]:
        """Alike for every workload, so kept."""
        if plan not in self._rows:
            within: list[Demand] = []
            across: list[Demand] = []
            for demand in demands_of(plan):
                (across if demand.machines > 1 else within).append(demand)
            self._rows[plan] = self.inside.row(plan, within), self.between.row(plan, across)
        return self._rows[plan]


def _word(book: Workbook, plan: Plan, machine: Machine) -> int:
    return SEVERITY[judge_link(plan, machine, "", book.exchanges(plan)).word]


def _inside(machine: Machine) -> Hashable:
    """What decides a word where no pairs were seen: claims, what the cards permit, conflicts."""
    return (
        machine.link.identity,
        machine.link_bytes_per_s.identity,
        tuple(spec.permits for spec in machine.specs),
        machine.conflicts,
        machine.topology.known,
    )


def _between(machine: Machine) -> Hashable:
    """What decides a word between machines: what is known of the network."""
    network = (machine.inter_node.identity, machine.inter_node_bytes_per_s.identity)
    return (*network, machine.topology.known)
