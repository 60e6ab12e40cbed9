"""What an exchange asks of its link, and what the link gives at that size."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaluator.collectives import traffic
from evaluator.facts import UNKNOWN, declared
from evaluator.gpus import candidates
from evaluator.link_rates import Keeps, LinkRate, link_rates
from evaluator.machine import LinkClass, Machine, worst_usable_bytes
from evaluator.plans import Plan
from evaluator.ranges import Range
from evaluator.workload import parse_workload, workload_presets

SERVE = parse_workload(workload_presets()["serve-llama-8b"])
TRAIN = parse_workload(workload_presets()["train-llama-70b"])


def machine(link: LinkClass | None) -> Machine:
    cards = candidates("H100", label_gb=80, form_factor="SXM5")
    return Machine(
        gpu_model=declared("H100", "a test"),
        specs=cards,
        gpu_count=declared(8, "a test"),
        usable_bytes_per_gpu=declared(worst_usable_bytes(cards), "a test"),
        link=declared(link, "a test"),
    )


FAST = machine(LinkClass.NVSWITCH)
SLOW = machine(LinkClass.P2P_DISABLED)


def test_there_is_one_rate_for_each_exchange() -> None:
    for plan in (Plan(tp=4), Plan(pp=4), Plan(tp=2, pp=2)):
        rates = link_rates(SERVE, plan, FAST)
        assert [rate.exchange for rate in rates] == list(traffic(SERVE, plan))
    assert link_rates(SERVE, Plan(replicas=8), FAST) == ()


def test_tensor_parallel_prefill_waits_on_a_slow_link_and_a_pipeline_does_not() -> None:
    prefill = [
        rate for rate in link_rates(SERVE, Plan(tp=8), SLOW) if "prefill" in rate.exchange.per
    ]
    assert [rate.keeps for rate in prefill] == [Keeps.NO]
    hops = link_rates(SERVE, Plan(pp=8), SLOW)
    assert {rate.keeps for rate in hops} == {Keeps.YES}


def test_the_same_exchange_asks_alike_and_gets_more_from_a_faster_link() -> None:
    slow, fast = link_rates(TRAIN, Plan(tp=8), SLOW), link_rates(TRAIN, Plan(tp=8), FAST)
    assert [one.needed for one in slow] == pytest.approx([one.needed for one in fast])
    assert slow[0].given
    assert fast[0].given
    assert slow[0].given.high < fast[0].given.low


def test_an_unknown_link_spans_the_known_ones() -> None:
    (unknown,) = link_rates(TRAIN, Plan(tp=8), machine(None))
    for known in (SLOW, FAST):
        (rate,) = link_rates(TRAIN, Plan(tp=8), known)
        assert unknown.given
        assert rate.given
        assert unknown.given.low <= rate.given.low
        assert rate.given.high <= unknown.given.high
    assert unknown.keeps is Keeps.DEPENDS


def test_a_card_without_figures_has_needs_in_bytes_and_no_rate() -> None:
    bare = replace(FAST, specs=(), gpu_model=UNKNOWN)
    (rate,) = link_rates(TRAIN, Plan(tp=8), bare)
    assert (rate.needed, rate.given, rate.keeps) == (None, None, Keeps.UNKNOWN)


def test_the_word_follows_both_ends() -> None:
    (one, *_) = traffic(TRAIN, Plan(tp=8))
    given = Range(10, 20, 30)
    words = [LinkRate(one, needed, given).keeps for needed in (5, 15, 40)]
    assert words == [Keeps.YES, Keeps.DEPENDS, Keeps.NO]


def test_a_model_without_dimensions_moves_an_unknown_amount() -> None:
    shape = replace(TRAIN.model, dimensioned=False)
    assert link_rates(replace(TRAIN, model=shape), Plan(tp=8), FAST) == ()


def test_a_rate_says_the_seconds_and_the_links_it_comes_from() -> None:
    (rate,) = link_rates(TRAIN, Plan(tp=8), machine(None))
    assert rate.busy
    assert rate.needed == pytest.approx(rate.exchange.sent_bytes / rate.busy)
    assert [name for name, _ in rate.links] == [
        "PCIe without peer access, 63 GB/s",
        "PCIe with peer access, 63 GB/s",
        "NVSwitch between all GPUs, 450 GB/s",
    ]
    assert rate.given
    assert rate.given.low == min(span.low for _, span in rate.links)
    assert rate.given.high == max(span.high for _, span in rate.links)
    (known,) = link_rates(TRAIN, Plan(tp=8), FAST)
    assert [span for _, span in known.links] == [known.given]


def test_a_rate_between_machines_names_the_network_that_is_stated() -> None:
    two = replace(FAST, inter_node=declared("ib_ndr", "a test"))
    network = "a network with 50 GB/s for each GPU"
    hop, *_ = link_rates(SERVE, Plan(pp=16, nodes=2), two)
    assert [name for name, _ in hop.links] == [network]
    gather, *_ = link_rates(TRAIN, Plan(dp=16, shard=16, nodes=2), two)
    assert [name for name, _ in gather.links] == [
        f"NVSwitch between all GPUs, 450 GB/s and {network}"
    ]
