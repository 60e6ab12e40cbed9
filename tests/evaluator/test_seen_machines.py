"""The topology of machines as they are really built: islands, pairs, sockets, nearest network."""

from __future__ import annotations

from itertools import combinations

import pytest

from evaluator.connections import Topology, is_fabric
from evaluator.grouping import assign
from evaluator.machine import LinkClass
from evaluator.sightings import link_of
from tests.evaluator.pasted import alike, cells, matrix_text, seen

SOCKETS = ["0"] * 4 + ["1"] * 4
"""NUMA nodes as an eight-GPU machine of two sockets prints them."""


def nics(gpus: int, numa: list[str], per_switch: int = 1) -> dict[str, list[str]]:
    """A network device for each `per_switch` GPUs, behind the switch of those."""

    def path(nic: int, gpu: int) -> str:
        if gpu // per_switch == nic:
            return "PXB"
        return "NODE" if numa[gpu] == numa[nic * per_switch] else "SYS"

    count = gpus // per_switch
    return {f"NIC{nic}": [path(nic, gpu) for gpu in range(gpus)] for nic in range(count)}


DGX_A100_NUMA = ["3", "3", "1", "1", "7", "7", "5", "5"]
PAIRS_OF_8 = [(0, 1), (2, 3), (4, 5), (6, 7)]
MACHINES: dict[str, str] = {
    "DGX A100": matrix_text(alike(8, "NV12"), DGX_A100_NUMA, nics(8, DGX_A100_NUMA)),
    "DGX H100": matrix_text(alike(8, "NV18"), SOCKETS, nics(8, SOCKETS)),
    "8 A100 PCIe in pairs": matrix_text(
        cells(PAIRS_OF_8, "NV12", "NODE", "SYS", SOCKETS), SOCKETS, nics(8, SOCKETS, 4)
    ),
    "4 A6000 bridged": matrix_text(cells([(0, 1), (2, 3)], "NV4", "PHB", "PHB", ["0"] * 4)),
    "8 RTX 4090": matrix_text(cells([], "", "NODE", "SYS", SOCKETS), SOCKETS),
    "2 L40S on two sockets": matrix_text(cells([], "", "NODE", "SYS", ["0", "1"]), ["0", "1"]),
    "4 GB200": matrix_text(
        alike(4, "NV18"), ["0", "0", "1", "1"], {f"NIC{at}": ["SYS"] * 4 for at in range(4)}
    ),
    "16 V100 of a DGX-2": matrix_text(alike(16, "NV6"), ["0"] * 8 + ["1"] * 8),
    "16 K80 without links": matrix_text(
        cells([(at, at + 1) for at in range(0, 16, 2)], "PIX", "PHB", "SYS", ["0"] * 8 + ["1"] * 8),
        ["0"] * 8 + ["1"] * 8,
    ),
}  # fmt: skip


def rocm_text(types: list[list[str]], numa: list[int]) -> str:
    """`rocm-smi --showtopo` as ROCm 6 prints it."""
    names = [f"GPU{at}" for at in range(len(types))]
    head = "       " + "".join(f"{name:<13}" for name in names)

    def table(title: str, rows: list[list[str]]) -> list[str]:
        lines = [
            f"{name}   " + "".join(f"{cell:<13}" for cell in row)
            for name, row in zip(names, rows, strict=True)
        ]
        return [f"{title:=^80}", head, *lines, ""]

    weights = [
        ["0" if a == b else "15" if cell == "XGMI" else "52" for b, cell in enumerate(row)]
        for a, row in enumerate(types)
    ]
    shown = [["0" if cell == "X" else cell for cell in row] for row in types]
    nodes = [
        line
        for at, node in enumerate(numa)
        for line in (
            f"GPU[{at}]\t\t: (Topology) Numa Node: {node}",
            f"GPU[{at}]\t\t: (Topology) Numa Affinity: {node}",
        )
    ]
    return "\n".join(
        [
            f"{' ROCm System Management Interface ':=^80}",
            *table(" Weight between two GPUs ", weights),
            *table(" Link Type between two GPUs ", shown),
            f"{' Numa Nodes ':=^80}",
            *nodes,
            f"{' End of ROCm SMI Log ':=^80}",
            "",
        ]
    )


HIVES = [(0, 1, 2, 3), (4, 5, 6, 7)]
MACHINES |= {
    "8 MI300X": rocm_text(alike(8, "XGMI"), [0] * 4 + [1] * 4),
    "8 MI100 in two hives": rocm_text(
        cells(HIVES, "XGMI", "PCIE", "PCIE", SOCKETS), [0] * 4 + [1] * 4
    ),
    "4 MI210 in bridged pairs": rocm_text(
        cells([(0, 1), (2, 3)], "XGMI", "PCIE", "PCIE", ["0"] * 4), [0] * 4
    ),
}


def topology(name: str) -> Topology:
    return seen(MACHINES[name]).topology


@pytest.mark.parametrize(
    ("name", "link", "mesh", "pairs_only", "islands"),
    [
        ("DGX A100", LinkClass.NVLINK, True, False, [8]),
        ("DGX H100", LinkClass.NVLINK, True, False, [8]),
        ("8 A100 PCIe in pairs", LinkClass.NVLINK_PAIRS, False, True, [2, 2, 2, 2]),
        ("4 A6000 bridged", LinkClass.NVLINK_PAIRS, False, True, [2, 2]),
        ("8 RTX 4090", LinkClass.PCIE, False, False, []),
        ("2 L40S on two sockets", LinkClass.PCIE, False, False, []),
        ("4 GB200", LinkClass.NVLINK, True, False, [4]),
        ("16 V100 of a DGX-2", LinkClass.NVLINK, True, False, [16]),
        ("16 K80 without links", LinkClass.PCIE, False, False, []),
        ("8 MI300X", LinkClass.XGMI, True, False, [8]),
        ("8 MI100 in two hives", LinkClass.XGMI_ISLANDS, False, False, [4, 4]),
        ("4 MI210 in bridged pairs", LinkClass.XGMI_ISLANDS, False, True, [2, 2]),
    ],
)
def test_what_joins_the_whole_machine(
    name: str, link: LinkClass, mesh: bool, pairs_only: bool, islands: list[int]
) -> None:
    found = topology(name)
    assert link_of(found) is link
    assert (found.all_to_all, found.pairs_only) == (mesh, pairs_only)
    assert [len(island) for island in found.islands] == islands


@pytest.mark.parametrize(
    ("name", "size", "worst"),
    [
        ("DGX A100", 2, "NV12"), ("DGX A100", 4, "NV12"), ("DGX A100", 8, "NV12"),
        ("8 A100 PCIe in pairs", 2, "NV12"), ("8 A100 PCIe in pairs", 4, "NODE"),
        ("8 A100 PCIe in pairs", 8, "SYS"),
        ("4 A6000 bridged", 2, "NV4"), ("4 A6000 bridged", 4, "PHB"),
        ("8 RTX 4090", 2, "NODE"), ("8 RTX 4090", 4, "NODE"), ("8 RTX 4090", 8, "SYS"),
        ("2 L40S on two sockets", 2, "SYS"),
        ("4 GB200", 4, "NV18"),
        ("16 V100 of a DGX-2", 8, "NV6"), ("16 V100 of a DGX-2", 16, "NV6"),
        ("16 K80 without links", 2, "PIX"), ("16 K80 without links", 8, "PHB"),
        ("16 K80 without links", 16, "SYS"),
        ("8 MI300X", 8, "XGMI"),
        ("8 MI100 in two hives", 4, "XGMI"), ("8 MI100 in two hives", 8, "PCIE"),
    ],
)  # fmt: skip
def test_the_worst_pair_of_the_best_group_of_any_size(name: str, size: int, worst: str) -> None:
    found = topology(name)
    placed = assign(found, size)
    assert placed
    assert found.between(*placed.worst) == worst
    group = placed.groups[0]
    assert found.between(*found.worst_pair(group)) == worst
    best = found.between(*found.best_pair(group))
    assert best in {found.between(*pair) for pair in combinations(group, 2)}


@pytest.mark.parametrize(
    ("name", "size", "count"),
    [
        ("8 A100 PCIe in pairs", 2, 4),
        ("4 A6000 bridged", 2, 2),
        ("DGX H100", 4, 2),
        ("16 V100 of a DGX-2", 8, 2),
        ("8 MI100 in two hives", 4, 2),
        ("4 MI210 in bridged pairs", 2, 2),
    ],
)
def test_tensor_groups_take_islands_and_leave_none_half_used(
    name: str, size: int, count: int
) -> None:
    found = topology(name)
    placed = assign(found, size, count)
    assert placed
    assert len(placed.members) == size * count
    for group in placed.groups:
        assert all(is_fabric(found.between(*pair)) for pair in combinations(group, 2))


def test_groups_without_islands_stay_on_one_socket() -> None:
    placed = assign(topology("8 RTX 4090"), 4, 2)
    assert placed
    assert set(placed.groups) == {(0, 1, 2, 3), (4, 5, 6, 7)}


@pytest.mark.parametrize(
    ("name", "numa"),
    [
        ("DGX A100", tuple(DGX_A100_NUMA)),
        ("8 RTX 4090", tuple(SOCKETS)),
        ("8 MI300X", tuple(SOCKETS)),
        ("4 GB200", ("0", "0", "1", "1")),
    ],
)
def test_each_gpu_has_its_numa_node(name: str, numa: tuple[str, ...]) -> None:
    assert topology(name).numa == numa


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("DGX A100", tuple(f"NIC{at} PXB" for at in range(8))),
        ("8 A100 PCIe in pairs", ("NIC0 PXB",) * 4 + ("NIC1 PXB",) * 4),
        ("4 GB200", ("NIC0 SYS",) * 4),
        ("8 RTX 4090", ()),
    ],
)
def test_each_gpu_has_its_nearest_network_device(name: str, nearest: tuple[str, ...]) -> None:
    assert topology(name).nearest_nic == nearest
