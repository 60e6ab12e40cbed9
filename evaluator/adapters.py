"""Parameters of LoRA adapters: r (inputs + outputs) for each adapted matrix (arXiv 2106.09685)."""

from __future__ import annotations

from functools import lru_cache

from evaluator.jobs import Lora
from evaluator.lora_targets import adapters_in_layer
from evaluator.partition import RankClass, layer_groups, stages_of
from evaluator.plans import Plan
from evaluator.ranges import Number
from evaluator.shapes import Layer, ModelShape


def adapter_params(shape: ModelShape, lora: Lora) -> int:
    """Adapter parameters of the whole model."""
    return sum(_on_stage(shape, lora, stage) for stage in stages_of(shape, Plan()))


def adapter_params_on(shape: ModelShape, lora: Lora, plan: Plan, rank: RankClass) -> float:
    """Adapter parameters of one stage. Under tensor parallelism one of the two factors is whole
    on every rank, so a rank holds about (1 + 1/t) / 2 of them."""
    return float(share_of_adapters(_on_stage(shape, lora, rank), plan.tp))


def share_of_adapters(count: Number, tp: Number) -> Number:
    return count * (1 + 1 / tp) / 2


def _on_stage(shape: ModelShape, lora: Lora, rank: RankClass) -> int:
    groups = layer_groups(shape, rank)
    return sum(adapters_in_layer(shape, lora, group.kind) * group.count for group in groups)


@lru_cache(maxsize=1024)
def adapters_by_kind(shape: ModelShape, lora: Lora) -> tuple[tuple[Layer, int], ...]:
    """Adapter parameters of one layer of each kind that a model has."""
    kinds = dict.fromkeys(shape.layer_kinds)
    return tuple((kind, adapters_in_layer(shape, lora, kind)) for kind in kinds)
