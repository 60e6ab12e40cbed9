"""Seconds of a prefill and of a decode step on one engine, and the rates that follow.

Prefill is bound by arithmetic; a decode step reads the weights once and the cache of all running
sequences (roofline), then exchanges activations.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

from evaluator.calibration import constants, figure
from evaluator.devices import Device, on_each, peak_of
from evaluator.engine_load import MOST_SEQUENCES, EngineModel
from evaluator.estimates import Result, Setting
from evaluator.exchanges import Operation
from evaluator.jobs import ServingJob
from evaluator.layouts import group_of
from evaluator.link_costs import PCIES, Group, is_nvlink, on_wire, seconds
from evaluator.placement import pace
from evaluator.ranges import Number, Range, choose, exact, larger, occurs, smaller
from evaluator.units import KIB

ACTIVATION_BYTES = 2
KERNEL_BYTES = 64 * KIB
"""Engines' own kernels take the same few microseconds on NVLink up to here."""


def prefill_seconds(
    model: EngineModel, setting: Setting, *, packed: bool = False
) -> dict[str, float]:
    """One prompt through every stage; attention is causal. `packed` prompts that wait in a queue
    are read several at once, and share the latency of their exchange.
    """
    tokens, work = model.job.input_tokens, model.load.prefill
    peak = peak_of(model.device, model.weights_format)
    speed = setting.take("prefill efficiency", _arithmetic_share(model, "prefill"))
    split = model.layout.tensor * speed
    computed = work.matrices * tokens / (peak * split)
    scored = work.attention * tokens / (model.device.half_flops * split)
    together = max(tokens, PACKED_TOKENS) if packed else tokens
    exchange = sum(exchanges(model, setting, together).values()) * tokens / together
    hidden = 0.0
    if occurs(exchange):
        hidden = setting.take("overlap of prefill traffic", figure("serving.prefill_overlap"))
    return {"prefill": computed + scored, "prefill exchange": exchange * (1 - hidden)}


PACKED_TOKENS = 8192
"""Tokens of prompts that engines read in one step where enough of them wait (their default)."""


def _share(device: Device, family: str, name: str) -> Range:
    """Share of a peak: by format or kind of memory, else by generation, else for all."""
    for key in (f"serving.{family}_{name}", f"serving.{family}_{device.generation}"):
        if key in constants():
            return figure(key)
    return figure(f"serving.{family}")


def decode_terms(model: EngineModel, setting: Setting, sequences: float) -> dict[str, float]:
    """One token for every running sequence of a data-parallel rank. Each stage handles its share
    of the sequences, and the busiest sets the pace as far as all of them are filled.

    Matrix products take the longer of reading the weights and multiplying, or a little more where
    both are alike; attention, which reads the cache, comes after them.
    """
    stages = model.layout.stages
    running = larger(1.0, sequences / stages)
    reading = setting.take("memory efficiency", _memory_share(model))
    rate = model.device.memory_bytes_per_s * reading
    filled = _filled(stages, sequences)
    weights = model.weights_read(running) / rate * (1 + filled * (model.load.weight_pace - 1))
    arithmetic = _decode_arithmetic(model, setting, running) * (1 + filled * (model.load.pace - 1))
    sharp = setting.take("how far reading and arithmetic overlap", figure("serving.overlap"))
    stages = stages * _unevenness(setting, stages, running)
    product = (weights**sharp + arithmetic**sharp) ** (1 / sharp) * stages
    read = weights >= arithmetic
    host = setting.take("host time", _host_time(model.job))
    each = setting.take("host time per sequence", figure("serving.host_per_sequence"))
    return {
        "reading weights": choose(read, product, 0.0),
        "decode arithmetic": choose(read, 0.0, product),
        "reading the cache": running * model.load.cache_bytes / rate * stages,
        **exchanges(model, setting, running),
        "host": host * (1 + HOST_PER_STAGE * (model.layout.stages - 1)) + each * sequences,
    }


def _unevenness(setting: Setting, stages: int, running: float) -> Number:
    """What stages wait for each other, since their batches differ and prompts come between them.
    Stages that hold one sequence each do not."""
    if stages == 1:
        return 1.0
    each = setting.take("batches of stages that differ", figure("serving.uneven_stages"))
    return 1 + (1 - 1 / running) * each * log2(stages)


def _filled(stages: int, sequences: float) -> float:
    """How far other requests fill the stages: a single one meets them all in turn and waits for
    none."""
    if stages == 1:
        return 0.0
    return smaller(1.0, larger(0.0, sequences - 1) / (stages - 1))  # type: ignore[no-any-return]


WITHOUT_SERVER = frozenset({"gpt-fast"})
"""Scripts that time the model alone: no requests to schedule, one captured graph."""


def _host_time(job: ServingJob) -> Range:
    return figure("serving.host_of_script" if job.engine in WITHOUT_SERVER else "serving.host")


HOST_PER_STAGE = 0.25
"""What one more stage adds to the host's work per token, against a single stage."""


def _memory_share(model: EngineModel) -> Range:
    if model.unpacked:
        return figure("serving.memory_small_formats")
    return on_each(model.device, "memory share", lambda one: _share(one, "memory", one.memory_kind))


def _arithmetic_share(model: EngineModel, family: str) -> Range:
    form = model.weights_format
    return on_each(model.device, (family, form), lambda one: _share(one, family, one.rate(form)[0]))


def _decode_arithmetic(model: EngineModel, setting: Setting, running: float) -> Number:
    peak = peak_of(model.device, model.weights_format)
    speed = setting.take("decode efficiency", _arithmetic_share(model, "decode"))
    split = model.layout.tensor * model.layout.stages
    return model.load.decode.matrices * running / (peak * speed * split)


def exchanges(model: EngineModel, setting: Setting, tokens: float) -> dict[str, float]:
    """Seconds of what a step of so many tokens per rank moves, by kind; only kinds that occur."""
    size = tokens * model.hidden * ACTIVATION_BYTES
    found = {
        "exchange": _all_reduces(model, setting, size),
        "expert exchange": _experts(model, setting, size),
        "hops": _hops(model, setting, size),
    }
    return {name: spent for name, spent in found.items() if occurs(spent)}


def all_reduce_calls(model: EngineModel) -> int:
    """Two in every layer; one where experts are reached by dispatch and combine instead."""
    if model.layout.tensor == 1:
        return 0
    spread = model.load.routed_layers if model.layout.data > 1 else 0
    return 2 * model.layers - spread


def _all_reduces(model: EngineModel, setting: Setting, size: float) -> float:
    calls = all_reduce_calls(model)
    if not calls:
        return 0.0
    group = Group(model.layout.tensor, 1, model.links.wire)
    spent = calls * setting.take("link", _engine_all_reduce(group, size))
    return spent * _sent(model, setting)  # type: ignore[no-any-return]


def _sent(model: EngineModel, setting: Setting) -> Number:
    """Share of the 16-bit bytes that an engine really sends. Over slots some send 8 bits, or gather
    tokens in the experts' own format and scatter the sums instead of two all-reduces."""
    wire = model.links.wire
    if wire is None:
        return 1.0
    over_slots = on_wire(wire, "slot", lambda one: exact(one.kind in PCIES)).typical
    if not occurs(over_slots):
        return 1.0
    name = "sent_to_experts" if model.load.routed_layers else "sent_over_slot"
    share = setting.take("bytes sent over the slot", figure(f"serving.{name}"))
    return 1 - over_slots * (1 - share)


def expert_bytes(model: EngineModel, size: float) -> float:
    """Buffer of one dispatch on one GPU: each token goes to its experts, the tensor ranks of a
    group share the tokens."""
    reached = min(model.load.experts_per_token, model.layout.experts)
    return size * reached / model.layout.tensor


def _experts(model: EngineModel, setting: Setting, size: float) -> float:
    """Dispatch and combine in every routed layer. The rank with the busiest experts is waited
    for."""
    layout = model.layout
    if layout.data == 1 or layout.experts == 1 or not model.load.routed_layers:
        return 0.0
    group = group_of(layout, model.links, layout.experts, layout.expert_inner)
    one = seconds(Operation.ALL_TO_ALL, group, expert_bytes(model, size))
    name = "network between machines" if group.nodes > 1 else "link"
    uneven = setting.take("busiest experts", figure("serving.busiest_experts"))
    return 2 * model.load.routed_layers * uneven * setting.take(name, one)


def _hops(model: EngineModel, setting: Setting, size: float) -> float:
    """From stage to stage, and the sampled token back to the first."""
    layout, links = model.layout, model.links
    if layout.stages == 1:
        return 0.0
    crossing = layout.engine_machines if layout.engine_machines > 1 and links.fabric else 0
    spent = 0.0
    for hops, group in (
        (layout.stages - crossing, Group(2, 1, links.wire)),
        (crossing, Group(2, 2, None, links.fabric)),
    ):
        if hops > 0:
            name = "network between machines" if group.nodes > 1 else "link"
            hop = seconds(Operation.SEND, group, size / layout.tensor)
            spent += hops * setting.take(name, hop)
    return spent


def _engine_all_reduce(group: Group, size: float) -> Range:
    """Engines use kernels of their own for small messages on NVLink."""
    usual = seconds(Operation.ALL_REDUCE, group, size)
    if group.wire is None:
        return usual
    kernel = figure("nvlink.kernel")
    share = smaller(1.0, KERNEL_BYTES / size) * is_nvlink(group.wire)
    ends = (
        getattr(kernel, end) * share + getattr(usual, end) * (1 - share)
        for end in ("low", "typical", "high")
    )
    return Range(*ends)


def room_for(model: EngineModel, setting: Setting) -> float:
    """Sequences that the cache holds at once; 0 where the weights leave no room."""
    room = setting.take("memory left for the cache", model.cache_room)
    most = model.job.max_num_seqs or MOST_SEQUENCES
    one = model.load.admitted_bytes
    return larger(0.0, smaller(most, room / one if one else most))  # type: ignore[no-any-return]


def room_range(model: EngineModel) -> Range:
    """Sequences at once, by the ends of the memory left for the cache."""
    ends = ("low", "typical", "high")
    return Range(*(room_for(model, Setting("memory left for the cache", end)) for end in ends))


@dataclass(frozen=True, slots=True)
class Offline:
    """Output tokens/s of one engine with all requests queued at once, prefill included.

    At the end the batch runs empty: half of the last one is idle on average.
    """

    model: EngineModel

    def __call__(self, setting: Setting) -> Result:
        model, job = self.model, self.model.job
        output = max(1, job.output_tokens)
        running = larger(1.0, room_for(model, setting))
        prefill = prefill_seconds(model, setting, packed=True)
        spent = {name: value * _prefill_share(model) for name, value in prefill.items()}
        decode = decode_terms(model, setting, running)
        for name, value in decode.items():
            spent[name] = spent.get(name, 0.0) + value * output / running
        queued = setting.take("requests queued", figure("serving.queued"))
        full = queued / (queued + running / 2)
        return Result(output * full / sum(spent.values()), spent)


def _prefill_share(model: EngineModel) -> float:
    """Stages work on different prompts at once, at the pace of the one with most layers."""
    return pace(model.layers, model.layout.stages) / model.layout.stages


@dataclass(frozen=True, slots=True)
class Interactive:
    """What `users` of one engine see who ask again at once.

    Gives "ttft" and "tpot" in seconds, and "rate" in output tokens/s of the engine.
    """

    model: EngineModel
    users: float

    def __call__(self, setting: Setting) -> dict[str, Result]:
        model, job = self.model, self.model.job
        output = max(1, job.output_tokens)
        slots = larger(1.0, room_for(model, setting))
        running = smaller(self.users, slots)
        prompt = prefill_seconds(model, setting)
        prefill, exchange = sum(prompt.values()), prompt["prefill exchange"]
        overhead = _handling(job, setting)
        decode = decode_terms(model, setting, running)
        step = sum(decode.values())
        tpot = step + prefill * _prefill_share(model) * larger(0.0, running - 1) / output
        alone = prefill + overhead + step
        rate = running * output / (alone + (output - 1) * tpot)
        ahead = _prompts_ahead(setting, prefill * rate / output)
        waiting = larger(0.0, self.users - slots) * output / rate
        first = alone + ahead * prefill
        between = (tpot - step) + alone / output
        shown = exchange / prefill * (tpot - step) + exchange / output
        each = {**decode, "prefill": between - shown, "prefill exchange": shown}
        own = {"prefill": prefill - exchange, "prefill exchange": exchange}
        start = {"waiting": waiting, **own, "prompts ahead": ahead * prefill}
        return {
            "ttft": Result(waiting + first, {**start, "first token": step, "handling": overhead}),
            "tpot": Result(tpot, {**decode, "prefill of others": tpot - step}),
            "rate": Result(rate, each),
        }


def _handling(job: ServingJob, setting: Setting) -> float:
    if job.engine in WITHOUT_SERVER:
        return 0.0
    return setting.take("request handling", figure("serving.request"))


def _prompts_ahead(setting: Setting, busy: float) -> Number:
    """Prompts that a new one finds in front of it: the queue of one server with steady service."""
    factor = setting.take("prompts that arrive together", figure("serving.together"))
    share = smaller(busy, MOST_BUSY)
    return factor * share / (2 * (1 - share))


MOST_BUSY = 0.8
"""Share of the time spent on prompts beyond which the queue is that of the slots."""
