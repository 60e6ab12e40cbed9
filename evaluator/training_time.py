"""Seconds of one optimizer step, term by term.

T = rounds x (compute + exposed tensor, expert and context traffic) x (1 + bubble)
  + exposed data-parallel traffic + the optimizer's own pass.
Bubble: (p - 1) / (v m), arXiv 2104.04473 section 2.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from evaluator.adapters import adapter_params
from evaluator.calibration import constants, figure
from evaluator.collectives import GRADIENTS_SHARDED, PARAMETERS_SHARDED
from evaluator.devices import Device, on_each, peak_of
from evaluator.estimates import Result, Setting
from evaluator.exchanges import Operation
from evaluator.feeds import host_bytes, host_optimizer_seconds, host_seconds, starved_seconds
from evaluator.flops import FORWARD_AND_BACKWARD, FROZEN, active_of, pace_of, work_of
from evaluator.jobs import Offload, Schedule, TrainingJob
from evaluator.layouts import Layout, Links, group_of
from evaluator.link_costs import Group, taken
from evaluator.parameters import expert_params, routed_layers, total_params
from evaluator.ranges import (
    Number,
    Range,
    added,
    by_count,
    choose,
    choose_range,
    exact,
    larger,
    occurs,
    pick,
    smaller,
)
from evaluator.shapes import ModelShape

ACTIVATION_BYTES = 2


def step_tokens(job: TrainingJob, layout: Layout) -> int:
    """Trained tokens of one optimizer step: without a stated batch, one micro-batch per rank."""
    return (job.global_batch or layout.data * job.micro_batch) * job.seq_len


@dataclass(frozen=True, slots=True)
class StepModel:
    """One training step. `arithmetic` is the format of the multiplications, not of the states.

    A layout of columns, with a device and links of as many elements, makes columns of all figures.
    """

    shape: ModelShape
    job: TrainingJob
    layout: Layout
    device: Device
    links: Links
    arithmetic: str = "bf16"

    @property
    def rounds(self) -> int:
        """Micro-batches that one data-parallel rank runs per step."""
        ranks = self.layout.data * self.job.micro_batch
        batch = self.job.global_batch
        return larger(1, batch // ranks) if batch else 1

    @property
    def tokens(self) -> int:
        """Trained tokens of one optimizer step."""
        return step_tokens(self.job, self.layout)

    @property
    def round_tokens(self) -> float:
        """Tokens of one micro-batch on one context rank."""
        return self.job.micro_batch * self.job.seq_len / self.layout.context

    @property
    def passes(self) -> int:
        """Forward passes' worth of work: backward counts two, frozen weights need one of them."""
        trained = FROZEN if self.job.lora else FORWARD_AND_BACKWARD
        return trained + self.job.recompute.whole_layers

    @property
    def sharded(self) -> bool:
        return self.layout.shard > 1

    def __call__(self, setting: Setting) -> Result:
        terms = step_terms(self, setting)
        return Result(added(terms.values()), terms)


def busy_seconds(model: StepModel, setting: Setting) -> float:
    """Of one step that waits for nothing but its own pipeline: no step takes less."""
    inside = model.rounds * added(compute_seconds(model, setting).values())
    return inside * (1 + bubble(model, setting))  # type: ignore[no-any-return]


def step_terms(model: StepModel, setting: Setting) -> dict[str, float]:
    """Seconds of one step by term; they sum to the step."""
    computed = compute_seconds(model, setting)
    exposed = _exposed(model, setting)
    working, waiting = added(computed.values()), added(exposed.values())
    rounds = partial(_in_all_rounds, model)
    terms = {name: rounds(value) for name, value in {**computed, **exposed}.items()}
    terms["pipeline bubble"] = bubble(model, setting) * rounds(working + waiting)
    busy = rounds(working)
    terms["gradients and parameters"] = _data(model, setting, busy)
    terms |= _from_outside(model, setting, busy)
    if model.job.dataset_bytes:
        step = added(terms.values())
        data = starved_seconds(model.job, model.tokens, model.layout.nodes, step, setting)
        terms["data from storage"] = data
    return {name: value for name, value in terms.items() if occurs(value)}


def _in_all_rounds(model: StepModel, seconds: float) -> float:
    """Of one round: most jobs have but one, and columns of all elements take long to multiply."""
    rounds = model.rounds
    return seconds if isinstance(rounds, int) and rounds == 1 else rounds * seconds


def _from_outside(model: StepModel, setting: Setting, busy: float) -> dict[str, float]:
    """The optimizer where its states are, and what has to come from host memory."""
    layout, job = model.layout, model.job
    held = _held(model)
    trained = held * trained_share(model)
    inputs = model.round_tokens * model.shape.hidden * model.shape.layers
    inputs /= layout.stages * layout.tensor
    moved = host_bytes(job, held, trained, model.rounds, inputs)
    on_card = 0.0 if job.offload is not Offload.NONE else _optimizer(model, trained)
    return {
        "optimizer": on_card,
        "optimizer on the host": host_optimizer_seconds(job, trained, setting),
        "traffic with host memory": host_seconds(moved, busy, setting),
    }


def compute_seconds(model: StepModel, setting: Setting) -> Mapping[str, float]:
    """One micro-batch on one GPU: matrix products, attention, and passes over activations."""
    work = work_of(model.shape, model.job.seq_len)
    if work is None:
        raise ValueError("a model of unknown size has no time")
    split = model.layout.tensor * model.layout.stages
    share = model.round_tokens * model.passes / split
    pace = by_count(model.layout.stages, partial(pace_of, model.shape, work))
    peak = peak_of(model.device, model.arithmetic)
    copied, cut = (_on_matrices(model, sharded) for sharded in (False, True))
    dense = setting.take("matrix efficiency", choose_range(model.sharded, cut, copied))
    if model.shape.experts:
        dense = dense * setting.take("expert matrices", figure("training.experts"))
    kept = setting.take("attention efficiency", on_each(model.device, "attention", _attention))
    touched = setting.take("passes over activations", figure("training.elementwise"))
    moved = model.shape.layers * model.shape.hidden * touched * share
    return {
        "matrix products": work.matrices * pace * share / (peak * dense),
        "attention": work.attention * share / (model.device.half_flops * kept),
        "passes over activations": moved / model.device.memory_bytes_per_s,
    }


def _on_matrices(model: StepModel, sharded: bool) -> Range:
    def read(device: Device) -> Range:
        return efficiency(device, device.rate(model.arithmetic)[0], sharded)

    return on_each(model.device, ("matrices", model.arithmetic, sharded), read)


def efficiency(device: Device, arithmetic: str, sharded: bool) -> Range:
    """Share of the peak in large matrix products, by generation and format."""
    family = "sharded" if sharded else "matrix"
    for name in (
        f"{family}.{device.generation}_{arithmetic}",
        f"matrix.{device.generation}_{arithmetic}",
        f"matrix.any_{arithmetic}",
    ):
        if name in constants():
            return figure(name)
    return figure("matrix.any_half")


def _attention(device: Device) -> Range:
    own = f"training.attention_{device.generation}"
    return figure(own if own in constants() else "training.attention")


BUBBLE = {Schedule.ZERO_BUBBLE_1: 1 / 3, Schedule.ZERO_BUBBLE_2: 0.0}
"""Idle time against 1F1B where the passes for weights, inputs and forward take alike: (F + B - W) /
(F + B + W), and none (arXiv 2401.10241). GPipe idles as 1F1B does, and only holds more."""


def bubble(model: StepModel, setting: Setting) -> float:
    """Idle share of a pipeline against the ideal. Virtual stages divide it."""
    stages, held = model.layout.stages, model.layout.turns
    if not occurs(stages - 1):
        return 0.0
    turns = choose_range(held > 0, exact(held), figure("training.virtual_stages"))
    idle = (stages - 1) / (model.rounds * setting.take("virtual stages", turns))
    return idle * BUBBLE.get(model.job.schedule, 1.0)


def _exposed(model: StepModel, setting: Setting) -> dict[str, float]:
    return {
        "tensor parallel exchange": _tensor(model, setting),
        "expert exchange": _experts(model, setting),
        "context exchange": _context(model, setting),
        "pipeline hops": _hops(model, setting),
    }


def _tensor(model: StepModel, setting: Setting) -> float:
    """Two all-reduces a layer forward, two backward, two more where the forward is repeated."""
    layout = model.layout
    if not occurs(layout.tensor - 1):
        return 0.0
    group = group_of(layout, model.links, layout.tensor, 1)
    size = model.round_tokens * model.shape.hidden * ACTIVATION_BYTES
    calls = (4 + 2 * model.job.recompute.whole_layers) * model.shape.layers / layout.stages
    hidden = setting.take("overlap of tensor traffic", figure("training.tensor_overlap"))
    return calls * taken(setting, Operation.ALL_REDUCE, group, size) * (1 - hidden)


def _experts(model: StepModel, setting: Setting) -> float:
    """Dispatch and combine, forward and backward, of every token to each of its experts."""
    layout, experts = model.layout, model.shape.experts
    if experts is None or not occurs(layout.experts - 1):
        return 0.0
    group = group_of(layout, model.links, layout.experts, layout.expert_inner)
    size = model.round_tokens * model.shape.hidden * experts.active * ACTIVATION_BYTES
    calls = 4 * routed_layers(model.shape) / layout.stages
    hidden = setting.take("overlap of expert traffic", figure("training.expert_overlap"))
    one = taken(setting, Operation.ALL_TO_ALL, group, size / layout.tensor)
    return calls * one * (1 - hidden)


def _context(model: StepModel, setting: Setting) -> float:
    """Keys and values go once around; backward about twice more. Most hides behind attention."""
    layout, attention = model.layout, model.shape.attention
    if not occurs(layout.context - 1):
        return 0.0
    group = group_of(layout, model.links, layout.context, layout.tensor)
    width = 2 * attention.kv_heads * attention.head_dim / layout.tensor
    size = model.round_tokens * layout.context * width * ACTIVATION_BYTES
    calls = 3 * model.shape.layers / layout.stages
    hidden = setting.take("overlap of context traffic", figure("training.context_overlap"))
    return calls * taken(setting, Operation.ALL_GATHER, group, size) * (1 - hidden)


def _hops(model: StepModel, setting: Setting) -> float:
    layout = model.layout
    if not occurs(layout.stages - 1):
        return 0.0
    ends = smaller(2, layout.stages)
    group = Group(ends, smaller(ends, layout.nodes), model.links.wire, model.links.fabric)
    size = model.round_tokens * model.shape.hidden * ACTIVATION_BYTES / layout.tensor
    calls: float = 2 * larger(1, layout.turns)
    hidden = setting.take("overlap of pipeline hops", figure("training.hop_overlap"))
    return calls * taken(setting, Operation.SEND, group, size) * (1 - hidden)


def _data(model: StepModel, setting: Setting, computed: float) -> float:
    """What compute does not hide of the gradients and, sharded, of the parameters."""
    ranks = model.layout.data * model.layout.context
    if not occurs(ranks - 1) or total_params(model.shape) is None:
        return 0.0
    parts = held_parts(model)
    spent = pick(
        model.sharded,
        lambda: sum(_sharded(model, setting, held) for held in parts),
        lambda: sum(_copies(model, setting, held) for held in parts),
    )
    shown, hidden = (
        pick(
            model.sharded,
            partial(setting.take, f"{words} of sharded traffic", figure(f"training.shard_{name}")),
            partial(setting.take, f"{words} of gradients", figure(f"training.gradient_{name}")),
        )
        for name, words in (("shown", "what always shows"), ("overlap", "overlap"))
    )
    beside = choose(_moves_every_round(model), computed, computed / model.rounds)
    return larger(shown * spent, spent - hidden * beside)  # type: ignore[no-any-return]


def _moves_every_round(model: StepModel) -> Number:
    """Whether parameters or gradients travel with each micro-batch; else they wait for the last,
    and have only its compute to hide behind."""
    return model.sharded & (model.job.zero_stage >= GRADIENTS_SHARDED)


@dataclass(frozen=True, slots=True)
class HeldPart:
    """Parameters on one rank before sharding; `ranks` of them `inner` GPUs apart hold the same.

    A single rank exchanges nothing: so does the part of a plan that has none.
    """

    params: float
    ranks: int
    shard: int
    inner: int


def trained_share(model: StepModel) -> float:
    """Share of the parameters that get gradients: all, or those of the adapters."""
    params = total_params(model.shape)
    if model.job.lora is None or not params:
        return 1.0
    return adapter_params(model.shape, model.job.lora) / params


def held_parts(model: StepModel) -> list[HeldPart]:
    """All parameters, and apart from them experts that are dealt out."""
    layout = model.layout
    spread = layout.experts > 1
    experts = choose(spread, expert_params(model.shape), 0) if occurs(spread) else 0
    ranks = layout.data * layout.context
    dense = ((total_params(model.shape) or 0) - experts) / (layout.tensor * layout.stages)
    parts = [HeldPart(dense, ranks, layout.shard, layout.tensor)]
    if occurs(experts):
        inner = layout.experts * layout.expert_inner
        left = choose(spread, larger(1, ranks * layout.tensor // inner), 1)
        shard = smaller(left, larger(1, layout.shard * layout.tensor // inner))
        parts.append(HeldPart(experts / (inner * layout.stages), left, shard, inner))
    return parts


def _copies(model: StepModel, setting: Setting, held: HeldPart) -> float:
    """One reduction of the gradients per step."""
    size = held.params * trained_share(model) * model.job.precision.grad_bytes
    group = group_of(model.layout, model.links, held.ranks, held.inner)
    return taken(setting, Operation.ALL_REDUCE, group, size)


def _sharded(model: StepModel, setting: Setting, held: HeldPart) -> float:
    """Two gathers and one scatter per micro-batch, a layer at a time; copies reduce once. A scatter
    takes as long as a gather of as many bytes."""
    layout, job = model.layout, model.job
    group = group_of(layout, model.links, held.shard, held.inner)
    layers = larger(1.0, model.shape.layers / layout.stages)
    one = held.params * job.precision.param_bytes / layers
    gathers = 2 * model.rounds if job.zero_stage >= PARAMETERS_SHARDED else 1
    scatters = model.rounds if job.zero_stage >= GRADIENTS_SHARDED else 1
    gather = scatter = taken(setting, Operation.ALL_GATHER, group, one)
    if job.lora:
        gradients = one * trained_share(model)
        scatter = taken(setting, Operation.REDUCE_SCATTER, group, gradients)
    gathered, scattered = gathers * layers * gather, scatters * layers * scatter
    return gathered + scattered + _between_copies(model, setting, held)  # type: ignore[no-any-return]


def _between_copies(model: StepModel, setting: Setting, held: HeldPart) -> float:
    """Copies of a shard group reduce their shares of the gradients once per step."""
    copies = held.ranks // held.shard
    if not occurs(copies - 1):
        return 0.0
    size = held.params * trained_share(model) * model.job.precision.grad_bytes / held.shard
    group = group_of(model.layout, model.links, copies, held.inner * held.shard)
    return taken(setting, Operation.ALL_REDUCE, group, size)


def _held(model: StepModel) -> float:
    """Parameters whose states one GPU keeps."""
    params = total_params(model.shape) or active_of(model.shape) or 0
    ways = model.layout.tensor * model.layout.stages * larger(1, model.layout.shard)
    return params / ways  # type: ignore[no-any-return]


def _optimizer(model: StepModel, trained: float) -> float:
    """States are read and written once by the ranks that hold them."""
    return 2 * trained * model.job.precision.bytes_per_param / model.device.memory_bytes_per_s
