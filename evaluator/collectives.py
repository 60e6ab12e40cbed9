"""What a plan must move between GPUs: which collective, how often, how many bytes.

Symbols follow the ZeRO paper (arXiv 1910.02054, section 7) and Megatron-LM (arXiv 1909.08053,
section 3): P parameters of one rank, w bytes per gathered weight, g bytes per gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cache

from evaluator.jobs import ServingJob, TrainingJob, Workload
from evaluator.parameters import expert_params, routed_layers, total_params
from evaluator.plans import Plan
from evaluator.shapes import ModelShape
from evaluator.units import GB, KIB, MB, MIB


class Operation(StrEnum):
    ALL_REDUCE = "all-reduce"
    ALL_GATHER = "all-gather"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_TO_ALL = "all-to-all"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    SEND = "send"


class Bound(StrEnum):
    """What sets the time of one call, by the size of its message."""

    LATENCY = "latency"
    MIXED = "latency and bandwidth"
    BANDWIDTH = "bandwidth"


LATENCY_BELOW = 64 * KIB
"""Engines' own kernels take the same few microseconds up to here (aiconfigurator tables)."""
BANDWIDTH_ABOVE = 32 * MIB
"""From here on latency is below a tenth of the time (15 measured curves)."""


@cache
def bus_factor(operation: Operation, ranks: int) -> Fraction:
    """Bytes that each rank sends per byte of buffer: nccl-tests PERFORMANCE.md."""
    if operation in (Operation.SEND, Operation.BROADCAST, Operation.REDUCE):
        return Fraction(1)
    share = Fraction(ranks - 1, ranks)
    return 2 * share if operation is Operation.ALL_REDUCE else share


@dataclass(frozen=True, slots=True)
class Traffic:
    """One kind of exchange. `buffer_bytes` sums the buffers of all `calls` on one GPU.

    `group` ranks take part, spread over `machines`. `per` names the unit of work: an optimizer
    step, a decode step, the prefill of one request.
    """

    purpose: str
    operation: Operation
    group: int
    calls: int
    buffer_bytes: int
    per: str
    machines: int = 1

    @property
    def message_bytes(self) -> int:
        """Buffer of one call, as nccl-tests counts it."""
        return self.buffer_bytes // self.calls

    @property
    def sent_bytes(self) -> int:
        """Bytes that each GPU sends per unit of work, wherever its peers are."""
        return int(bus_factor(self.operation, self.group) * self.buffer_bytes)

    @property
    def between_machines_bytes(self) -> int:
        """Bytes per GPU that leave the machine when the collective is hierarchical; else 0.

        Each of the g GPUs of a machine carries 1/g of the buffer over the network.
        """
        if self.machines == 1:
            return 0
        share = 1 if self.operation is Operation.SEND else max(1, self.group // self.machines)
        return int(bus_factor(self.operation, self.machines) * self.buffer_bytes / share)

    @property
    def bound(self) -> Bound:
        if self.message_bytes <= LATENCY_BELOW:
            return Bound.LATENCY
        return Bound.BANDWIDTH if self.message_bytes >= BANDWIDTH_ABOVE else Bound.MIXED

    @property
    def words(self) -> str:
        """The need in numbers, for a screen."""
        calls = f"{self.calls} {self.operation}{'s' if self.calls > 1 else ''}"
        return (
            f"{calls} of {_size(self.message_bytes)} over {self.group} GPUs per {self.per}: "
            f"{_size(self.sent_bytes)} sent by each GPU, bound by {self.bound}"
        )


def _size(byte_count: int) -> str:
    for unit, name in ((GB, "GB"), (MB, "MB")):
        if byte_count >= unit:
            return f"{byte_count / unit:.3g} {name}"
    return f"{byte_count / 1000:.3g} kB"


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
        message = tokens * model.hidden * ACTIVATION_BYTES
        if plan.tp > 1:
            yield _tensor(plan, 2 * layers - spread, message, per)
        if spread:
            yield _experts(model, plan, 2 * spread, message, per)
        if plan.pp > 1:
            yield _pipeline(plan, 1, message, per)


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
    message = tokens * model.hidden * ACTIVATION_BYTES
    if plan.tp > 1:
        again = job.recompute.whole_layers
        each = WITH_FULL_RECOMPUTE if again else FORWARD_AND_BACKWARD
        yield _tensor(plan, each * layers * rounds, message, STEP)
    if plan.ep > 1:
        calls = FORWARD_AND_BACKWARD * -(-routed_layers(model) // plan.pp) * rounds
        yield _experts(model, plan, calls, message, STEP)
    if plan.cp > 1:
        yield _context(model, plan, AROUND * layers * rounds, job.seq_len * job.micro_batch)
    if plan.pp > 1:
        yield _pipeline(plan, 2 * rounds * plan.virtual, message, STEP)
    params = total_params(model)
    if plan.dp * plan.cp > 1 and params is not None:
        yield from _data(workload, job, plan, params if trainable is None else trainable)


STEP = "optimizer step"


def micro_batches(job: TrainingJob, plan: Plan) -> int:
    """Forward passes per rank and optimizer step; 1 where no global batch is given."""
    if job.global_batch is None:
        return 1
    return max(1, job.global_batch // (plan.dp * job.micro_batch))


def _tensor(plan: Plan, calls: int, message: int, per: str) -> Traffic:
    return Traffic("tensor parallel", Operation.ALL_REDUCE, plan.tp, calls, calls * message, per)


def _experts(model: ModelShape, plan: Plan, calls: int, message: int, per: str) -> Traffic:
    """Every token to each of its experts; the tensor ranks of a group share the tokens."""
    reached = min(model.experts.active, plan.ep) if model.experts else 0
    buffer = calls * message * reached // plan.tp
    span = plan.ep * plan.etp
    return Traffic(
        "experts", Operation.ALL_TO_ALL, plan.ep, calls, buffer, per, _machines(plan, span)
    )


def _context(model: ModelShape, plan: Plan, calls: int, tokens: int) -> Traffic:
    """Keys and values of the whole sequence, as a ring or a gather brings them to each rank."""
    attention = model.attention
    width = 2 * attention.kv_heads * attention.head_dim
    if attention.latent:
        width = attention.latent.kv_rank + attention.latent.rope_dim
    heads = 1 if attention.latent else min(plan.tp, attention.kv_heads)
    buffer = calls * tokens * width * ACTIVATION_BYTES // max(1, heads)
    machines = _machines(plan, plan.tp * plan.cp)
    return Traffic("context", Operation.ALL_GATHER, plan.cp, calls, buffer, STEP, machines)


def _machines(plan: Plan, span: int) -> int:
    """Machines over which a group lies that spans so many neighbouring GPUs."""
    per_machine = max(1, plan.gpus // plan.nodes)
    return max(1, min(plan.nodes, -(-span // per_machine)))


def _pipeline(plan: Plan, calls: int, message: int, per: str) -> Traffic:
    """Stages lie `tp x cp x dp` apart; a hop may cross where a replica spans machines."""
    machines = _machines(plan, plan.gpus // plan.replicas)
    return Traffic("pipeline", Operation.SEND, 2, calls, calls * message, per, min(2, machines))


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
            buffer = gradients // held.shard
            calls = max(1, -(-buffer // BUCKET_BYTES))
            machines = _machines(plan, held.inner * held.shard * held.copies)
            purpose, reduce = f"gradients{held.name}", Operation.ALL_REDUCE
            yield Traffic(purpose, reduce, held.copies, calls, buffer, STEP, machines)


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
        name, calls = f"{purpose}{held.name}", times * layers
        yield Traffic(name, operation, held.shard, calls, times * size, STEP, machines)
