"""Worked examples of what a plan moves: ZeRO (arXiv 1910.02054, section 7), nccl-tests."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.collectives import traffic
from evaluator.exchanges import Bound, Operation, Traffic, bus_factor
from evaluator.jobs import Workload
from evaluator.parameters import total_params
from evaluator.plans import Plan
from tests.evaluator.machines import serve, train

L8, L70 = "llama-3.1-8b", "llama-3.1-70b"


def total_sent(found: tuple[Traffic, ...], *purposes: str) -> int:
    return sum(one.sent_bytes for one in found if one.purpose in purposes)


@pytest.mark.parametrize("ranks", [2, 4, 8, 72])
def test_bus_factors_are_those_of_nccl_tests(ranks: int) -> None:
    assert bus_factor(Operation.ALL_REDUCE, ranks) == Fraction(2 * (ranks - 1), ranks)
    assert bus_factor(Operation.ALL_GATHER, ranks) == Fraction(ranks - 1, ranks)
    assert bus_factor(Operation.REDUCE_SCATTER, ranks) == Fraction(ranks - 1, ranks)
    assert bus_factor(Operation.SEND, ranks) == 1


def test_fsdp_of_8b_over_eight_moves_42_gb_a_step() -> None:
    """7/8 x (2 + 2 + 2) bytes x 8.03e9 parameters."""
    found = traffic(train(L8), Plan(dp=8, shard=8))
    assert total_sent(found, "parameters", "gradients") == pytest.approx(42.2e9, rel=0.002)


def test_fsdp_repeats_it_for_every_micro_batch() -> None:
    once = traffic(train(L8, global_batch=8), Plan(dp=8, shard=8))
    four = traffic(train(L8, global_batch=32), Plan(dp=8, shard=8))
    assert total_sent(four, "parameters") == 4 * total_sent(once, "parameters")


def test_plain_data_parallel_reduces_the_gradients_once() -> None:
    workload = train(L8, global_batch=64)
    (found,) = traffic(workload, Plan(dp=8))
    params = total_params(workload.model)
    assert params is not None
    assert found.operation is Operation.ALL_REDUCE
    assert found.sent_bytes == pytest.approx(2 * 7 / 8 * 2 * params, rel=1e-9)


def test_tensor_parallel_of_70b_over_eight_is_320_all_reduces_of_134_mb() -> None:
    (found,) = traffic(train(L70, seq_len=8192), Plan(tp=8))
    assert (found.calls, found.message_bytes) == (320, 134_217_728)
    assert found.sent_bytes == 320 * 134_217_728 * 7 // 4
    assert found.bound is Bound.BANDWIDTH


def test_full_recompute_adds_half_of_the_all_reduces() -> None:
    plain = traffic(train(L70), Plan(tp=8))[0]
    again = traffic(train(L70, recompute="full"), Plan(tp=8))[0]
    assert again.calls * 2 == plain.calls * 3


def test_a_pipeline_sends_forward_and_back_once_per_micro_batch() -> None:
    (found,) = traffic(train(L70, seq_len=4096, global_batch=16), Plan(pp=8))
    assert found.calls == 2 * 16
    assert found.message_bytes == 2 * 4096 * 8192


def test_decode_of_few_users_is_bound_by_latency_and_prefill_by_bandwidth() -> None:
    decode, prefill = traffic(serve(L70, concurrency=4, input_tokens=8192), Plan(tp=8))
    assert (decode.calls, decode.message_bytes) == (160, 4 * 8192 * 2)
    assert (decode.bound, prefill.bound) == (Bound.LATENCY, Bound.BANDWIDTH)


def test_replicas_share_the_users_and_move_nothing_between_each_other() -> None:
    assert traffic(serve(L8, concurrency=8), Plan(replicas=8)) == ()
    shared, _ = traffic(serve(L8, concurrency=8), Plan(tp=2, replicas=4))
    alone, _ = traffic(serve(L8, concurrency=8), Plan(tp=2))
    assert shared.message_bytes * 4 == alone.message_bytes


def test_one_gpu_moves_nothing() -> None:
    assert traffic(serve(), Plan()) == ()
    assert traffic(train(), Plan()) == ()


def test_sharding_inside_machines_crosses_the_network_with_gradients_only() -> None:
    found = traffic(train(L8), Plan(dp=16, shard=8, nodes=2))
    crossing = {(one.purpose, one.operation) for one in found if one.between_machines_bytes}
    assert crossing == {("gradients", Operation.ALL_REDUCE)}


def test_a_hierarchical_all_reduce_sends_a_share_of_the_buffer_over_the_network() -> None:
    """Two machines of eight: each GPU carries 2 x 1/2 x S/8."""
    one = Traffic("gradients", Operation.ALL_REDUCE, 16, 1, 8_000, "step", machines=2)
    assert one.between_machines_bytes == 1_000


def test_lora_reduces_only_the_gradients_of_its_adapters() -> None:
    (found,) = traffic(train(L8), Plan(dp=8), trainable=13_631_488)
    assert found.buffer_bytes == 2 * 13_631_488


def test_optimizer_sharding_gathers_and_scatters_once_a_step() -> None:
    first = train(L8, global_batch=64, zero_stage=1)
    found = traffic(first, Plan(dp=8, shard=8))
    params = total_params(first.model)
    assert params is not None
    assert total_sent(found, "parameters", "gradients") == pytest.approx(7 / 8 * 4 * params)


def test_the_need_reads_as_a_sentence_in_numbers() -> None:
    (found,) = traffic(train(L70, seq_len=8192), Plan(tp=8))
    assert found.words == (
        "320 all-reduces of 134 MB over 8 GPUs per optimizer step: "
        "75.2 GB sent by each GPU, bound by bandwidth"
    )


@given(
    st.sampled_from(list(Operation)),
    st.integers(2, 128),
    st.integers(1, 10**6),
    st.integers(1, 10**12),
    st.sampled_from([1, 2, 4, 8]),
)
def test_no_more_leaves_a_machine_than_is_sent(
    operation: Operation, group: int, calls: int, size: int, machines: int
) -> None:
    if group % machines == 0 and machines <= group:
        one = Traffic("x", operation, group, calls, size, "step", machines)
        assert 0 <= one.between_machines_bytes <= one.sent_bytes


def worked_out(words: str) -> Fraction:
    """The numbers of "8,192 tokens x 2 bytes / 2 ranks", multiplied and divided."""
    found = Fraction(1)
    for sign, number in re.findall(r"(^| x | / )([\d,]+)", words):
        value = int(number.replace(",", ""))
        found = found / value if "/" in sign else found * value
    return found


MOE = serve("mixtral-8x7b-v0.1", input_tokens=1000, concurrency=24)


@pytest.mark.parametrize(
    ("workload", "plan"),
    [
        (serve(L8, concurrency=32), Plan(tp=4, pp=2)),
        (MOE, Plan(dp=4, ep=4)),
        (MOE, Plan(tp=2, dp=2, ep=4)),
        (train(L70, recompute="full", global_batch=32), Plan(tp=2, pp=2, virtual=2, dp=2, shard=2)),
        (train(L8, seq_len=65536), Plan(tp=2, cp=2, dp=2, shard=4)),
        (train("mixtral-8x7b-v0.1"), Plan(ep=4, dp=4, shard=4)),
    ],
)
def test_an_exchange_says_how_its_bytes_come_about(workload: Workload, plan: Plan) -> None:
    found = traffic(workload, plan)
    assert found
    for one in found:
        assert worked_out(one.much) == pytest.approx(one.message_bytes, rel=1e-6), one
        assert one.source
        assert f"= {one.calls:,}. Buffer" in one.derivation


def test_calls_are_told_with_what_repeats_them() -> None:
    job = train(L70, recompute="full", global_batch=32)
    tensor, hops, gathers, scatters = traffic(job, Plan(tp=2, pp=2, dp=4, shard=4))
    assert (
        tensor.often
        == "6 (forward, backward and forward again) in each of 40 layers, 8 micro-batches"
    )
    assert tensor.calls == 6 * 40 * 8
    assert hops.often == "forward and backward with 8 micro-batches"
    assert (gathers.often, scatters.often) == (
        "16 a step for each of 40 layers",
        "8 a step for each of 40 layers",
    )
    assert tensor.derivation.endswith("Sent by each GPU: calls x buffer x 2 x 1/2 = 129 GB.")
    assert gathers.derivation.endswith("Sent by each GPU: calls x buffer x 3/4 = 423 GB.")


def test_buckets_of_gradients_are_told_by_their_size() -> None:
    (found,) = traffic(train(L8, global_batch=64), Plan(dp=8))
    assert found.often == "16.1 GB of gradients in buckets of 25 MiB"
    assert found.derivation.startswith("Calls: 16.1 GB of gradients in buckets of 25 MiB = 613.")
