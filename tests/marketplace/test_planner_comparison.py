"""Our picks among another planner's plans: which of them, and what the narrowest would lose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marketplace.accuracy.planner_comparison import compare, shares_of


def setting(plans: list[tuple[str, float]], **changes: Any) -> dict[str, Any]:
    """A 70B in bf16 on H200, prompts of 4000 tokens, a second to the first of them."""
    base: dict[str, Any] = {
        "id": "x",
        "model_path": "meta-llama/Meta-Llama-3.1-70B",
        "system": "h200_sxm",
        "backend": "trtllm",
        "isl": 4000,
        "osl": 500,
        "ttft": 1000,
        "tpot": 40,
    }
    listed = [
        {"parallel": name, "tokens/s/gpu": rate, "gemm": "bfloat16", "kvcache": "bfloat16"}
        for name, rate in plans
    ]
    return {**base, **changes, "plans": {"agg": listed}}


TENSOR = [
    ("tp4pp1dp1etp1ep1", 240.0),
    ("tp8pp1dp1etp1ep1", 224.0),
    ("tp2pp1dp1etp1ep1", 122.0),
]


def test_two_gpus_that_merely_hold_the_weights_lose_half_of_the_rate() -> None:
    found = shares_of(setting(TENSOR))
    assert found is not None
    assert found.first == 1.0
    assert found.narrowest == 1.0
    assert found.holding == pytest.approx(122 / 240)


def test_the_narrowest_is_no_wider_than_it_need_be() -> None:
    """On eight GPUs the first pick may be faster; four that are nearly as fast are narrower."""
    found = shares_of(setting([TENSOR[1], TENSOR[0]]))
    assert found is not None
    assert found.narrowest == 1.0


def test_one_plan_is_no_choice_and_an_unknown_card_no_setting() -> None:
    assert shares_of(setting(TENSOR[:1])) is None
    assert shares_of(setting(TENSOR, system="unheard_of")) is None
    assert shares_of(setting(TENSOR, model_path="nobody/knows-it")) is None


def test_engines_that_share_experts_are_among_the_choices() -> None:
    experts = [("tp1pp1dp4etp1ep4", 4192.0), ("tp2pp1dp1etp1ep2", 4051.0)]
    found = shares_of(setting(experts, model_path="Qwen/Qwen3-30B-A3B", system="h100_sxm"))
    assert found is not None
    assert found.first >= 4051 / 4192
    divided = [("tp1pp1dp4etp4ep1", 3667.0), ("tp2pp1dp1etp1ep2", 4051.0)]
    assert shares_of(setting(divided, model_path="Qwen/Qwen3-30B-A3B")) is None


def test_a_line_for_each_way_to_pick_stands_in_the_summary(tmp_path: Path) -> None:
    folder = tmp_path / "reference"
    folder.mkdir()
    text = json.dumps(setting(TENSOR))
    (folder / "aiconfigurator_plans.jsonl").write_text(text + "\n\n", encoding="utf-8")
    cases = tmp_path / "cases" / "throughput.jsonl"
    first, narrowest, holding = compare(cases)
    assert "our first of its plans" in first
    assert "1 of 1 settings, at worst 100%" in narrowest
    assert "0 of 1 settings, at worst 51%" in holding
    assert list(compare(Path("/nowhere/cases.jsonl"))) == []


def test_a_file_without_a_setting_that_can_be_timed_says_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "reference"
    folder.mkdir()
    text = json.dumps(setting(TENSOR, system="unheard_of"))
    (folder / "aiconfigurator_plans.jsonl").write_text(text, encoding="utf-8")
    assert list(compare(tmp_path / "cases.jsonl")) == []


@pytest.mark.shared
def test_our_first_plan_is_near_its_best_in_most_settings(shared: Path) -> None:
    first, narrowest, holding = compare(shared / "cases" / "throughput.jsonl")
    near = [int(line.split(" of 13 settings")[0].split()[-1]) for line in (first, narrowest)]
    assert min(near) >= 12
    assert int(holding.split(" of 13 settings")[0].split()[-1]) <= 3
