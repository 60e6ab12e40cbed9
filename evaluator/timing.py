"""How long a plan takes on a machine: training steps, prompts, tokens, as ranges with reasons.

Every figure is an `Estimate`: low, typical and high, the longest term, the widest assumption. With
an unknown link it spans all links that the card permits and says `conditional`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from evaluator.calibration import figure
from evaluator.engine_load import EngineLoad, EngineModel, is_unpacked, load_of
from evaluator.estimates import Estimate, Setting, estimate, estimates, hull
from evaluator.formats import weight_format
from evaluator.jobs import Workload
from evaluator.layouts import Layout, Links, layout_of
from evaluator.machine import Machine
from evaluator.memory import budget
from evaluator.parameters import total_params
from evaluator.plans import Plan
from evaluator.queueing import OpenLoop
from evaluator.ranges import Number, Range, choose, choose_range, exact, larger, total
from evaluator.rentals import Rental, rental_of
from evaluator.shapes import ModelShape
from evaluator.shares import Allowance
from evaluator.token_time import Interactive, Offline, room_for, room_range
from evaluator.training_time import StepModel

STEP_UNIT, RATE_UNIT, SECOND_UNIT = "s per step", "tokens/s", "s"
UNKNOWN_LINK = "the link between the GPUs is not known"


@lru_cache(maxsize=4096)
def step_estimate(
    workload: Workload, layout: Layout, rental: Rental, arithmetic: str = "bf16"
) -> Estimate | None:
    """Seconds of one optimizer step. None for a serving job or a model of unknown size."""
    job = workload.training
    if job is None or not is_sized(workload.model):
        return None
    if layout.gpus > 1 and not rental.linked:
        return None
    models = (
        StepModel(workload.model, job, layout, rental.device, links, arithmetic)
        for links in rental.worlds
    )
    return _span([estimate(model, STEP_UNIT) for model in models])


def is_sized(shape: ModelShape) -> bool:
    """Whether enough is known of a model to time a step of it."""
    return bool(total_params(shape) is not None and shape.layers and shape.hidden)


def _span(found: list[Estimate]) -> Estimate:
    """One estimate where all worlds agree; else what spans them, and says so."""
    ends = {(one.value.low, one.value.high) for one in found}
    return found[0] if len(ends) == 1 else hull(found, UNKNOWN_LINK)


def training_rate(
    workload: Workload, layout: Layout, rental: Rental, arithmetic: str = "bf16"
) -> Estimate | None:
    """Trained tokens/s over all GPUs of the plan."""
    step = step_estimate(workload, layout, rental, arithmetic)
    if step is None or workload.training is None:
        return None
    one = StepModel(workload.model, workload.training, layout, rental.device, Links(), arithmetic)
    return replace(step, value=inverse(step.value, one.tokens), unit=RATE_UNIT)


def inverse(seconds: Range, amount: float) -> Range:
    """A rate from a time: the longest time gives the lowest rate."""
    return Range(amount / seconds.high, amount / seconds.typical, amount / seconds.low)


@dataclass(frozen=True, slots=True)
class ServingTimes:
    """What a user and an owner see at the workload's concurrency.

    `ttft` and `tpot` in seconds, `rate` output tokens/s of all replicas together, each with the
    terms of what it measures. `slots` sequences run at once over all replicas.
    """

    ttft: Estimate
    tpot: Estimate
    rate: Estimate
    slots: Range


FIGURES = {"ttft": SECOND_UNIT, "tpot": SECOND_UNIT, "rate": RATE_UNIT}


@lru_cache(maxsize=4096)
def serving_times(workload: Workload, layout: Layout, rental: Rental) -> ServingTimes | None:
    """None for a training job, an unknown model or format, or where not even the weights fit."""
    engine = engine_on(workload, layout, rental, rental.worlds[0])
    if engine is None:
        return None
    copies = layout.replicas * layout.data
    users = engine.job.concurrency / copies
    worlds = [
        estimates(Interactive(replace(engine, links=links), users), FIGURES)
        for links in rental.worlds
    ]
    found = {name: _span([world[name] for world in worlds]) for name in FIGURES}
    return ServingTimes(
        ttft=found["ttft"],
        tpot=found["tpot"],
        rate=_times(found["rate"], copies),
        slots=room_range(engine).scaled(copies),
    )


def offline_rate(workload: Workload, layout: Layout, rental: Rental) -> Estimate | None:
    """Output tokens/s of all replicas with all requests queued at once. None as `serving_times`."""
    engine = engine_on(workload, layout, rental, rental.worlds[0])
    if engine is None:
        return None
    models = (Offline(replace(engine, links=links)) for links in rental.worlds)
    span = _span([estimate(model, RATE_UNIT) for model in models])
    return _times(span, layout.replicas * layout.data)


def _times(one: Estimate, copies: int) -> Estimate:
    return replace(one, value=one.value.scaled(copies))


def engine_on(
    workload: Workload, layout: Layout, rental: Rental, links: Links, *, linked: bool | None = None
) -> EngineModel | None:
    """One engine of a plan on given links. None where it cannot be timed or does not fit.

    `linked` tells whether the rates of all possible links are known, where that was asked before.
    """
    job, form = workload.serving, weight_format(workload.weights_format)
    usable, known = rental.device.usable_bytes, workload.model.dimensioned
    if job is None or form is None or usable is None or not known:
        return None
    if layout.engine_gpus > 1 and not (rental.linked if linked is None else linked):
        return None
    plan = engine_plan(layout)
    room = cache_room(workload, plan, usable)
    if room is None or room.typical <= 0:
        return None
    load = _load(workload, plan)
    if load is None:
        return None
    return EngineModel(
        job=job,
        load=load,
        layers=workload.model.layers,
        hidden=workload.model.hidden,
        weights_format=workload.weights_format,
        unpacked=is_unpacked(form, workload.weights_format),
        layout=layout,
        device=rental.device,
        links=links,
        cache_room=room,
    )


def engine_plan(layout: Layout) -> Plan:
    """One copy of an engine as the memory formulas take it."""
    ranks = layout.tensor * layout.data
    within = layout.within or max(1, ranks // layout.experts)
    parts = {"ep": layout.experts, "etp": within} if layout.experts > 1 else {}
    return Plan(tp=layout.tensor, pp=layout.stages, dp=layout.data, **parts)


@lru_cache(maxsize=4096)
def _load(workload: Workload, plan: Plan) -> EngineLoad | None:
    form = weight_format(workload.weights_format)
    if workload.serving is None or form is None:
        return None
    return load_of(workload.model, workload.serving, form, plan)


CACHE = frozenset({"kv_cache", "cache_reserve"})
"""Components that grow with the cache itself: the room is what all others leave."""
FRACTION_OF_FREE = frozenset({"tensorrt-llm"})
"""Engines whose memory fraction counts what the weights leave, not the whole GPU."""


@lru_cache(maxsize=4096)
def _beside_cache(workload: Workload, plan: Plan) -> tuple[Range, Allowance] | None:
    """Bytes per GPU of all that is no cache, and what may be used of a GPU."""
    memory = budget(workload, plan)
    if memory.binding is None:
        return None
    parts = (part.bytes for part in memory.binding.components if part.name not in CACHE)
    return total(parts), memory.allowance


def cache_room(workload: Workload, plan: Plan, usable: Number) -> Range | None:
    """Bytes per GPU left for the cache, from the memory budget. Never below one byte at an end."""
    held = _beside_cache(workload, plan)
    if held is None:
        return None
    others, allowance = held
    left = Range(usable - others.high, usable - others.typical, usable - others.low)
    if workload.serving and workload.serving.engine in FRACTION_OF_FREE:
        share = figure("serving.memory_fraction")
        parts = (left.low * share.low, left.typical * share.typical, left.high * share.high)
    else:
        kept = usable - allowance.of(usable)
        parts = (left.low - kept, left.typical - kept, left.high - kept)
    room = parts[1] > 0
    ends = (larger(1.0, parts[0]), parts[1], parts[2])
    return choose_range(room, Range(*(choose(room, end, 1.0) for end in ends)), exact(0))


def queue_of(workload: Workload, layout: Layout, rental: Rental) -> OpenLoop | None:
    """The queue of one engine at its share of the arrivals, with the worst link that may be there.

    More requests at once take longer each: the time of service is that of as many as it keeps busy.
    None without an arrival rate, or where the engine cannot be timed.
    """
    job, engine = workload.serving, engine_on(workload, layout, rental, rental.worlds[0])
    if job is None or job.arrival_rate is None or engine is None:
        return None
    arrivals = job.arrival_rate / (layout.replicas * layout.data)
    slots, service, users = max(1, int(room_for(engine, Setting()))), 0.0, 1.0
    for _ in range(MOST_TURNS):
        service = _service(engine, users)
        busy = min(float(slots), max(1.0, arrivals * service))
        if abs(busy - users) <= SETTLED * users:
            break
        users = busy
    return OpenLoop(slots, arrivals, service)


MOST_TURNS, SETTLED = 40, 1e-3


def _service(engine: EngineModel, users: float) -> float:
    """Seconds from a request's start to its last token among so many."""
    found = Interactive(engine, users)(Setting())
    return found["ttft"].value + max(0, engine.job.output_tokens - 1) * found["tpot"].value


def times_of(workload: Workload, plan: Plan, machine: Machine) -> Estimate | ServingTimes | None:
    """Training rate or serving times of a plan on a machine as it is known."""
    rental = rental_of(machine, plan.nodes)
    if rental is None:
        return None
    if workload.training:
        return training_rate(workload, layout_of(plan), rental)
    return serving_times(workload, layout_of(plan), rental)
