"""Fits of a whole table equal the fits one by one: word and missing bytes, for every engine."""

from __future__ import annotations

import pytest

from evaluator.fits import WORDS, fit_table
from evaluator.jobs import Workload
from evaluator.memory import budget, fit
from evaluator.models import presets
from evaluator.plans import plans_of
from tests.evaluator.machines import serve, train, with_shape

GB = 10**9
SIZES = [None, *(round(size * GB) for size in (8, 11.3, 23.7, 44.9, 79.6, 80, 94, 141, 192, 288))]
ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp")


def agree(workload: Workload) -> None:
    plans = [plan for gpus in (1, 8) for plan in plans_of(workload, gpus, [1]).plans]
    table = fit_table(workload, plans, SIZES)
    for row, plan in enumerate(plans):
        memory = budget(workload, plan)
        alone = [fit(memory, size) for size in SIZES]
        assert [WORDS[word] for word in table.word[row]] == [one.word for one in alone], plan
        assert list(table.missing[row]) == [one.missing_bytes for one in alone], plan


@pytest.mark.parametrize("model", list(presets())[::5])
def test_every_plan_fits_in_the_table_as_it_does_alone(model: str) -> None:
    for engine in ENGINES:
        agree(serve(model, engine=engine, concurrency=16))
    agree(train(model))
    agree(train(model, lora={"rank": 8}, offload="optimizer"))


def test_a_model_whose_parts_are_not_known_is_taken_plan_by_plan() -> None:
    agree(with_shape(train("llama-3.1-8b"), computable=False, given_params=8 * GB))


def test_a_model_of_unknown_size_fits_nowhere_for_sure() -> None:
    agree(with_shape(serve(), computable=False, given_params=None))
    assert fit_table(serve(), [], SIZES).word.shape == (0, len(SIZES))
