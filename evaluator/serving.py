"""The components of a serving budget."""

from __future__ import annotations

from dataclasses import replace

from evaluator.adapters import adapter_params_on
from evaluator.budgets import Component
from evaluator.engines import Engine, Share, engine
from evaluator.formats import WeightFormat
from evaluator.gguf import LONG_BLOCK
from evaluator.jobs import ServingJob, Workload
from evaluator.kv_cache import kv_component, sequences_per_replica
from evaluator.parameters import others
from evaluator.partition import RankClass
from evaluator.plans import Plan
from evaluator.ranges import Number, Range, choose, choose_range, exact, larger, largest
from evaluator.shapes import ModelShape
from evaluator.shares import WHOLE, Allowance, left_by
from evaluator.sizes import Sizes, sizes_of
from evaluator.units import GIB
from evaluator.weights import weights_component

PREFILL_BYTES = 6
"""Bytes per token of a step and element of (inner size + hidden): an empirical fit to logged
profile peaks (llm-d-planner)."""
LEAST_SEQUENCES_HIGH = 256
"""vLLM profiles with at least this many sequences unless `max_num_seqs` is stated."""
PEAK_SPREAD = Range(0.88, 1.0, 1.12)
"""Logged peaks against the two fits: 34.8 to 39.6 bytes where the fit has 38.5."""
TOWER = Range(0, 0.25 * GIB, 2.0 * GIB)
"""Profiling with the largest image on top of the text peak. A model that attends to its images
across layers has taken 0.29 GiB per sequence (vllm#12126), which no range here covers."""
ADAPTER_BYTES = DRAFT_BYTES = 2
FP32 = 4


def engine_of(job: ServingJob) -> Engine:
    return engine(job.engine, job.engine_version)


def allowance_of(workload: Workload, plan: Plan) -> Allowance:
    """What may be used of the reported memory. Engines without such a setting, and training jobs,
    may use all of it."""
    job = workload.serving
    if job is None or engine_of(job).share not in (Share.TOTAL, Share.STATIC):
        return WHOLE
    alone, joined = engine_of(job).begun
    begun = choose(plan.engine_ranks > 1, joined, alone)
    return replace(_share_of(job, plan), begun=begun)


def _share_of(job: ServingJob, plan: Plan) -> Allowance:
    """As stated, or what the engine works out from the plan, or from the plan and the card."""
    runs, tensor = engine_of(job), plan.tp * plan.dp
    if job.memory_utilization is not None:
        return Allowance(job.memory_utilization)
    if runs.leaves is None:
        return Allowance(_own_fraction(runs, tensor))
    step, draft = job.max_num_batched_tokens, bool(job.draft_params)
    ranks = tensor * plan.pp
    return Allowance(left=left_by(runs.leaves, tensor, ranks, plan.dp, step=step, draft=draft))


def _own_fraction(runs: Engine, tensor: Number) -> Number:
    share: Number = runs.fraction or 1.0
    for ranks, lower in runs.fraction_of_ranks:
        share = choose(tensor >= ranks, lower, share)
    return share


def free_share(job: ServingJob) -> float:
    """The share of the free memory that an engine gives its cache."""
    return job.memory_utilization or engine_of(job).fraction or 1.0


def outside_of(workload: Workload) -> tuple[str, ...]:
    """Components that need room on the card, but not inside that share."""
    return engine_of(workload.serving).outside if workload.serving else ()


def serving_components(
    workload: Workload, job: ServingJob, form: WeightFormat, plan: Plan, rank: RankClass
) -> tuple[Component, ...]:
    """Weights, cache, activation peak, what the engine holds besides, captured graphs, and what
    only some jobs have."""
    model, runs = workload.model, engine_of(job)
    cache = kv_component(model, job, plan, rank)
    optional = (
        _communicators(runs, plan),
        _cache_reserve(job, runs, cache),
        _free_margin(runs),
        _tower_profile(model, rank),
        lora_buffers(model, job, plan, rank),
        _draft_model(job, plan),
    )
    weights = weights_component(model, workload.weights_format, form, plan, rank)
    return (
        _without_table(weights, sizes_of(model), runs, form, plan, rank),
        cache,
        activation_peak(model, job, plan, rank),
        _engine_overhead(runs),
        _cuda_graphs(runs),
        *(part for part in optional if part),
    )


def _cache_reserve(job: ServingJob, runs: Engine, cache: Component) -> Component | None:
    """An engine that gives the cache a share of the free memory leaves the rest of it unused."""
    if runs.share is not Share.FREE:
        return None
    share = free_share(job)
    return Component(
        name="cache_reserve",
        bytes=cache.bytes.scaled(1 / share - 1),
        formula="cache x (1 / share of the free memory - 1)",
        inputs=(("share of the free memory", f"{share:g}"),),
        source=f"{runs.name}: its fraction is of what is free once all the rest is loaded",
    )


def _free_margin(runs: Engine) -> Component | None:
    if not runs.margin.high:
        return None
    return Component(
        name="free_margin",
        bytes=runs.margin,
        formula="what stays free on each card, or layers move to the host; none where it is off",
        inputs=(("engine", runs.words),),
        source=runs.changed,
    )


def on_host(sizes: Sizes, runs: Engine, form: WeightFormat, plan: Plan, rank: RankClass) -> Number:
    """Bytes of an embedding that waits in host memory, since rows of it are only looked up."""
    bits = _table_bits(form, sizes.hidden)
    return choose(rank.has_embedding, sizes.looked_up * runs.table_on_host * bits / 8 / plan.tp, 0)


def _table_bits(form: WeightFormat, width: Number) -> Number:
    if form.mix:
        return choose(width % LONG_BLOCK > 0, form.mix.wider_table, form.mix.table)
    return float(form.bits.typical) if form.whole else 16


def less(size: Range, gone: Number) -> Range:
    return Range(size.low - gone, size.typical - gone, size.high - gone)


def _without_table(
    weights: Component, sizes: Sizes, runs: Engine, form: WeightFormat, plan: Plan, rank: RankClass
) -> Component:
    gone = on_host(sizes, runs, form, plan, rank)
    if not gone:
        return weights
    return replace(
        weights,
        bytes=less(weights.bytes, gone),
        formula=f"{weights.formula}, less an embedding that waits in host memory",
        inputs=(*weights.inputs, ("embedding on the host", f"{gone:,.0f} bytes")),
    )


def _tower_profile(shape: ModelShape, rank: RankClass) -> Component | None:
    if not others(shape) or not rank.has_embedding:
        return None
    return Component(
        name="tower_profile",
        bytes=TOWER,
        formula="the engine's profile run with its largest image or sound",
        inputs=(("parameters beyond the text model", f"{others(shape):,}"),),
        source="no fit: a multimodal 24B peaked below its text fit, an 11B far above (vllm#12126)",
    )


def lora_buffers(
    shape: ModelShape, job: ServingJob, plan: Plan, rank: RankClass
) -> Component | None:
    """Room for adapters, which an engine sets aside when it loads, used or not."""
    if job.lora is None:
        return None
    each = adapter_params_on(shape, job.lora, plan, rank) * ADAPTER_BYTES
    return Component(
        name="lora_buffers",
        bytes=exact(each * job.adapters),
        formula="adapters x rank x (inputs + outputs) of each adapted matrix x 2 bytes",
        inputs=(("adapters", str(job.adapters)), ("rank", str(job.lora.rank))),
        source="LoRA, arXiv 2106.09685; engines allocate max_loras x max_lora_rank in advance",
    )


def draft_bytes(job: ServingJob, plan: Plan) -> Range:
    """Divided over the tensor ranks at best, whole on each at worst."""
    whole = float(job.draft_params * DRAFT_BYTES)
    return Range(whole / plan.tp, whole / plan.tp, whole * 1.1)


def _draft_model(job: ServingJob, plan: Plan) -> Component | None:
    if not job.draft_params:
        return None
    return Component(
        name="draft_model",
        bytes=draft_bytes(job, plan),
        formula="parameters x 2 bytes / tp, at most whole on every rank and a tenth of cache",
        inputs=(("parameters of the draft model", f"{job.draft_params:,}"), ("tp", str(plan.tp))),
        source="a draft of 3.07 GB beside the weights in InferenceX#2128",
    )


def peak_bytes(
    sizes: Sizes, job: ServingJob, plan: Plan, rank: RankClass, logits_share: float = 1.0
) -> Range:
    """The larger of one prefill step and the sampler, which only the last stage runs.

    `logits_share` is below 1 on ranks that hold their part of the vocabulary alone.
    """
    logits = _sampler(sizes, job, plan).scaled(logits_share)
    sampler = choose_range(rank.has_head, logits, exact(0.0))
    return largest(sampler, _prefill(sizes, job, plan)).times(PEAK_SPREAD)


def _sampler(sizes: Sizes, job: ServingJob, plan: Plan) -> Range:
    """An engine profiles with `max_num_seqs`, whatever is asked of it later; one that lays out a
    whole step holds the logits of each of its tokens, and its last states in fp32."""
    runs = engine_of(job)
    each = runs.sampler_bytes * sizes.vocab
    if runs.samples_steps:
        return _step_tokens(job).scaled(each + FP32 * sizes.hidden)
    if job.max_num_seqs is not None:
        return exact(each * job.max_num_seqs)
    wanted = sequences_per_replica(job, plan)
    return Range(each * wanted, each * wanted, each * larger(wanted, LEAST_SEQUENCES_HIGH))


def _prefill(sizes: Sizes, job: ServingJob, plan: Plan) -> Range:
    width = PREFILL_BYTES * (sizes.widest / plan.tp + sizes.hidden)
    if engine_of(job).keeps_scores:
        width = larger(width, _scores(sizes, job, plan))
    return _step_tokens(job).scaled(width)


def _scores(sizes: Sizes, job: ServingJob, plan: Plan) -> Number:
    """Attention scores of one token against all that the cache holds, their mask and four vectors
    of the width, in fp32."""
    context = sequences_per_replica(job, plan) * job.sequence_tokens
    return FP32 * (context * (sizes.heads / plan.tp + 1) + 4 * sizes.hidden)


def _step_tokens(job: ServingJob) -> Range:
    stated = job.max_num_batched_tokens
    return exact(stated) if stated else engine_of(job).step_tokens


def activation_peak(
    shape: ModelShape, job: ServingJob, plan: Plan, rank: RankClass, logits_share: float = 1.0
) -> Component:
    return Component(
        name="activations",
        bytes=peak_bytes(sizes_of(shape), job, plan, rank, logits_share),
        formula=_peak_formula(engine_of(job)),
        inputs=(
            ("step tokens", f"{_step_tokens(job).typical:,.0f}"),
            ("sampler bytes", f"{engine_of(job).sampler_bytes:g}"),
            ("sequences", str(job.max_num_seqs or sequences_per_replica(job, plan))),
            ("vocabulary", f"{shape.vocab:,}"),
            ("tp", str(plan.tp)),
        ),
        source="two empirical fits to logged profile peaks: llm-d-planner, vllm#10511",
    )


def _peak_formula(runs: Engine) -> str:
    prefill = "6 x step tokens x (inner / tp + hidden)"
    if runs.keeps_scores:
        prefill += ", 4 x step tokens x (context x (heads / tp + 1) + 4 x hidden)"
    counted = "step tokens" if runs.samples_steps else "sequences"
    return f"max({prefill}, sampler x {counted} x vocabulary)"


def _engine_overhead(runs: Engine) -> Component:
    changed = (("in these versions", runs.changed),) if runs.changed else ()
    return Component(
        name="engine_overhead",
        bytes=runs.alone,
        formula="CUDA context and libraries, outside the tensor allocator",
        inputs=(("engine", runs.words), *changed),
        source=runs.sources,
    )


def _communicators(runs: Engine, plan: Plan) -> Component | None:
    ranks = plan.engine_ranks
    if ranks == 1:
        return None
    return Component(
        name="communicators",
        bytes=runs.communicators(ranks),
        formula="buffers of NCCL for two GPUs of a replica, and more for each doubling beyond",
        inputs=(
            ("engine", runs.words),
            ("GPUs of a replica", str(ranks)),
        ),
        source=runs.sources,
    )


def _cuda_graphs(runs: Engine) -> Component:
    where = "inside" if runs.graphs_inside else "outside"
    return Component(
        name="cuda_graphs",
        bytes=runs.graphs,
        formula=f"captured decode graphs, {where} the engine's share of the memory",
        inputs=(("engine", runs.words),),
        source=runs.sources,
    )
