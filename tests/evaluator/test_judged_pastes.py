"""Outputs that people really paste, judged through the front door: word, need, way out, price."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest

from evaluator.connections import Fault, FaultKind, Topology
from evaluator.facts import Fact, Grade
from evaluator.findings import Code
from evaluator.jobs import Workload
from evaluator.link_verdicts import LinkWord, cost_to_settle
from evaluator.machine import LinkClass, Machine
from evaluator.questions import questions_for
from evaluator.verdict import PlanVerdict, judge
from tests.codes.judged import (
    FABRIC_DOWN,
    LOG,
    NARROW_SLOT,
    NO_SHM,
    ONE_DEAD_EACH,
    SLICES,
    TWO_HOSTS,
)
from tests.evaluator.machines import machine, serve, train
from tests.evaluator.pasted import (
    alike,
    benchmark_text,
    cells,
    matrix_text,
    peer_text,
    plan_of,
    with_paste,
)
from tests.evaluator.test_seen_machines import rocm_text
from tests.evaluator.topologies import joined

PROVEN, OPEN = LinkWord.PROVEN, LinkWord.UNKNOWN
POOR, AGAINST = LinkWord.INSUFFICIENT, LinkWord.CONTRADICTED
SOCKETS = ["0"] * 4 + ["1"] * 4
BRIDGES = matrix_text(
    cells([(0, 1), (2, 3), (4, 5), (6, 7)], "NV12", "NODE", "SYS", SOCKETS), SOCKETS
)
SERVE, TRAIN = serve("llama-3.1-70b"), train("llama-3.1-70b")
A100 = machine("A100", 8, gb=80, form="PCIe")
CLAIMED = machine("A100", 8, gb=80, link=LinkClass.NVLINK)
H100 = machine("H100", 8, gb=80)
FOUR_4090 = machine("RTX 4090", 4)
SWITCHED = matrix_text(alike(8, "NV18"), SOCKETS)
IOMMU = LOG.format("SHM/direct/direct") * 2
GUEST = matrix_text(alike(8, "PHB"))
ACROSS = matrix_text(cells([], "", "NODE", "SYS", ["0", "1"]), ["0", "1"])

CASES: dict[str, tuple[Workload, Machine, str, str, LinkWord, Code | None]] = {
    "pairs under TP 4": (SERVE, A100, BRIDGES, "tp4", POOR, Code.GROUP_LEAVES_ISLAND),
    "pairs under TP 8": (SERVE, A100, BRIDGES, "tp8", POOR, Code.LINK_CROSSES_SOCKETS),
    "pairs under a claim": (SERVE, CLAIMED, BRIDGES, "tp8", AGAINST, Code.LINK_CROSSES_SOCKETS),
    "pairs under TP 2": (SERVE, A100, BRIDGES, "tp2", PROVEN, None),
    "RTX 4090 without peers": (
        SERVE, FOUR_4090, matrix_text(alike(4, "PHB")) + peer_text(4, "CNS"), "tp4", POOR,
        Code.NO_PEER_ACCESS,
    ),
    "ACS or IOMMU seen in a log": (
        SERVE, FOUR_4090, matrix_text(alike(4, "PIX")) + IOMMU, "tp4", POOR, Code.NO_PEER_ACCESS,
    ),
    "pairs of two sockets": (
        SERVE, machine("L40S", 2), ACROSS, "tp2", POOR, Code.LINK_CROSSES_SOCKETS,
    ),
    "a guest that flattens the picture": (
        SERVE, H100, GUEST, "tp8", OPEN, Code.TOPOLOGY_FLATTENED,
    ),
    "one slow slot": (
        SERVE, machine("L40S", 4), matrix_text(alike(4, "NODE")) + NARROW_SLOT, "tp4", AGAINST,
        Code.NARROW_SLOT,
    ),
    "slices": (SERVE, H100, SLICES, "tp8", POOR, Code.SLICED_GPU),
    "a fabric that is not up": (SERVE, H100, FABRIC_DOWN, "tp8", AGAINST, Code.FABRIC_MANAGER_DOWN),
    "idle links": (SERVE, H100, SWITCHED + ONE_DEAD_EACH, "tp8", AGAINST, Code.GPU_LINK_FAULTY),
    "shared memory that cannot be mapped": (
        SERVE, machine("L40S", 4), matrix_text(alike(4, "NODE")) + NO_SHM, "tp4", POOR,
        Code.SHM_FAILED,
    ),
    "shared memory too small where no peers are": (
        SERVE, FOUR_4090,
        matrix_text(alike(4, "PHB")) + peer_text(4, "CNS") + "shm  65536  0  65536  0% /dev/shm\n",
        "tp4", POOR, Code.SHM_FAILED,
    ),
}  # fmt: skip


def judged(name: str) -> PlanVerdict:
    workload, of, text, key, *_ = CASES[name]
    return plan_of(judge(workload, with_paste(of, text)), key)


@pytest.mark.parametrize("name", CASES)
def test_each_paste_has_its_word_and_its_finding(name: str) -> None:
    *_, word, code = CASES[name]
    found = judged(name)
    assert found.link.word is word
    codes = [one.code for one in found.link.findings]
    assert code in codes if code else codes == []


NEED = re.compile(
    r"\d+ [a-z-]+s? of [\d.]+ [kMG]B over \d+ GPUs per [a-z ]+: [\d.e+]+ [kMG]B sent by each GPU, "
    r"bound by (latency|bandwidth|latency and bandwidth)"
)


@pytest.mark.parametrize("name", CASES)
def test_each_says_the_need_why_and_what_it_costs_to_know(name: str) -> None:
    """Bytes, how often, what bounds it; the reason; the command, its price, the clearing result."""
    link = judged(name).link
    assert NEED.match(link.need)
    assert all(NEED.match(part.need) for part in link.parts)
    assert link.reason.endswith(".")
    if link.word is PROVEN:
        assert not link.settled_by
        return
    assert link.settled_by
    assert link.cleared_by.endswith(".")
    assert cost_to_settle(link, Decimal("19.92")) == Decimal("19.92")


def test_every_group_of_a_plan_has_its_own_need_and_word() -> None:
    verdict = judge(SERVE, with_paste(A100, BRIDGES))
    parts = plan_of(verdict, "tp2-pp4").link.parts
    assert [part.name for part in parts] == [
        "tensor parallel over 2 GPUs",
        "a pipeline over 4 GPUs",
    ]
    assert {part.word for part in parts} == {PROVEN}
    assert "all-reduces" in parts[0].need
    assert "send" in parts[1].need


@pytest.mark.parametrize("key", ["tp2", "dp8-shard8", "pp8"])
def test_a_share_of_a_gpu_joins_no_group(key: str) -> None:
    share = machine("A100", 1, gb=80, fractional=True)
    plans = judge(SERVE, share).plans
    assert {one.plan.gpus for one in plans} == {1}
    assert key not in {one.plan.key for one in plans}


def over_two(text: str, **facts: object) -> PlanVerdict:
    """A training that needs two machines, its sharding over both."""
    verdict = judge(TRAIN, with_paste(machine("H100", 8, gb=80, nodes=2, **facts), text))
    return next(one for one in verdict.plans if one.plan.nodes == 2 and one.plan.shard > 1)


@pytest.mark.parametrize(
    ("text", "word", "code"),
    [
        (SWITCHED, OPEN, Code.FABRIC_UNKNOWN),
        (
            SWITCHED + LOG.format("NET/Socket/0") + TWO_HOSTS.format("NET/Socket/0"),
            POOR,
            Code.FABRIC_OVER_TCP,
        ),
        (
            SWITCHED + LOG.format("NET/IB/0") + TWO_HOSTS.format("NET/IB/0"),
            OPEN,
            Code.FABRIC_STAGED,
        ),
        (SWITCHED + benchmark_text(16, [(1 << 18, 6.0), (8 << 30, 92.0)], 2), PROVEN, None),
        (SWITCHED + benchmark_text(16, [(8 << 30, 1.1)], 2), POOR, Code.LINK_INSUFFICIENT),
    ],
)
def test_the_network_between_machines(text: str, word: LinkWord, code: Code | None) -> None:
    link = over_two(text).link
    assert link.word is word
    codes = {one.code for one in link.findings}
    assert code in codes if code else not codes
    assert word is PROVEN or link.settled_by
    assert word is PROVEN or link.cleared_by


def rates(of: Machine, text: str, key: str) -> PlanVerdict:
    return plan_of(judge(SERVE, with_paste(of, text)), key)


LARGE_ONLY = [(1 << 30, 24.0), (8 << 30, 26.0)]
SMALL_ARE_SLOW = [(1 << 14, 0.001), (1 << 18, 0.02), (1 << 24, 0.9), (8 << 30, 26.0)]


@pytest.mark.parametrize(("points", "word"), [(LARGE_ONLY, PROVEN), (SMALL_ARE_SLOW, POOR)])
def test_a_peak_or_an_average_does_not_settle_what_the_plans_messages_need(
    points: list[tuple[int, float]], word: LinkWord
) -> None:
    """26 GB/s for gigabytes is enough; 0.02 GB/s at the plan's own messages is not."""
    text = matrix_text(alike(4, "NODE")) + benchmark_text(4, points)
    link = rates(machine("L40S", 4), text, "tp4").link
    assert link.word is word
    assert "at " in link.reason
    assert "are enough there" in link.reason


A6000 = machine("RTX A6000", 2)
SEATED_BADLY = matrix_text(alike(2, "NV3"))
HEALTHY = benchmark_text(2, [(1 << 16, 4.0), (1 << 24, 38.0), (8 << 30, 51.0)])


def test_a_healthy_benchmark_outweighs_a_suspicion_and_both_stay_in_sight() -> None:
    alone = rates(A6000, SEATED_BADLY, "tp2").link
    assert (alone.word, [one.code for one in alone.findings]) == (AGAINST, [Code.GPU_LINK_FAULTY])
    both = rates(A6000, SEATED_BADLY + HEALTHY, "tp2").link
    assert both.word is PROVEN
    (found,) = both.findings
    assert found.code is Code.LINK_SUSPECTED
    assert "the bridge of this card has 4" in found.sentence


@pytest.mark.parametrize(
    "slow",
    [
        benchmark_text(2, [(1 << 16, 0.02), (8 << 30, 22.0)]),
        benchmark_text(4, [(8 << 30, 51.0)], nodes=2),
    ],
)
def test_a_slow_benchmark_or_one_of_other_machines_outweighs_nothing(slow: str) -> None:
    link = rates(A6000, SEATED_BADLY + slow, "tp2").link
    assert link.word is AGAINST


def test_a_benchmark_of_a_part_clears_no_suspicion() -> None:
    """On four cards nothing says on which two of them it ran."""
    bridged = matrix_text(cells([(0, 1), (2, 3)], "NV3", "PHB", "PHB", ["0"] * 4))
    link = rates(machine("RTX A6000", 4), bridged + HEALTHY, "tp2").link
    assert link.word is AGAINST


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (machine, SWITCHED + ONE_DEAD_EACH + benchmark_text(8, [(1 << 18, 9.0), (8 << 30, 440.0)])),
        (
            lambda: machine("L40S", 4),
            matrix_text(alike(4, "NODE"))
            + NARROW_SLOT
            + benchmark_text(4, [(1 << 18, 6.0), (8 << 30, 24.0)]),
        ),
    ],
)
def test_other_suspicions_give_way_to_a_benchmark_of_the_whole_machine(
    made: Callable[[], Machine], text: str
) -> None:
    of = made()
    link = rates(of, text, f"tp{of.gpu_count.value}").link
    assert link.word is PROVEN
    assert Code.LINK_SUSPECTED in {one.code for one in link.findings}


EXPERTS = train("mixtral-8x7b-v0.1")


@pytest.mark.parametrize("workload", [SERVE, TRAIN, EXPERTS], ids=["serve", "train", "experts"])
def test_no_group_of_any_plan_is_without_its_need(workload: Workload) -> None:
    verdict = judge(workload, with_paste(machine("H100", 8, gb=80, nodes=2), SWITCHED))
    parts = [(one.plan.key, part) for one in verdict.plans for part in one.link.parts]
    assert parts
    assert [(key, part.name) for key, part in parts if not NEED.match(part.need)] == []


def test_shared_experts_are_held_to_the_link_as_tensor_groups_are() -> None:
    pairs = plan_of(judge(EXPERTS, with_paste(A100, BRIDGES)), "dp4-shard4-ep4").link
    experts = next(part for part in pairs.parts if part.name.startswith("expert parallel"))
    assert experts.word is POOR
    assert "alltoall_perf" in experts.settled_by
    spread = plan_of(judge(EXPERTS, with_paste(H100, SWITCHED)), "dp8-shard8-ep8").link
    assert {part.word for part in spread.parts} == {PROVEN}


DOCKER = "Filesystem  Size  Used Avail Use% Mounted on\nshm  64M  0  64M  0% /dev/shm\n"


@pytest.mark.parametrize(
    ("of", "key", "word", "code"),
    [
        (
            machine("H100", 8, gb=80, link=LinkClass.NVSWITCH),
            "tp8",
            LinkWord.CLAIMED,
            Code.SHM_SMALL,
        ),
        (machine("RTX 4090", 4, link=LinkClass.P2P_DISABLED), "pp4", POOR, Code.SHM_FAILED),
    ],
)
def test_a_small_shared_memory_is_judged_without_any_matrix(
    of: Machine, key: str, word: LinkWord, code: Code
) -> None:
    link = rates(of, DOCKER, key).link
    assert link.word is word
    assert code in {one.code for one in link.findings}


@pytest.mark.parametrize(
    ("points", "word"),
    [([(1 << 10, 0.06), (1 << 20, 18.0)], PROVEN), ([(1 << 20, 18.0), (1 << 30, 11.0)], OPEN)],
)
def test_a_machine_that_is_slow_as_a_whole_leaves_its_parts_open(
    points: list[tuple[int, float]], word: LinkWord
) -> None:
    """18 GB/s at 1 MiB is healthy on eight GPUs; at 1 GiB, 11 GB/s is not. TP 4 was not run."""
    link = rates(H100, SWITCHED + benchmark_text(8, points), "tp4").link
    assert link.word is word
    assert ("all 8 GPUs together reached only" in link.reason) is (word is OPEN)


def test_a_benchmark_of_small_messages_sets_no_link_speed() -> None:
    text = SWITCHED + benchmark_text(8, [(1 << 10, 0.06), (1 << 20, 18.0)])
    assert not with_paste(H100, text).link_bytes_per_s.known


def test_a_machine_of_amd_is_settled_by_amds_tools() -> None:
    of = machine("MI300X", 8, link=LinkClass.XGMI)
    link = plan_of(judge(SERVE, of), "tp8").link
    assert (link.word, link.settled_by) == (
        LinkWord.CLAIMED,
        "rocm-smi --showtopo; amd-smi topology",
    )
    seen = plan_of(judge(SERVE, with_paste(of, rocm_text(alike(8, "XGMI"), [0] * 8))), "tp4").link
    assert seen.settled_by.startswith("HIP_VISIBLE_DEVICES=0,1,2,3 all_reduce_perf")
    assert "rocm-smi --showtopo" in questions_for(of)[0]


ONE_OFF = joined("XGMI", "PCIE", "PCIE", [(0, 1, 3, 4, 5, 6, 7)], ("0",) * 8)
NO_XGMI = replace(ONE_OFF, faults=(Fault(FaultKind.OFF_FABRIC, (2,), "no XGMI"),))
HOLES = tuple(
    tuple(None if 2 in (one, to) and one != to else word for to, word in enumerate(row))
    for one, row in enumerate(ONE_OFF.matrix)
)


@pytest.mark.parametrize(
    ("look", "code"),
    [
        (NO_XGMI, Code.GPU_LINK_FAULTY),
        (replace(ONE_OFF, matrix=HOLES), Code.TOPOLOGY_PARTIAL),
        (
            replace(ONE_OFF, faults=(Fault(FaultKind.NO_PEER_ACCESS, (), "refused"),)),
            Code.NO_PEER_ACCESS,
        ),
    ],
)
def test_findings_about_amd_cards_name_amds_own_tools(look: Topology, code: Code) -> None:
    card = machine("MI300X", 8, topology=Fact(look, Grade.MEASURED))
    found = plan_of(judge(SERVE, card), "tp8").link
    assert code in [one.code for one in found.findings]
    assert "-smi" in found.cleared_by
    assert "nvidia" not in f"{found.settled_by} {found.cleared_by}"
