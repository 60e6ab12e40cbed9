"""Readings become facts of one machine; what a text does not prove stays unknown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.connections import Fault, FaultKind, Topology, from_plain, merge, to_plain
from evaluator.evidence import (
    Format,
    NvlinkStatus,
    PcieLink,
    Reading,
    Sign,
    Standing,
    Transport,
    read_evidence,
)
from evaluator.facts import Grade
from evaluator.machine import LinkClass
from evaluator.sightings import Sighting, link_of, mismatches, sight, topology_of
from evaluator.units import GB
from tests.evaluator.topologies import joined, pairs_of, uniform

SAMPLES = Path(__file__).parent.parent / "samples" / "evidence"


def sample(name: str) -> Sighting:
    return sight(read_evidence((SAMPLES / f"{name}.txt").read_text("utf-8")))


def facts(seen: Sighting) -> dict[str, object]:
    return {one.name: one.value for one in seen.facts}


def test_pairs_give_their_islands_nodes_and_nearest_nics() -> None:
    topology = sample("8-gpus-nvlink-pairs").topology
    assert topology.islands == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert (topology.pairs_only, topology.all_to_all) == (True, False)
    assert topology.numa == ("0",) * 4 + ("1",) * 4
    assert topology.nearest_nic[:3] == ("NIC0 PIX", "NIC0 PIX", "NIC0 NODE")
    assert topology.best_pair(range(8)) == (0, 1)
    assert topology.between(*topology.worst_pair(range(8))) == "SYS"


@pytest.mark.parametrize(
    ("topology", "link"),
    [
        (uniform(8, "NV18"), LinkClass.NVLINK),
        (uniform(8, "XGMI"), LinkClass.XGMI),
        (joined("NV12", "PHB", "SYS", [(0, 1), (2, 3)], ("0",) * 4), LinkClass.NVLINK_PAIRS),
        (joined("NV2", "PHB", "SYS", [(0, 1, 2, 3)], ("0",) * 5), LinkClass.NVLINK_ISLANDS),
        (uniform(4, "PHB"), LinkClass.PCIE),
        (replace(uniform(2, "PIX"), peer=((True, True),) * 2), LinkClass.PCIE_P2P),
        (replace(uniform(2, "PIX"), peer=((True, False),) * 2), LinkClass.P2P_DISABLED),
        (pairs_of(3, {(0, 1): "NV4"}), None),
        (Topology(gpus=1, matrix=(("X",),)), None),
    ],
)
def test_the_machine_has_one_word_only_where_every_pair_was_seen(
    topology: Topology, link: LinkClass | None
) -> None:
    assert link_of(topology) is link


def test_a_benchmark_is_kept_by_size_and_the_largest_message_is_the_rate() -> None:
    seen = sight(
        read_evidence(
            "\n".join(
                (SAMPLES / f"{name}.txt").read_text("utf-8")
                for name in ("8-gpus-nvswitch", "8-gpus-all-reduce")
            )
        )
    )
    assert facts(seen)["link_bytes_per_s"] == round(477.22 * GB)
    assert {rate.message_bytes for rate in seen.topology.rates} == {1 << 20, 1 << 30, 1 << 33}
    grades = {one.name: one.grade for one in seen.facts}
    assert grades["link_bytes_per_s"] is Grade.BENCHMARKED
    assert grades["link"] is Grade.MEASURED


def test_a_cut_matrix_names_no_link_and_leaves_pairs_unknown() -> None:
    seen = sample("8-gpus-cut")
    assert "link" not in facts(seen)
    assert seen.topology.all_to_all is None
    assert not seen.topology.whole


def reading(**fields: object) -> Reading:
    return Reading(format=Format.SMI_QUERY, **fields)  # type: ignore[arg-type]


FAULTS = [
    (reading(signs=frozenset({Sign.MIG_MODE})), FaultKind.SLICED),
    (reading(mig_enabled=True), FaultKind.SLICED),
    (reading(signs=frozenset({Sign.DEV_SHM_TOO_SMALL})), FaultKind.SHM_FAILED),
    (reading(shared_memory_bytes=64 << 20), FaultKind.SMALL_SHM),
    (reading(signs=frozenset({Sign.INTER_NODE_OVER_TCP})), FaultKind.TCP_BETWEEN),
    (reading(signs=frozenset({Sign.RDMA_WITHOUT_GPUDIRECT})), FaultKind.NO_GPUDIRECT),
    (reading(signs=frozenset({Sign.P2P_UNUSABLE})), FaultKind.NO_PEER_ACCESS),
    (reading(transports=(Transport("SHM", 16),)), FaultKind.NO_PEER_ACCESS),
    (reading(fabric_state="In Progress"), FaultKind.FABRIC_MANAGER),
    (reading(nvlinks=(NvlinkStatus(3, None, 10, (4, 5)),)), FaultKind.INACTIVE_LINKS),
    (reading(pcie=(PcieLink(2, width_max=16, width_now=4),)), FaultKind.NARROW_SLOT),
    (reading(slow_gpus=(5,)), FaultKind.SLOW_GPU),
    (reading(matrix=pairs_of(4, {(0, 1): "NV4", (0, 2): "NV4", (1, 2): "NV4", (0, 3): "SYS",
        (1, 3): "SYS", (2, 3): "SYS"}).matrix), FaultKind.OFF_FABRIC),
]  # fmt: skip


@pytest.mark.parametrize(("shown", "kind"), FAULTS)
def test_each_fault_is_taken_from_what_shows_it(shown: Reading, kind: FaultKind) -> None:
    topology = topology_of(shown)
    assert [fault.kind for fault in topology.faults] == [kind]
    assert merge([topology, topology]).faults == topology.faults


@pytest.mark.parametrize(
    "healthy",
    [
        reading(fabric_state="Completed / Success"),
        reading(fabric_state="N/A"),
        reading(transports=(Transport("P2P", 8), Transport("SHM", 8))),
        reading(nvlinks=(NvlinkStatus(0, None, 18),)),
        reading(pcie=(PcieLink(0, width_max=16, width_now=16),)),
        reading(mig_enabled=False),
    ],
)
def test_a_healthy_output_shows_no_fault(healthy: Reading) -> None:
    assert topology_of(healthy).faults == ()


def test_a_fault_stands_until_a_newer_output_could_show_it_and_does_not() -> None:
    faulty = topology_of(reading(fabric_state="In Progress"))
    other, mended = (
        topology_of(reading(mig_enabled=False)),
        topology_of(reading(fabric_state="Completed")),
    )
    assert merge([other, faulty]).of_kind(FaultKind.FABRIC_MANAGER)
    assert not merge([mended, other, faulty]).of_kind(FaultKind.FABRIC_MANAGER)


SLOTS = tuple(PcieLink(gpu, width_max=16, width_now=16) for gpu in range(4))
SILENT = [
    (reading(transports=()), FaultKind.SHM_FAILED),
    (reading(transports=()), FaultKind.TCP_BETWEEN),
    (reading(transports=(Transport("P2P", 8),)), FaultKind.TCP_BETWEEN),
    (reading(transports=(Transport("NET/IB/GDRDMA", 8),)), FaultKind.NO_PEER_ACCESS),
    (reading(gpu_count=8, pcie=SLOTS), FaultKind.NARROW_SLOT),
    (reading(gpu_count=4, pcie=SLOTS, standing=Standing.PARTIAL), FaultKind.NARROW_SLOT),
    (reading(gpu_count=4, pcie=(PcieLink(0), *SLOTS[1:])), FaultKind.NARROW_SLOT),
    (reading(gpu_count=8, nvlinks=(NvlinkStatus(0, None, 18),)), FaultKind.INACTIVE_LINKS),
    (reading(gpu_count=1, nvlinks=(NvlinkStatus(0, None, None),)), FaultKind.INACTIVE_LINKS),
    (reading(gpu_count=2, matrix=(("X", None), (None, "X"))), FaultKind.OFF_FABRIC),
]


@pytest.mark.parametrize(("shown", "kind"), SILENT)
def test_what_an_output_does_not_show_clears_no_fault(shown: Reading, kind: FaultKind) -> None:
    assert kind not in topology_of(shown).checked
    older = Topology(faults=(Fault(kind, (3,), "seen before"),), checked=(kind,))
    assert merge([topology_of(shown), older]).of_kind(kind)


def test_a_cut_output_that_shows_one_fault_leaves_that_of_another_gpu() -> None:
    shown = topology_of(reading(gpu_count=8, pcie=(PcieLink(0, width_max=16, width_now=8),)))
    older = Topology(gpus=8, faults=(Fault(FaultKind.NARROW_SLOT, (3,), "x4 of x16"),))
    found = merge([shown, older]).of_kind(FaultKind.NARROW_SLOT)
    assert [fault.gpus for fault in found] == [(0,), (3,)]


def test_slots_of_all_gpus_clear_a_narrow_one() -> None:
    assert FaultKind.NARROW_SLOT in topology_of(reading(gpu_count=4, pcie=SLOTS)).checked


@pytest.mark.parametrize(
    ("count", "model", "words"),
    [
        (8, "H100", ()),
        (None, None, ()),
        (4, "H100", ("8 GPUs are in the output and 4 in the listing",)),
        (8, "A100", ("H100 is in the output and A100 in the listing",)),
    ],
)
def test_a_paste_of_another_machine_is_said_to_be_one(
    count: int | None, model: str | None, words: tuple[str, ...]
) -> None:
    assert mismatches(sample("8-gpus-nvlink-pairs"), count, model) == words


def test_a_topology_survives_storage() -> None:
    for name in ("8-gpus-nvlink-pairs", "8-gpus-all-reduce", "8-gpus-cut"):
        topology = sample(name).topology
        assert from_plain(to_plain(topology)) == topology
    faulty = Topology(gpus=2, faults=(Fault(FaultKind.SLOW_GPU, (1,), "slow"),))
    assert from_plain(to_plain(faulty)) == faulty


def test_a_description_of_a_machine_type_declares() -> None:
    described = Reading(
        format=Format.NCCL_XML,
        signs=frozenset({Sign.STATIC_DESCRIPTION}),
        gpu_count=2,
        matrix=uniform(2, "NV18").matrix,
    )
    assert {one.grade for one in sight([described]).facts} == {Grade.DECLARED}


def matrix_of(word: str) -> str:
    return f"\tGPU0\tGPU1\nGPU0\t X \t{word}\nGPU1\t{word}\t X \n\n"


@pytest.mark.parametrize("words", [("NV4", "SYS"), ("SYS", "NV4")])
def test_two_matrices_that_differ_are_a_conflict_whichever_stands_first(
    words: tuple[str, str],
) -> None:
    seen = sight(read_evidence("".join(map(matrix_of, words))))
    (told,) = mismatches(seen, 2, None)
    assert told == "GPUs 0 and 1 are {} in one output and {} in another".format(*words)


def test_the_same_matrix_twice_is_no_conflict() -> None:
    assert mismatches(sight(read_evidence(matrix_of("NV4") * 2)), 2, None) == ()


def test_a_link_of_no_lanes_is_no_link() -> None:
    assert "link" not in facts(sight(read_evidence(matrix_of("NV0"))))


def test_what_the_host_checklist_asks_is_taken_from_a_paste() -> None:
    shown = reading(
        pcie=(PcieLink(0, generation_max=5, width_max=16, width_now=16),),
        power_limit_w=(700.0, 500.0),
        shared_memory_bytes=8 << 30,
        virtual=False,
    )
    found = facts(sight([shown]))
    assert found["pcie_lanes"] == 16
    assert found["power_limit_watts"] == 500
    assert found["shm_bytes"] == 8 << 30
    assert found["virtual"] is False
    assert "virtual" not in facts(sight([reading()]))
