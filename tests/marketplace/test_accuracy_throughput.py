"""The accuracy command on throughput cases, and the ranges of collectives."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from evaluator.configs import read_model
from evaluator.jobs import Task, TrainingJob, Workload
from evaluator.layouts import Layout
from marketplace.accuracy.batches import with_batches
from marketplace.accuracy.collective_ranges import judge_range
from marketplace.accuracy.throughput import score
from tests.marketplace.test_accuracy_memory import LLAMA_8B, written


def case(name: str, value: float, metric: str = "tokens_per_s", **parts: Any) -> dict[str, Any]:
    workload = {
        "task": "serve", "precision": "bf16", "input_tokens": 128, "output_tokens": 128,
        "concurrency": 8, "engine": "vllm",
    }  # fmt: skip
    hardware = {"spec_id": "h100-sxm5-80", "gpus": 1, "nodes": 1, "inter_node": None}
    return {
        "id": name,
        "kind": "serve",
        "model": {**LLAMA_8B, "total_params": 8_030_261_248},
        "workload": workload | parts.pop("workload", {}),
        "plan": parts.pop("plan", {}),
        "hardware": hardware | parts.pop("hardware", {}),
        "measured": {"metric": metric, "value": value, "scope": "system", "tokens": "output"},
        **parts,
    }


def summary_of(path: Path, *cases: dict[str, Any] | str) -> Any:
    return score(written(path / "cases.jsonl", *cases))


def test_a_rate_within_the_range_is_right_and_another_is_a_miss(tmp_path: Path) -> None:
    found = summary_of(tmp_path, case("a", 950), case("b", 20_000))
    assert (found.cases, found.within_tolerance) == (2, 1)
    assert found.misses[0].id == "b"
    assert "widest" in found.misses[0].why


def test_a_case_that_is_not_counted_is_shown_only(tmp_path: Path) -> None:
    found = summary_of(tmp_path, case("a", 950), case("b", 1, counted=False))
    assert found.cases == 1
    assert any(note.startswith("b: shown, not counted") for note in found.notes)


def test_the_fitted_half_stands_apart(tmp_path: Path) -> None:
    found = summary_of(tmp_path, *(case(f"case-{n}", 950) for n in range(20)))
    halves = [found.cuts["serve, fitted half"].cases, found.cuts["serve, other half"].cases]
    assert sum(halves) == 20
    assert min(halves) > 0


def test_a_group_is_right_when_our_pick_is_near_the_best_per_gpu(tmp_path: Path) -> None:
    rates = {1: 8000, 2: 12_000, 4: 16_000}
    curve = [
        case(
            f"tp{n}", rate, group="g", workload={"offline": True}, plan={"tp": n},
            hardware={"gpus": n, "link": "nvswitch"},
        )
        for n, rate in rates.items()
    ]  # fmt: skip
    assert summary_of(tmp_path, *curve).groups == {"groups": 1, "right": 1}
    worse = [{**one, "measured": {**one["measured"], "value": 100 * n**3}}
             for n, one in zip(rates, curve, strict=True)]  # fmt: skip
    assert summary_of(tmp_path, *worse).groups == {"groups": 1, "right": 0}


def test_two_cases_make_no_group(tmp_path: Path) -> None:
    pair = [case(name, 950, group="g") for name in "ab"]
    assert summary_of(tmp_path, *pair).groups == {"groups": 0, "right": 0}


def test_an_unknown_link_is_a_wider_span_and_counts_apart(tmp_path: Path) -> None:
    unknown, known = (
        case(link, 950, plan={"tp": 2}, hardware={"gpus": 2, "link": link})
        for link in ("unknown", "nvswitch")
    )
    cuts = summary_of(tmp_path, unknown, known).cuts
    wide, narrow = cuts["serve, link not known"], cuts["serve, link known"]
    assert wide.median_width > 1.2 * narrow.median_width


@pytest.mark.parametrize(
    "broken",
    ["{", {"id": "x"}, {**case("x", 1), "measured": {"metric": "tokens_per_s", "value": 0}}],
)
def test_a_line_that_is_no_case_is_reported_and_the_rest_judged(
    tmp_path: Path, broken: dict[str, Any] | str
) -> None:
    found = summary_of(tmp_path, broken, case("a", 950))
    assert found.cases == 1
    assert len(found.unreadable) == 1


def trained(metric: str, value: float, scope: str = "system", **workload: Any) -> dict[str, Any]:
    known = {"task": "train", "seq_len": 4096, "global_batch": 16, "zero_stage": 3}
    one = case(metric, value, metric, hardware={"gpus": 8, "link": "nvswitch"})
    measured = {"metric": metric, "value": value, "scope": scope, "convention": "model,full"}
    plan = {"dp": 8, "fsdp_shard": 8}
    return {
        **one, "kind": "train", "workload": known | workload, "plan": plan, "measured": measured,
    }  # fmt: skip


def test_every_metric_of_a_training_run_tells_the_same_speed(tmp_path: Path) -> None:
    step = summary_of(tmp_path, trained("step_seconds", 1e9)).misses[0].predicted
    tokens = 16 * 4096
    expected = {
        "tokens_per_s": tokens / step,
        "samples_per_s": 16 / step,
        "gpu_hours": 10**9 / tokens * step * 8 / 3600 / 0.9,
    }
    for metric, value in expected.items():
        one = trained(metric, value * 100, total_tokens=10**9)
        assert summary_of(tmp_path, one).misses[0].predicted == pytest.approx(value)
    each = trained("tokens_per_s_per_gpu", 1e9, scope="per_gpu")
    assert summary_of(tmp_path, each).misses[0].predicted == pytest.approx(tokens / step / 8)


def test_a_rate_of_prompt_tokens_counts_the_prompt(tmp_path: Path) -> None:
    output = case("output", 1e9, workload={"input_tokens": 512})
    prompt = {**output, "id": "input", "measured": {**output["measured"], "tokens": "input"}}
    first, second = (miss.predicted for miss in summary_of(tmp_path, output, prompt).misses)
    assert second == pytest.approx(4 * first)


def test_what_nothing_models_is_not_judged(tmp_path: Path) -> None:
    found = summary_of(tmp_path, case("a", 950, hardware={"spec_id": "no-such-card"}))
    assert (found.cases, found.not_judged) == (0, {"serve": 1})


def test_the_summary_has_the_fixed_shape(tmp_path: Path) -> None:
    out = StringIO()
    file = written(tmp_path / "cases.jsonl", case("a", 950))
    call_command("accuracy", "throughput", str(file), "--json", stdout=out)
    found = json.loads(out.getvalue())
    assert found["groups"] == {"groups": 0, "right": 0}
    assert {"kind", "cases", "within_tolerance", "by_kind", "misses"} <= set(found)


ROW = {
    "id": "row", "op": "all_reduce", "size_bytes": 2**33, "busbw_gbs": 473.1, "gpu": "H200",
    "gpus": 8, "nodes": 1, "link": "NV18", "inter_node": None, "healthy": True, "range": True,
}  # fmt: skip


def test_a_healthy_row_lies_inside_and_a_faulty_one_below() -> None:
    healthy, faulty = judge_range(ROW), judge_range({**ROW, "healthy": False, "busbw_gbs": 97.0})
    assert healthy is not None
    assert faulty is not None
    assert healthy.within
    assert faulty.within
    assert not faulty.compared


def test_a_healthy_row_below_the_range_is_a_miss() -> None:
    found = judge_range({**ROW, "busbw_gbs": 97.0})
    assert found is not None
    assert not found.within
    assert "GB/s" in found.why


def test_a_row_without_a_known_link_is_no_range() -> None:
    assert judge_range({**ROW, "range": False}) is None
    found = judge_range({**ROW, "link": "a word"})
    assert found is not None
    assert not found.within


@pytest.mark.shared
def test_published_rates_lie_in_ranges_narrow_enough_to_be_used(shared: Path) -> None:
    found = score(shared / "cases" / "throughput.jsonl")
    assert found.not_judged == {}
    assert found.within_tolerance >= 0.8 * found.cases
    for kind, error in (("train", 0.15), ("serve", 0.20)):
        known, alone = found.cuts[f"{kind}, link known"], found.cuts[f"{kind}, one GPU"]
        assert known.median_abs_rel_err <= error
        assert abs(known.bias) <= 0.10
        assert known.median_width <= 2
        assert alone.median_width <= 1.6
        assert found.cuts[f"{kind}, other half"].median_abs_rel_err <= error
    assert found.groups["right"] >= 0.85 * found.groups["groups"]


@pytest.mark.shared
def test_published_bandwidths_lie_in_ranges_narrow_enough_to_be_used(shared: Path) -> None:
    lines = (shared / "cases" / "collectives.jsonl").read_text("utf-8").splitlines()
    judged = [found for line in lines if (found := judge_range(json.loads(line)))]
    widths = sorted(one.high / one.low for one in judged if one.low and one.high)
    assert sum(one.within for one in judged) >= 0.9 * len(judged)
    assert widths[len(widths) // 2] <= 2


def unprinted(name: str, value: float, **workload: Any) -> dict[str, Any]:
    found = case(name, value, "tokens_per_s_per_gpu", plan={"dp": None})
    hardware = {"spec_id": "a100-sxm4-80", "gpus": 8, "link": "nvswitch"}
    job = {"task": "train", "precision": "bf16", "seq_len": 2048, **workload}
    return found | {"kind": "train", "workload": job, "hardware": found["hardware"] | hardware}


def test_a_batch_that_is_not_printed_is_the_largest_that_fits(tmp_path: Path) -> None:
    """With one sequence at a time a slow link would carry all parameters for each of them."""
    stated = summary_of(tmp_path, unprinted("a", 1, micro_batch=1, global_batch=64))
    chosen = summary_of(tmp_path, unprinted("a", 1, global_batch=64))
    assert chosen.misses[0].predicted > stated.misses[0].predicted


def test_a_pipeline_keeps_one_sequence_at_a_time() -> None:
    model, _ = read_model({**LLAMA_8B, "total_params": 8_030_261_248})
    job = TrainingJob(seq_len=2048, micro_batch=1, global_batch=64)
    workload = Workload("a", Task.TRAIN, model, "bf16", training=job)
    layout, room = Layout(stages=4, data=2), 80 * 10**9
    found = with_batches(workload, layout, room, micro_stated=False)
    assert found.training == workload.training
    whole = with_batches(workload, Layout(data=8, shard=8), room, micro_stated=False)
    assert whole.training is not None
    assert whole.training.micro_batch > 1
