"""What one serving engine reads and computes, worked out once per workload and plan."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.devices import Device
from evaluator.flops import TokenWork, pace_of, work_of
from evaluator.formats import WeightFormat
from evaluator.jobs import ServingJob
from evaluator.kv_cache import sequence_bytes
from evaluator.layouts import Layout, Links
from evaluator.parameters import routed_layers
from evaluator.partition import RankClass, params_of, rank_classes, stage_of, stages_of
from evaluator.plans import Plan
from evaluator.ranges import Range
from evaluator.shapes import ModelShape
from evaluator.weights import weights_on

RESERVES_WHOLE = frozenset({"tensorrt-llm"})
"""Engines that admit a request only when its whole length fits; others admit and evict."""
MOST_SEQUENCES = 2048
"""Sequences that an engine runs at once where nothing else limits it (TensorRT-LLM's default)."""


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """Bytes on a GPU of an even stage, and FLOPs of the whole model.

    `weight_bytes` are read by a decode step that hits every expert; `expert_share` of them belong
    to experts, each of which a token misses with `miss_share`. `cache_bytes` is one sequence at
    its mean length, `admitted_bytes` what the engine wants free to admit one. `routed_layers` hold
    experts, of which `experts_per_token` see each token. `pace` and
    `weight_pace` are arithmetic and weights of the busiest stage against an even share.
    """

    weight_bytes: float
    expert_share: float
    miss_share: float
    cache_bytes: float
    admitted_bytes: float
    prefill: TokenWork
    decode: TokenWork
    routed_layers: int = 0
    experts_per_token: int = 0
    pace: float = 1.0
    weight_pace: float = 1.0


def load_of(
    shape: ModelShape, job: ServingJob, form: WeightFormat, plan: Plan
) -> EngineLoad | None:
    """None where the size of the model is not known."""
    prefill, decode = work_of(shape, job.input_tokens), work_of(shape, 1)
    if prefill is None or decode is None:
        return None
    rank = rank_classes(shape, plan)[0]
    read = [_read_bytes(shape, form, plan, one) for one in stages_of(shape, plan)]
    experts, half = shape.experts, job.output_tokens / 2
    admitted = job.sequence_tokens if job.engine in RESERVES_WHOLE else job.input_tokens + half

    def cache(tokens: float) -> float:
        return sequence_bytes(shape, job, plan, rank, max(1, round(tokens)))

    return EngineLoad(
        weight_bytes=sum(read) / len(read),
        expert_share=_expert_share(shape, rank, plan) if experts else 0.0,
        miss_share=1 - experts.active / experts.count if experts else 0.0,
        cache_bytes=cache(job.input_tokens + half),
        admitted_bytes=cache(admitted),
        prefill=prefill,
        decode=decode,
        routed_layers=routed_layers(shape),
        experts_per_token=experts.active if experts else 0,
        pace=pace_of(shape, decode, plan.pp),
        weight_pace=max(read) * len(read) / sum(read),
    )


def _read_bytes(shape: ModelShape, form: WeightFormat, plan: Plan, rank: RankClass) -> float:
    """Weights that a step reads on one GPU of a stage: all but rows of an embedding."""
    held = float(weights_on(shape, form, plan, rank).typical)
    only_looked_up = rank.has_embedding and not shape.tied
    looked_up = shape.vocab * shape.hidden * 2 / plan.tp if only_looked_up else 0.0
    return max(held - looked_up, held / 2)


def _expert_share(shape: ModelShape, rank: RankClass, plan: Plan) -> float:
    experts, others = params_of(stage_of(shape, rank), plan)
    return float(experts / (experts + others))


@dataclass(frozen=True, slots=True)
class EngineModel:
    """One engine of `layout.engine_gpus` GPUs, seen from one of its data-parallel ranks.

    `cache_room` is bytes per GPU left for the cache,
    `unpacked` True for weights of 4 bits that are widened on the way.
    """

    job: ServingJob
    load: EngineLoad
    layers: int
    hidden: int
    weights_format: str
    unpacked: bool
    layout: Layout
    device: Device
    links: Links
    cache_room: Range

    def weights_read(self, sequences: float) -> float:
        """Bytes of weights that one decode step reads on one GPU; its experts see the tokens of
        all data-parallel ranks, of which each has so many sequences."""
        tokens = sequences * self.layout.data
        missed = self.load.miss_share**tokens if self.load.expert_share else 0.0
        return self.load.weight_bytes * (1 - self.load.expert_share * missed)


FOUR_BITS_IN_CORES = ("nvfp4", "mxfp4")


def is_unpacked(form: WeightFormat, weights_format: str) -> bool:
    return form.bits.typical < 8 and weights_format not in FOUR_BITS_IN_CORES
