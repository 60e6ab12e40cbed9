"""All that is offered, as columns: made once for each version of a catalog, for every workload."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np

from evaluator.economics import Terms
from evaluator.hardware import Column, Hardware
from evaluator.jobs import Needs
from evaluator.lanes import Lanes, Order
from evaluator.link_table import LinkTable
from evaluator.machine import Availability, Machine
from evaluator.offer_table import OfferTable, met
from evaluator.offers import Offering
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
MOST_TERMS = 8
"""Terms whose columns are kept, tens of bytes for each offer: a workload names any currency."""

Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Fleet:
    """Offers in the order of their place, and the distinct machines that they offer.

    `machine` and `group` number the machine and the group of like offers of each; `offered` is how
    many rentals the catalog has at least, by its own word; `waits` marks what cannot be had now.
    `members` are the offers group by group, each up to its end in `ends`.
    """

    table: OfferTable
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
    members: Column
    ends: Column
    _rates: OrderedDict[Terms, Rates] = field(default_factory=OrderedDict)
    _orders: OrderedDict[Terms, Order] = field(default_factory=OrderedDict)
    _lanes: OrderedDict[Terms, Lanes] = field(default_factory=OrderedDict)

    @classmethod
    def of(cls, offerings: Iterable[Offering], machines: Mapping[str, Machine]) -> Fleet:
        """`machines` holds the machine of every configuration; KeyError names a missing one."""
        return cls.on(OfferTable.of(offerings), machines)

    @classmethod
    def on(cls, table: OfferTable, machines: Mapping[str, Machine]) -> Fleet:
        """The same of offers that are columns already."""
        machine, firsts = met(table.configuration.number)
        configurations = tuple(table.configuration.at(first) for first in firsts)
        held = [machines[configuration] for configuration in configurations]
        gpus, hardware, group = _gpus(held), Hardware.of(held), table.group()
        return cls(
            table=table,
            configurations=configurations,
            hardware=hardware,
            links=LinkTable.of(hardware),
            rentals=Rentals.of(hardware.kinds),
            machine=machine,
            group=group,
            members=np.argsort(group, kind="stable"),
            ends=np.cumsum(np.bincount(group)),
            offered=_offered(table),
            waits=table.availability.read(WAITING.__contains__, bool),
            places=table.places(),
            prices=Prices.of(table, gpus[machine]),
        )

    def __len__(self) -> int:
        return len(self.table)

    def rates(self, terms: Terms) -> Rates:
        return _once(self._rates, terms, lambda: self.prices.rates(terms))

    def lanes(self, terms: Terms, inside: Column) -> Lanes:
        """The groups of the offers that are `inside`, lane by lane."""
        if not inside.all():
            return self._order(terms).lanes(*self._groups(inside))
        order = self._order(terms)
        return _once(self._lanes, terms, lambda: order.lanes(*self._groups(inside)))

    def _order(self, terms: Terms) -> Order:
        return _once(self._orders, terms, lambda: self._ordered(self.rates(terms)))

    def _ordered(self, rates: Rates) -> Order:
        billed = np.nan_to_num(rates.billed_hours, nan=-1.0)
        signs = (self.machine, billed, rates.spot, self.waits, self.offered)
        return Order.of(signs, rates.per_hour)

    def in_regions(self, needs: Needs) -> Column:
        """Whether each offer lies in a wanted region or zone. All do where none is named."""
        inside = np.full(len(self.table), not needs.regions)
        for region in needs.regions:
            inside[self.places.get(region.casefold(), NOWHERE)] = True
        return inside

    def _groups(self, inside: Column) -> tuple[Column, Column]:
        """The offer of each group that comes first by place, and how many there are."""
        kept = np.flatnonzero(inside)
        first = np.full(len(self.table), -1)
        first[self.group[kept[::-1]]] = kept[::-1]
        size = np.bincount(self.group[kept], minlength=len(self.table))
        present = first >= 0
        return first[present], size[present]

    @cached_property
    def keys(self) -> Column:
        return self.table.key.astype(np.str_)

    @cached_property
    def doubt(self) -> Column:
        """Equal for offers of which the catalog itself gives the same to doubt."""
        return self.table.doubt()

    def distinct(self, asked: Column) -> int:
        """How many machines the offers are of that are asked for."""
        if asked.all():
            return len(self.configurations)
        return int((np.bincount(self.machine[asked]) > 0).sum())

    def alike(self, offer: int, inside: Column) -> tuple[Offering, ...]:
        """The offers of one group, in the order of their place."""
        group = self.group[offer]
        start = self.ends[group - 1] if group else 0
        held = self.members[start : self.ends[group]]
        if len(held) == 1:
            return (self.table.offer(offer),)
        return tuple(self.table.offer(place) for place in held[inside[held]])


def _once(held: OrderedDict[Terms, Kept], terms: Terms, make: Callable[[], Kept]) -> Kept:
    found = held.get(terms)
    if found is None:
        found = held[terms] = make()
        while len(held) > MOST_TERMS:
            held.popitem(last=False)
    return found


NOWHERE = np.array([], dtype=np.int64)


def _gpus(machines: Sequence[Machine]) -> Column:
    """GPUs of a whole rental of each; 0 is unknown."""
    held = [(one.gpu_count.value or 0) * one.nodes for one in machines]
    return np.array(held, dtype=np.int64)


def _offered(table: OfferTable) -> Column:
    quantity = table.quantity.read(lambda held: PLENTY if held is None else held, np.int64)
    sold_out = table.availability.read(Availability.SOLD_OUT.__eq__, bool)
    return np.where(sold_out, 0, np.minimum(quantity, PLENTY)).astype(np.int32)
