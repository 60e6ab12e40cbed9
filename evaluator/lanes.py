"""Offers between which only the amount and the place decide: the cheaper one is always first.

Whoever looks for the first few looks at the first of every lane; the others of a lane matter only
where its first one does. A catalog has far fewer lanes than offers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluator.hardware import Column


@dataclass(frozen=True, slots=True)
class Lanes:
    """Groups of like offers, those of a lane together, by their rate and then by their place.

    `offer` is the offer of each group that comes first by place, `size` how many there are. `start`
    is where each lane begins; none is empty.
    """

    offer: Column
    size: Column
    start: Column

    def __len__(self) -> int:
        return len(self.start)

    @property
    def leaders(self) -> Column:
        """The first offer of each lane."""
        return self.offer[self.start]

    @property
    def groups(self) -> Column:
        """How many groups each lane holds."""
        return np.diff(self.start, append=len(self.offer))

    @property
    def offers(self) -> Column:
        """How many offers each lane holds."""
        if not len(self.start):
            return np.zeros(0, dtype=np.int64)
        held: Column = np.add.reduceat(self.size, self.start)
        return held

    def spread(self, by_lane: Column) -> Column:
        """A column by lane, by group."""
        return np.repeat(by_lane, self.groups)

    def lane_of(self, places: Column) -> Column:
        """The lanes in which groups at these places stand."""
        found: Column = np.searchsorted(self.start, places, side="right") - 1
        return found

    def members(self, lanes: Column) -> Column:
        """The places of all groups of some lanes, lane by lane."""
        count = self.groups[lanes]
        before = np.cumsum(count) - count
        found: Column = np.arange(count.sum()) + np.repeat(self.start[lanes] - before, count)
        return found

    def keep(self, wanted: Column) -> tuple[Lanes, Column]:
        """The lanes of the wanted groups, and which of the lanes before they are."""
        ends = np.append(0, np.cumsum(wanted))
        count = np.diff(ends[np.append(self.start, len(self.offer))])
        left = np.flatnonzero(count)
        start = np.cumsum(count[left]) - count[left]
        return Lanes(self.offer[wanted], self.size[wanted], start), left

    def without(self, place: int) -> tuple[Lanes, Column]:
        """All but the group at one place, likewise: quicker than to look at every group."""
        lane = int(self.lane_of(np.array([place]))[0])
        alone = self.groups[lane] == 1
        left = np.delete(np.arange(len(self)), [lane] if alone else [])
        start = self.start[left] - (self.start[left] > place)
        return Lanes(np.delete(self.offer, place), np.delete(self.size, place), start), left


@dataclass(frozen=True, slots=True)
class Order:
    """All offers lane by lane: `number` is the lane of each, `offer` lists them in order."""

    number: Column
    offer: Column

    @classmethod
    def of(cls, signs: Sequence[Column], per_hour: Column) -> Order:
        """Offers, in the order of their place, that have all signs alike share a lane."""
        number = np.zeros(len(per_hour), dtype=np.int64)
        for sign in signs:
            _, own = np.unique(sign, return_inverse=True)
            _, number = np.unique(number * (own.max(initial=0) + 1) + own, return_inverse=True)
        return cls(number, np.lexsort((per_hour, number)))

    def lanes(self, firsts: Column, sizes: Column) -> Lanes:
        """Of some offers, each of which stands for as many as its size."""
        size = np.zeros(len(self.offer), dtype=np.int64)
        size[firsts] = sizes
        offer = self.offer[size[self.offer] > 0]
        number = self.number[offer]
        start = np.flatnonzero(np.diff(number, prepend=-1))
        return Lanes(offer, size[offer], start)
