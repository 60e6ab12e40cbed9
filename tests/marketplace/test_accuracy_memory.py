"""The accuracy command on memory cases: figures, misses, and what it does with bad lines."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from marketplace.accuracy.memory import score
from marketplace.accuracy.summary import Outcome, summarise

LLAMA_8B: dict[str, Any] = {
    "name": "an 8B",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}


def case(kind: str, value: Any, unit: str, **parts: Any) -> dict[str, Any]:
    measured = {"value": value, "unit": unit, "scope": "per_gpu", **parts.pop("measured", {})}
    workload = {"task": "serve", "engine": "vllm", "weights_format": "bf16"}
    workload |= parts.pop("workload", {})
    named = {"id": f"{kind}-{value}", "kind": kind, "model": LLAMA_8B, "workload": workload}
    return {**named, "measured": measured, "tolerance": 0.01, **parts}


def written(path: Path, *lines: Any) -> Path:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts), "utf-8")
    return path


def run(path: Path, *options: str) -> str:
    out = StringIO()
    call_command("accuracy", "memory", str(path), *options, stdout=out)
    return out.getvalue()


@pytest.mark.shared
def test_all_weights_and_cache_cases_are_within_tolerance(shared: Path) -> None:
    summary = score(shared / "cases/memory.jsonl")
    for kind in ("weights", "kv_per_token"):
        figures = summary.by_kind[kind]
        assert figures.cases == figures.within_tolerance > 10
    assert (summary.by_kind["weights"].median_abs_rel_err or 0) <= 0.005
    assert not summary.unreadable


@pytest.mark.shared
def test_the_ranges_hold_nine_in_ten_measured_values_and_are_narrow(shared: Path) -> None:
    by_kind = score(shared / "cases/memory.jsonl").by_kind
    for kind in ("weights", "model_states", "kv_per_token", "kv_capacity"):
        assert (by_kind[kind].median_width or 9) <= 1.05
    for kind in ("activations", "total_training", "total_inference"):
        assert (by_kind[kind].median_width or 9) <= 1.5
    assert all((one.inside_range or 1) >= 0.9 for one in by_kind.values())


@pytest.mark.shared
def test_without_a_log_rooms_and_verdicts_come_out_too(shared: Path) -> None:
    summary = score(shared / "cases/memory.jsonl")
    blind = {name: one for name, one in summary.by_kind.items() if name.endswith("_blind")}
    assert blind.keys() == {"kv_capacity_blind", "oom_blind", "fits_blind"}
    assert all(one.cases == one.within_tolerance for one in blind.values())
    assert (blind["kv_capacity_blind"].median_abs_rel_err or 0) <= 0.05
    assert not summary.misses_beside


@pytest.mark.shared
def test_every_shared_case_is_judged_or_said_not_to_be(shared: Path) -> None:
    path = shared / "cases/memory.jsonl"
    summary = score(path)
    lines = path.read_text("utf-8").splitlines()
    assert summary.cases + sum(summary.not_judged.values()) == len(lines)
    assert summary.within_tolerance + len(summary.misses) == summary.cases


@pytest.mark.shared
def test_a_state_or_a_room_is_never_missed(shared: Path) -> None:
    by_kind = score(shared / "cases/memory.jsonl").by_kind
    for kind in ("model_states", "kv_capacity", "oom", "fits"):
        assert by_kind[kind].cases == by_kind[kind].within_tolerance


def test_a_miss_names_both_values_and_the_error(tmp_path: Path) -> None:
    summary = score(written(tmp_path / "cases.jsonl", case("weights", 20.0, "GB")))
    assert summary.within_tolerance == 0
    assert summary.misses[0].measured == 20.0
    assert summary.misses[0].predicted == pytest.approx(16.08, rel=0.001)
    assert summary.misses[0].why == "-19.62%, allowed 1.00%"


def test_an_unknown_kind_is_counted_and_never_within(tmp_path: Path) -> None:
    summary = score(written(tmp_path / "cases.jsonl", case("phlogiston", 5, "GiB")))
    assert (summary.cases, summary.within_tolerance) == (0, 0)
    assert summary.not_judged == {"phlogiston": 1}


def test_what_the_evaluator_has_no_word_for_is_not_judged(tmp_path: Path) -> None:
    unpublished = case("weights", 16.06, "GB", plan={"dp": None})
    assert score(written(tmp_path / "cases.jsonl", unpublished)).not_judged == {"weights": 1}


@pytest.mark.parametrize(
    ("logged", "started"), [({"kv_gib": 20.0}, True), ({"kv_gib": 0.5}, False)]
)
def test_an_engine_starts_where_one_sequence_fits(
    tmp_path: Path, logged: dict[str, float], started: bool
) -> None:
    stated = case(
        "fits",
        started,
        "bool",
        tolerance="exact",
        observed=logged,
        workload={"max_model_len": 32_768},
    )
    summary = score(written(tmp_path / "cases.jsonl", stated))
    assert (summary.cases, summary.within_tolerance) == (1, 1)


@pytest.mark.parametrize(("sequences", "started"), [(1, True), (4, True), (5, False)])
def test_llama_cpp_starts_where_all_its_sequences_fit(
    tmp_path: Path, sequences: int, started: bool
) -> None:
    context = {"engine": "llama.cpp", "max_model_len": 32_768, "max_num_seqs": sequences}
    room = {"observed": {"kv_gib": 18.0}, "tolerance": "exact"}
    stated = case("fits", started, "bool", workload=context, **room)
    assert score(written(tmp_path / "cases.jsonl", stated)).within_tolerance == 1


def test_a_bound_is_checked_on_its_own_side(tmp_path: Path) -> None:
    above = case("weights", 20, "GB", tolerance="lower_bound")
    below = case("weights", 10, "GB", tolerance="lower_bound")
    summary = score(written(tmp_path / "cases.jsonl", above, below))
    assert [miss.id for miss in summary.misses] == ["weights-10"]
    assert summary.by_kind["weights"].median_abs_rel_err is None


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        written(tmp_path / name, case("weights", 16.06, "GB"))
    assert score(tmp_path).cases == 2


def test_the_json_summary_has_the_documented_keys(tmp_path: Path) -> None:
    printed = json.loads(
        run(written(tmp_path / "cases.jsonl", case("weights", 16.06, "GB")), "--json")
    )
    assert {"kind", "cases", "within_tolerance", "by_kind", "misses"} <= printed.keys()
    assert printed["kind"] == "memory"
    assert printed["by_kind"]["weights"].keys() == {
        "cases",
        "within_tolerance",
        "median_abs_rel_err",
        "bias",
        "worst",
        "inside_range",
        "median_width",
    }


def test_the_report_echoes_the_request_and_ends_with_the_count(tmp_path: Path) -> None:
    path = written(tmp_path / "cases.jsonl", case("weights", 20, "GB"), case("x", 5, "GiB"))
    lines = run(path).splitlines()
    assert lines[0] == f"memory cases of {path}"
    assert any("misses  weights-20" in line for line in lines)
    assert lines[-1] == "0 of 1 within tolerance; 1 not judged."


@pytest.mark.parametrize(
    ("part", "field", "value", "expected"),
    [
        ("plan", "tp", 0, "a whole number from 1"),
        ("plan", "dp", "8", "a whole number from 1"),
        ("workload", "memory_utilization", 90, "a number above 0, at most 1"),
        ("workload", "zero_stage", 4, "a whole number from 0 to 3"),
        ("workload", "precision", {"bytes": 2}, "only grad_bytes, master_bytes"),
        ("gpu", "reported_gib", "80", "a number above 0"),
        ("observed", "weights_gib", -1, "a number above 0"),
        ("model", "num_hidden_layers", -1, "a whole number from 1"),
        ("model", "hidden_size", "\u0664", "a whole number from 1"),
        ("measured", "scope", "card", "one of per_gpu, model, instance"),
    ],
)
def test_a_field_that_holds_something_else_is_named(
    tmp_path: Path, part: str, field: str, value: Any, expected: str
) -> None:
    """Such a case was once judged as if the field had been left out."""
    stated = LLAMA_8B if part == "model" else {}
    summary = score(
        written(tmp_path / "a.jsonl", case("weights", 16, "GB", **{part: {**stated, field: value}}))
    )
    assert (summary.cases, len(summary.unreadable)) == (0, 1)
    assert f"{part}.{field}: read " in summary.unreadable[0]
    assert f"expected {expected}" in summary.unreadable[0]


def test_a_capacity_case_says_what_was_measured(tmp_path: Path) -> None:
    summary = score(written(tmp_path / "a.jsonl", case("kv_capacity", 8, "GiB")))
    assert "measured.of: read nothing, expected one of kv_room" in summary.unreadable[0]


@pytest.mark.parametrize(
    ("optimizer", "bytes_per_param"), [("adamw", 16), ("sgd", 12), ("paged_adamw_8bit", 10.03)]
)
def test_states_follow_the_optimizer_where_no_bytes_are_stated(
    tmp_path: Path, optimizer: str, bytes_per_param: float
) -> None:
    workload = {"task": "train", "optimizer": optimizer}
    one = case("model_states", 8.03 * bytes_per_param, "GB", workload=workload)
    assert score(written(tmp_path / "a.jsonl", one)).within_tolerance == 1


def test_states_of_an_optimizer_that_is_not_known_are_not_judged(tmp_path: Path) -> None:
    workload = {"task": "train", "optimizer": "of-tomorrow"}
    summary = score(written(tmp_path / "a.jsonl", case("model_states", 9, "GB", workload=workload)))
    assert (summary.cases, summary.not_judged) == (0, {"model_states": 1})


BROKEN = (
    "{not json",
    "[]",
    '{"id": "a"}',
    json.dumps(case("weights", "much", "GB")),
    json.dumps(case("weights", 0, "GB")),
    json.dumps(case("weights", 5, "firkins")),
    json.dumps(case("fits", 1, "bool")),
    json.dumps(case("weights", 5, "GB", plan={"tp": "two"})),
    json.dumps(case("weights", 5, "GB", tolerance=None)),
)


@pytest.mark.parametrize("line", BROKEN)
def test_a_line_that_cannot_be_read_is_reported_and_the_rest_goes_on(
    tmp_path: Path, line: str
) -> None:
    path = written(tmp_path / "cases.jsonl", line, case("weights", 16.06, "GB"))
    summary = score(path)
    assert (summary.cases, len(summary.unreadable)) == (1, 1)


def test_an_unreadable_line_makes_the_command_fail_partly(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as left:
        run(written(tmp_path / "cases.jsonl", "{not json", case("weights", 16.06, "GB")))
    assert left.value.code == 3


@pytest.mark.parametrize(("content", "code"), [("", 1), (None, 2)])
def test_nothing_to_judge_and_nothing_to_read_differ(
    tmp_path: Path, content: str | None, code: int
) -> None:
    path = tmp_path / "cases.jsonl"
    if content is not None:
        path.write_text(content, "utf-8")
    with pytest.raises(CommandError) as refused:
        run(path)
    assert refused.value.returncode == code


def test_a_kind_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="invalid choice"):
        call_command("accuracy", "wishes", str(tmp_path))


def test_medians_are_over_signed_and_absolute_errors() -> None:
    values = ((90, 100), (110, 100), (130, 100))
    outcomes = [
        Outcome(str(guess), "k", True, guess, true, low=guess - 5.0, high=guess + 5.0)
        for guess, true in values
    ]
    figures = summarise("memory", outcomes).by_kind["k"]
    assert figures.median_abs_rel_err == pytest.approx(0.10)
    assert figures.bias == pytest.approx(0.10)
    assert figures.worst == pytest.approx(0.30)
    assert figures.inside_range == 0
    assert figures.median_width == pytest.approx(115 / 105)


@pytest.mark.parametrize(("lows", "width"), [((-50.0, 90, 100), 1.2), ((-50.0, 0, 100), None)])
def test_a_range_that_begins_below_nothing_counts_as_wide(
    lows: tuple[float, ...], width: float | None
) -> None:
    """Its quotient is negative, and would have made the median narrow."""
    outcomes = [
        Outcome(str(low), "k", True, 100, 100, low=low, high=1.2 * max(low, 90)) for low in lows
    ]
    assert summarise("memory", outcomes).by_kind["k"].median_width == width


# --- engines other than vLLM, by figures of their load logs

LLAMA_CPP = {"engine": "llama.cpp", "weights_format": "gguf:Q4_K_M", "max_model_len": 8192}


def on_llama_cpp(kind: str, mib: float, version: str, **parts: Any) -> dict[str, Any]:
    workload = {**LLAMA_CPP, "engine_version": version}
    return case(kind, mib / 1024, "GiB", workload=workload, **parts)


@pytest.mark.parametrize(
    "logged",
    [
        on_llama_cpp("weights", 4403.49, "b3600", observed={"bits_per_weight": 4.89}),
        on_llama_cpp("activations", 560.0, "b3600"),
        on_llama_cpp("activations", 258.5, "b6400"),
        on_llama_cpp("total_inference", 4403.49 + 258.5 + 410, "b7500"),
    ],
    ids=lambda logged: f"{logged['kind']} of {logged['workload']['engine_version']}",
)
def test_load_logs_of_llama_cpp_come_out(tmp_path: Path, logged: dict[str, Any]) -> None:
    summary = score(written(tmp_path / "cases.jsonl", logged))
    assert (summary.cases, summary.within_tolerance) == (1, 1)


def test_a_room_that_is_a_share_of_the_free_memory(tmp_path: Path) -> None:
    seen = {"weights_gib": 15, "activation_peak_gib": 2, "non_torch_gib": 1, "cuda_graph_gib": 0.1}
    room = case(
        "kv_capacity",
        (79.1 - 18.1) * 0.9,
        "GiB",
        workload={"engine": "tensorrt-llm"},
        measured={"of": "kv_room"},
        gpu={"reported_gib": 79.1},
        observed=seen,
    )
    assert score(written(tmp_path / "cases.jsonl", room)).within_tolerance == 1


@pytest.mark.parametrize(("version", "room"), [("0.4.3", 0.88 * 80), ("0.5.4", 80 - 13.125)])
def test_a_static_share_that_is_not_stated_is_that_of_the_version(
    tmp_path: Path, version: str, room: float
) -> None:
    stated = case(
        "kv_capacity",
        room - 15,
        "GiB",
        workload={"engine": "sglang", "engine_version": version},
        measured={"of": "kv_room"},
        gpu={"reported_gib": 80},
        observed={"weights_gib": 15},
    )
    assert score(written(tmp_path / "cases.jsonl", stated)).within_tolerance == 1
