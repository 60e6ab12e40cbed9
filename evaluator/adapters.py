"""Parameters of LoRA adapters: r (inputs + outputs) for each adapted matrix (arXiv 2106.09685)."""

from __future__ import annotations

from evaluator.jobs import Lora
from evaluator.partition import RankClass, layer_groups, stages_of
from evaluator.plans import Plan
from evaluator.shapes import ModelShape


def adapter_params(shape: ModelShape, lora: Lora) -> int:
    """Adapter parameters of the whole model."""
    return sum(_on_stage(shape, lora, stage) for stage in stages_of(shape, Plan()))


def adapter_params_on(shape: ModelShape, lora: Lora, plan: Plan, rank: RankClass) -> float:
    """Adapter parameters of one stage. Under tensor parallelism one of the two factors is whole
    on every rank, so a rank holds about (1 + 1/t) / 2 of them."""
    return _on_stage(shape, lora, rank) * (1 + 1 / plan.tp) / 2


def _on_stage(shape: ModelShape, lora: Lora, rank: RankClass) -> int:
    groups = layer_groups(shape, rank)
    return sum(_in_layer(shape, lora, group.routed) * group.count for group in groups)


def _in_layer(shape: ModelShape, lora: Lora, routed: bool) -> int:
    return lora.rank * sum(_sides(shape, target, routed) for target in lora.targets)


def _sides(shape: ModelShape, target: str, routed: bool) -> int:
    """Inputs plus outputs of one target, summed over the experts of a layer."""
    if target in ("gate_proj", "up_proj", "down_proj"):
        return _mlp_sides(shape, target, routed)
    attention, hidden = shape.attention, shape.hidden
    queries = attention.heads * attention.head_dim
    keys = attention.kv_heads * attention.head_dim
    outputs = {"q_proj": queries, "o_proj": queries, "k_proj": keys, "v_proj": keys}
    return hidden + outputs[target]


def _mlp_sides(shape: ModelShape, target: str, routed: bool) -> int:
    if target == "gate_proj" and not shape.gated:
        return 0
    experts = shape.experts
    if experts is None or not routed:
        return shape.hidden + shape.mlp_size
    shared = shape.hidden + experts.shared_size if experts.shared_size else 0
    return experts.count * (shape.hidden + experts.size) + shared
