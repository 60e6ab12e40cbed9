"""All that is offered, as columns: made once for each version of a catalog, for every workload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from evaluator.economics import Terms
from evaluator.hardware import Column, Hardware, numbered
from evaluator.jobs import Needs
from evaluator.link_table import LinkTable
from evaluator.machine import Availability, Machine
from evaluator.offers import Offering, place_of, sameness
from evaluator.pace import Rentals
from evaluator.rates import Prices, Rates

WAITING = frozenset(
    {
        Availability.WAITLIST,
        Availability.PREORDER,
        Availability.LEAD_TIME,
        Availability.ON_REQUEST,
    }
)
"""The catalog itself says that it cannot be had now, and not when."""
PLENTY = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class Groups:
    """Offers that differ in nothing but their place, of those that are looked at.

    `first` is the offer of each group that comes first by place, `size` how many there are.
    """

    first: Column
    size: Column

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True, slots=True)
class Lanes:
    """Offers between which only the amount and the place decide: the cheaper one is always first.

    `number` is the lane of each offer, `position` its place among all by rate and then by place.
    """

    number: Column
    position: Column
    count: int

    def leaders(self, offers: Column) -> Column:
        """Whether each of the offers is the first of its lane among them."""
        lane, position = self.number[offers], self.position[offers]
        best = np.full(self.count, len(self.position))
        np.minimum.at(best, lane, position)
        found: Column = position == best[lane]
        return found

    def together(self, offers: Column, chosen: Column) -> Column:
        """Whether each of the offers is in the lane of a chosen one."""
        wanted = np.zeros(self.count, dtype=bool)
        wanted[self.number[chosen]] = True
        found: Column = wanted[self.number[offers]]
        return found


@dataclass(frozen=True)
class Fleet:
    """Offers in the order of their place, and the distinct machines that they offer.

    `machine` and `group` number the machine and the group of like offers of each; `offered` is how
    many rentals the catalog has at least, by its own word; `waits` marks what cannot be had now,
    `alone` groups of one.
    """

    offers: tuple[Offering, ...]
    configurations: tuple[str, ...]
    hardware: Hardware
    links: LinkTable
    rentals: Rentals
    machine: Column
    group: Column
    offered: Column
    waits: Column
    places: Mapping[str, Column]
    prices: Prices
    alone: Column
    _rates: dict[Terms, Rates] = field(default_factory=dict)
    _lanes: dict[Terms, Lanes] = field(default_factory=dict)

    @classmethod
    def of(cls, offerings: Iterable[Offering], machines: Mapping[str, Machine]) -> Fleet:
        """`machines` holds the machine of every configuration; KeyError names a missing one."""
        offers = tuple(sorted(offerings, key=place_of))
        machine, firsts = numbered(one.configuration for one in offers)
        configurations = tuple(offers[first].configuration for first in firsts)
        held = [machines[configuration] for configuration in configurations]
        gpus, hardware = [_gpus(one) for one in held], Hardware.of(held)
        group, _ = numbered(map(sameness, offers))
        return cls(
            offers=offers,
            configurations=configurations,
            hardware=hardware,
            links=LinkTable.of(hardware),
            rentals=Rentals.of(hardware.kinds),
            machine=machine,
            group=group,
            alone=np.bincount(group) == 1,
            offered=np.array([_offered(one) for one in offers], dtype=np.int32),
            waits=np.array([one.availability in WAITING for one in offers], dtype=bool),
            places=_places(offers),
            prices=Prices.of(offers, [gpus[number] for number in machine]),
        )

    def rates(self, terms: Terms) -> Rates:
        if terms not in self._rates:
            self._rates[terms] = self.prices.rates(terms)
        return self._rates[terms]

    def lanes(self, terms: Terms) -> Lanes:
        if terms not in self._lanes:
            self._lanes[terms] = _lanes(self, self.rates(terms))
        return self._lanes[terms]

    def in_regions(self, needs: Needs) -> Column:
        """Whether each offer lies in a wanted region or zone. All do where none is named."""
        inside = np.full(len(self.offers), not needs.regions)
        for region in needs.regions:
            inside[self.places.get(region.casefold(), NOWHERE)] = True
        return inside

    def groups(self, inside: Column) -> Groups:
        """The groups of the offers that are `inside`."""
        return self.everything if inside.all() else self._groups(inside)

    @cached_property
    def everything(self) -> Groups:
        return self._groups(np.ones(len(self.offers), dtype=bool))

    def _groups(self, inside: Column) -> Groups:
        kept = np.flatnonzero(inside)
        first = np.full(len(self.offers), -1)
        first[self.group[kept[::-1]]] = kept[::-1]
        size = np.bincount(self.group[kept], minlength=len(self.offers))
        present = first >= 0
        return Groups(first[present], size[present])

    def alike(self, offer: int, inside: Column) -> tuple[Offering, ...]:
        """The offers of one group, in the order of their place."""
        if self.alone[self.group[offer]]:
            return (self.offers[offer],)
        held = np.flatnonzero((self.group == self.group[offer]) & inside)
        return tuple(self.offers[place] for place in held)


def _lanes(fleet: Fleet, rates: Rates) -> Lanes:
    """By machine, by how the rate is billed, and by what can be had of it."""
    signs = (np.nan_to_num(rates.billed_hours, nan=-1.0), rates.spot, fleet.waits, fleet.offered)
    number = fleet.machine.copy()
    for sign in signs:
        _, own = np.unique(sign, return_inverse=True)
        number = number * (own.max(initial=0) + 1) + own
    lanes, number = np.unique(number, return_inverse=True)
    position = np.empty(len(number), dtype=np.int64)
    position[np.argsort(rates.per_hour, kind="stable")] = np.arange(len(number))
    return Lanes(number, position, len(lanes))


NOWHERE = np.array([], dtype=np.int64)


def _gpus(machine: Machine) -> int | None:
    """GPUs of a whole rental."""
    return machine.gpu_count.value * machine.nodes if machine.gpu_count.value else None


def _offered(one: Offering) -> int:
    if one.availability is Availability.SOLD_OUT:
        return 0
    return PLENTY if one.quantity is None else min(one.quantity, PLENTY)


def _places(offers: Sequence[Offering]) -> Mapping[str, Column]:
    """Offers by the name of their region or zone, without case."""
    found: dict[str, list[int]] = {}
    for place, one in enumerate(offers):
        for name in {one.region.casefold(), one.zone.casefold()}:
            found.setdefault(name, []).append(place)
    return {name: np.array(held) for name, held in found.items()}
