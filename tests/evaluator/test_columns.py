"""One formula, two callers: a budget alone and as one of many columns are equal bit for bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.columns import BudgetColumns, Models, budget_columns, plan_columns
from evaluator.fields import InvalidWorkload
from evaluator.jobs import Workload
from evaluator.memory import budget
from evaluator.models import preset, presets
from evaluator.plans import Plan
from evaluator.ranges import InvalidRange, Range
from evaluator.workload import parse_workload, workload_presets
from tests.evaluator.hybrids import SHAPES as HYBRIDS

KEPT = ("self_attn", "model.layers.1", "model.layers.30.mlp.up_proj", "lm_head")
SHAPES = [
    *(one for one in map(preset, presets()) if one.computable and one.dimensioned),
    *HYBRIDS.values(),
    replace(preset("llama-3.1-8b"), kept_16bit=KEPT),
    replace(HYBRIDS["nemotron"], kept_16bit=("mixer", "model.layers.3")),
    replace(preset("deepseek-v3"), predict_layers=1),
    replace(preset("gemma-2-9b"), given_params=10**10),
]
MODELS = Models(SHAPES)


def job(task: str, **keys: Any) -> Workload:
    return parse_workload({"task": task, "model": {"preset": "llama-3.1-8b"}, **keys})


JOBS = (
    *(parse_workload(document) for document in workload_presets().values()),
    job("serve", max_model_len=100_000, weights_format="mxfp4", draft_params=10**9),
    job("serve", lora={}, engine="tensorrt-llm", prefix_share={"low": 0.1, "high": 0.5}),
    job("serve", engine="sglang", concurrency=33, pins={"activations": 5}),
    *(
        job("serve", engine=name, engine_version=version, concurrency=3, draft_params=10**9)
        for name, version in (
            ("vllm", "0.6"),
            ("vllm", "0.21"),
            ("sglang", "0.4.3"),
            ("sglang", "0.4.9"),
            ("sglang", "0.5.4"),
            ("tensorrt-llm", "0.10"),
            ("llama.cpp", "b3600"),
            ("llama.cpp", "b7500"),
        )
    ),
    job("serve", engine="llama.cpp", weights_format="gguf:Q4_K_M", input_tokens=50_000),
    job("train", recompute="full", micro_batch=3, global_batch=96, chunked_loss=True),
    job("train", attention="unfused", schedule="gpipe", global_batch=64),
    job("train", schedule="zb-h2", zero_stage=1, precision="mixed-fp32-grads"),
    job("finetune", lora={"rank": 8}, weights_format="bnb-nf4", offload="params"),
    job("train", zero_stage=2, reduce_bucket_size=5 * 10**7),
    job("train", recompute="offload", offload="optimizer", sequence_parallel=False),
)
DEGREE = st.sampled_from((1, 2, 3, 4, 8, 16))
PLANS = st.builds(
    lambda shard, dp, **degrees: Plan(dp=dp, shard=dp if shard else 1, **degrees),
    st.booleans(),
    DEGREE,
    tp=DEGREE,
    pp=DEGREE,
    ep=st.sampled_from((1, 1, 4)),
    etp=st.sampled_from((1, 2)),
    cp=st.sampled_from((1, 2)),
    virtual=st.sampled_from((1, 2)),
    replicas=st.sampled_from((1, 3)),
)
PAIRS = st.lists(st.tuples(st.integers(0, len(SHAPES) - 1), PLANS), min_size=1, max_size=12)


@settings(deadline=None)  # the first pipelines of a table of models take their time
@given(st.sampled_from(JOBS), PAIRS)
def test_columns_equal_the_budgets_of_their_pairs_bit_for_bit(
    workload: Workload, pairs: list[tuple[int, Plan]]
) -> None:
    which = np.array([index for index, _ in pairs])
    columns = budget_columns(workload, MODELS, which, plan_columns([plan for _, plan in pairs]))
    together = columns.binding
    for place, (index, plan) in enumerate(pairs):
        alone = budget(replace(workload, model=SHAPES[index]), plan).binding
        assert alone is not None
        found = Range(*(end[place] for end in (together.low, together.typical, together.high)))
        assert alone.bytes == found


def test_each_component_has_a_row_for_each_rank_class() -> None:
    plans = plan_columns([Plan(pp=4)] * 2)
    held = budget_columns(JOBS[2], MODELS, np.array([0, 1]), plans)
    logits = held.components["logits"].typical
    assert logits.shape == (3, 2)
    assert [bool(row.any()) for row in logits] == [False, False, True]


def test_a_model_that_is_not_covered_is_named() -> None:
    strange = replace(SHAPES[0], name="strange", computable=False)
    with pytest.raises(InvalidWorkload, match="strange"):
        Models([strange])


def test_a_column_whose_ends_are_out_of_order_is_refused() -> None:
    ends = (np.array([1.0, 3.0]), np.array([2.0, 2.0]), np.array([4.0, 4.0]))
    with pytest.raises(InvalidRange, match="weights"):
        BudgetColumns({"weights": Range(*ends)})


@given(st.sampled_from(JOBS), st.integers(0, len(SHAPES) - 1), PLANS)
def test_a_budget_alone_is_made_of_plain_numbers(
    workload: Workload, index: int, plan: Plan
) -> None:
    """A NumPy number in it could not be kept as JSON."""
    for rank in budget(replace(workload, model=SHAPES[index]), plan).ranks:
        ends = [end for part in rank.components for end in (part.bytes.low, part.bytes.high)]
        assert {type(end) for end in ends} <= {int, float}
