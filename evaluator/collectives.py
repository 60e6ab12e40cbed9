"""What a plan must move between GPUs: which collective, how often, how many bytes.

Symbols follow the ZeRO paper (arXiv 1910.02054, section 7) and Megatron-LM (arXiv 1909.08053,
section 3): P parameters of one rank, w bytes per gathered weight, g bytes per gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evaluator.exchanges import Operation, Traffic, size_words
from evaluator.jobs import ServingJob, TrainingJob, Workload
from evaluator.parameters import expert_params, routed_layers, total_params
from evaluator.plans import Plan
from evaluator.shapes import ModelShape
from evaluator.units import MIB


def traffic(workload: Workload, plan: Plan, trainable: int | None = None) -> tuple[Traffic, ...]:
    """All exchanges of a plan, per GPU of the busiest rank. Empty for one GPU and for replicas.

    `trainable` counts parameters that get gradients (default: all). Gradient and parameter
    traffic is left out where the size of the model is unknown.
    """
    if workload.serving:
        return tuple(_serving(workload, workload.serving, plan))
    if workload.training:
        return tuple(_training(workload, workload.training, plan, trainable))
    return ()


def _serving(workload: Workload, job: ServingJob, plan: Plan) -> Iterator[Traffic]:
    """One rank's tokens of a step. Groups that share experts reach them by dispatch and combine."""
    model = workload.model
    layers, routed = -(-model.layers // plan.pp), -(-routed_layers(model) // plan.pp)
    spread = routed if plan.dp > 1 and plan.ep > 1 else 0
    running = -(-job.concurrency // (plan.replicas * plan.dp))
    for per, tokens in (("decode step", running), ("prefill of one request", job.input_tokens)):
        message = _activations(model, tokens)
        if plan.tp > 1:
            often = f"2 in each of {layers} layers" + (f" - {spread} by dispatch" if spread else "")
            yield _tensor(plan, 2 * layers - spread, message, per, often)
        if spread:
            often = f"dispatch and combine in each of {spread} layers with experts"
            yield _experts(model, plan, 2 * spread, message, per, often)
        if plan.pp > 1:
            yield _pipeline(plan, 1, message, per, "to the next stage once")


@dataclass(frozen=True, slots=True)
class _Message:
    """The activations that one call carries: `bytes`, and how they are counted."""

    bytes: int
    words: str


def _activations(model: ModelShape, tokens: int) -> _Message:
    words = f"{tokens:,} tokens x {model.hidden:,} channels x {ACTIVATION_BYTES} bytes"
    return _Message(tokens * model.hidden * ACTIVATION_BYTES, words)


ACTIVATION_BYTES = 2
"""Activations travel in 16 bits whatever the format of the weights."""
FORWARD_AND_BACKWARD = 4
WITH_FULL_RECOMPUTE = 6
"""All-reduces per layer and micro-batch: two forward, two backward, two in a second forward.
As many all-to-alls: dispatch and combine, forward and backward."""
AROUND = 3
"""Keys and values go once around forward; backward they go again, and their gradients with them."""


def _training(
    workload: Workload, job: TrainingJob, plan: Plan, trainable: int | None
) -> Iterator[Traffic]:
    model, rounds = workload.model, micro_batches(job, plan)
    layers = -(-model.layers // plan.pp)
    tokens = job.seq_len * job.micro_batch // plan.cp
    message = _activations(model, tokens)
    each_round = f"{rounds} micro-batch{'es' if rounds > 1 else ''}"
    if plan.tp > 1:
        again = job.recompute.whole_layers
        each = WITH_FULL_RECOMPUTE if again else FORWARD_AND_BACKWARD
        passes = "forward, backward and forward again" if again else "forward and backward"
        often = f"{each} ({passes}) in each of {layers} layers, {each_round}"
        yield _tensor(plan, each * layers * rounds, message, STEP, often)
    if plan.ep > 1:
        routed = -(-routed_layers(model) // plan.pp)
        often = f"{FORWARD_AND_BACKWARD} in each of {routed} layers with experts, {each_round}"
        yield _experts(model, plan, FORWARD_AND_BACKWARD * routed * rounds, message, STEP, often)
    if plan.cp > 1:
        often = f"{AROUND} rounds in each of {layers} layers, {each_round}"
        tokens = job.seq_len * job.micro_batch
        yield _context(model, plan, AROUND * layers * rounds, tokens, often)
    if plan.pp > 1:
        turns = f" in {plan.virtual} turns" if plan.virtual > 1 else ""
        often = f"forward and backward{turns} with {each_round}"
        yield _pipeline(plan, 2 * rounds * plan.virtual, message, STEP, often)
    params = total_params(model)
    if plan.dp * plan.cp > 1 and params is not None:
        yield from _data(workload, job, plan, params if trainable is None else trainable)


STEP = "optimizer step"


def micro_batches(job: TrainingJob, plan: Plan) -> int:
    """Forward passes per rank and optimizer step; 1 where no global batch is given."""
    if job.global_batch is None:
        return 1
    return max(1, job.global_batch // (plan.dp * job.micro_batch))


OF_LAYERS = "Megatron-LM, arXiv 1909.08053, section 3, and 2104.04473, section 3.2"
OF_EXPERTS = "GShard, arXiv 2006.16668: dispatch and combine"
OF_CONTEXT = "Ring Attention, arXiv 2310.01889: keys and values go around"
OF_SHARDS = "ZeRO, arXiv 1910.02054, section 7"
OF_COPIES = f"{OF_SHARDS}; PyTorch DistributedDataParallel, bucket_cap_mb"


def _tensor(plan: Plan, calls: int, message: _Message, per: str, often: str) -> Traffic:
    return Traffic(
        "tensor parallel",
        Operation.ALL_REDUCE,
        plan.tp,
        calls,
        calls * message.bytes,
        per,
        often=often,
        much=message.words,
        source=OF_LAYERS,
    )


def _experts(
    model: ModelShape, plan: Plan, calls: int, message: _Message, per: str, often: str
) -> Traffic:
    """Every token to each of its experts; the tensor ranks of a group share the tokens."""
    reached = min(model.experts.active, plan.ep) if model.experts else 0
    shared = f" / {plan.tp} tensor ranks" if plan.tp > 1 else ""
    return Traffic(
        "experts",
        Operation.ALL_TO_ALL,
        plan.ep,
        calls,
        calls * message.bytes * reached // plan.tp,
        per,
        _machines(plan, plan.ep * plan.etp),
        often=often,
        much=f"{message.words} x {reached} experts of a token{shared}",
        source=OF_EXPERTS,
    )


def _context(model: ModelShape, plan: Plan, calls: int, tokens: int, often: str) -> Traffic:
    """Keys and values of the whole sequence, as a ring or a gather brings them to each rank."""
    attention = model.attention
    width = 2 * attention.kv_heads * attention.head_dim
    if attention.latent:
        width = attention.latent.kv_rank + attention.latent.rope_dim
    heads = max(1, 1 if attention.latent else min(plan.tp, attention.kv_heads))
    shared = f" / {heads} tensor ranks" if heads > 1 else ""
    return Traffic(
        "context",
        Operation.ALL_GATHER,
        plan.cp,
        calls,
        calls * tokens * width * ACTIVATION_BYTES // heads,
        STEP,
        _machines(plan, plan.tp * plan.cp),
        often=often,
        much=f"{tokens:,} tokens x {width:,} of keys and values x {ACTIVATION_BYTES} bytes{shared}",
        source=OF_CONTEXT,
    )


def _machines(plan: Plan, span: int) -> int:
    """Machines over which a group lies that spans so many neighbouring GPUs."""
    per_machine = max(1, plan.gpus // plan.nodes)
    return max(1, min(plan.nodes, -(-span // per_machine)))


def _pipeline(plan: Plan, calls: int, message: _Message, per: str, often: str) -> Traffic:
    """Stages lie `tp x cp x dp` apart; a hop may cross where a replica spans machines."""
    return Traffic(
        "pipeline",
        Operation.SEND,
        2,
        calls,
        calls * message.bytes,
        per,
        min(2, _machines(plan, plan.gpus // plan.replicas)),
        often=often,
        much=message.words,
        source=OF_LAYERS,
    )


@dataclass(frozen=True, slots=True)
class Holding:
    """Parameters on one GPU before sharding, and who shares them.

    `shard` ranks, `inner` GPUs apart, keep one copy, of which there are `copies`.
    """

    name: str
    params: float
    shard: int
    copies: int
    inner: int


def held_params(model: ModelShape, plan: Plan) -> tuple[Holding, ...]:
    """All parameters alike; where experts are dealt out, these apart: fewer ranks share them."""
    experts = expert_params(model) if plan.ep > 1 else 0
    dense = ((total_params(model) or 0) - experts) / (plan.tp * plan.pp)
    common = Holding("", dense, plan.shard, plan.copies, plan.tp)
    if not experts:
        return (common,)
    inner = plan.ep * plan.etp
    ranks = max(1, plan.tp * plan.cp * plan.dp // inner)
    shard = min(ranks, plan.expert_shard)
    dealt = Holding(" of experts", experts / (inner * plan.pp), shard, ranks // shard, inner)
    return (common, dealt)


def _data(workload: Workload, job: TrainingJob, plan: Plan, trainable: int) -> Iterator[Traffic]:
    """What a shard group gathers and scatters, and what copies of it reduce once per step."""
    share = trainable / (total_params(workload.model) or 1)
    layers = -(-workload.model.layers // plan.pp)
    for held in held_params(workload.model, plan):
        gradients = int(held.params * share * job.precision.grad_bytes)
        if held.shard > 1:
            yield from _sharded(job, plan, layers, held, gradients)
        if held.copies > 1 and gradients:
            yield _reduced(job, plan, held, gradients // held.shard)


def _reduced(job: TrainingJob, plan: Plan, held: Holding, buffer: int) -> Traffic:
    """Copies of a part sum their gradients once per step, bucket by bucket."""
    calls = max(1, -(-buffer // BUCKET_BYTES))
    return Traffic(
        f"gradients{held.name}",
        Operation.ALL_REDUCE,
        held.copies,
        calls,
        buffer,
        STEP,
        _machines(plan, held.inner * held.shard * held.copies),
        often=f"{size_words(buffer)} of gradients in buckets of {BUCKET_BYTES // MIB} MiB",
        much="the gradients shared evenly by the calls",
        source=OF_COPIES,
    )


BUCKET_BYTES = 25 * MIB
"""DistributedDataParallel's default bucket (PyTorch documentation, bucket_cap_mb)."""


PARAMETERS_SHARDED, GRADIENTS_SHARDED = 3, 2
"""ZeRO stages from which parameters, and gradients, live on one rank of the group only."""


def _sharded(
    job: TrainingJob, plan: Plan, layers: int, held: Holding, gradients: int
) -> Iterator[Traffic]:
    """Stage 3 gathers twice per micro-batch, the others once per step; from stage 2 on gradients
    are scattered per micro-batch.
    """
    machines, rounds = _machines(plan, held.inner * held.shard), micro_batches(job, plan)
    weights = int(held.params * job.precision.param_bytes)
    gathers = 2 * rounds if job.zero_stage >= PARAMETERS_SHARDED else 1
    scatters = rounds if job.zero_stage >= GRADIENTS_SHARDED else 1
    gather, scatter = Operation.ALL_GATHER, Operation.REDUCE_SCATTER
    moved = ((gather, "parameters", gathers, weights), (scatter, "gradients", scatters, gradients))
    for operation, purpose, times, size in moved:
        yield Traffic(
            f"{purpose}{held.name}",
            operation,
            held.shard,
            times * layers,
            times * size,
            STEP,
            machines,
            often=f"{times} a step for each of {layers} layers",
            much=f"{size:,} bytes of {purpose} on this rank / {layers} layers",
            source=OF_SHARDS,
        )
