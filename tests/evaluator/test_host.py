from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.connections import Fault, FaultKind, Topology
from evaluator.facts import UNKNOWN, Grade, declared
from evaluator.findings import Code
from evaluator.host import (
    HostCounts,
    HostItem,
    HostWord,
    count,
    host_findings,
    host_items,
    offer_items,
    ram_finding,
)
from evaluator.jobs import Workload
from evaluator.machine import Availability, LinkClass, Machine
from evaluator.plans import Plan
from evaluator.prices import Basis, Quote, TimeUnit
from evaluator.states import host_bytes
from evaluator.units import GB
from tests.evaluator.machines import known, machine, measured, serve, train

WEIGHTS, ONE_GPU = 16 * GB, Plan()


def item(
    name: str, of: Machine, plan: Plan = ONE_GPU, workload: Workload | None = None
) -> HostWord:
    found = host_items(workload or serve(), plan, of, WEIGHTS)
    return next(one.word for one in found if one.name == name)


PLANS = [Plan(), Plan(tp=8), Plan(replicas=8), Plan(dp=16, shard=16, nodes=2), Plan(pp=2, nodes=2)]


@pytest.mark.parametrize("plan", PLANS)
def test_a_machine_of_which_nothing_is_known_fails_nothing(plan: Plan) -> None:
    jobs = (serve(), train(offload="params", checkpoint_bytes=10**12, dataset_bytes=10**12))
    for job in jobs:
        words = {one.word for one in host_items(job, plan, Machine(), None)}
        assert HostWord.FAIL not in words
        assert HostWord.UNKNOWN in words


ENOUGH = {
    "vcpus": 512,
    "ram_bytes": 8_000 * GB,
    "local_storage_bytes": 50_000 * GB,
    "persistent_storage": True,
    "pcie_generation": 5,
    "pcie_lanes": 16,
    "shm_bytes": 64 * GB,
    "power_limit_watts": 1_500,
    "virtual": False,
    "open_ports": 64,
    "download_bytes_per_s": GB,
    "driver_version": "590.44.01",
    "cuda_version": "13.0",
    "nccl_version": "2.28",
}
"""Of each attribute a value that suffices for every plan."""


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("fact", ENOUGH)
def test_a_fact_that_suffices_never_worsens_a_word(fact: str, plan: Plan) -> None:
    order = [HostWord.PASS, HostWord.UNKNOWN, HostWord.FAIL]
    for job in (serve(), train(offload="optimizer", checkpoint_bytes=10**12)):
        before = host_items(job, plan, machine(), WEIGHTS)
        after = host_items(job, plan, machine(**{fact: declared(ENOUGH[fact])}), WEIGHTS)
        assert [one.name for one in before] == [one.name for one in after]
        for one, other in zip(before, after, strict=True):
            assert order.index(other.word) <= order.index(one.word), one.name


def test_a_machine_of_which_all_is_known_and_enough_leaves_little_open() -> None:
    facts = {name: declared(value) for name, value in ENOUGH.items()}
    linked = machine(link=measured(LinkClass.NVSWITCH), **facts)
    for plan in PLANS[:3]:
        found = host_items(serve(), plan, linked, WEIGHTS)
        assert {one.word for one in found} == {HostWord.PASS}


@pytest.mark.parametrize(
    ("cores", "plan", "word"),
    [
        (None, Plan(tp=8), HostWord.UNKNOWN),
        (8, Plan(tp=8), HostWord.PASS),
        (7, Plan(tp=8), HostWord.FAIL),
        (7, Plan(), HostWord.PASS),
        (8, Plan(dp=16, shard=16, nodes=2), HostWord.PASS),
    ],
)
def test_every_working_gpu_wants_a_core(cores: int | None, plan: Plan, word: HostWord) -> None:
    assert item("vCPUs per GPU", machine(vcpus=declared(cores)), plan) is word


@pytest.mark.parametrize(
    ("ram", "word", "warned"),
    [
        (None, HostWord.UNKNOWN, False),
        (8 * GB, HostWord.UNKNOWN, True),
        (64 * GB, HostWord.PASS, False),
    ],
)
def test_ram_below_the_weights_warns_and_never_fails(
    ram: int | None, word: HostWord, warned: bool
) -> None:
    of = machine(ram_bytes=declared(ram))
    assert item("host RAM", of) is word
    found = [one.code for one in ram_finding(of, WEIGHTS)]
    assert found == ([Code.HOST_RAM_SMALL] if warned else [])


def test_peer_connectivity_passes_only_when_measured() -> None:
    name = "peer connectivity"
    assert item(name, machine(link=LinkClass.NVSWITCH), Plan(tp=8)) is HostWord.UNKNOWN
    assert item(name, machine(link=measured(LinkClass.NVSWITCH)), Plan(tp=8)) is HostWord.PASS
    assert item(name, machine(count=1)) is HostWord.PASS


def test_a_network_is_asked_for_only_between_machines() -> None:
    names = {one.name for one in host_items(serve(), Plan(), machine(), WEIGHTS)}
    assert "network between machines" not in names
    spread = Plan(dp=16, shard=16, nodes=2)
    declared_only = machine(inter_node=declared("InfiniBand"))
    benchmarked = machine(inter_node=known("InfiniBand", Grade.BENCHMARKED))
    assert item("network between machines", declared_only, spread) is HostWord.UNKNOWN
    assert item("network between machines", benchmarked, spread) is HostWord.PASS


@pytest.mark.parametrize(
    ("disk", "persistent", "word"),
    [
        (None, None, HostWord.UNKNOWN),
        (100 * GB, None, HostWord.PASS),
        (10 * GB, None, HostWord.UNKNOWN),
        (10 * GB, True, HostWord.UNKNOWN),
        (10 * GB, False, HostWord.FAIL),
    ],
)
def test_a_small_disk_fails_only_where_no_other_storage_can_be(
    disk: int | None, persistent: bool | None, word: HostWord
) -> None:
    of = machine(local_storage_bytes=declared(disk), persistent_storage=declared(persistent))
    assert item("local storage", of) is word


def test_checkpoints_want_storage_that_outlives_the_rental() -> None:
    gone = machine(persistent_storage=declared(False))
    job = train(checkpoint_bytes=10**12)
    assert item("persistent storage", gone, workload=job) is HostWord.FAIL
    assert item("persistent storage", gone) is HostWord.PASS
    assert item("persistent storage", machine(), workload=job) is HostWord.UNKNOWN


def test_all_three_versions_must_be_stated() -> None:
    stated = {"driver_version": declared("570"), "cuda_version": declared("12.8")}
    assert item("driver, CUDA, NCCL", machine(**stated)) is HostWord.UNKNOWN
    assert item("driver, CUDA, NCCL", machine(**stated, nccl_version=declared("2.26"))) is (
        HostWord.PASS
    )


def quote(basis: Basis) -> Quote:
    return Quote(Decimal(2), "USD", TimeUnit.HOUR, basis)


@pytest.mark.parametrize(
    ("price", "word"),
    [
        (None, HostWord.UNKNOWN),
        (quote(Basis.UNKNOWN), HostWord.UNKNOWN),
        (quote(Basis.GPU), HostWord.PASS),
        (quote(Basis.MACHINE), HostWord.PASS),
    ],
)
def test_the_basis_of_the_rate_is_an_item(price: Quote | None, word: HostWord) -> None:
    item = offer_items(price, Availability.UNKNOWN, None, 1)[0]
    assert item.word is word
    assert "gpu" not in item.reason


@pytest.mark.parametrize(
    ("says", "quantity", "rentals", "word"),
    [
        (Availability.AVAILABLE, None, 1, HostWord.PASS),
        (Availability.AVAILABLE, None, 2, HostWord.UNKNOWN),
        (Availability.AVAILABLE, 2, 2, HostWord.PASS),
        (Availability.AVAILABLE, 1, 2, HostWord.FAIL),
        (Availability.SOLD_OUT, None, 1, HostWord.FAIL),
        (Availability.UNKNOWN, None, 1, HostWord.UNKNOWN),
        (Availability.WAITLIST, None, 1, HostWord.UNKNOWN),
        (Availability.LIMITED, 4, 1, HostWord.UNKNOWN),
    ],
)
def test_the_whole_configuration_must_be_had_at_once(
    says: Availability, quantity: int | None, rentals: int, word: HostWord
) -> None:
    assert offer_items(None, says, quantity, rentals)[1].word is word


def test_counts_are_three_numbers() -> None:
    items = [HostItem("a", HostWord.PASS, ""), HostItem("b", HostWord.UNKNOWN, "")]
    assert count(items) == HostCounts(passed=1, failed=0, unknown=1)


def test_one_finding_names_all_that_is_not_stated() -> None:
    (found,) = host_findings(
        [HostItem("PCIe", HostWord.UNKNOWN, ""), HostItem("x", HostWord.PASS, "")]
    )
    assert found.sentence == "Not stated: PCIe."
    assert host_findings([HostItem("x", HostWord.PASS, "")]) == ()


def test_gpu_count_and_memory_are_both_wanted() -> None:
    name = "GPU count and memory"
    assert item(name, machine()) is HostWord.PASS
    assert item(name, machine(count=None)) is HostWord.UNKNOWN
    assert item(name, machine(usable_bytes_per_gpu=UNKNOWN)) is HostWord.UNKNOWN


def test_pcie_is_told_with_its_grade() -> None:
    found = host_items(serve(), Plan(), machine(pcie_generation=declared(5)), WEIGHTS)
    assert "PCIe 5, declared; the width is not stated." in {one.reason for one in found}


def seen(kind: FaultKind, gpus: tuple[int, ...] = ()) -> Topology:
    return Topology(gpus=8, faults=(Fault(kind, gpus),), checked=(kind,))


def all_items(of: Machine, plan: Plan, workload: Workload | None = None) -> tuple[HostItem, ...]:
    return host_items(workload or serve(), plan, of, WEIGHTS)


def test_every_item_that_the_checklist_promises_is_there() -> None:
    names = {one.name for one in all_items(machine(), Plan(dp=16, shard=16, nodes=2), train())}
    names |= {one.name for one in offer_items(None, Availability.UNKNOWN, None, 1)}
    assert names == {
        "GPU count and memory",
        "local storage",
        "persistent storage",
        "driver, CUDA, NCCL",
        "GPU against the engine",
        "number formats",
        "power limit",
        "peer connectivity",
        "vCPUs per GPU",
        "host RAM",
        "PCIe",
        "shared memory",
        "whole GPUs",
        "virtualisation",
        "ports",
        "network between machines",
        "rate basis",
        "availability of the whole",
    }


@pytest.mark.parametrize("plan", [Plan(), Plan(tp=8), Plan(replicas=8), Plan(dp=16, nodes=2)])
@pytest.mark.parametrize("workload", [serve(), train(checkpoint_bytes=10**12, offload="params")])
def test_what_does_not_pass_says_what_would_mend_it(plan: Plan, workload: Workload) -> None:
    poor = machine(
        "P100",
        vcpus=declared(1),
        ram_bytes=declared(GB),
        local_storage_bytes=declared(GB),
        persistent_storage=declared(False),
        driver_version=declared("390.46"),
        cuda_version=declared("12.8"),
        shm_bytes=declared(64 * 10**6),
    )
    for of in (poor, machine(), Machine()):
        for one in all_items(of, plan, workload):
            assert one.remedy or one.word is HostWord.PASS, one.name


def test_facts_of_an_item_are_attributes_of_a_machine() -> None:
    for one in all_items(machine(), Plan(dp=16, nodes=2), train()):
        assert all(hasattr(Machine(), name) for name in one.facts), one.name
        assert one.facts


def test_a_grade_goes_with_the_word() -> None:
    found = {one.name: one.grade for one in all_items(machine(vcpus=declared(64)), Plan(tp=8))}
    assert found["vCPUs per GPU"] is Grade.DECLARED
    assert found["host RAM"] is Grade.UNKNOWN


def test_a_narrow_slot_fails_only_a_plan_that_cannot_leave_it_out() -> None:
    of = machine(topology=known(seen(FaultKind.NARROW_SLOT, (3,))))
    assert item("PCIe", of, Plan(tp=8)) is HostWord.FAIL
    assert item("PCIe", of, Plan(tp=4)) is HostWord.UNKNOWN
    assert item("PCIe", of, Plan(replicas=8)) is HostWord.UNKNOWN
    full = replace(of, pcie_generation=declared(5))
    assert item("PCIe", full, Plan(tp=4)) is HostWord.PASS


def test_slices_fail_a_plan_whose_gpus_must_reach_each_other() -> None:
    of = machine(topology=known(seen(FaultKind.SLICED)))
    assert item("whole GPUs", of, Plan(tp=2)) is HostWord.FAIL
    assert item("whole GPUs", of) is HostWord.UNKNOWN
    assert item("whole GPUs", machine(fractional=True)) is HostWord.UNKNOWN
    assert item("whole GPUs", machine()) is HostWord.PASS


@pytest.mark.parametrize(
    ("size", "plan", "word"),
    [
        (None, Plan(tp=2), HostWord.UNKNOWN),
        (64 * 2**20, Plan(tp=2), HostWord.UNKNOWN),
        (8 * 2**30, Plan(tp=2), HostWord.PASS),
        (None, Plan(), HostWord.PASS),
    ],
)
def test_shared_memory_is_asked_where_ranks_meet(
    size: int | None, plan: Plan, word: HostWord
) -> None:
    assert item("shared memory", machine(shm_bytes=declared(size)), plan) is word


def test_a_low_power_limit_leaves_the_speed_open() -> None:
    assert item("power limit", machine(form="SXM")) is HostWord.UNKNOWN
    assert item("power limit", machine(form="SXM", power_limit_watts=declared(700))) is (
        HostWord.PASS
    )
    assert item("power limit", machine(form="SXM", power_limit_watts=declared(400))) is (
        HostWord.UNKNOWN
    )


def test_a_guest_may_hide_the_links_that_a_plan_needs() -> None:
    guest, bare = machine(virtual=declared(True)), machine(virtual=declared(False))
    assert item("virtualisation", guest, Plan(tp=2)) is HostWord.UNKNOWN
    assert item("virtualisation", bare, Plan(tp=2)) is HostWord.PASS
    assert item("virtualisation", guest) is HostWord.PASS


def test_each_server_wants_a_port() -> None:
    assert item("ports", machine(), Plan(replicas=4)) is HostWord.UNKNOWN
    assert item("ports", machine(open_ports=declared(4)), Plan(replicas=4)) is HostWord.PASS
    assert item("ports", machine(open_ports=declared(1)), Plan(replicas=4)) is HostWord.UNKNOWN
    assert item("ports", machine(), workload=train()) is HostWord.PASS


def test_pinned_buffers_come_on_top_of_what_is_offloaded() -> None:
    job, plan = train(offload="optimizer"), Plan(dp=8, shard=8)
    kept = host_bytes(job, plan)
    assert kept
    assert item("host RAM", machine(ram_bytes=declared(kept - 1)), plan, job) is HostWord.FAIL
    assert item("host RAM", machine(ram_bytes=declared(kept)), plan, job) is HostWord.UNKNOWN
    assert item("host RAM", machine(ram_bytes=declared(2 * kept)), plan, job) is HostWord.PASS


def test_the_disk_says_how_long_the_first_step_takes() -> None:
    (assumed,) = [one for one in all_items(machine(), ONE_GPU) if one.name == "local storage"]
    assert "minutes to the first step at an assumed download rate" in assumed.reason
    quick = machine(download_bytes_per_s=declared(10**9), local_storage_bytes=declared(10**12))
    (stated,) = [one for one in all_items(quick, ONE_GPU) if one.name == "local storage"]
    assert "0 to 1 minutes to the first step at the stated download rate" in stated.reason


SIZES = st.integers(1, 10**13)


@given(SIZES, SIZES, st.sampled_from([Plan(), Plan(tp=8), Plan(dp=8, shard=8)]))
def test_more_ram_or_disk_never_makes_a_word_worse(one: int, other: int, plan: Plan) -> None:
    order = [HostWord.PASS, HostWord.UNKNOWN, HostWord.FAIL]
    small, large = sorted((one, other))
    jobs = (serve(), train(offload="optimizer", dataset_bytes=10**11))
    for fact, name in (("ram_bytes", "host RAM"), ("local_storage_bytes", "local storage")):
        for job in jobs:
            words = [
                item(
                    name,
                    machine(persistent_storage=declared(False), **{fact: declared(size)}),
                    plan,
                    job,
                )
                for size in (small, large)
            ]
            assert order.index(words[1]) <= order.index(words[0])


def test_a_checkpoint_of_a_size_that_nobody_stated_leaves_a_question() -> None:
    """14 bytes for each of 8 billion parameters: 112 GB beside 16 GB of weights."""
    small, large = (
        machine(local_storage_bytes=declared(50 * GB)),
        machine(local_storage_bytes=declared(200 * GB)),
    )
    alone = replace(small, persistent_storage=declared(False))
    assert item("local storage", small, workload=train()) is HostWord.UNKNOWN
    assert item("local storage", alone, workload=train()) is HostWord.UNKNOWN
    assert item("local storage", large, workload=train()) is HostWord.PASS
    assert item("local storage", small, workload=train(checkpoint_bytes=0)) is HostWord.PASS
    assert item("local storage", small) is HostWord.PASS
