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
class Groups:
    """Groups of like offers, each at a place of its own: lane by lane, by their rate, by the place
    of their offers.

    `offer` is the first offer of each, `size` how many there are, `before` how many offers stand
    before each place and at last how many there are. `place` is that of the group of each offer
    which is the first of one, -1 for all others.
    """

    offer: Column
    size: Column
    before: Column
    place: Column

    @classmethod
    def of(cls, offer: Column, size: Column, offers: int) -> Groups:
        place = np.full(offers, -1)
        place[offer] = np.arange(len(offer))
        return cls(offer, size, np.append(0, np.cumsum(size)), place)

    def at(self, places: Column) -> Groups:
        return Groups.of(self.offer[places], self.size[places], len(self.place))


@dataclass(frozen=True, slots=True)
class Lanes:
    """Which groups stand in lanes: in each so many `groups` from the place `start` on, at least
    one. Places that no lane holds are left out.
    """

    every: Groups
    start: Column
    groups: Column

    def __len__(self) -> int:
        return len(self.start)

    @property
    def leaders(self) -> Column:
        """The first offer of each lane."""
        return self.every.offer[self.start]

    @property
    def offers(self) -> Column:
        """How many offers each lane holds."""
        held: Column = self.every.before[self.start + self.groups] - self.every.before[self.start]
        return held

    @property
    def places(self) -> Column:
        """Of all groups, lane by lane."""
        return self.members(np.arange(len(self)))

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
        """The lanes of the wanted ones of all places, and which of the lanes before they are."""
        ends = np.append(0, np.cumsum(wanted))
        count = np.diff(ends[np.append(0, np.cumsum(self.groups))])
        left = np.flatnonzero(count)
        start = np.cumsum(count[left]) - count[left]
        return Lanes(self.every.at(self.places[wanted]), start, count[left]), left

    def keep_lanes(self, marked: Column) -> tuple[Lanes, Column]:
        """Likewise whole lanes: quicker than to look at every group."""
        left = np.flatnonzero(marked)
        return Lanes(self.every, self.start[left], self.groups[left]), left

    def without(self, place: int) -> tuple[Lanes, Column]:
        """Likewise all but the group at one place: most often the first of its lane."""
        lane = int(self.lane_of(np.array([place]))[0])
        if place != self.start[lane]:
            return self.keep(self.places != place)
        start, groups = self.start.copy(), self.groups.copy()
        start[lane] += 1
        groups[lane] -= 1
        left = np.flatnonzero(groups)
        return Lanes(self.every, start[left], groups[left]), left


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
        groups = np.diff(start, append=len(offer))
        return Lanes(Groups.of(offer, size[offer], len(self.offer)), start, groups)
