"""Rates of single pairs: they name the slow pair and cap a group, and never make a word better."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaluator.connections import Fault, FaultKind, Rate, Topology, from_plain, merge, to_plain
from evaluator.facts import Fact, Grade, declared
from evaluator.findings import Code
from evaluator.grouping import assign
from evaluator.link_verdicts import SEVERITY, LinkVerdict, LinkWord
from evaluator.machine import LinkClass
from evaluator.pair_rates import ceiling, one_way, slow_pairs, told_rates
from evaluator.plans import Plan
from evaluator.topology import judge_link
from evaluator.units import GB
from tests.evaluator.machines import machine
from tests.evaluator.pasted import rates_of_pairs, rates_text, seen
from tests.evaluator.topologies import joined, uniform

TP2, TP4, TP8, DP4 = Plan(tp=2), Plan(tp=4), Plan(tp=8), Plan(dp=4)
SWITCH, FABRIC = uniform(4, "PIX"), uniform(8, "NV18")


def rated(topology: Topology, usual: float, **odd: float) -> Topology:
    """`p12=3.0` is the rate between GPUs 1 and 2."""
    pairs = {(int(name[1]), int(name[2])): rate for name, rate in odd.items()}
    rows = rates_of_pairs(topology.gpus, usual, pairs)
    return replace(topology, pair_rates=tuple(map(tuple, rows)))


def judged(plan: Plan, topology: Topology, link: LinkClass | None = None) -> LinkVerdict:
    of = machine(count=topology.gpus)
    claimed = declared(link) if link else of.link
    return judge_link(plan, replace(of, topology=Fact(topology, Grade.MEASURED), link=claimed), "")


def benchmarked(topology: Topology, gb: float, look: int = 0) -> Topology:
    rate = Rate("all_reduce", topology.gpus, 8 << 30, round(gb * GB), look=look)
    return replace(topology, rates=(rate,))


def test_one_slow_slot_is_named_with_its_pair_and_what_is_usual() -> None:
    found = judged(TP4, rated(SWITCH, 24.0, p12=3.0))
    assert (found.word, found.findings[0].code) == (LinkWord.CONTRADICTED, Code.PAIR_SLOW)
    assert "GPUs 1 and 2 reach 3 of 24 GB/s" in found.reason
    assert found.settled_by == "p2pBandwidthLatencyTest"
    assert "12 GB/s or more one way" in found.cleared_by


def test_a_smaller_group_leaves_the_slow_pair_out() -> None:
    topology = rated(SWITCH, 24.0, p01=3.0)
    placed = assign(topology, 2, 2)
    assert placed
    assert not placed.joins((0, 1))
    assert judged(TP2, topology).word is LinkWord.UNKNOWN


def test_pairs_of_another_class_are_no_measure_of_a_pair() -> None:
    near = joined("PIX", "NODE", "SYS", [(0, 1), (2, 3)], ("0", "0", "0", "0"))
    rows = rates_of_pairs(4, 9.0, {(0, 1): 25.0, (2, 3): 25.0})
    assert slow_pairs(replace(near, pair_rates=tuple(map(tuple, rows)))) == ()


def test_nvlinks_have_a_least_rate_of_their_own() -> None:
    (slow,) = slow_pairs(rated(uniform(2, "NV4"), 6.1))
    assert slow.words == "GPUs 0 and 1 reach 6.1 of 56.2 GB/s"
    assert slow_pairs(rated(uniform(2, "NV4"), 52.0)) == ()


def test_of_two_directions_the_slower_counts_and_of_one_the_known() -> None:
    rows = ((None, 20.0, None), (4.0, None, None), (7.0, None, None))
    topology = Topology(gpus=3, pair_rates=rows)
    rates = [one_way(topology, pair) for pair in ((0, 1), (0, 2), (1, 2))]
    assert rates == [4 * GB, 7 * GB, None]


def test_rates_of_a_part_of_the_machine_say_nothing_of_its_pairs() -> None:
    part = replace(SWITCH, pair_rates=rated(uniform(2, "PIX"), 3.0).pair_rates)
    assert judged(TP4, part).word is LinkWord.UNKNOWN


def test_no_group_is_faster_than_its_narrowest_gpu() -> None:
    found = judged(TP4, rated(SWITCH, 12.0))
    assert (found.word, found.findings[0].code) == (LinkWord.INSUFFICIENT, Code.LINK_INSUFFICIENT)
    assert "moves 12 GB/s at most" in found.reason


def test_roads_over_the_host_share_a_slot_and_links_of_a_fabric_do_not() -> None:
    over_host, over_fabric = (ceiling(rated(one, 12.0), range(4)) for one in (SWITCH, FABRIC))
    assert over_host
    assert over_fabric
    assert (over_host.bytes_per_s, over_fabric.bytes_per_s) == (12 * GB, 36 * GB)


def test_a_gpu_without_a_rate_to_each_other_caps_nothing() -> None:
    rows = rates_of_pairs(4, 12.0)
    partial: list[list[float | None]] = [[*row] for row in rows]
    for at in range(4):
        partial[at][(at + 1) % 4] = partial[(at + 1) % 4][at] = None
    topology = replace(SWITCH, pair_rates=tuple(map(tuple, partial)))
    assert ceiling(topology, range(4)) is None


@pytest.mark.parametrize("plan", [TP2, TP4, DP4])
@pytest.mark.parametrize("topology", [SWITCH, uniform(4, "NODE"), uniform(4, "NV4")])
@pytest.mark.parametrize("rate", [0.5, 12.0, 26.0, 400.0])
def test_rates_of_pairs_never_make_a_word_better(
    plan: Plan, topology: Topology, rate: float
) -> None:
    with_rates, without = (judged(plan, one) for one in (rated(topology, rate), topology))
    assert SEVERITY[with_rates.word] >= SEVERITY[without.word]
    assert with_rates.grade <= without.grade or with_rates.word.stops


def test_a_healthy_benchmark_of_the_group_outweighs_its_pairs_and_names_the_doubt() -> None:
    found = judged(TP4, benchmarked(rated(SWITCH, 24.0, p12=3.0), 26.0))
    assert found.word is LinkWord.PROVEN
    assert [one.code for one in found.findings] == [Code.LINK_SUSPECTED]
    assert "GPUs 1 and 2" in found.findings[0].sentence


def test_an_older_benchmark_does_not_outweigh_newer_rates_of_pairs() -> None:
    newest, older = rated(SWITCH, 12.0), benchmarked(SWITCH, 26.0)
    assert judged(TP4, merge([newest, older])).word is LinkWord.INSUFFICIENT
    assert judged(TP4, merge([older, newest])).word is LinkWord.PROVEN


def test_without_a_matrix_a_claimed_fabric_is_contradicted_by_a_rate_below_any_nvlink() -> None:
    blind = rated(Topology(gpus=8), 5.0)
    found = judged(TP8, blind, LinkClass.NVSWITCH)
    assert (found.word, found.findings[0].code) == (LinkWord.CONTRADICTED, Code.PAIR_SLOW)
    assert judged(TP8, rated(Topology(gpus=8), 270.0), LinkClass.NVSWITCH).word is LinkWord.CLAIMED


def test_a_paste_brings_rates_one_way_and_with_peer_access() -> None:
    text = rates_text(rates_of_pairs(4, 24.0, {(1, 2): 3.0}))
    topology = seen(text).topology
    assert [one.pair for one in slow_pairs(replace(topology, matrix=SWITCH.matrix))] == [(1, 2)]
    both = text.replace("Unidirectional", "Bidirectional")
    assert seen(both).topology.pair_rates[0][1] == 12.0


def test_peer_access_is_told_by_pair_and_unknown_where_nothing_was_told() -> None:
    text = rates_text(rates_of_pairs(3, 24.0)).replace(
        "Device=0 CAN Access Peer Device=1", "Device=0 CANNOT Access Peer Device=1"
    )
    topology = seen(text).topology
    assert [topology.reach(*pair) for pair in ((0, 1), (0, 2), (1, 2))] == [False, True, True]
    told = text[: text.index("Device=2 CAN")]
    cut = seen(told.replace("Device=1 CAN Access Peer Device=2\n", ""))
    assert cut.topology.reach(1, 2) is None
    assert topology.of_kind(FaultKind.NO_PEER_ACCESS) == ()


def test_what_was_measured_is_told_with_its_slow_pairs() -> None:
    assert told_rates(rated(SWITCH, 24.0, p12=3.0)) == (
        "Pairs reach 3 to 24 GB/s one way",
        "GPUs 1 and 2 reach 3 of 24 GB/s",
    )
    assert told_rates(rated(Topology(gpus=2), 24.0)) == ("Pairs reach 24 GB/s one way",)
    assert told_rates(SWITCH) == ()


def test_the_look_is_not_stored_with_the_rates() -> None:
    topology = replace(rated(SWITCH, 24.0), pair_look=3, faults=(Fault(FaultKind.SLOW_GPU, (1,)),))
    assert from_plain(to_plain(topology)) == replace(topology, pair_look=0)
