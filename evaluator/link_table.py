"""The link's word for many plans on many kinds of machine, each question asked once.

Where no pairs of a machine were seen, the word depends on what a plan demands and on few facts,
and not on the workload: such words are kept with the hardware.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
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
    """Places of words in `LinkWord` by kind of machine, asked once for kinds that are alike.

    `number` tells which of the `samples` stands for each kind.
    """

    number: Column
    samples: tuple[Machine, ...]
    _rows: dict[Demand, Column] = field(default_factory=dict)

    @classmethod
    def of(cls, kinds: Sequence[Machine], facts: Callable[[Machine], Hashable]) -> Words:
        number, firsts = numbered(facts(machine) for machine in kinds)
        return cls(number, tuple(kinds[first] for first in firsts))

    def row(self, plan: Plan, demand: Demand) -> Column:
        """`plan` is any plan that makes this demand."""
        if demand not in self._rows:
            words = [SEVERITY[demand_word(plan, demand, one)] for one in self.samples]
            self._rows[demand] = np.array(words, dtype=np.int8)
        found: Column = self._rows[demand][self.number]
        return found


@dataclass(frozen=True, slots=True)
class LinkTable:
    """`inside` judges groups that stay in one machine, `between` those that span several.

    `seen` are the kinds of which pairs were seen: they are judged plan by plan.
    """

    kinds: tuple[Machine, ...]
    inside: Words
    between: Words
    seen: tuple[int, ...]

    @classmethod
    def of(cls, hardware: Hardware) -> LinkTable:
        kinds = hardware.kinds
        seen = tuple(at for at, machine in enumerate(kinds) if machine.topology.known)
        return cls(kinds, Words.of(kinds, _inside), Words.of(kinds, _between), seen)

    def words(self, book: Workbook, plans: Sequence[Plan]) -> Column:
        """Places of the words in `LinkWord`, by plan and kind of machine."""
        found = np.zeros((len(plans), len(self.kinds)), dtype=np.int8)
        for place, plan in enumerate(plans):
            for demand in demands_of(plan):
                words = self.between if demand.machines > 1 else self.inside
                np.maximum(found[place], words.row(plan, demand), out=found[place])
        for kind in self.seen:
            found[:, kind] = [_word(book, plan, self.kinds[kind]) for plan in plans]
        return found


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
