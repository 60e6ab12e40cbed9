"""What a plan's cache holds: tokens, sequences, and the longest one that starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evaluator.jobs import Workload
from evaluator.memory import capacity, longest_start, max_concurrent_sequences
from evaluator.plans import Plan
from evaluator.units import GIB
from evaluator.workload import parse_workload
from tests.evaluator.hybrids import ALL

ONE = Plan()


def serving(model: Any, **keys: Any) -> Workload:
    return parse_workload({"task": "serve", "model": model, **keys})


def test_sequences_fill_the_tokens_and_the_longest_takes_them_all() -> None:
    job = serving({"preset": "llama-3.1-8b"}, input_tokens=3840)
    held = capacity(job, ONE, 80 * GIB)
    assert held is not None
    assert held.sequences == held.tokens // 4096
    assert held.longest == held.tokens
    assert not held.is_endless


def test_replicas_multiply_sequences_and_nothing_else() -> None:
    job = serving({"preset": "llama-3.1-8b"})
    one, four = (capacity(job, plan, 80 * GIB) for plan in (ONE, Plan(replicas=4)))
    assert one is not None
    assert four is not None
    assert four == replace(one, sequences=4 * one.sequences)


def test_ranks_that_share_experts_hold_requests_of_their_own() -> None:
    """Each has a little less room than alone, since the two exchange tokens."""
    job = serving({"preset": "mixtral-8x7b-v0.1"})
    one, two = (capacity(job, plan, 141 * GIB) for plan in (ONE, Plan(dp=2)))
    assert one is not None
    assert two is not None
    assert 1.9 * one.sequences < two.sequences <= 2 * one.sequences
    assert two.longest <= one.longest


def test_states_of_one_size_limit_sequences_and_no_length() -> None:
    held = capacity(serving(ALL["mamba"]), ONE, 24 * GIB)
    assert held is not None
    assert held.is_endless
    assert held.tokens == 0
    assert 500 < held.sequences < 1000


def test_a_hybrid_pays_for_a_state_and_for_tokens() -> None:
    job = serving(ALL["jamba"], weights_format="fp8", input_tokens=100_000)
    most, longest = (one(job, ONE, 80 * GIB) for one in (max_concurrent_sequences, longest_start))
    assert most is not None
    assert longest is not None
    assert most >= 1
    assert longest >= most * 100_256


def test_nothing_is_said_of_an_unknown_card_or_a_training_job() -> None:
    assert capacity(serving({"preset": "llama-3.1-8b"}), ONE, None) is None
    job = parse_workload({"task": "train", "model": {"preset": "llama-3.1-8b"}})
    assert capacity(job, ONE, 80 * GIB) is None
