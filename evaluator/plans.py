"""Every plan for the GPUs of one rental, narrowest first, and the refused ones with their reason.

Degrees are powers of two and divisors of the GPU count. Tensor groups stay inside one machine; a
degree is proposed only where it is of use: context ranks for long sequences, expert ranks for
models with experts, turns for stages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from evaluator.degrees import Kind, Plan, narrowness
from evaluator.jobs import Workload
from evaluator.plan_rules import PlanSpace, Refusal, is_refused, refusal_of, undivided_by

__all__ = [
    "Kind",
    "Plan",
    "PlanSpace",
    "Refusal",
    "machines_to_try",
    "narrowness",
    "plans_of",
    "refusal_of",
]


def plans_of(workload: Workload, gpus: int, machines: Iterable[int] = (1,)) -> PlanSpace:
    """Every plan for `gpus` GPUs in each of the given numbers of machines.

    Tensor parallel groups stay inside one machine; a plan on several machines uses all their GPUs.
    """
    proposals = _serving_plans if workload.serving else _training_plans
    found = {plan for nodes in machines for plan in proposals(workload, gpus, nodes)}
    legal: list[Plan] = []
    refused: list[Refusal] = []
    for plan in sorted(found, key=narrowness):
        if is_refused(workload, plan):
            refused.append(Refusal(workload, plan))
        else:
            legal.append(plan)
    return PlanSpace(tuple(legal), tuple(refused))


def degrees(gpus: int) -> list[int]:
    """Degrees worth trying: powers of two and divisors of the GPU count, from 2 up."""
    return [d for d in range(2, gpus + 1) if gpus % d == 0 or d & (d - 1) == 0]


def _third(gpus: int, one: int, other: int) -> list[int]:
    """Degrees beside two others. Three ways at once are worth it only for most of the GPUs."""
    found = degrees(gpus // (one * other))
    return [d for d in found if min(one, other) == 1 or 2 * one * other * d > gpus]


# --- serving


def _serving_plans(workload: Workload, gpus: int, nodes: int) -> Iterator[Plan]:
    yield from _engines(workload, gpus) if nodes == 1 else _engines_over(workload, gpus, nodes)


def _engines(workload: Workload, gpus: int) -> Iterator[Plan]:
    """Tensor groups, stages and replicas of one machine, and engines that share experts."""
    for tp in (1, *degrees(gpus)):
        for pp in (1, *degrees(gpus // tp)):
            yield Plan(tp=tp, pp=pp)
            yield from (Plan(tp=tp, pp=pp, replicas=r) for r in _third(gpus, tp, pp))
        if workload.model.experts:
            yield from _expert_engines(tp, gpus)


def _expert_engines(tp: int, gpus: int) -> Iterator[Plan]:
    """Experts on the tensor ranks of one group, or on those of groups that share the requests."""
    if tp > 1:
        yield Plan(tp=tp, ep=tp)
    yield from (Plan(tp=tp, dp=dp, ep=tp * dp) for dp in degrees(gpus // tp))


def _engines_over(workload: Workload, gpus: int, nodes: int) -> Iterator[Plan]:
    """Replicas that stay inside machines, stages over all, and experts over all."""
    ranks = gpus * nodes
    whole = [tp for tp in (1, *degrees(gpus)) if gpus % tp == 0]
    yield from (Plan(tp=tp, replicas=ranks // tp, nodes=nodes) for tp in whole)
    yield _spanning_pipeline(workload, gpus, nodes)
    if workload.model.experts:
        for tp in dict.fromkeys((1, gpus)):
            yield Plan(tp=tp, dp=ranks // tp, ep=ranks, nodes=nodes)


# --- training


LONG_SEQUENCE, SHORTEST_PART = 32_768, 8_192
"""Tokens from which a sequence is worth cutting, and of which a part should still have as many:
below, keys and values no longer hide behind attention."""


def _training_plans(workload: Workload, gpus: int, nodes: int) -> Iterator[Plan]:
    """The plans of dense models, then each with what experts or stages add to it."""
    plans = _jobs(workload, gpus) if nodes == 1 else _jobs_over(workload, gpus, nodes)
    for plan in plans:
        yield plan
        if plan.pp > 1:
            yield from (replace(plan, virtual=turns) for turns in _turns(plan))
        if workload.model.experts and _shares_experts(plan):
            yield from _with_experts(plan, gpus)


def _shares_experts(plan: Plan) -> bool:
    """Experts take the ranks of one copy of the parameters, or of plain data parallel."""
    return plan.tp * plan.dp > 1 and plan.cp == 1 and (plan.shard == 1 or plan.copies == 1)


def _turns(plan: Plan) -> tuple[int, ...]:
    """More turns help where the bubble is long: with many stages and no other division."""
    return (2, 4) if plan.pp >= 4 and plan.dp == 1 else (2,)


def _with_experts(plan: Plan, gpus: int) -> Iterator[Plan]:
    """Experts over all ranks of the plan, and over those of one machine."""
    ranks = plan.tp * plan.dp
    wanted = {ranks, min(ranks, gpus)}
    yield from (replace(plan, ep=ep) for ep in wanted)


def _jobs(workload: Workload, gpus: int) -> Iterator[Plan]:
    for tp in (1, *degrees(gpus)):
        yield Plan(tp=tp)
        for pp in degrees(gpus // tp):
            yield Plan(tp=tp, pp=pp)
            yield from (Plan(tp=tp, pp=pp, dp=dp, shard=dp) for dp in _third(gpus, tp, pp))
        yield from (Plan(tp=tp, dp=dp, shard=dp) for dp in degrees(gpus // tp))
        yield from _long_jobs(workload, tp, gpus, 1)
    for dp in degrees(gpus):
        yield Plan(dp=dp)
        yield from (Plan(dp=dp, shard=shard) for shard in degrees(dp) if shard < dp)


def _long_jobs(workload: Workload, tp: int, gpus: int, nodes: int) -> Iterator[Plan]:
    """Sequences cut among ranks, which share the parameters with the data-parallel ones."""
    length = workload.training.seq_len if workload.training else 0
    if length < LONG_SEQUENCE:
        return
    ranks = gpus * nodes // tp
    for cp in degrees(gpus // tp):
        if length // cp < SHORTEST_PART:
            return
        if nodes == 1:
            yield Plan(tp=tp, cp=cp, shard=cp)
        if (dp := ranks // cp) > 1:
            yield Plan(tp=tp, cp=cp, dp=dp, shard=dp * cp, nodes=nodes)


def _jobs_over(workload: Workload, gpus: int, nodes: int) -> Iterator[Plan]:
    """Plans over whole machines: replicate, shard, shard inside each, or split the layers."""
    ranks = gpus * nodes
    yield Plan(dp=ranks, nodes=nodes)
    yield _spanning_pipeline(workload, gpus, nodes)
    for tp in (tp for tp in (1, *degrees(gpus)) if gpus % tp == 0):
        dp, inside = ranks // tp, gpus // tp
        yield Plan(tp=tp, dp=dp, shard=dp, nodes=nodes)
        if inside > 1:
            yield Plan(tp=tp, dp=dp, shard=inside, nodes=nodes)
            yield Plan(tp=tp, pp=nodes, dp=inside, shard=inside, nodes=nodes)
        yield from _long_jobs(workload, tp, gpus, nodes)


def _spanning_pipeline(workload: Workload, gpus: int, nodes: int) -> Plan:
    """The widest tensor groups that the model allows in each machine, stages over all of them."""
    allowed = (tp for tp in range(gpus, 0, -1) if gpus % tp == 0)
    tp = next(tp for tp in allowed if not undivided_by(workload, tp))
    return Plan(tp=tp, pp=gpus * nodes // tp, nodes=nodes)


def machines_to_try(nodes: int, most: int) -> list[int]:
    """Numbers of machines beyond the first: those of one rental, then whole rentals."""
    return [*range(2, nodes + 1), *range(2 * nodes, most + 1, nodes)]
