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
    """Of every plan met so far: its fit and the bytes that are missing, by plan and size of GPU,
    and its link, by plan and kind of machine. `size` is the place of each kind's among the sizes.
    """

    book: Workbook
    hardware: Hardware
    links: LinkTable
    number: dict[Plan, int] = field(default_factory=dict)
    size: Column = field(init=False)
    fit: Column = field(init=False)
    missing: Column = field(init=False)
    link: Column = field(init=False)

    def __post_init__(self) -> None:
        kept, kinds = self.hardware.kept, self.hardware.kinds
        if "size" not in kept:
            kept["size"], _ = numbered(kind.usable_bytes_per_gpu.value for kind in kinds)
        self.size, firsts = kept["size"], np.unique(kept["size"], return_index=True)[1]
        self._sizes = [kinds[first].usable_bytes_per_gpu.value for first in firsts]
        self.fit = np.empty((0, len(firsts)), dtype=np.int8)
        self.missing = np.empty((0, len(firsts)))
        self.link = np.empty((0, len(kinds)), dtype=np.int8)

    def rows(self, plans: Sequence[Plan]) -> Column:
        new = [plan for plan in dict.fromkeys(plans) if plan not in self.number]
        if new:
            self._add(new)
        return np.array([self.number[plan] for plan in plans], dtype=np.int64)

    def _add(self, plans: Sequence[Plan]) -> None:
        table = fit_table(self.book.workload, plans, self._sizes)
        self.number |= {plan: len(self.number) + at for at, plan in enumerate(plans)}
        self.fit = np.vstack([self.fit, table.word])
        self.missing = np.vstack([self.missing, table.missing])
        self.link = np.vstack([self.link, self.links.words(self.book, plans)])
