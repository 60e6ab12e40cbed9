"""A plan in four plain lines: who holds what, who works when, what moves, who waits for whom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evaluator.collectives import traffic
from evaluator.exchanges import Traffic
from evaluator.jobs import Schedule, Workload
from evaluator.placement import Placement, placement_of
from evaluator.plans import Plan
from evaluator.states import trainable_params


@dataclass(frozen=True, slots=True)
class PlanWords:
    """One or more sentences each, for people who do not know the names of the degrees."""

    placement: str
    scheduling: str
    communication: str
    synchronisation: str


def plan_words(
    workload: Workload,
    plan: Plan,
    gpus_per_machine: int | None = None,
    groups: tuple[tuple[int, ...], ...] = (),
) -> PlanWords:
    """The words for a plan on machines that hold `gpus_per_machine`; None holds just the plan.

    `groups` are GPUs that belong together by the pairs that were seen (`LinkVerdict.groups`).
    """
    placed = placement_of(workload.model, plan, gpus_per_machine)
    known = workload.model.dimensioned
    moved = traffic(workload, plan, trainable_params(workload)) if known else ()
    return PlanWords(
        placement=" ".join((*_placement(workload, plan, placed), *_islands(groups))),
        scheduling=" ".join(_scheduling(workload, plan)),
        communication=_communication(plan, moved, known),
        synchronisation=" ".join(_synchronisation(workload, plan)),
    )


def _placement(workload: Workload, plan: Plan, placed: Placement) -> Iterator[str]:
    yield f"{_gpus(plan.gpus)} work{'s' if plan.gpus == 1 else ''}{_over_machines(plan)}."
    if plan.replicas > 1:
        yield f"Each of {plan.replicas} replicas holds the whole model."
    if plan.tp > 1:
        yield f"Neighbouring GPUs, {plan.tp} at a time, each hold 1/{plan.tp} of every layer."
    if plan.pp > 1:
        yield _stages(plan, placed)
    if plan.ep > 1:
        yield f"The experts of a layer are dealt out to {plan.ep} GPUs."
    if plan.cp > 1:
        yield f"Every sequence is cut into {plan.cp} parts, one for each GPU of a group."
    if plan.dp > 1:
        yield _copies(workload, plan)
    if placed.idle:
        named = ", ".join(map(str, placed.idle))
        yield f"{_gpus(len(placed.idle))} stay{'s' if len(placed.idle) == 1 else ''} idle: {named}."


def _islands(groups: tuple[tuple[int, ...], ...]) -> Iterator[str]:
    if groups:
        named = "; ".join(", ".join(map(str, group)) for group in groups)
        yield f"By the pairs that were seen these GPUs belong together: {named}."


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"


def _over_machines(plan: Plan) -> str:
    return f" on {plan.nodes} machines" if plan.nodes > 1 else ""


def _stages(plan: Plan, placed: Placement) -> str:
    held = [layers for _, layers in placed.stages]
    turns = f", in {plan.virtual} turns each" if plan.virtual > 1 else ""
    if not placed.uneven:
        return f"{plan.pp} stages hold {held[0]} layers each{turns}."
    return (
        f"{plan.pp} stages hold {', '.join(map(str, held))} layers{turns}: "
        "the largest sets the pace."
    )


def _copies(workload: Workload, plan: Plan) -> str:
    if workload.serving:
        return (
            f"{plan.dp} groups hold the attention of every layer and serve requests of their own."
        )
    if plan.shard == 1:
        return f"{plan.dp} groups hold a whole copy of their part each."
    copies = plan.dp * plan.cp // plan.shard
    more = f"; there are {copies} such copies" if copies > 1 else ""
    return f"{plan.shard} GPUs share one copy of parameters, gradients and optimizer states{more}."


def _scheduling(workload: Workload, plan: Plan) -> Iterator[str]:
    if workload.serving:
        yield from _serving_turns(plan)
    else:
        yield from _training_turns(workload, plan)


def _serving_turns(plan: Plan) -> Iterator[str]:
    yield "Every step makes one token for all running requests; new prompts are read in between."
    if plan.replicas > 1:
        yield f"A router deals the requests out to {plan.replicas} replicas."
    if plan.dp > 1:
        yield f"A router deals the requests out to {plan.dp} groups of one engine."
    if plan.pp > 1:
        yield (
            f"{plan.pp} groups of requests travel through the stages one behind the other; "
            "a single request leaves all stages but one idle."
        )


TURNS = {
    Schedule.GPIPE: "All forward passes come first, then all backward passes",
    Schedule.ONE_F_ONE_B: "Each stage alternates one forward and one backward pass (1F1B)",
    Schedule.ZERO_BUBBLE_1: "Weight gradients fill the gaps of the pipeline (ZB-H1)",
    Schedule.ZERO_BUBBLE_2: "Weight gradients fill every gap, at twice the activations (ZB-H2)",
}


def _training_turns(workload: Workload, plan: Plan) -> Iterator[str]:
    job = workload.training
    ranks = plan.dp * job.micro_batch if job else 1
    rounds = max(1, (job.global_batch or ranks) // ranks) if job else 1
    yield f"A step is {rounds} micro-batch{'es' if rounds > 1 else ''} for each group of GPUs."
    if plan.pp > 1 and job:
        idle = (plan.pp - 1) / (rounds * plan.virtual)
        yield f"{TURNS[job.schedule]}; filling and draining adds {idle:.0%} of idle time."


def _communication(plan: Plan, moved: tuple[Traffic, ...], known: bool) -> str:
    if not plan.exchanges:
        return "Nothing moves between GPUs."
    if not known:
        return "What moves is unknown: the dimensions of the model are not stated."
    return ". ".join(f"{one.purpose.capitalize()}: {one.words}" for one in moved) + "."


def _synchronisation(workload: Workload, plan: Plan) -> Iterator[str]:
    if not plan.exchanges:
        yield "No GPU waits for another."
        return
    if plan.tp > 1:
        yield f"Inside every layer the {plan.tp} tensor ranks wait for their slowest."
    if plan.ep > 1 and plan.ep > plan.tp:
        yield f"In every layer with experts {plan.ep} GPUs wait for the one with the busiest."
    if plan.cp > 1:
        yield f"In every attention the {plan.cp} parts of a sequence pass keys and values around."
    if plan.pp > 1:
        yield "A stage waits for the one before it; the slowest stage sets the pace of all."
    if plan.dp > 1 and not workload.serving:
        yield _at_the_end(plan)
    if plan.replicas > 1:
        yield "Replicas never wait for each other."


def _at_the_end(plan: Plan) -> str:
    if plan.shard > 1:
        return (
            "Layers are gathered before they are used, and the step ends when all have scattered."
        )
    return f"At the end of a step all {plan.dp} groups wait for the sum of their gradients."
