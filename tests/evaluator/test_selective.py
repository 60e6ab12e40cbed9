"""Selective recomputation with fused attention, against torchtitan's own benchmarks."""

from __future__ import annotations

from typing import Any

import pytest

from evaluator.budgets import RankBudget
from evaluator.memory import budget
from evaluator.plans import Plan
from evaluator.units import GIB
from evaluator.workload import parse_workload

TITAN = {"precision": "fp32", "zero_stage": 3, "seq_len": 8192, "micro_batch": 2}


def held(model: str, plan: Plan, **keys: Any) -> RankBudget:
    return budget(
        parse_workload({"task": "train", "model": {"preset": model}, **keys}), plan
    ).ranks[0]


@pytest.mark.parametrize(("ranks", "gib"), [(8, 82.4), (8, 77.0), (128, 67.0), (128, 62.0)])
def test_the_measured_peak_of_an_8b_lies_in_the_range(ranks: int, gib: float) -> None:
    """llama3_h100_202412_torchtitan.md, tables 1 and 3, eager and compiled: all but the context."""
    keys = {**TITAN, "recompute": "selective", "global_batch": 2 * ranks}
    tensors = held("llama-3.1-8b", Plan(dp=ranks, shard=ranks), **keys).without(("overhead",))
    assert tensors.low < gib * GIB < tensors.high
    assert tensors.typical / GIB == pytest.approx(gib, rel=0.3)


def test_the_range_reaches_from_some_products_to_all_tensors() -> None:
    """An 8B keeps of each token and layer 8 h + 2 k d + 2 f = 63,488 bytes at least."""
    some, every = (
        held("llama-3.1-8b", Plan(), recompute=word, seq_len=8192).component("activations")
        for word in ("selective", "none")
    )
    assert some is not None
    assert every is not None
    assert some.bytes.low == pytest.approx(0.92 * 32 * 8192 * 63_488)
    assert some.bytes.high == every.bytes.high
    assert some.bytes.typical < every.bytes.typical


def test_a_gpt_block_keeps_what_its_table_says() -> None:
    """Megatron's selective recomputation of GPT leaves the 34 h as they are."""
    some, every = (
        held("opt-13b", Plan(), recompute=word, seq_len=2048).component("activations")
        for word in ("selective", "none")
    )
    assert some is not None
    assert every is not None
    assert some.bytes == every.bytes
