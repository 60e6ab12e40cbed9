from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.findings import Code
from evaluator.plans import (
    Kind,
    Plan,
    machines_to_try,
    narrowness,
    plans_of,
    refusal_of,
)
from tests.evaluator.machines import serve, train, with_shape

PLANS = st.builds(
    Plan,
    tp=st.sampled_from([1, 2, 4, 8]),
    pp=st.sampled_from([1, 2, 4]),
    replicas=st.integers(1, 4),
)


@pytest.mark.parametrize(
    ("plan", "label", "key"),
    [
        (Plan(), "one GPU", "one"),
        (Plan(tp=4, pp=2), "TP 4 × PP 2", "tp4-pp2"),
        (Plan(dp=16, shard=16, nodes=2), "FSDP over 16 GPUs on 2 machines", "dp16-shard16-nodes2"),
        (Plan(replicas=8), "8 replicas", "replicas8"),
        (Plan(tp=2, replicas=4), "4 replicas of TP 2", "tp2-replicas4"),
        (Plan(dp=8), "DP over 8 GPUs", "dp8"),
        (Plan(tp=2, dp=4, shard=4), "TP 2 × FSDP 4", "tp2-dp4-shard4"),
        (
            Plan(dp=16, shard=8, nodes=2),
            "FSDP 8 × DP 2 on 2 machines",
            "dp16-shard8-nodes2",
        ),
    ],
)
def test_a_plan_has_a_label_for_people_and_a_key_for_addresses(
    plan: Plan, label: str, key: str
) -> None:
    assert (plan.label, plan.key) == (label, key)


@given(st.sets(PLANS, max_size=20))
def test_no_two_plans_share_a_key(plans: set[Plan]) -> None:
    assert len({plan.key for plan in plans}) == len(plans)


def test_every_kind_says_why_it_stands_where_it_does() -> None:
    plans = [
        Plan(),
        Plan(replicas=2),
        Plan(dp=2),
        Plan(dp=2, shard=2),
        Plan(cp=2, shard=2),
        Plan(tp=2),
        Plan(tp=2, ep=2),
        Plan(pp=2),
        Plan(tp=2, pp=2),
    ]
    assert [plan.kind for plan in plans] == list(Kind)
    assert len({plan.reason for plan in plans}) == len(Kind)


@pytest.mark.parametrize("gpus", [1, 2, 3, 4, 6, 8, 16])
def test_plans_come_narrowest_first_and_fit_the_machine(gpus: int) -> None:
    for workload in (serve(), train()):
        plans = plans_of(workload, gpus).plans
        assert plans[0] == Plan()
        assert [plan.gpus for plan in plans] == sorted(plan.gpus for plan in plans)
        assert max(plan.gpus for plan in plans) <= gpus
        assert len(set(plans)) == len(plans)


def test_of_two_plans_of_equal_size_the_one_that_asks_less_of_links_is_first() -> None:
    sized = [plan.kind for plan in plans_of(train(), 8).plans if plan.gpus == 8]
    assert sized == sorted(sized)
    assert sized[0] is Kind.DATA
    serving = [plan.kind for plan in plans_of(serve(), 8).plans if plan.gpus == 8]
    assert serving[0] is Kind.REPLICAS


def test_serving_never_proposes_data_parallel_and_training_never_replicas() -> None:
    assert all(plan.dp == 1 for plan in plans_of(serve(), 8).plans)
    assert all(plan.replicas == 1 for plan in plans_of(train(), 8).plans)


@pytest.mark.parametrize("nodes", [2, 3, 8])
def test_a_tensor_group_never_leaves_a_machine(nodes: int) -> None:
    for plan in plans_of(train(), 4, [nodes]).plans:
        assert plan.tp <= 4
        assert plan.nodes == nodes
        assert plan.gpus == 4 * nodes


def test_one_gpu_machines_are_joined_by_sharding_or_by_a_pipeline() -> None:
    labels = {plan.label for plan in plans_of(train(), 1, [4]).plans}
    assert "FSDP over 4 GPUs on 4 machines" in labels
    assert "PP 4 on 4 machines" in labels


def test_stages_over_machines_keep_the_widest_tensor_groups_that_the_model_allows() -> None:
    ten = serve()
    ten = with_shape(ten, attention=replace(ten.model.attention, heads=20, kv_heads=4))
    labels = {plan.label for plan in plans_of(ten, 8, [2]).plans}
    assert "TP 4 × PP 4 on 2 machines" in labels
    assert "TP 8 × PP 2 on 2 machines" in {plan.label for plan in plans_of(serve(), 8, [2]).plans}


def test_heads_that_cannot_be_shared_are_named_with_the_degree_that_can() -> None:
    refused = {one.plan.tp: one.finding for one in plans_of(serve(), 6).refused if one.plan.pp == 1}
    assert refused[3].sentence == "64 attention heads cannot be divided by 3."
    assert refused[6].remedy == "Use a tensor parallel degree of 4."


def test_kv_heads_are_copied_when_there_are_more_ranks_than_heads() -> None:
    few = serve()
    few = with_shape(few, attention=replace(few.model.attention, kv_heads=2))
    assert refusal_of(few, Plan(tp=8)) is None


def test_kv_heads_that_neither_divide_nor_copy_are_refused() -> None:
    odd = serve()
    odd = with_shape(odd, attention=replace(odd.model.attention, heads=48, kv_heads=6))
    found = refusal_of(odd, Plan(tp=4))
    assert found is not None
    assert "6 KV heads" in found.sentence
    # 3 would divide the heads, but not the inner size of 28672.
    assert found.remedy == "Use a tensor parallel degree of 2."


def test_groups_of_quantised_weights_stay_whole() -> None:
    """Qwen2.5 72B has an inner size of 29568 = 231 x 128, which 8 ranks cannot share."""
    model = with_shape(serve(weights_format="awq-int4"), mlp_size=29568)
    found = refusal_of(model, Plan(tp=8))
    assert found is not None
    assert "29568 in groups of 128" in found.sentence
    assert refusal_of(with_shape(serve(), mlp_size=29568), Plan(tp=8)) is None


def test_training_wants_equal_stages_and_serving_takes_uneven_ones() -> None:
    found = refusal_of(train(), Plan(pp=6))
    assert found is not None
    assert found.code is Code.PLAN_INDIVISIBLE
    assert found.remedy == "Use 4 pipeline stages."
    assert refusal_of(serve("llama-3.1-8b"), Plan(pp=6)) is None


@pytest.mark.parametrize("task", ["serve", "train"])
def test_a_model_without_known_dimensions_still_gets_its_one_gpu_plan(task: str) -> None:
    unknown = serve() if task == "serve" else train()
    none = replace(unknown.model.attention, heads=0, kv_heads=0)
    unknown = with_shape(unknown, layers=0, hidden=0, mlp_size=0, attention=none)
    assert plans_of(unknown, 8).plans[0] == Plan()


def test_more_stages_than_layers_are_always_refused() -> None:
    assert refusal_of(serve("llama-3.1-8b"), Plan(pp=33)) is not None


def test_a_global_batch_must_divide_over_the_ranks() -> None:
    found = refusal_of(train(global_batch=32), Plan(dp=24, shard=24, nodes=3))
    assert found is not None
    assert found.remedy == "Set global_batch to 48."
    assert refusal_of(train(global_batch=48), Plan(dp=24, shard=24, nodes=3)) is None


@given(st.integers(2, 24), st.sampled_from(["llama-3.1-8b", "llama-3.1-70b"]))
def test_the_change_that_a_refusal_names_is_admitted(tp: int, model: str) -> None:
    workload = serve(model)
    found = refusal_of(workload, Plan(tp=tp))
    if found:
        degree = int(found.remedy.rstrip(".").split()[-1])
        assert degree < tp
        assert refusal_of(workload, Plan(tp=degree)) is None


@pytest.mark.parametrize(
    ("nodes", "most", "expected"),
    [(1, 4, [2, 3, 4]), (2, 8, [2, 4, 6, 8]), (4, 8, [2, 3, 4, 8]), (16, 8, list(range(2, 17)))],
)
def test_machines_are_added_in_whole_rentals(nodes: int, most: int, expected: list[int]) -> None:
    assert machines_to_try(nodes, most) == expected


@given(PLANS, PLANS)
def test_fewer_gpus_are_always_narrower(one: Plan, other: Plan) -> None:
    if one.gpus < other.gpus:
        assert narrowness(one) < narrowness(other)
