"""Many pairs of a plan and a rental timed in one call: the formulas of `timing`, on columns.

An element is one possible world of one pair; a pair whose worlds differ gets the span of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.devices import Device, Devices
from evaluator.engine_load import EngineModel
from evaluator.estimates import Estimate, EstimateColumns, Typical, estimate_columns, hull
from evaluator.jobs import Workload
from evaluator.layouts import Layout, Links, layout_at, layout_of, layouts_of
from evaluator.link_costs import Fabric, Fabrics, Wire, Wires
from evaluator.plans import Plan
from evaluator.ranges import Few, Range, exact
from evaluator.rentals import Rental
from evaluator.timing import (
    FIGURES,
    RATE_UNIT,
    STEP_UNIT,
    UNKNOWN_LINK,
    ServingTimes,
    cache_room,
    engine_on,
    engine_plan,
    inverse,
    is_sized,
)
from evaluator.token_time import Interactive, room_range
from evaluator.training_time import StepModel, busy_seconds

Column = NDArray[Any]


@dataclass(frozen=True, slots=True)
class RentalTable:
    """Distinct rentals as columns, made once for all plans and workloads.

    By rental: the number of its device, its usable bytes (NaN unknown), whether it can be timed at
    all, whether all its links are known, and where its worlds begin and how many they are. By
    world: the numbers of its wire and its network, -1 for none.
    """

    devices: Few[Device]
    wires: Few[Wire]
    fabrics: Few[Fabric]
    device: Column
    usable: Column
    linked: Column
    start: Column
    worlds: Column
    wire: Column
    fabric: Column

    @classmethod
    def of(cls, rentals: Sequence[Rental]) -> RentalTable:
        links = [links for one in rentals for links in one.worlds]
        devices, device = _numbered([one.device for one in rentals])
        wires, wire = _numbered([one.wire for one in links])
        fabrics, fabric = _numbered([one.fabric for one in links])
        worlds = np.array([len(one.worlds) for one in rentals], dtype=np.int64)
        return cls(
            devices=devices,
            wires=wires,
            fabrics=fabrics,
            device=device,
            usable=np.array([one.device.usable_bytes or np.nan for one in rentals], dtype=float),
            linked=np.array([one.linked for one in rentals], dtype=bool),
            start=np.cumsum(worlds) - worlds,
            worlds=worlds,
            wire=wire,
            fabric=fabric,
        )

    def __len__(self) -> int:
        return len(self.device)

    def world_rows(self, rentals: Column, layout: Layout) -> tuple[Column, Column]:
        """Worlds of some pairs by their rentals, and where those of each begin among them. A plan
        whose GPUs exchange nothing knows one world.
        """
        counts = np.where(layout.gpus == layout.replicas, 1, self.worlds[rentals])
        first = np.cumsum(counts) - counts
        inside = np.arange(counts.sum()) - np.repeat(first, counts)
        return np.repeat(self.start[rentals], counts) + inside, first


def _numbered(items: Sequence[Any]) -> tuple[Few[Any], Column]:
    """Distinct items and the number of each, -1 for None."""
    numbers: dict[Any, int] = {}
    which = [-1 if one is None else numbers.setdefault(one, len(numbers)) for one in items]
    return Few(tuple(numbers)), np.array(which, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Worlds:
    """Elements of all pairs that can be timed, those of one pair together.

    `asked` are the places of the timed pairs among those asked for, `first` the element at which
    each begins, `pair` the number of each element's among the timed ones.
    """

    asked: Column
    first: Column
    pair: Column
    device: Devices
    links: Links

    @property
    def count(self) -> int:
        return len(self.pair)


@dataclass(frozen=True, slots=True)
class Figures:
    """Ends of one figure by pair that was asked for, NaN where it cannot be timed."""

    low: Column
    typical: Column
    high: Column


class TimesColumns:
    """Times of the pairs asked for. `rate` is in tokens/s of one engine."""

    def __init__(
        self, asked: int, worlds: Worlds | None, found: Mapping[str, EstimateColumns]
    ) -> None:
        self._asked, self._worlds, self._found = asked, worlds, found

    def figure(self, name: str) -> Figures:
        """The span over the worlds of each pair."""
        columns = Figures(*(np.full(self._asked, np.nan) for _ in range(3)))
        if self._worlds is None:
            return columns
        value, first, at = self._found[name].value, self._worlds.first, self._worlds.asked
        columns.low[at] = np.minimum.reduceat(value.low, first)
        columns.high[at] = np.maximum.reduceat(value.high, first)
        least = np.minimum.reduceat(value.typical, first)
        most = np.maximum.reduceat(value.typical, first)
        columns.typical[at] = np.where(least == most, least, np.sqrt(least * most))
        return columns

    def rows(self, asked: int) -> range:
        """The elements of a pair; none where it is not timed."""
        if self._worlds is None:
            return range(0)
        ends = np.append(self._worlds.first[1:], self._worlds.count)
        at = np.flatnonzero(self._worlds.asked == asked)
        return range(int(self._worlds.first[at[0]]), int(ends[at[0]])) if len(at) else range(0)

    def estimate(self, name: str, asked: int, unit: str) -> Estimate | None:
        """With terms and words, of one pair."""
        found = [self._found[name].one(row, unit) for row in self.rows(asked)]
        if not found:
            return None
        ends = {(one.value.low, one.value.high) for one in found}
        return found[0] if len(ends) == 1 else hull(found, UNKNOWN_LINK)


@dataclass(frozen=True, slots=True)
class PairTimes:
    """`scale` turns a figure of one engine, or of a step, into the rate of the plan, by pair."""

    columns: TimesColumns
    training: bool
    scale: Column
    slots: Range | None = None

    @property
    def slow_rate(self) -> Column:
        """Tokens/s of the whole plan at the slow end, by pair."""
        if self.training:
            return self.scale / self.columns.figure("step").high
        return self.columns.figure("rate").low * self.scale

    def one(self, asked: int) -> Estimate | ServingTimes | None:
        """As `timing.times_of` gives it."""
        return self._trained(asked) if self.training else self._served(asked)

    def _trained(self, asked: int) -> Estimate | None:
        step = self.columns.estimate("step", asked, STEP_UNIT)
        if step is None:
            return None
        return replace(step, value=inverse(step.value, float(self.scale[asked])), unit=RATE_UNIT)

    def _served(self, asked: int) -> ServingTimes | None:
        found = {name: self.columns.estimate(name, asked, FIGURES[name]) for name in FIGURES}
        rate, ttft, tpot = (found[name] for name in ("rate", "ttft", "tpot"))
        if rate is None or ttft is None or tpot is None:
            return None
        scale = float(self.scale[asked])
        whole = replace(rate, value=rate.value.scaled(scale))
        return ServingTimes(ttft, tpot, whole, self._slots(asked, scale))

    def _slots(self, asked: int, scale: float) -> Range:
        """Sequences at once, over all copies; alike in every world of a pair."""
        row, held = self.columns.rows(asked)[0], self.slots or exact(0.0)
        return Range(*(float(end[row]) * scale for end in (held.low, held.typical, held.high)))


@dataclass(frozen=True, slots=True)
class Pairs:
    """Plans by their numbers in `plans`, each on a rental by its number in `table`."""

    plans: Sequence[Plan]
    table: RentalTable
    plan: Column
    rental: Column

    def __len__(self) -> int:
        return len(self.plan)


def pair_times(workload: Workload, pairs: Pairs) -> Iterator[tuple[Column, PairTimes]]:
    """Rows of the pairs with their times; what cannot be timed stays without.

    A training job takes all its plans at once. Engines go plan by plan: each holds other weights.
    """
    if workload.training:
        yield np.arange(len(pairs)), _trained(workload, pairs)
        return
    for number in np.flatnonzero(np.bincount(pairs.plan)).tolist():
        rows = np.flatnonzero(pairs.plan == number)
        layout = layout_of(pairs.plans[number])
        yield rows, _served(workload, layout, pairs.table, pairs.rental[rows])


def rate_bounds(workload: Workload, pairs: Pairs) -> Column:
    """Tokens/s that the slow end of no pair of a training job exceeds: those of a step that waits
    for no link, with every constant at its typical value.
    """
    layout, rates = layouts_of(pairs.plans, pairs.plan), np.full(len(pairs), np.nan)
    able, job = _able(pairs, layout), workload.training
    if job is None or not is_sized(workload.model) or not len(able):
        return rates
    device = Devices.of(pairs.table.devices, pairs.table.device[pairs.rental[able]])
    model = StepModel(workload.model, job, layout_at(layout, able), device, Links())
    rates[able] = model.tokens / busy_seconds(model, Typical()) * ROUNDED
    return rates


def _able(pairs: Pairs, layout: Layout) -> Column:
    return np.flatnonzero(pairs.table.linked[pairs.rental] | (layout.gpus == 1))


ROUNDED = 1 + 1e-9
"""More than the last digits in which one figure may differ between two ways to work it out."""


def _steps(workload: Workload, pairs: Pairs) -> tuple[StepModel, Worlds] | None:
    """The step of every element; None where none can be timed."""
    job = workload.training
    layout = layouts_of(pairs.plans, pairs.plan)
    able = _able(pairs, layout)
    if job is None or not is_sized(workload.model) or not len(able):
        return None
    worlds = _worlds(pairs.table, pairs.rental, able, layout_at(layout, able))
    each = layout_at(layout, able[worlds.pair])
    return StepModel(workload.model, job, each, worlds.device, worlds.links), worlds


def _trained(workload: Workload, pairs: Pairs) -> PairTimes:
    steps, scale = _steps(workload, pairs), np.ones(len(pairs))
    if steps is None:
        return PairTimes(TimesColumns(len(pairs), None, {}), True, scale)
    model, worlds = steps
    (step,) = estimate_columns(lambda setting: {"step": model(setting)}, ["step"], worlds.count)
    scale[worlds.asked] = _tokens(model, worlds)
    return PairTimes(TimesColumns(len(pairs), worlds, {"step": step}), True, scale)


def _tokens(model: StepModel, worlds: Worlds) -> Column:
    """Of one step, by timed pair."""
    return np.broadcast_to(np.asarray(model.tokens, dtype=float), worlds.count)[worlds.first]


def _served(workload: Workload, layout: Layout, table: RentalTable, rentals: Column) -> PairTimes:
    """Only on cards whose memory is known and leaves room for the cache."""
    copies = float(layout.replicas * layout.data)
    usable, scale = table.usable[rentals], np.full(len(rentals), copies)
    able = np.flatnonzero((table.linked[rentals] | (layout.engine_gpus == 1)) & ~np.isnan(usable))
    room = cache_room(workload, engine_plan(layout), usable[able])
    able = able[:0] if room is None else able[np.broadcast_to(room.typical > 0, len(able))]
    engine = _engine(workload, layout, table, rentals[able])
    if engine is None:
        return PairTimes(TimesColumns(len(rentals), None, {}), False, scale)
    worlds = _worlds(table, rentals, able, layout)
    each = usable[able][worlds.pair]
    model = replace(
        engine,
        device=worlds.device,
        links=worlds.links,
        cache_room=cache_room(workload, engine_plan(layout), each) or engine.cache_room,
    )
    names = list(FIGURES)
    users = engine.job.concurrency / copies
    found = estimate_columns(Interactive(model, users), names, worlds.count)
    columns = TimesColumns(len(rentals), worlds, dict(zip(names, found, strict=True)))
    return PairTimes(columns, False, scale, room_range(model))


def _engine(
    workload: Workload, layout: Layout, table: RentalTable, rentals: Column
) -> EngineModel | None:
    """The engine on the first of the rentals; None where it cannot be timed on any."""
    if not len(rentals):
        return None
    device = table.devices.things[table.device[rentals[0]]]
    return engine_on(workload, layout, Rental(device), Links(), linked=True)


def _worlds(table: RentalTable, rentals: Column, able: Column, layout: Layout) -> Worlds:
    """`layout` is of the pairs that can be timed. Those that exchange nothing need no wire."""
    held = rentals[able]
    rows, first = table.world_rows(held, layout)
    pair = np.repeat(np.arange(len(able)), np.diff(np.append(first, len(rows))))
    wire, fabric = table.wire[rows], table.fabric[rows]
    links = Links(
        Wires(table.wires, wire) if (wire >= 0).any() else None,
        Fabrics(table.fabrics, fabric) if (fabric >= 0).any() else None,
    )
    return Worlds(able, first, pair, Devices.of(table.devices, table.device[held[pair]]), links)
