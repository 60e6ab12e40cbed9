"""Changes that may admit a plan which does not fit: one at a time, smallest step first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from evaluator.budgets import Change
from evaluator.formats import WeightFormat, weight_format
from evaluator.jobs import Offload, Recompute, ServingJob, TrainingJob, Workload
from evaluator.plan_rules import is_refused
from evaluator.plans import Plan
from evaluator.recipes import RECIPES
from evaluator.states import host_bytes
from evaluator.units import gb

SHORTEST = 256
"""Lengths below this are no longer the same job."""
NARROWER = ("fp8", "awq-int4")
HALVINGS = 6
WIDEST_TENSOR, MOST_RANKS = 8, 512


@dataclass(frozen=True, slots=True)
class Option:
    """A workload and plan with one thing changed."""

    workload: Workload
    plan: Plan
    change: Change


def options(workload: Workload, plan: Plan) -> Iterator[list[Option]]:
    """Options by what they change, the least intrusive first; within one, small steps first."""
    if workload.serving:
        yield from _serving_options(workload, workload.serving, plan)
    elif workload.training:
        yield from _training_options(workload, workload.training, plan)
    yield _more_experts(workload, plan)
    yield _more_tensor(workload, plan)
    yield _more_stages(workload, plan)
    yield _more_context(workload, plan)


def _serving_options(workload: Workload, job: ServingJob, plan: Plan) -> Iterator[list[Option]]:
    yield _shorter_limit(workload, job, plan)
    yield [
        _option(
            replace(workload, serving=replace(job, concurrency=fewer)),
            plan,
            ("concurrency", fewer, f"serve {fewer} requests at once instead of {job.concurrency}"),
        )
        for fewer in _halves(job.concurrency, 1)
    ]
    yield _narrower_cache(workload, job, plan)
    yield [
        _option(
            replace(workload, serving=replace(job, input_tokens=shorter, max_model_len=None)),
            plan,
            ("input_tokens", shorter, f"limit prompts to {shorter:,} tokens"),
        )
        for shorter in _halves(job.input_tokens, SHORTEST)
    ]
    yield _narrower_weights(workload, plan, NARROWER)


def _training_options(workload: Workload, job: TrainingJob, plan: Plan) -> Iterator[list[Option]]:
    yield _more_recompute(workload, job, plan)
    yield [
        _trained(
            workload,
            replace(job, micro_batch=smaller),
            plan,
            ("micro_batch", smaller, f"use micro-batches of {smaller}"),
        )
        for smaller in _halves(job.micro_batch, 1)
    ]
    yield _more_shards(workload, plan)
    yield _narrower_states(workload, job, plan)
    yield _offloaded(workload, job, plan)
    if job.lora:
        yield _narrower_weights(workload, plan, ("bnb-nf4",))
    yield [
        _trained(
            workload,
            replace(job, seq_len=shorter),
            plan,
            ("seq_len", shorter, f"train on sequences of {shorter:,} tokens"),
        )
        for shorter in _halves(job.seq_len, SHORTEST)
    ]


def _more_recompute(workload: Workload, job: TrainingJob, plan: Plan) -> list[Option]:
    """The attention scores alone first, which costs next to nothing; then every layer."""
    words = {
        Recompute.SELECTIVE: "recompute the attention scores in the backward pass",
        Recompute.FULL: "recompute every layer in the backward pass",
        Recompute.OFFLOAD: "recompute every layer, and keep what goes into it in host memory",
    }
    steps = list(words)[list(words).index(job.recompute) + 1 :] if job.recompute in words else []
    if job.recompute is Recompute.NONE:
        steps = [*words][1 if job.fused_attention else 0 :]
    return [
        _trained(workload, replace(job, recompute=more), plan, ("recompute", more, words[more]))
        for more in steps
    ]


def _offloaded(workload: Workload, job: TrainingJob, plan: Plan) -> list[Option]:
    """Optimizer states to host memory first, then all; the adapters of a frozen base are small."""
    words = {
        Offload.OPTIMIZER: "keep the optimizer states in host memory",
        Offload.PARAMS: "keep all model states in host memory",
    }
    steps = {Offload.NONE: [*words], Offload.OPTIMIZER: [Offload.PARAMS]}.get(job.offload, [])
    moved = [where for where in steps if job.lora is None or where is Offload.PARAMS]
    return [
        _trained(
            workload,
            replace(job, offload=where),
            plan,
            ("offload", where, f"{words[where]}{_host_words(workload, job, plan, where)}"),
        )
        for where in moved
    ]


def _host_words(workload: Workload, job: TrainingJob, plan: Plan, where: Offload) -> str:
    held = host_bytes(replace(workload, training=replace(job, offload=where)), plan)
    return f", {gb(held):,.0f} GB in each machine" if held else ""


def _option(workload: Workload, plan: Plan, change: tuple[str, object, str]) -> Option:
    key, value, words = change
    return Option(workload, plan, Change(key, str(value), f"{words[0].upper()}{words[1:]}."))


def _trained(
    workload: Workload, job: TrainingJob, plan: Plan, change: tuple[str, object, str]
) -> Option:
    return _option(replace(workload, training=job), plan, change)


def _halves(value: int, least: int) -> list[int]:
    """value / 2, value / 4 and so on, not below `least`."""
    steps = (value >> shift for shift in range(1, HALVINGS + 1))
    return [step for step in steps if step >= least]


def _shorter_limit(workload: Workload, job: ServingJob, plan: Plan) -> list[Option]:
    """A limit above what the requests need only takes room: vLLM must hold one such sequence."""
    needed = job.sequence_tokens
    if job.max_model_len is None or job.max_model_len <= needed:
        return []
    limited = replace(workload, serving=replace(job, max_model_len=needed))
    words = f"limit sequences to the {needed:,} tokens that the requests need"
    return [_option(limited, plan, ("max_model_len", needed, words))]


def _narrower_cache(workload: Workload, job: ServingJob, plan: Plan) -> list[Option]:
    if job.kv_dtype not in ("auto", "bf16", "fp16", "fp32"):
        return []
    cached = replace(workload, serving=replace(job, kv_dtype="fp8"))
    return [_option(cached, plan, ("kv_dtype", "fp8", "keep the cache in fp8"))]


def _narrower_weights(workload: Workload, plan: Plan, names: tuple[str, ...]) -> list[Option]:
    """Formats with fewer bits than the one at hand."""
    now = weight_format(workload.weights_format)
    return [
        _option(
            replace(workload, weights_format=name),
            plan,
            ("weights_format", name, f"quantise the weights to {name}"),
        )
        for name in names
        if _is_narrower(weight_format(name), now)
    ]


def _is_narrower(form: WeightFormat | None, now: WeightFormat | None) -> bool:
    return form is not None and now is not None and form.bits.typical < now.bits.typical


def _narrower_states(workload: Workload, job: TrainingJob, plan: Plan) -> list[Option]:
    """The same recipe with optimizer states of 8 bits."""
    if job.optimizer != "adamw" or job.precision != RECIPES["adamw", "mixed"]:
        return []
    slim = replace(job, optimizer="adamw-8bit", precision=RECIPES["adamw-8bit", "mixed"])
    change = ("optimizer", "adamw-8bit", "keep the optimizer states in 8 bits")
    return [_trained(workload, slim, plan, change)]


def _more_shards(workload: Workload, plan: Plan) -> list[Option]:
    """Sharding over the data-parallel ranks at hand first, then over twice as many."""
    found = []
    ranks = plan.dp if plan.copies > 1 else 2 * plan.dp
    while ranks <= MOST_RANKS:
        wider = replace(plan, dp=ranks, shard=ranks * plan.cp)
        words = f"shard the model over {wider.shard} ranks, {wider.gpus} GPUs in all"
        if not is_refused(workload, wider):
            found.append(_option(workload, wider, ("shard", ranks, words)))
        ranks *= 2
    return found


def _more_tensor(workload: Workload, plan: Plan) -> list[Option]:
    """The next tensor parallel degrees that the model can be divided by."""
    found = []
    for tp in (2 * plan.tp, 4 * plan.tp, 8 * plan.tp):
        wider = replace(plan, tp=tp)
        if tp <= WIDEST_TENSOR and not is_refused(workload, wider):
            words = f"divide every layer over {tp} GPUs, {wider.gpus} in all"
            found.append(_option(workload, wider, ("tp", tp, words)))
    return found


def _more_stages(workload: Workload, plan: Plan) -> list[Option]:
    """The next pipeline degrees that the model can be divided by."""
    found = []
    for pp in (2 * plan.pp, 4 * plan.pp):
        longer = replace(plan, pp=pp)
        if longer.gpus <= MOST_RANKS and not is_refused(workload, longer):
            words = f"split the layers into {pp} pipeline stages, {longer.gpus} GPUs in all"
            found.append(_option(workload, longer, ("pp", pp, words)))
    return found


def _more_experts(workload: Workload, plan: Plan) -> list[Option]:
    """Expert parallel degrees over the ranks at hand first, then over as many copies of the rest as
    it takes. States that are sharded over as many ranks leave nothing to divide."""
    experts, found = workload.model.experts, []
    if experts is None or plan.shard > 1 or plan.etp > 1:
        return []
    for ep in (degree for degree in (2, 4, 8, 16, 32, 64) if degree > plan.ep):
        wider = replace(plan, ep=ep, dp=max(plan.dp, -(-ep // plan.tp)))
        even = experts.count % ep == 0 and wider.tp * wider.dp % ep == 0
        if even and wider.gpus <= MOST_RANKS and not is_refused(workload, wider):
            words = f"divide the experts of a layer over {ep} ranks, {wider.gpus} GPUs in all"
            found.append(_option(workload, wider, ("ep", ep, words)))
    return found


def _more_context(workload: Workload, plan: Plan) -> list[Option]:
    """The next degrees that share the tokens of a training sequence, and what is sharded."""
    found: list[Option] = []
    if workload.training is None:
        return found
    for times in (2, 4, 8):
        shard = plan.shard * times if plan.shard > 1 else 1
        longer = replace(plan, cp=plan.cp * times, shard=shard)
        if longer.gpus <= MOST_RANKS and not is_refused(workload, longer):
            words = f"share each sequence between {longer.cp} GPUs, {longer.gpus} in all"
            found.append(_option(workload, longer, ("cp", longer.cp, words)))
    return found
