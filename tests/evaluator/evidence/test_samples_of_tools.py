"""A sample of each tool in its published layout, with invented hosts and figures, and its facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.connections import Topology
from evaluator.evidence import Format, Reading, read_evidence, scrub
from evaluator.group_rates import speeds_of
from evaluator.sightings import sight

FOLDER = Path(__file__).parents[2] / "samples" / "evidence" / "tools"
NAMES = sorted(path.name for path in FOLDER.iterdir())
SECRETS = ("atlas", "mira", "hf_abc", "10.4.0", "SLURM", "trainer-b", "1a2b3c4d", "8b1c2d3e")


def text(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")


def readings(name: str) -> tuple[Reading, ...]:
    """As the product reads: cleaned first."""
    return read_evidence(scrub(text(name)).text)


def of_format(name: str, kind: Format) -> Reading:
    (found,) = [one for one in readings(name) if one.format is kind]
    return found


def topology(name: str) -> Topology:
    return sight(readings(name)).topology


@pytest.mark.parametrize("name", NAMES)
def test_each_sample_is_read_whole_and_holds_no_name(name: str) -> None:
    found = readings(name)
    assert [problem.sentence for one in found for problem in one.problems] == []
    clean = scrub(text(name)).text
    assert [secret for secret in SECRETS if secret in clean] == []
    assert scrub(clean).text == clean
    assert read_evidence(text(name)) == found


def test_nvbandwidth_as_json() -> None:
    found = of_format("nvbandwidth.json", Format.NVBANDWIDTH)
    assert (found.gpu_count, found.driver) == (4, "570.124.06")
    assert found.gpu_names == ("NVIDIA H100 80GB HBM3",) * 4
    one_way, both_ways = found.bandwidth
    assert (one_way.both_ways, both_ways.both_ways) == (False, True)
    assert one_way.span
    assert 393 < one_way.span.low <= one_way.span.high < 394
    assert found.host_to_device_gb_s == pytest.approx(221.0)


def test_a_run_of_nccl_tests_over_two_machines_as_json() -> None:
    found = of_format("nccl-tests-two-machines.json", Format.NCCL_TESTS)
    assert (found.ranks, found.nodes) == (16, 2)
    assert found.rows
    assert {row.operation for row in found.rows} == {"all_reduce"}
    assert speeds_of(topology("nccl-tests-two-machines.json")) == ()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("amd-smi-topology.txt", Format.AMD_TABLE),
        ("amd-smi-topology.json", Format.AMD_JSON),
    ],
)
def test_amd_smi(name: str, kind: Format) -> None:
    found = of_format(name, kind)
    assert found.gpu_count == 8
    assert topology(name).all_to_all is True
    assert found.can_access is not None
    assert len(found.can_access) == 28


def test_a_dump_of_nccls_topology() -> None:
    found = topology("nccl-topo-dump.xml")
    assert {found.between(*pair) for pair in found.pairs} == {"NV18"}
    assert found.numa == ("0", "0", "1", "1")
    assert [nic.name for nic in found.nics] == ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"]
    assert found.nearest_nic[0] == "mlx5_0 PIX"


def test_a_log_of_nccl_inside_one_machine() -> None:
    found = of_format("nccl-log-p2p.txt", Format.NCCL_LOG)
    assert [(one.name, one.channels) for one in found.transports or ()] == [("P2P", 16)]
    assert (found.nccl_version, found.nodes) == ("2.27.3", 1)
    assert not found.signs


def test_a_log_of_nccl_over_two_machines() -> None:
    found = of_format("nccl-log-two-machines.txt", Format.NCCL_LOG)
    roads = {one.name for one in found.transports or ()}
    assert roads == {"P2P", "NET/IB/GDRDMA"}
    assert found.nodes == 2
    assert topology("nccl-log-two-machines.txt").faults == ()


def test_lstopo_counts_gpus_and_proves_no_link() -> None:
    found = of_format("lstopo.txt", Format.LSTOPO)
    assert found.gpu_count == 4
    assert found.matrix is None


@pytest.mark.parametrize("name", ["sglang-check-env.txt", "vllm-collect-env.txt"])
def test_a_report_with_a_matrix_inside(name: str) -> None:
    seen = sight(readings(name))
    assert seen.driver == "570.124.06"
    assert (seen.gpu_counts, seen.gpu_models) == ((4,), ("H100",))
    assert seen.topology.all_to_all is True
    assert seen.topology.nearest_nic == ("NIC0 PIX", "NIC0 NODE", "NIC1 PIX", "NIC1 NODE")


def test_a_report_without_a_matrix_knows_cards_and_driver_only() -> None:
    seen = sight(readings("pytorch-collect-env.txt"))
    assert (seen.driver, seen.gpu_counts, seen.gpu_models) == ("550.90.07", (2,), ("RTX A6000",))
    assert seen.topology == Topology(gpus=2)


CSV = (
    "$ nvidia-smi --query-gpu=name,memory.total --format=csv\nname, memory.total [MiB]\n"
    "NVIDIA A100-SXM4-80GB, 81920 MiB\nNVIDIA A100-SXM4-80GB, 81920 MiB\n"
)


def test_the_query_that_is_asked_for_gives_card_and_memory() -> None:
    seen = sight(read_evidence(CSV))
    assert (seen.gpu_counts, seen.gpu_models) == ((2,), ("A100",))
    facts = {one.name: one.value for one in seen.facts}
    assert facts == {"usable_bytes_per_gpu": 81920 << 20, "form_factor": "SXM4"}


def test_a_query_that_was_cut_counts_no_gpus() -> None:
    (found,) = read_evidence(CSV.rstrip("\n")[:-4])
    assert found.gpu_count is None
    assert found.problems
