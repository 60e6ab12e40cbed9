"""What one engine takes differs by its version: figures of load logs and of published rules."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.columns import Models, budget_columns, plan_columns
from evaluator.engines import doubt_of, engine, engines, version_of
from evaluator.fields import InvalidWorkload
from evaluator.jobs import Workload
from evaluator.memory import budget, cache_room, cache_tokens
from evaluator.models import preset
from evaluator.plans import Plan
from evaluator.ranges import Range
from evaluator.shares import Allowance, Left
from evaluator.units import GIB, MIB
from evaluator.workload import parse_workload

ONE = Plan()
VERSIONS = [(name, one) for name, ranges in engines().items() for one in ranges]


def serving(engine_name: str, version: str = "", model: str = "", **keys: Any) -> Workload:
    named = {"engine": engine_name, **({"engine_version": version} if version else {})}
    chosen = {"preset": model or "llama-3.1-8b"}
    return parse_workload({"task": "serve", "model": chosen, **named, **keys})


def part(workload: Workload, name: str, plan: Plan = ONE) -> Range:
    component = budget(workload, plan).ranks[0].component(name)
    assert component is not None
    return component.bytes


def assumed(workload: Workload, key: str) -> str:
    found = [f"{one.value}: {one.reason}" for one in workload.assumptions if one.key == key]
    return found[0] if found else ""


# --- the table


@pytest.mark.parametrize(
    ("spelt", "listed"),
    [("vLLM", "vllm"), ("llamacpp", "llama.cpp"), ("TRTLLM", "tensorrt-llm"), ("mlc", "mlc")],
)
def test_a_listed_engine_has_one_name_however_it_is_spelt(spelt: str, listed: str) -> None:
    job = serving(spelt).serving
    assert job
    assert job.engine == listed


@pytest.mark.parametrize("name", ["vllm", "sglang", "tensorrt-llm", "llama.cpp"])
def test_every_engine_with_known_changes_has_several_ranges(name: str) -> None:
    ranges = engines()[name]
    assert len(ranges) >= 3
    assert [one.since for one in ranges] == sorted(one.since for one in ranges)
    assert [one.until for one in ranges[:-1]] == [one.since for one in ranges[1:]]
    assert ranges[0].since == (0,)
    assert sum(one.usual for one in ranges) == 1


@pytest.mark.parametrize(("name", "one"), VERSIONS, ids=[one.words for _, one in VERSIONS])
def test_every_range_is_ordered_and_tells_its_source(name: str, one: Any) -> None:
    assert one.sources
    for size in (one.alone, one.joined, one.graphs, one.growth, one.margin, one.step_tokens):
        assert size.ordered
    assert one.joined.typical >= one.alone.typical


def test_a_range_differs_from_the_one_before_and_says_in_what() -> None:
    for ranges in engines().values():
        for before, after in pairwise(ranges):
            assert after.changed
            ignored = ("since", "until", "sources", "changed", "usual")
            kept = [n for n in type(after).__slots__ if n not in ignored]
            assert any(getattr(before, n) != getattr(after, n) for n in kept), after.words


@pytest.mark.parametrize(
    ("name", "version", "since"),
    [
        ("sglang", "0.3.6", (0,)),
        ("sglang", "0.4.6.post5", (0,)),
        ("sglang", "v0.4.9", (0, 4, 7)),
        ("sglang", "0.5.3rc0", (0, 5, 3)),
        ("tensorrt-llm", "0.10.0", (0,)),
        ("trtllm", "0.20.0", (0, 11)),
        ("tensorrt-llm", "1.2.0rc4", (1,)),
        ("llama.cpp", "b4000", (0,)),
        ("llamacpp", "b6400", (6325,)),
        ("llama.cpp", "server-cuda-b8763", (7414,)),
    ],
)
def test_a_version_finds_its_range(name: str, version: str, since: tuple[int, ...]) -> None:
    assert engine(name, version).since == since


def test_digits_of_other_scripts_are_no_version() -> None:
    assert version_of("٠.٨") == ()


# --- versions that are not known


@pytest.mark.parametrize("name", sorted(engines()))
def test_a_version_beyond_the_newest_known_one_is_told(name: str) -> None:
    word = assumed(serving(name, "99999.9"), "engine figures")
    assert "nearest known range is used" in word
    assert engines()[name][-1].words in word


@pytest.mark.parametrize("name", ["vllm", "sglang", "tensorrt-llm", "llama.cpp"])
def test_a_version_without_a_number_is_told(name: str) -> None:
    assert "names no number" in assumed(serving(name, "nightly"), "engine figures")


def test_the_range_that_counts_without_a_version_is_told() -> None:
    assert assumed(serving("sglang"), "engine_version").startswith("sglang since 0.5.3")
    assert not assumed(serving("sglang", "0.4.9"), "engine_version")
    assert not assumed(serving("transformers"), "engine_version")


@pytest.mark.parametrize(("name", "one"), VERSIONS, ids=[one.words for _, one in VERSIONS])
def test_a_known_version_raises_no_doubt(name: str, one: Any) -> None:
    assert not doubt_of(name, ".".join(map(str, one.since)))
    assert not doubt_of(name, "")


# --- vLLM


@pytest.mark.parametrize(("version", "fraction"), [("0.11", 0.9), ("0.20.2", 0.9), ("0.21", 0.92)])
def test_the_default_share_rose_with_the_graphs_inside_it(version: str, fraction: float) -> None:
    workload = serving("vllm", version)
    assert budget(workload, ONE).allowance.fraction == fraction
    assert f"{fraction}: the default of vllm" in assumed(workload, "memory_utilization")


# --- SGLang: what is left of a card


@pytest.mark.parametrize(("tp", "fraction"), [(1, 0.88), (2, 0.87), (4, 0.85), (8, 0.81)])
def test_an_old_static_fraction_follows_from_the_tensor_ranks(tp: int, fraction: float) -> None:
    memory = budget(serving("sglang", "0.4.3"), Plan(tp=tp))
    assert memory.allowance.fraction == fraction


@pytest.mark.parametrize(
    ("version", "gib", "plan", "left"),
    [
        ("0.4.9", 24, ONE, 2.9),
        ("0.4.9", 80, Plan(tp=8), 13.5),
        ("0.4.9", 141, Plan(tp=8), 16.0),
        ("0.4.9", 180, ONE, 32.0),
        ("0.5.4", 24, ONE, 3.671875),
        ("0.5.4", 80, ONE, 13.125),
        ("0.5.4", 80, Plan(tp=4), 14.0),
        ("0.5.4", 180, ONE, 25.625),
    ],
)
def test_a_later_one_leaves_bytes_by_the_card(
    version: str, gib: int, plan: Plan, left: float
) -> None:
    allowance = budget(serving("sglang", version), plan).allowance
    assert allowance.begun == (1.4 if plan.tp > 1 else 0.5) * GIB
    assert (gib * GIB - allowance.begun - allowance.of(gib * GIB)) / GIB == pytest.approx(left)


def test_the_default_fraction_of_a_published_run() -> None:
    """sglang#29092: 0.828 for an H100 that reports 81,559 MiB, with Qwen3 32B."""
    allowance = budget(serving("sglang", "0.5.12"), Plan(tp=4)).allowance
    allowed = allowance.of(81_559 * MIB) + allowance.begun
    assert allowed / (81_559 * MIB) == pytest.approx(0.828, abs=0.004)


@pytest.mark.parametrize(
    ("model", "keys", "plan", "reported", "cache"),
    [
        ("llama-3.1-8b", {}, ONE, 79.1, 54.26),
        ("qwq-32b", {"memory_utilization": 0.85}, Plan(tp=4), 22.5, 2.84),
    ],
)
def test_the_cache_of_published_runs(
    model: str, keys: dict[str, Any], plan: Plan, reported: float, cache: float
) -> None:
    """0.4.1 on an H100 and in March 2025 on four L4: GiB of keys and values in the load logs."""
    workload = serving("sglang", "0.4.1", model, **keys)
    memory = budget(workload, plan)
    room = cache_room(memory, memory.ranks[0], int(reported * GIB)) / GIB
    assert abs(room - cache) < 0.02 * reported


def test_a_stated_step_changes_what_is_left() -> None:
    small, large = (
        budget(serving("sglang", "0.5.4", max_num_batched_tokens=tokens), ONE).allowance.of(40e9)
        for tokens in (2048, 8192)
    )
    assert small - large == 6144 * 1.5 * MIB


def test_a_stated_fraction_outranks_every_rule() -> None:
    for version in ("0.4.3", "0.4.9", "0.5.4"):
        memory = budget(serving("sglang", version, memory_utilization=0.7), Plan(tp=8))
        assert memory.allowance == Allowance(0.7, begun=1.4 * GIB)


@given(st.floats(1e6, 3e11), st.sampled_from(["0.4.9", "0.5.4"]), st.sampled_from([1, 2, 4, 8]))
def test_the_card_that_is_asked_for_holds_what_it_is_asked_for(
    needed: float, version: str, tp: int
) -> None:
    allowance = budget(serving("sglang", version), Plan(tp=tp)).allowance
    asked = allowance.asks(needed)
    assert allowance.of(asked) >= needed * (1 - 1e-9)
    assert allowance.of(asked * 0.98) < needed


def test_a_gap_between_two_kinds_of_cards_is_stepped_over() -> None:
    left = Left(below=(10.0, float("inf")), bytes=(1.0, 5.0))
    assert [left.asks(needed) for needed in (8.0, 9.5)] == [9.0, 14.5]
    assert left.asks(np.array([8.0, 9.5])).tolist() == [9.0, 14.5]


def test_a_limit_by_the_rule_names_the_share_of_that_card() -> None:
    memory = budget(serving("sglang", "0.5.4"), ONE)
    inside, whole = memory.limits(memory.ranks[0])
    assert inside.share_of(80 * GIB) == pytest.approx(1 - 13.625 / 80)
    assert (inside.allowed(80 * GIB), whole.share_of(80 * GIB)) == (int(66.375 * GIB), 1.0)
    assert inside.allowed(3 * GIB) == 0


@pytest.mark.parametrize("version", ["0.4.3", "0.4.9", "0.5.4"])
def test_columns_follow_the_rules_too(version: str) -> None:
    workload, plans = serving("sglang", version), [ONE, Plan(tp=2), Plan(tp=8), Plan(tp=2, dp=2)]
    held = budget_columns(
        workload, Models([preset("llama-3.1-8b")]), np.zeros(4, int), plan_columns(plans)
    )
    for column, plan in enumerate(plans):
        alone = budget(workload, plan).allowance
        assert np.broadcast_to(held.allowance.of(80e9), 4)[column] == alone.of(80e9)
        assert np.broadcast_to(held.allowance.asks(40e9), 4)[column] == alone.asks(40e9)


# --- TensorRT-LLM


def test_the_tokens_of_a_step_became_a_default() -> None:
    old, new = (part(serving("trtllm", one), "activations") for one in ("0.10", "0.11"))
    assert old.low < new.low
    assert (old.typical, old.high) == (new.typical, new.high)


def test_the_default_backend_captures_graphs_since_1_0() -> None:
    old, new = (part(serving("trtllm", one), "cuda_graphs") for one in ("0.21", "1.0"))
    assert old.low == 0 < new.low


# --- llama.cpp, against published load logs

LLAMA_2 = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "intermediate_size": 11008,
    "vocab_size": 32000,
}


def context_of(tokens: int) -> dict[str, Any]:
    return {"input_tokens": tokens, "output_tokens": 0, "weights_format": "gguf:Q4_K_M"}


@pytest.mark.parametrize(
    ("version", "context", "mib"),
    [("b3600", 512, 258.5), ("b3600", 8192, 560.0), ("b6400", 8192, 258.5), ("b7500", 8192, 258.5)],
)
def test_compute_buffers_of_llama_3_8b(version: str, context: int, mib: float) -> None:
    peak = part(serving("llama.cpp", version, **context_of(context)), "activations")
    assert peak.typical / MIB == pytest.approx(mib)
    assert peak.low < peak.typical < peak.high


def test_the_buffer_of_gpt_oss_with_flash_attention() -> None:
    workload = serving("llama.cpp", "b6400", "gpt-oss-20b", **context_of(8192))
    assert part(workload, "activations").typical / MIB == pytest.approx(398.375)


@pytest.mark.parametrize(("context", "mib"), [(2048, 164), (4096, 296)])
def test_scores_of_more_context_take_more(context: int, mib: float) -> None:
    document = {"task": "serve", "model": LLAMA_2, "engine": "llama.cpp", "engine_version": "b2000"}
    workload = parse_workload(document | context_of(context))
    assert part(workload, "activations").typical / MIB == pytest.approx(mib)


def test_a_table_that_is_only_looked_up_waits_on_the_host() -> None:
    """Qwen2.5 7B Q4_K_M: 4168.09 MiB on the card and 292.36 on the host (ragflow#7518)."""
    workload = serving("llama.cpp", "", "qwen2.5-7b", weights_format="gguf:Q4_K_M")
    assert part(workload, "weights").typical / MIB == pytest.approx(4168.09, rel=0.015)


def test_a_tied_table_stays_on_the_card() -> None:
    runs = [
        serving(name, "", "llama-3.2-1b", weights_format="gguf:F16")
        for name in ("llama.cpp", "vllm")
    ]
    assert part(runs[0], "weights") == part(runs[1], "weights")


def test_a_margin_stays_free_since_layers_move_by_themselves() -> None:
    old, new = (serving("llama.cpp", one) for one in ("b7000", "b7414"))
    assert budget(old, ONE).ranks[0].component("free_margin") is None
    assert part(new, "free_margin") == Range(0, GIB, GIB)


def test_scores_and_margin_leave_less_for_the_cache() -> None:
    rooms = [
        cache_tokens(serving("llama.cpp", one, **context_of(8192)), ONE, 16 * GIB)
        for one in ("b3600", "b6400", "b7414")
    ]
    assert rooms[1]
    assert rooms[0] < rooms[1] > rooms[2]  # type: ignore[operator]


def test_every_sequence_of_a_context_is_set_aside_at_start() -> None:
    context = {"max_model_len": 8192, "input_tokens": 16, "output_tokens": 16, "concurrency": 4}
    eight = 8192 * 32 * 2 * 8 * 128 * 2
    for name, sequences in (("llama.cpp", 4), ("vllm", 1)):
        least = part(serving(name, **context), "kv_cache").low
        assert least == pytest.approx(sequences * eight, rel=0.003)
    assert part(serving("sglang", **context), "kv_cache").high < eight


def test_a_budget_says_what_its_version_changed() -> None:
    for version, said in (("0.4.3", "tensor ranks alone"), ("0.5.4", "sglang#10975")):
        overhead = budget(serving("sglang", version), ONE).ranks[0].component("engine_overhead")
        assert overhead
        assert said in dict(overhead.inputs)["in these versions"]


RANGES = st.sampled_from([(name, ".".join(map(str, one.since))) for name, one in VERSIONS])
SLUGS = st.sampled_from(["llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3", "gemma-2-9b"])
FEW = st.integers(1, 64)


@given(RANGES, SLUGS, FEW, FEW, st.sampled_from([ONE, Plan(tp=4), Plan(pp=2)]))
def test_more_requests_and_longer_ones_never_need_less(
    of: tuple[str, str], slug: str, many: int, longer: int, plan: Plan
) -> None:
    name, version = of

    def asked(concurrency: int, tokens: int) -> Range:
        keys = {"concurrency": concurrency, "input_tokens": tokens, "output_tokens": 0}
        memory = budget(serving(name, version, slug, **keys), plan)
        return max((memory.usable_for(rank) for rank in memory.ranks), key=lambda one: one.typical)

    least, most = asked(many, 512 * longer), asked(many + 1, 512 * longer + 512)
    for end in ("low", "typical", "high"):
        assert getattr(least, end) <= getattr(most, end)


def test_a_version_in_digits_of_another_script_is_refused() -> None:
    said = r"engine_version: read '.u0660\.8', expected a version in plain characters"
    with pytest.raises(InvalidWorkload, match=said):
        serving("vllm", "\u0660.8")
