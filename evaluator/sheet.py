"""Whether plans fit kinds of machines and find their links there: one table that grows by plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from evaluator.fits import fit_table
from evaluator.hardware import Column, Hardware, numbered
from evaluator.link_table import LinkTable
from evaluator.plans import Plan
from evaluator.workbook import Workbook


@dataclass
class Sheet:
    """Fit and link of every plan met so far, by plan and kind of machine."""

    book: Workbook
    hardware: Hardware
    links: LinkTable
    number: dict[Plan, int] = field(default_factory=dict)
    fit: Column = field(init=False)
    missing: Column = field(init=False)
    link: Column = field(init=False)

    def __post_init__(self) -> None:
        usable = [machine.usable_bytes_per_gpu.value for machine in self.hardware.kinds]
        size, firsts = numbered(usable)
        self._sizes, self._size = [usable[first] for first in firsts], size
        self.fit, self.link = (np.empty((0, len(usable)), dtype=np.int8) for _ in range(2))
        self.missing = np.empty((0, len(usable)))

    def rows(self, plans: Sequence[Plan]) -> Column:
        new = [plan for plan in dict.fromkeys(plans) if plan not in self.number]
        if new:
            self._add(new)
        return np.array([self.number[plan] for plan in plans], dtype=np.int64)

    def _add(self, plans: Sequence[Plan]) -> None:
        table = fit_table(self.book.workload, plans, self._sizes)
        self.number |= {plan: len(self.number) + at for at, plan in enumerate(plans)}
        self.fit = np.vstack([self.fit, table.word[:, self._size]])
        self.missing = np.vstack([self.missing, table.missing[:, self._size]])
        self.link = np.vstack([self.link, self.links.words(self.book, plans)])
