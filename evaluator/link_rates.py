"""The rate that each exchange of a plan asks of its link, held against the rate the link gives.

An exchange asks for the rate at which it takes as long as the arithmetic that it belongs to: with
less, GPUs wait longer than they work. Rates are bus bandwidths in bytes/s, in one direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evaluator.collectives import STEP, traffic
from evaluator.estimates import Setting
from evaluator.exchanges import Traffic
from evaluator.jobs import Workload
from evaluator.layouts import Layout, Links, layout_of
from evaluator.link_costs import Fabric, Wire, busbw_range
from evaluator.links import words_of
from evaluator.machine import Machine
from evaluator.plans import Plan
from evaluator.ranges import Range
from evaluator.rentals import Rental, rental_of
from evaluator.states import trainable_params
from evaluator.timing import engine_on
from evaluator.token_time import decode_terms, prefill_seconds, room_for
from evaluator.training_time import StepModel, compute_seconds
from evaluator.units import GB


class Keeps(StrEnum):
    """Whether the link keeps up with the arithmetic, at both ends of what it may give."""

    YES = "keeps up"
    DEPENDS = "depends on which link it is"
    NO = "GPUs wait longer than they work"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LinkRate:
    """`needed` and `given` in bytes/s. `given` spans every link that the machine may have.

    `busy` are the typical seconds of the arithmetic that the exchange belongs to, `links` each link
    that was looked at, in words, with what it gives.
    """

    exchange: Traffic
    needed: float | None
    given: Range | None
    busy: float | None = None
    links: tuple[tuple[str, Range], ...] = ()

    @property
    def keeps(self) -> Keeps:
        if self.needed is None or self.given is None:
            return Keeps.UNKNOWN
        if self.given.low >= self.needed:
            return Keeps.YES
        return Keeps.DEPENDS if self.given.high >= self.needed else Keeps.NO


def link_rates(workload: Workload, plan: Plan, machine: Machine) -> tuple[LinkRate, ...]:
    """One for each exchange of the plan; rates are None where nothing can be timed."""
    if not workload.model.dimensioned:
        return ()
    rental = rental_of(machine, plan.nodes)
    busy = _busy_seconds(workload, layout_of(plan), rental) if rental else {}
    moved = traffic(workload, plan, trainable_params(workload))
    return tuple(_rate(one, busy.get(one.per), rental) for one in moved)


def _rate(one: Traffic, busy: float | None, rental: Rental | None) -> LinkRate:
    needed = one.sent_bytes / busy if busy else None
    links = _links(one, rental) if rental else ()
    return LinkRate(one, needed, _spanned([rate for _, rate in links]), busy, links)


def _links(one: Traffic, rental: Rental) -> tuple[tuple[str, Range], ...]:
    """Every link of the group; nothing where a level of it has a link without a published rate."""
    found = {_named(one, links): _on(one, links) for links in rental.worlds}
    known = tuple((name, rate) for name, rate in found.items() if rate)
    return known if len(known) == len(found) else ()


def _spanned(rates: Sequence[Range]) -> Range | None:
    if not rates:
        return None
    typical = sorted(rate.typical for rate in rates)
    low, high = min(rate.low for rate in rates), max(rate.high for rate in rates)
    return Range(low, typical[len(typical) // 2], high)


def _named(one: Traffic, links: Links) -> str:
    """The links that the group lies on, with their line rates per GPU."""
    wire, fabric, told = links.wire, links.fabric, list[str]()
    if isinstance(wire, Wire) and one.group > one.machines:
        shown = ", benchmarked" if wire.benchmarked else ""
        rate = wire.benchmarked or wire.line_bytes_per_s
        told.append(f"{words_of(wire.kind)}, {rate / GB:.3g} GB/s{shown}")
    if isinstance(fabric, Fabric) and one.machines > 1:
        kind = "a network over TCP" if fabric.tcp else "a network"
        told.append(f"{kind} with {fabric.card_bytes_per_s / GB:.3g} GB/s for each GPU")
    return " and ".join(told)


def _on(one: Traffic, links: Links) -> Range | None:
    fabric = links.fabric if one.machines > 1 else None
    size = max(1, one.message_bytes)
    return busbw_range(one.operation, links.wire, one.group, one.machines, fabric, size)


def _busy_seconds(workload: Workload, layout: Layout, rental: Rental) -> Mapping[str, float]:
    """Typical seconds of arithmetic and memory reads by unit of work."""
    of_job = _serving_seconds if workload.serving else _step_seconds
    return dict(of_job(workload, layout, rental))


READS = ("reading weights", "decode arithmetic", "reading the cache")


def _serving_seconds(
    workload: Workload, layout: Layout, rental: Rental
) -> Iterator[tuple[str, float]]:
    engine = engine_on(workload, layout, rental, rental.worlds[0])
    if engine is None:
        return
    users = engine.job.concurrency / (layout.replicas * layout.data)
    decode = decode_terms(engine, Setting(), min(users, max(1.0, room_for(engine, Setting()))))
    yield "decode step", sum(decode.get(name, 0.0) for name in READS)
    yield "prefill of one request", prefill_seconds(engine, Setting())["prefill"]


def _step_seconds(
    workload: Workload, layout: Layout, rental: Rental
) -> Iterator[tuple[str, float]]:
    job = workload.training
    if job is None or not workload.model.computable:
        return
    model = StepModel(workload.model, job, layout, rental.device, rental.worlds[0])
    yield STEP, model.rounds * sum(compute_seconds(model, Setting()).values())
