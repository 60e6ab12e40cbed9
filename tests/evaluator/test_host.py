from __future__ import annotations

from decimal import Decimal

import pytest

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
from evaluator.units import GB
from tests.evaluator.machines import known, machine, measured, serve, train

WEIGHTS, ONE_GPU = 16 * GB, Plan()


def item(
    name: str, of: Machine, plan: Plan = ONE_GPU, workload: Workload | None = None
) -> HostWord:
    found = host_items(workload or serve(), plan, of, WEIGHTS)
    return next(one.word for one in found if one.name == name)


def test_a_machine_of_which_nothing_is_known_fails_nothing() -> None:
    words = {one.word for one in host_items(serve(), Plan(nodes=2, pp=2), Machine(), None)}
    assert HostWord.FAIL not in words
    assert HostWord.UNKNOWN in words


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
    assert offer_items(price, Availability.UNKNOWN, None, 1)[0].word is word


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
    assert "PCIe 5, declared." in {one.reason for one in found}
