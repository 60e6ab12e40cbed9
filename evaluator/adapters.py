"""Parameters of LoRA adapters: r (inputs + outputs) for each adapted matrix (arXiv 2106.09685)."""

from __future__ import annotations

from evaluator.jobs import Lora
from evaluator.parameters import is_expert_layer
from evaluator.partition import RankClass
from evaluator.plans import Plan
from evaluator.shapes import ModelShape


def adapter_params(shape: ModelShape, lora: Lora) -> int:
    """Adapter parameters of the whole model."""
    return sum(_in_layer(shape, lora, index) for index in range(shape.layers))


def adapter_params_on(shape: ModelShape, lora: Lora, plan: Plan, rank: RankClass) -> float:
    """Adapter parameters of one stage. Under tensor parallelism one of the two factors is whole
    on every rank, so a rank holds about (1 + 1/t) / 2 of them."""
    held = range(rank.first, rank.first + rank.layers)
    return sum(_in_layer(shape, lora, index) for index in held) * (1 + 1 / plan.tp) / 2


def _in_layer(shape: ModelShape, lora: Lora, index: int) -> int:
    return lora.rank * sum(_sides(shape, target, index) for target in lora.targets)


def _sides(shape: ModelShape, target: str, index: int) -> int:
    """Inputs plus outputs of one target, summed over the experts of a layer."""
    if target in ("gate_proj", "up_proj", "down_proj"):
        return _mlp_sides(shape, target, index)
    attention, hidden = shape.attention, shape.hidden
    queries = attention.heads * attention.head_dim
    keys = attention.kv_heads * attention.head_dim
    outputs = {"q_proj": queries, "o_proj": queries, "k_proj": keys, "v_proj": keys}
    return hidden + outputs[target]


def _mlp_sides(shape: ModelShape, target: str, index: int) -> int:
    if target == "gate_proj" and not shape.gated:
        return 0
    experts = shape.experts
    if experts is None or not is_expert_layer(shape, index):
        return shape.hidden + shape.mlp_size
    shared = shape.hidden + experts.shared_size if experts.shared_size else 0
    return experts.count * (shape.hidden + experts.size) + shared
