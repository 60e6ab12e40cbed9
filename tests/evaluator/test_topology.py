"""Words for links: the class decides whether it would do, the grade of the evidence the word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.facts import Fact, Grade, declared
from evaluator.findings import Code
from evaluator.gpus import specs
from evaluator.links import CARRIES_TENSOR, CLASS_FLOOR, links_told
from evaluator.machine import Conflict, LinkClass, Machine
from evaluator.plans import Plan
from evaluator.topology import LinkVerdict, LinkWord, judge_link, machine_findings
from tests.evaluator.machines import known, machine, measured

NVSWITCH, NVLINK = LinkClass.NVSWITCH, LinkClass.NVLINK
PAIRS, BRIDGE, XGMI = LinkClass.NVLINK_PAIRS, LinkClass.NVLINK_BRIDGE, LinkClass.XGMI
P2P, PCIE, NO_P2P = LinkClass.PCIE_P2P, LinkClass.PCIE, LinkClass.P2P_DISABLED

TP2, TP4, TP8 = Plan(tp=2), Plan(tp=4), Plan(tp=8)
FSDP2, FSDP8, DP8, PP8 = Plan(dp=2, shard=2), Plan(dp=8, shard=8), Plan(dp=8), Plan(pp=8)
PLANS = [TP2, TP4, TP8, FSDP2, FSDP8, DP8, PP8, Plan(tp=4, pp=2), Plan(tp=2, dp=4, shard=4)]

GOOD, OPEN, POOR = LinkWord.PROVEN, LinkWord.UNKNOWN, LinkWord.INSUFFICIENT


def word(plan: Plan, of: Machine) -> LinkWord:
    return judge_link(plan, of, "").word


def verdict(
    plan: Plan, link: Fact[LinkClass] | LinkClass | None = None, **facts: object
) -> LinkVerdict:
    return judge_link(plan, machine(link=link, **facts), "")


TABLE = [
    # class      TP 2   TP 4   TP 8   FSDP 8 DP 8  PP 8
    (NVSWITCH, [GOOD, GOOD, GOOD, GOOD, GOOD, GOOD]),
    (NVLINK, [GOOD, GOOD, GOOD, GOOD, GOOD, GOOD]),
    (PAIRS, [GOOD, POOR, POOR, OPEN, GOOD, GOOD]),
    (LinkClass.NVLINK_ISLANDS, [GOOD, POOR, POOR, OPEN, GOOD, GOOD]),
    (BRIDGE, [GOOD, POOR, POOR, OPEN, GOOD, GOOD]),
    (XGMI, [OPEN, OPEN, GOOD, GOOD, GOOD, GOOD]),
    (P2P, [OPEN, OPEN, OPEN, OPEN, GOOD, GOOD]),
    (PCIE, [OPEN, OPEN, POOR, OPEN, GOOD, GOOD]),
    (NO_P2P, [POOR, POOR, POOR, OPEN, GOOD, GOOD]),
]


@pytest.mark.parametrize(("link", "words"), TABLE, ids=[link for link, _ in TABLE])
def test_measured_classes_suit_groups_as_the_table_says(
    link: LinkClass, words: list[LinkWord]
) -> None:
    found = [verdict(plan, measured(link)).word for plan in (TP2, TP4, TP8, FSDP8, DP8, PP8)]
    assert found == words


def test_a_declared_link_that_would_do_is_claimed_and_names_what_settles_it() -> None:
    found = verdict(TP8, NVSWITCH)
    assert found.word is LinkWord.CLAIMED
    assert [one.code for one in found.findings] == [Code.LINK_CLAIMED]
    assert "topo -m" in found.settled_by


def test_an_unknown_link_is_unknown_and_never_blocks() -> None:
    assert {verdict(plan).word for plan in PLANS} == {LinkWord.UNKNOWN}
    assert [one.code for one in verdict(TP2).findings] == [Code.LINK_UNKNOWN]


def test_one_gpu_and_replicas_need_no_link() -> None:
    assert word(Plan(), machine()) is LinkWord.NOT_NEEDED
    assert word(Plan(replicas=8), machine()) is LinkWord.NOT_NEEDED
    assert word(Plan(replicas=4, tp=2), machine()) is LinkWord.UNKNOWN


@pytest.mark.parametrize("form", ["SXM5", "PCIe", "NVL", "OAM"])
def test_a_form_factor_never_sets_a_link(form: str) -> None:
    assert word(TP8, machine(form=form)) is LinkWord.UNKNOWN


@given(st.sampled_from(specs()), st.sampled_from(PLANS))
def test_no_card_of_the_list_sets_a_link(spec: object, plan: Plan) -> None:
    of = Machine(specs=(spec,), gpu_count=declared(8), gpu_model=declared("any"))  # type: ignore[arg-type]
    assert word(plan, of) is LinkWord.UNKNOWN


def test_a_claim_that_no_card_of_the_model_can_carry_is_not_taken() -> None:
    found = judge_link(TP2, machine("RTX 4090", link=NVLINK), "")
    assert found.word is LinkWord.UNKNOWN
    assert [one.code for one in found.findings] == [Code.IMPLAUSIBLE_LINK]


def test_nvlink_on_cards_that_only_take_bridges_may_join_no_more_than_pairs() -> None:
    of = machine("RTX A6000", link=NVLINK)
    assert word(TP2, of) is LinkWord.CLAIMED
    found = judge_link(TP4, of, "")
    assert [one.code for one in found.findings] == [Code.LINK_SCOPE_UNKNOWN]
    assert found.word is LinkWord.UNKNOWN


def test_a_measured_link_needs_no_permission_of_a_data_sheet() -> None:
    assert word(TP2, machine("RTX 4090", link=measured(NVLINK))) is LinkWord.PROVEN


def test_shards_between_tensor_pairs_leave_the_bridge() -> None:
    """TP 2 takes the pairs, so the two shard ranks of a group lie in different pairs."""
    assert verdict(FSDP2, measured(PAIRS)).word is LinkWord.PROVEN
    assert verdict(Plan(tp=2, dp=2, shard=2), measured(PAIRS)).word is LinkWord.UNKNOWN


def test_evidence_against_a_declaration_is_a_contradiction_where_it_matters() -> None:
    against = (Conflict("link", "measured nvlink_pairs", "declared nvswitch"),)
    found = verdict(TP8, measured(PAIRS), conflicts=against)
    assert found.word is LinkWord.CONTRADICTED
    assert "declared nvswitch" in found.reason
    assert verdict(TP2, measured(PAIRS), conflicts=against).word is LinkWord.PROVEN


def test_a_rate_below_any_healthy_one_contradicts_the_class() -> None:
    slow = known(CLASS_FLOOR[NVSWITCH] // 2, Grade.BENCHMARKED)
    found = verdict(TP8, measured(NVSWITCH), link_bytes_per_s=slow)
    assert found.word is LinkWord.CONTRADICTED


@pytest.mark.parametrize(
    ("rate", "expected"), [(CARRIES_TENSOR, LinkWord.PROVEN), (CARRIES_TENSOR // 10, POOR)]
)
def test_only_a_benchmark_settles_what_pcie_carries(rate: int, expected: LinkWord) -> None:
    of = {"link_bytes_per_s": known(rate, Grade.BENCHMARKED)}
    assert verdict(TP2, measured(P2P), **of).word is expected
    assert verdict(TP2, measured(P2P)).word is LinkWord.UNKNOWN


def test_a_good_benchmark_proves_what_was_only_declared_and_a_bad_one_does_not() -> None:
    good = known(350 * 10**9, Grade.BENCHMARKED)
    found = verdict(TP8, NVSWITCH, link_bytes_per_s=good)
    assert (found.word, found.grade) == (LinkWord.PROVEN, Grade.BENCHMARKED)
    assert "350 GB/s is benchmarked" in found.reason
    slow = known(CLASS_FLOOR[NVSWITCH] // 2, Grade.BENCHMARKED)
    assert verdict(TP8, NVSWITCH, link_bytes_per_s=slow).word is LinkWord.CONTRADICTED
    assert verdict(DP8, NVSWITCH, link_bytes_per_s=slow).word is LinkWord.CLAIMED


SPREAD = Plan(dp=16, shard=16, nodes=2)


@pytest.mark.parametrize(
    ("fabric", "grade", "expected", "code"),
    [
        (None, Grade.UNKNOWN, LinkWord.UNKNOWN, Code.FABRIC_UNKNOWN),
        ("8 x 400 Gb/s InfiniBand NDR", Grade.DECLARED, LinkWord.CLAIMED, Code.FABRIC_CLAIMED),
        ("8 x 400 Gb/s InfiniBand NDR", Grade.MEASURED, LinkWord.CLAIMED, Code.FABRIC_CLAIMED),
        ("RoCE 3.2 Tb/s", Grade.BENCHMARKED, LinkWord.PROVEN, None),
        ("100 GbE", Grade.DECLARED, LinkWord.UNKNOWN, Code.FABRIC_CLAIMED),
        ("25 GbE", Grade.DECLARED, LinkWord.INSUFFICIENT, Code.LINK_INSUFFICIENT),
        ("10Gbps", Grade.DECLARED, LinkWord.INSUFFICIENT, Code.LINK_INSUFFICIENT),
    ],
)
def test_several_machines_ask_for_a_fabric(
    fabric: str | None, grade: Grade, expected: LinkWord, code: Code | None
) -> None:
    found = verdict(SPREAD, measured(NVSWITCH), inter_node=known(fabric, grade))
    assert found.word is expected
    assert [one.code for one in found.findings] == ([code] if code else [])


def test_a_pipeline_and_data_parallel_bear_a_slow_fabric() -> None:
    slow = {"inter_node": declared("10 GbE")}
    for plan in (Plan(tp=8, pp=2, nodes=2), Plan(dp=16, nodes=2)):
        assert verdict(plan, measured(NVSWITCH), **slow).word is LinkWord.CLAIMED


def test_the_worst_group_of_a_plan_decides_and_every_finding_stays() -> None:
    found = verdict(Plan(tp=4, dp=4, shard=4, nodes=2))
    assert {one.code for one in found.findings} == {Code.LINK_UNKNOWN, Code.FABRIC_UNKNOWN}


@pytest.mark.parametrize(
    ("count", "link", "carries"),
    [
        (8, None, True),
        (8, NVSWITCH, True),
        (2, known(NVLINK, Grade.BENCHMARKED), False),
        (8, measured(PAIRS), False),
        (1, None, False),
        (None, None, False),
    ],
)
def test_every_multi_gpu_machine_carries_the_warning_until_it_is_measured(
    count: int | None, link: Fact[LinkClass] | LinkClass | None, carries: bool
) -> None:
    codes = [one.code for one in machine_findings(machine(count=count, link=link))]
    assert codes == ([Code.TOPOLOGY_NOT_VERIFIED] if carries else [])


ORDER = list(LinkWord)


@given(
    st.sampled_from(list(LinkClass)),
    st.sampled_from([*PLANS, SPREAD]),
    st.sampled_from(["H100", "RTX 4090", "RTX A6000", "MI300X"]),
)
def test_a_higher_grade_of_the_same_link_never_worsens_the_word(
    link: LinkClass, plan: Plan, model: str
) -> None:
    grades = (Grade.DECLARED, Grade.MEASURED, Grade.BENCHMARKED)
    words = [word(plan, machine(model, link=known(link, grade))) for grade in grades]
    stated_doubt = word(plan, machine(model, link=declared(link))) is LinkWord.UNKNOWN
    if not (stated_doubt and words[1] is LinkWord.INSUFFICIENT):
        assert [ORDER.index(one) for one in words] == sorted(
            (ORDER.index(one) for one in words), reverse=True
        )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("measured nvlink_pairs", "measured NVLink between pairs"),
        ("declared nvlink pairs", "declared NVLink between pairs"),
        ("pcie", "PCIe"),
        ("pcie_generation is measured 3", "pcie_generation is measured 3"),
        ("does_not_fit", "does_not_fit"),
    ],
)
def test_links_are_told_as_people_write_them(text: str, words: str) -> None:
    assert links_told(text) == words
