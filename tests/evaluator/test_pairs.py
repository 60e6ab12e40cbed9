"""Groups held against pairs: the situations of the topology reference, each with its way out."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.connections import Fault, FaultKind, Rate, Topology
from evaluator.exchanges import Operation, Traffic
from evaluator.facts import Fact, Grade, declared
from evaluator.findings import Code
from evaluator.grouping import assign
from evaluator.link_verdicts import LinkVerdict, LinkWord, cost_to_settle
from evaluator.machine import Conflict, LinkClass, Machine
from evaluator.meanings import EVIDENCE_MEANINGS
from evaluator.plans import Plan
from evaluator.topology import judge_link
from evaluator.units import GB
from tests.evaluator.machines import machine
from tests.evaluator.pasted import rates_of_pairs
from tests.evaluator.topologies import joined, pairs_of, uniform

TP2, TP4, TP8 = Plan(tp=2), Plan(tp=4), Plan(tp=8)
FSDP8, DP8, PP8, SPREAD = (
    Plan(dp=8, shard=8),
    Plan(dp=8),
    Plan(pp=8),
    Plan(dp=16, shard=16, nodes=2),
)
TP2_PP4 = Plan(tp=2, pp=4)
WORDS = LinkWord
AGAINST, POOR = LinkWord.CONTRADICTED, LinkWord.INSUFFICIENT
KINDS = FaultKind
SOCKETS = ("0",) * 4 + ("1",) * 4


def seen(topology: Topology, grade: Grade = Grade.MEASURED, **facts: object) -> Machine:
    of = machine(count=topology.gpus or 8, **facts)  # type: ignore[arg-type]
    return replace(of, topology=Fact(topology, grade))


def verdict(plan: Plan, topology: Topology, **facts: object) -> LinkVerdict:
    return judge_link(plan, seen(topology, **facts), "")


def allowed(topology: Topology, reach: bool) -> Topology:
    return replace(topology, peer=((reach,) * topology.gpus,) * topology.gpus)


def with_fault(topology: Topology, kind: FaultKind, *gpus: int) -> Topology:
    return replace(topology, faults=(Fault(kind, gpus, "as the output says"),))


def rated(
    topology: Topology, usual: float, odd: dict[tuple[int, int], float] | None = None
) -> Topology:
    rows = rates_of_pairs(topology.gpus, usual, odd)
    return replace(topology, pair_rates=tuple(map(tuple, rows)))


SWITCHED = uniform(8, "NV18")
PAIRS = joined("NV12", "NODE", "SYS", [(0, 1), (2, 3), (4, 5), (6, 7)], SOCKETS)
HIVES = joined("NV2", "PHB", "SYS", [(0, 1, 2, 3), (4, 5, 6, 7)], SOCKETS)
CUBE = joined("NV1", "PHB", "SYS", [(0, 1, 2, 3), (4, 5, 6, 7), (0, 4), (1, 5)], SOCKETS)
SWITCH_PCIE, HOST_PCIE = uniform(4, "PIX"), replace(uniform(4, "NODE"), numa=("0",) * 4)
ACROSS = replace(uniform(2, "SYS"), numa=("0", "1"))
NPS = replace(uniform(2, "SYS"), numa=("0", "0"))
GUEST = uniform(8, "PHB")
MESH = uniform(8, "XGMI")

SITUATIONS = [
    # what was seen            plan    word                 finding
    (SWITCHED, TP8, WORDS.PROVEN, None),
    (PAIRS, TP2, WORDS.PROVEN, None),
    (PAIRS, TP2_PP4, WORDS.PROVEN, None),
    (PAIRS, TP4, WORDS.INSUFFICIENT, Code.GROUP_LEAVES_ISLAND),
    (PAIRS, TP8, WORDS.INSUFFICIENT, Code.LINK_CROSSES_SOCKETS),
    (PAIRS, FSDP8, WORDS.UNKNOWN, Code.LINK_UNBENCHMARKED),
    (PAIRS, DP8, WORDS.PROVEN, None),
    (PAIRS, PP8, WORDS.PROVEN, None),
    (HIVES, TP4, WORDS.PROVEN, None),
    (HIVES, Plan(tp=4, replicas=2), WORDS.PROVEN, None),
    (HIVES, TP8, WORDS.INSUFFICIENT, Code.LINK_CROSSES_SOCKETS),
    (CUBE, TP4, WORDS.PROVEN, None),
    (CUBE, TP8, WORDS.UNKNOWN, Code.LINK_UNBENCHMARKED),
    (with_fault(HOST_PCIE, KINDS.INACTIVE_LINKS, 2), TP4, WORDS.UNKNOWN, Code.LINK_UNBENCHMARKED),
    (allowed(SWITCH_PCIE, True), TP2, WORDS.UNKNOWN, Code.LINK_UNBENCHMARKED),
    (allowed(SWITCH_PCIE, False), TP2, WORDS.INSUFFICIENT, Code.NO_PEER_ACCESS),
    (with_fault(HOST_PCIE, FaultKind.NO_PEER_ACCESS), TP4, WORDS.INSUFFICIENT, Code.NO_PEER_ACCESS),
    (HOST_PCIE, TP4, WORDS.UNKNOWN, Code.LINK_UNBENCHMARKED),
    (replace(uniform(8, "NODE"), numa=SOCKETS), TP8, WORDS.INSUFFICIENT, Code.GROUP_LEAVES_ISLAND),
    (ACROSS, TP2, WORDS.INSUFFICIENT, Code.LINK_CROSSES_SOCKETS),
    (ACROSS, Plan(pp=2), WORDS.PROVEN, None),
    (NPS, TP2, WORDS.UNKNOWN, Code.LINK_UNBENCHMARKED),
    (GUEST, TP8, WORDS.UNKNOWN, Code.TOPOLOGY_FLATTENED),
    (MESH, TP2, WORDS.UNKNOWN, Code.LINK_UNBENCHMARKED),
    (MESH, TP8, WORDS.PROVEN, None),
    (with_fault(HOST_PCIE, FaultKind.NARROW_SLOT, 3), TP4, WORDS.CONTRADICTED, Code.NARROW_SLOT),
    (with_fault(SWITCHED, FaultKind.NARROW_SLOT, 3), TP8, WORDS.PROVEN, None),
    (with_fault(SWITCHED, KINDS.INACTIVE_LINKS, 3), TP8, AGAINST, Code.GPU_LINK_FAULTY),
    (with_fault(SWITCHED, FaultKind.INACTIVE_LINKS, 3), TP4, WORDS.PROVEN, None),
    (with_fault(SWITCHED, FaultKind.SLOW_GPU, 0), FSDP8, WORDS.CONTRADICTED, Code.GPU_SLOW),
    (rated(SWITCH_PCIE, 24.0, {(1, 2): 3.0}), TP4, AGAINST, Code.PAIR_SLOW),
    (rated(SWITCH_PCIE, 24.0, {(1, 2): 3.0}), TP2, WORDS.UNKNOWN, Code.LINK_UNBENCHMARKED),
    (rated(SWITCH_PCIE, 12.0), TP4, POOR, Code.LINK_INSUFFICIENT),
    (with_fault(SWITCHED, KINDS.FABRIC_MANAGER), TP2, AGAINST, Code.FABRIC_MANAGER_DOWN),
    (with_fault(SWITCHED, FaultKind.SLICED), TP2, WORDS.INSUFFICIENT, Code.SLICED_GPU),
    (with_fault(SWITCHED, FaultKind.SLICED), DP8, WORDS.INSUFFICIENT, Code.SLICED_GPU),
    (with_fault(SWITCHED, FaultKind.SLICED), Plan(replicas=8), WORDS.NOT_NEEDED, None),
    (with_fault(HOST_PCIE, FaultKind.SMALL_SHM), TP4, WORDS.UNKNOWN, Code.SHM_SMALL),
    (with_fault(allowed(HOST_PCIE, False), KINDS.SMALL_SHM), TP4, POOR, Code.SHM_FAILED),
    (with_fault(SWITCHED, FaultKind.SMALL_SHM), TP8, WORDS.PROVEN, Code.SHM_SMALL),
    (with_fault(SWITCHED, FaultKind.SHM_FAILED), DP8, POOR, Code.SHM_FAILED),
    (with_fault(SWITCHED, FaultKind.TCP_BETWEEN), SPREAD, WORDS.INSUFFICIENT, Code.FABRIC_OVER_TCP),
    (with_fault(SWITCHED, FaultKind.NO_GPUDIRECT), SPREAD, WORDS.UNKNOWN, Code.FABRIC_STAGED),
    (SWITCHED, SPREAD, WORDS.UNKNOWN, Code.FABRIC_UNKNOWN),
    (pairs_of(8, {(0, 1): "NV18"}), TP2, WORDS.PROVEN, None),
    (pairs_of(8, {(0, 1): "NV18"}), TP8, WORDS.UNKNOWN, Code.TOPOLOGY_PARTIAL),
]  # fmt: skip


@pytest.mark.parametrize(("topology", "plan", "word", "code"), SITUATIONS)
def test_each_situation_has_its_word_and_its_finding(
    topology: Topology, plan: Plan, word: LinkWord, code: Code | None
) -> None:
    found = verdict(plan, topology)
    assert found.word is word
    codes = [one.code for one in found.findings]
    assert code in codes if code else codes == []


@pytest.mark.parametrize(
    ("topology", "words"),
    [
        (PAIRS, "leaves the fast islands (0, 1; 2, 3; 4, 5; 6, 7): "),
        (replace(uniform(8, "NODE"), numa=SOCKETS), "finds no fast island to stay on: "),
    ],
)
def test_a_group_that_no_island_holds_names_the_islands_there_are(
    topology: Topology, words: str
) -> None:
    plan = TP4 if topology is PAIRS else TP8
    assert words in verdict(plan, topology).findings[0].sentence


MADE_ELSEWHERE = {"own_evidence", "evidence_mismatch", "measured_elsewhere", "link_suspected"}
"""Codes about who brought what, and of a benchmark against a suspicion: see tests/codes."""


def test_every_code_about_a_machine_is_produced_by_a_situation() -> None:
    found = [verdict(plan, topology) for topology, plan, *_ in SITUATIONS]
    made = {one.code.value for judged in found for one in judged.findings}
    assert set(EVIDENCE_MEANINGS) - made == MADE_ELSEWHERE


@pytest.mark.parametrize(("topology", "plan", "word", "code"), SITUATIONS)
def test_each_doubt_names_reason_command_price_and_what_clears_it(
    topology: Topology, plan: Plan, word: LinkWord, code: Code | None
) -> None:
    found = verdict(plan, topology)
    assert found.reason.endswith(".")
    cost = cost_to_settle(found, Decimal("19.92"))
    if word in (WORDS.PROVEN, WORDS.NOT_NEEDED):
        assert cost is None
        return
    assert found.settled_by
    assert found.cleared_by.endswith(".")
    assert {part.word for part in found.parts} >= {found.word}
    assert cost == Decimal("19.92")
    assert cost_to_settle(found, None) is None
    assert cost_to_settle(found, Decimal("19.92"), 2) == Decimal("39.84")
    assert all(one.remedy for one in found.findings)


def test_groups_are_named_by_index_and_pinned_in_the_command() -> None:
    found = verdict(Plan(tp=2, replicas=4), PAIRS)
    assert found.groups == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert "CUDA_VISIBLE_DEVICES=0,1,2,3 all_reduce_perf" in verdict(TP4, PAIRS).settled_by


def test_the_best_groups_are_found_whatever_the_numbering() -> None:
    crossed = joined("NV4", "PHB", "SYS", [(0, 5), (1, 3), (2, 7), (4, 6)], ("0",) * 8)
    found = assign(crossed, 2, 4)
    assert found is not None
    assert set(found.groups) == {(0, 5), (1, 3), (2, 7), (4, 6)}


def test_a_faulty_gpu_is_left_out_where_others_do() -> None:
    found = verdict(TP4, with_fault(SWITCHED, FaultKind.INACTIVE_LINKS, 1))
    assert found.groups == ((0, 2, 3, 4),)


BRIDGED = joined("NV3", "SYS", "SYS", [(0, 1), (2, 3)], ("0", "0", "1", "1"))
HALF = replace(BRIDGED, matrix=joined("NV4", "SYS", "SYS", [(2, 3)], ("0",) * 4).matrix)
FOUR_WAY = uniform(4, "NV6")


@pytest.mark.parametrize(
    ("model", "topology", "word"),
    [
        ("RTX A6000", uniform(2, "NV3"), WORDS.CONTRADICTED),
        ("RTX A6000", uniform(2, "NV4"), WORDS.PROVEN),
        ("RTX A6000", BRIDGED, WORDS.CONTRADICTED),
        ("RTX A6000", HALF, WORDS.PROVEN),
        ("H100 NVL", uniform(2, "NV8"), WORDS.CONTRADICTED),
        ("H100 NVL", uniform(2, "NV12"), WORDS.PROVEN),
        ("H200 NVL", FOUR_WAY, WORDS.PROVEN),
        ("V100", uniform(2, "NV3"), WORDS.PROVEN),
        ("a card of no list", uniform(2, "NV3"), WORDS.PROVEN),
    ],
)
def test_a_bridge_with_fewer_links_than_its_card_takes_is_not_believed(
    model: str, topology: Topology, word: LinkWord
) -> None:
    of = replace(machine(model, count=topology.gpus), topology=Fact(topology, Grade.MEASURED))
    found = judge_link(TP2, of, "")
    assert found.word is word
    if word is WORDS.CONTRADICTED:
        (one,) = found.findings
        assert one.code is Code.GPU_LINK_FAULTY
        assert "the bridge of this card has" in one.sentence


def test_inactive_links_contradict_a_claim_without_any_matrix() -> None:
    status = with_fault(Topology(gpus=8), FaultKind.INACTIVE_LINKS, *range(8))
    found = verdict(TP8, status, link=LinkClass.NVSWITCH)
    assert found.word is WORDS.CONTRADICTED
    assert [one.code for one in found.findings] == [Code.GPU_LINK_FAULTY]


def test_evidence_against_a_declared_link_contradicts_it() -> None:
    against = (Conflict("link", "measured nvlink_pairs", "declared nvswitch"),)
    assert verdict(TP8, PAIRS, conflicts=against).word is WORDS.CONTRADICTED
    assert verdict(TP2, PAIRS, conflicts=against).word is WORDS.PROVEN


def all_reduce(ranks: int, *points: tuple[int, float]) -> tuple[Rate, ...]:
    return tuple(Rate("all_reduce", ranks, size, round(gb * GB)) for size, gb in points)


@pytest.mark.parametrize(
    ("topology", "rate", "word"),
    [
        (GUEST, 40, WORDS.PROVEN),
        (GUEST, 5, WORDS.INSUFFICIENT),
        (SWITCHED, 460, WORDS.PROVEN),
        (SWITCHED, 20, WORDS.CONTRADICTED),
        (replace(uniform(8, "NODE"), numa=SOCKETS), 26, WORDS.PROVEN),
    ],
)
def test_a_benchmark_of_the_group_outweighs_its_class(
    topology: Topology, rate: float, word: LinkWord
) -> None:
    found = verdict(TP8, replace(topology, rates=all_reduce(8, (8 * GB, rate))))
    assert found.word is word
    assert found.grade is Grade.BENCHMARKED
    assert all(one.remedy for one in found.findings)


def test_a_slow_benchmark_of_a_part_leaves_the_pair_open() -> None:
    """It may have run on two GPUs that no bridge joins."""
    assert verdict(TP2, replace(PAIRS, rates=all_reduce(2, (GB, 6)))).word is WORDS.UNKNOWN


def test_a_benchmark_without_a_matrix_counts_for_groups_of_its_size() -> None:
    alone = Topology(rates=all_reduce(8, (GB, 455)))
    assert verdict(TP8, alone, link=LinkClass.NVSWITCH).word is WORDS.PROVEN
    assert verdict(TP4, alone, link=LinkClass.NVSWITCH).word is WORDS.CLAIMED


def test_the_rate_is_read_at_the_plans_own_message() -> None:
    topology = replace(GUEST, rates=all_reduce(8, (1 << 20, 3.5), (8 * GB, 40)))
    moved = Traffic("tensor parallel", Operation.ALL_REDUCE, 8, 160, 160 << 21, "decode step")
    found = judge_link(TP8, seen(topology), "", (moved,))
    assert found.word is POOR
    assert "6.44 GB/s at 2 MiB messages; 7.59 GB/s are enough there" in found.reason


def test_a_log_of_shared_memory_alone_refuses_tensor_groups() -> None:
    log = Topology(faults=(Fault(FaultKind.NO_PEER_ACCESS, (), "NCCL took SHM instead of P2P"),))
    found = verdict(TP4, log)
    assert [one.code for one in found.findings] == [Code.NO_PEER_ACCESS]
    assert "NCCL took SHM" in found.reason


def test_a_damaged_output_takes_no_claim_away_and_proves_none() -> None:
    partial = pairs_of(8, {(0, 1): "NV18"})
    assert verdict(TP8, partial, link=LinkClass.NVSWITCH).word is WORDS.CLAIMED


def test_a_description_of_the_machine_type_only_claims() -> None:
    of = seen(SWITCHED, Grade.DECLARED)
    assert judge_link(TP8, of, "").word is WORDS.CLAIMED


def test_the_configuration_holds_what_verdicts_depend_on() -> None:
    prints = {seen(topology).fingerprint() for topology in (SWITCHED, PAIRS, HIVES, GUEST)}
    assert len(prints) == 4
    assert seen(PAIRS).fingerprint() == seen(PAIRS).fingerprint()
    assert seen(PAIRS).fingerprint() != seen(PAIRS, Grade.DECLARED).fingerprint()


def test_a_group_larger_than_what_was_seen_is_judged_by_class() -> None:
    of = replace(seen(uniform(2, "NV18")), gpu_count=declared(8))
    assert judge_link(TP8, of, "").word is WORDS.UNKNOWN


CLASSES = st.sampled_from(["NV4", "NV12", "PIX", "PHB", "NODE", "SYS", None])


@given(
    st.integers(2, 8).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(CLASSES, min_size=28, max_size=28))
    )
)
def test_hiding_a_pair_never_raises_a_word(drawn: tuple[int, list[str | None]]) -> None:
    gpus, words = drawn
    names = [(a, b) for a in range(gpus) for b in range(a + 1, gpus)]
    known = {pair: word for pair, word in zip(names, words, strict=False) if word}
    whole = pairs_of(gpus, known)
    for plan in (Plan(tp=gpus), TP2):
        before = verdict(plan, whole).word
        for pair in list(known)[:3]:
            hidden = {one: word for one, word in known.items() if one != pair}
            after = verdict(plan, pairs_of(gpus, hidden)).word
            assert after is not WORDS.PROVEN or before is WORDS.PROVEN
