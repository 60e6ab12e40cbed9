"""Words on plans for cases, all of one turn at once: whether they fit, are linked, and why not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evaluator.fits import DOES_NOT_FIT, TIGHT, WORDS
from evaluator.hardware import Column
from evaluator.host_table import NAMES
from evaluator.link_verdicts import SEVERITY, LinkWord
from evaluator.sheet import Sheet
from evaluator.verdict import ORDER, Status, status_of

READY, CONDITIONAL, NOT_KNOWN, UNSUITABLE = (ORDER[status] for status in Status)
STATUS = np.array(
    [[ORDER[status_of(fits, link)] for link in LinkWord] for fits in WORDS], dtype=np.int8
)
"""By fit and link, on a host that fails nothing."""
STOPS = SEVERITY[LinkWord.INSUFFICIENT]
LINKS = tuple(LinkWord)
MISFIT, MEMORY_UNKNOWN = "the workload does not fit", "the memory per GPU is not known"
WHY = (
    "",
    MISFIT,
    *(f"the link is {word}" for word in LINKS[STOPS:]),
    *(f"the check of {name} fails" for name in NAMES[1:]),
    MEMORY_UNKNOWN,
)
"""Why a plan does not serve, the first cause of those that hold."""
FIRST_LINK, FIRST_HOST = 2, 2 + len(LINKS) - STOPS
NONE = -1
"""Stands for a plan where a case has fewer than others, or none."""


@dataclass
class Answers:
    """Columns of shape (cases, plans): `plans` are numbers of plans on a sheet, NONE behind the
    last of a case; `host` is the first item of the checklist that fails, 0 for none.
    """

    cases: Column
    plans: Column
    sheet: Sheet
    kinds: Column
    host: Column

    @cached_property
    def real(self) -> Column:
        return self.plans != NONE  # type: ignore[no-any-return]

    @cached_property
    def sizes(self) -> Column:
        return self.sheet.size[self.kinds][:, np.newaxis]

    @cached_property
    def fit(self) -> Column:
        return self.sheet.fit[self.plans, self.sizes]

    @cached_property
    def link(self) -> Column:
        return self.sheet.link[self.plans, self.kinds[:, np.newaxis]]

    @cached_property
    def missing(self) -> Column:
        return self.sheet.missing[self.plans, self.sizes]

    @cached_property
    def status(self) -> Column:
        able = self.real & (self.host == 0)
        return np.where(able, STATUS[self.fit, self.link], UNSUITABLE)

    @cached_property
    def serves(self) -> Column:
        found: Column = self.status <= CONDITIONAL
        return found

    @cached_property
    def served(self) -> Column:
        """By case, whether any plan serves."""
        return np.asarray(self.serves.any(axis=1))

    @cached_property
    def tier(self) -> Column:
        """As `Serving.tier`, of what serves."""
        found: Column = 2 * self.status + (self.fit == TIGHT)
        return found

    def why(self, rows: Column, columns: Column) -> Column:
        """Places in `WHY` of what does not serve."""
        host, link = self.host[rows, columns], self.link[rows, columns]
        rest = np.where(host > 0, FIRST_HOST - 1 + host, WHY.index(MEMORY_UNKNOWN))
        linked = np.where(link >= STOPS, FIRST_LINK - STOPS + link, rest)
        misfit = self.fit[rows, columns] == DOES_NOT_FIT
        return np.where(misfit, WHY.index(MISFIT), linked).astype(np.int8)

    def by_status(self) -> Column:
        """The lower the better; infinite for what does not serve."""
        return np.where(self.serves, self.status, np.inf)

    def by_miss(self) -> Column:
        """As `verdict.miss_of`; infinite for what serves."""
        ends = np.where(self.status == NOT_KNOWN, LAST, self.missing)
        return np.where(self.serves | ~self.real, np.inf, ends)


LAST = float(np.finfo(np.float64).max)
