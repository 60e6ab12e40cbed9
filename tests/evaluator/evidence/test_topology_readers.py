"""Matrices of every tool: small texts, and what must come out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.evidence import (
    Format,
    Reading,
    Sign,
    Standing,
    Trouble,
    UnreadableEvidence,
    read_evidence,
)

TWO = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"


def one(text: str) -> Reading:
    (reading,) = read_evidence(text)
    return reading


def refused(text: str) -> Trouble:
    with pytest.raises(UnreadableEvidence) as problem:
        read_evidence(text)
    return problem.value.trouble


SHAPES = {
    "tabs": TWO + "GPU0\t X \tNV4\t0-31\t0\t\tN/A\nGPU1\tNV4\t X \t0-31\t0\t\tN/A\n",
    "blanks": "      GPU0 GPU1 CPU Affinity NUMA Affinity GPU NUMA ID\n"
    "GPU0  X   NV4  0-31  0  N/A\nGPU1 NV4   X   0-31  0  N/A\n",
    "escapes": "\t\x1b[4mGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\r\n"
    "GPU0\t X \tNV4\t0-31\t0\t\tN/A\r\nGPU1\tNV4\t X \t0-31\t0\t\tN/A\r\n",
    "fence": "```\n" + TWO + "GPU0\t X \tNV4\t0-31\t0\t\tN/A\n"
    "GPU1\tNV4\t X \t0-31\t0\t\tN/A\n```\n",
    "quoted": "> \tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "> GPU0\t X \tNV4\t0-31\t0\t\tN/A\n> GPU1\tNV4\t X \t0-31\t0\t\tN/A\n",
    "no-break spaces": "\u00a0\u00a0"
    "GPU0\u00a0GPU1\u00a0CPU Affinity\u00a0NUMA Affinity\u00a0GPU NUMA ID\n"
    "GPU0\u00a0X\u00a0NV4\u00a00-31\u00a00\u00a0N/A\nGPU1\u00a0NV4\u00a0X\u00a00-31\u00a00\u00a0N/A\n",
    "markdown": "| | GPU0 | GPU1 | CPU Affinity | NUMA Affinity | GPU NUMA ID |\n"
    "|---|---|---|---|---|---|\n"
    "| GPU0 | X | NV4 | 0-31 | 0 | N/A |\n| GPU1 | NV4 | X | 0-31 | 0 | N/A |\n",
    "command line": "$ nvidia-smi topo -m   GPU0 GPU1 CPU Affinity NUMA Affinity GPU NUMA ID\n"
    "GPU0 X NV4 0-31 0 N/A\nGPU1 NV4 X 0-31 0 N/A\n",
}  # fmt: skip


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES.keys())
def test_a_matrix_is_the_same_in_every_dress(text: str) -> None:
    reading = one(text)
    assert reading.format is Format.TOPO_MATRIX
    assert reading.matrix == (("X", "NV4"), ("NV4", "X"))
    assert (reading.cpu_affinity, reading.numa_affinity) == (("0-31", "0-31"), ("0", "0"))
    assert reading.gpu_numa_id == (None, None)
    assert reading.whole
    assert not reading.signs


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("GPU0\t X \t0-7\t0\t\tN/A", ("0-7", "0", None)),
        ("GPU0\t X \t\t0\t\tN/A", (None, "0", None)),
        ("GPU0\t X \t0-7\t\tN/A\t\tN/A", ("0-7", None, None)),
        ("GPU0\t X \t\t\t\tN/A", (None, None, None)),
        ("GPU0\t X \t0-71\t0,3-9\t\t2", ("0-71", "0,3-9", "2")),
        ("GPU0  X  0-71  0,3-9  2", ("0-71", "0,3-9", "2")),
        ("GPU0  X   N/A", (None, None, None)),
    ],
)
def test_affinity_cells_may_be_blank(row: str, expected: tuple[str | None, ...]) -> None:
    reading = one(f"\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n{row}\n")
    found = (reading.cpu_affinity, reading.numa_affinity, reading.gpu_numa_id)
    assert tuple(cells[0] for cells in found if cells) == expected


def test_network_devices_are_named_by_the_legend_and_ranked_by_class() -> None:
    reading = one(
        "\tGPU0\tNIC0\tNIC1\tCPU Affinity\nGPU0\t X \tSYS\tPXB\t0-7\nNIC0\tSYS\t X \tSYS\n"
        "NIC1\tPXB\tSYS\t X \n\nNIC Legend:\n\n  NIC0: mlx5_bond_0\n  NIC1: rocep12s0\n"
    )
    assert [(nic.label, nic.device) for nic in reading.nics or ()] == [
        ("NIC0", "mlx5_bond_0"),
        ("NIC1", "rocep12s0"),
    ]
    assert reading.nearest_nic
    assert reading.nearest_nic[0]
    assert (reading.nearest_nic[0].link_class, reading.nearest_nic[0].labels) == ("PXB", ("NIC1",))


def test_rows_that_a_narrow_terminal_wrapped_are_put_together() -> None:
    reading = one(
        "        GPU0    GPU1    NIC0    CPU Aff\ninity\nGPU0     X      NV4\nPIX     0-31\n"
        "GPU1    NV4      X\nSYS     0-31\nNIC0    PIX     SYS\n X\n"
    )
    assert reading.matrix == (("X", "NV4"), ("NV4", "X"))
    assert reading.nearest_nic
    assert [one.link_class for one in reading.nearest_nic if one] == ["PIX", "SYS"]


DAMAGED = {
    "cut NV18": (TWO + "GPU0\t X \tNV1", (("X", None), (None, "X")), Trouble.TRUNCATED),
    "halves disagree": (
        TWO + "GPU0\t X \tNV4\t0\t0\t\tN/A\nGPU1\tPHB\t X \t0\t0\t\tN/A\n",
        (("X", None), (None, "X")),
        Trouble.UNKNOWN_CLASS,
    ),
    "unheard class": (
        TWO + "GPU0\t X \tFOO\t0\t0\t\tN/A\nGPU1\tFOO\t X \t0\t0\t\tN/A\n",
        (("X", None), (None, "X")),
        Trouble.UNKNOWN_CLASS,
    ),
    "shifted row": (
        TWO + "GPU0\tNV4\t X \t0\t0\t\tN/A\n",
        (("X", None), (None, "X")),
        Trouble.UNKNOWN_CLASS,
    ),
    "odd column": (
        "GPU0 GPU1 CPU\nGPU0 X NV1 PHB\nGPU1 NV1 X PHB\n",
        (("X", "NV1"), ("NV1", "X")),
        Trouble.UNKNOWN_COLUMN,
    ),
    "no header": (
        "GPU0\t X \tNV4\t0-7\nGPU1\tNV4\t X \t0-7\n",
        (("X", "NV4"), ("NV4", "X")),
        Trouble.HEADER_MISSING,
    ),
}


@pytest.mark.parametrize(("text", "matrix", "trouble"), DAMAGED.values(), ids=DAMAGED.keys())
def test_damage_makes_a_pair_unknown_and_the_reading_partial(
    text: str, matrix: object, trouble: Trouble
) -> None:
    reading = one(text)
    assert reading.matrix == matrix
    assert reading.standing is Standing.PARTIAL
    assert trouble in {problem.trouble for problem in reading.problems}


def test_one_gpu_off_the_fabric_is_told() -> None:
    names = [f"GPU{at}" for at in range(4)]
    rows = [
        " ".join([name, *("X" if a == b else "SYS" if 2 in (a, b) else "NV18" for b in range(4))])
        for a, name in enumerate(names)
    ]
    reading = one(
        "  " + " ".join(names) + " CPU Affinity\n" + "\n".join(f"{row} 0-7" for row in rows) + "\n"
    )
    assert reading.signs == {Sign.GPU_OFF_NVLINK}


@pytest.mark.parametrize(
    ("command", "status", "unusable"),
    [
        ("r", "CNS", True),
        ("w", "GNS", True),
        ("n", "NS", False),
        ("r", "OK", False),
        ("a", "NS", False),
    ],
)
def test_peer_access_is_judged_by_the_capability_asked_for(
    command: str, status: str, unusable: bool
) -> None:
    reading = one(
        f"$ nvidia-smi topo -p2p {command}\n \tGPU0\tGPU1\n GPU0\tX\t{status}\n GPU1\t{status}\tX\n"
    )
    assert reading.format is Format.TOPO_P2P
    assert reading.p2p_matrix == (("X", status), (status, "X"))
    assert reading.p2p_capability == command
    assert (Sign.P2P_UNUSABLE in reading.signs) is unusable


ROCM = "{} Link Type between two GPUs {}\n       GPU0  GPU1\nGPU0   0  {}\nGPU1   {}  0\n"


@pytest.mark.parametrize(
    ("cells", "link"),
    [
        (("XGMI", "XGMI"), "XGMI"),
        (("PCIE", "PCIE"), "PCIE"),
        (("XXXX", "XXXX"), None),
        (("XGMI", "PCIE"), None),
    ],
)
def test_rocm_link_types(cells: tuple[str, str], link: str | None) -> None:
    reading = one(ROCM.format("===", "===", *cells))
    assert reading.matrix == (("X", link), (link, "X"))


def test_rocm_without_link_types_says_so() -> None:
    text = (
        "=== Numa Nodes ===\nGPU[0]\t\t: (Topology) Numa Node: 0\n"
        "GPU[1]\t\t: (Topology) Numa Node: 1\n"
    )
    reading = one(text)
    assert reading.numa_node == (0, 1)
    assert reading.problems[0].trouble is Trouble.NO_LINK_SECTION


def test_amd_json_of_the_new_shape() -> None:
    link = '{"gpu": %d, "link_status": "ENABLED", "link_type": "%s"}'
    first, second = (
        ", ".join((link % (0, "SELF"), link % (1, "XGMI"))),
        ", ".join((link % (0, "XGMI"), link % (1, "SELF"))),
    )
    rows = [f'{{"gpu": 0, "links": [{first}]}}', f'{{"gpu": 1, "links": [{second}]}}']
    reading = one(f"[{', '.join(rows)}]\n")
    assert reading.format is Format.AMD_JSON
    assert reading.matrix == (("X", "XGMI"), ("XGMI", "X"))
    assert reading.can_access == {(0, 1)}


@pytest.mark.parametrize(
    "text",
    [
        '[{"gpu": 0, "link_type": ' + "[" * 100_000,
        '[{"gpu": 0, "link_type": ' + "9" * 5_000 + "}]",
        '[{"gpu": 0, "link_type": NaN}]',
        '[{"gpu": 0, "gpu": 1, "link_type": {}}]',
    ],
    ids=["deep", "long number", "NaN", "repeated key"],
)
def test_json_that_no_tool_writes_is_refused(text: str) -> None:
    assert refused(text) is Trouble.INVALID_JSON


GPU_XML = '<system version="1"><cpu numaid="0">{}</cpu></system>'
PCI = '<pci busid="{}" class="0x030200" link_speed="" link_width="0"><gpu dev="{}">{}</gpu></pci>'


def test_an_nvlink_that_ends_on_its_own_gpu_says_nothing_of_pairs() -> None:
    links = [
        PCI.format(bus, at, f'<nvlink target="{bus}" count="2" tclass="0x030200"/>')
        for at, bus in enumerate(("0000:01:00.0", "0000:02:00.0"))
    ]
    reading = one(GPU_XML.format("".join(links)))
    assert reading.matrix == (("X", None), (None, "X"))
    assert reading.problems[0].trouble is Trouble.NVLINK_TARGET_IS_SELF


def test_links_over_a_switch_join_all_that_reach_it() -> None:
    switch = '<nvlink target="0000:c{}:00.0" count="6" tclass="0x068000"/>'
    switches = switch.format(4) + switch.format(5)
    gpus = [PCI.format(f"0000:0{at + 1}:00.0", at, switches) for at in (0, 1)]
    assert one(GPU_XML.format("".join(gpus))).matrix == (("X", "NV12"), ("NV12", "X"))


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE x [<!ENTITY a "aaaa">]><system><cpu numaid="0">&a;</cpu></system>',
        "<system>" + "<pci>" * 200 + "</pci>" * 200 + "</system>",
        '<system version="1"><cpu numaid="0">',
        '<nvlink target="0000:c4:00.0" count="2"/>',
    ],
    ids=["entity", "deep", "cut", "no root"],
)
def test_xml_that_is_broken_or_dangerous_is_refused(text: str) -> None:
    assert refused(text) is Trouble.INVALID_XML


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("Failed to run topology matrix\n", Trouble.COMMAND_FAILED),
        ("No devices were found\n", Trouble.NO_DEVICES),
        (
            "Failed to initialize NVML: Driver/library version mismatch\n",
            Trouble.DRIVER_UNREACHABLE,
        ),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
            Trouble.DRIVER_UNREACHABLE,
        ),
        ("GPU Topology:\nCould not collect\n", Trouble.NOT_COLLECTED),
        ("NPU0  X  HCCS\n", Trouble.UNSUPPORTED_FORMAT),
        ("hello\n", Trouble.UNSUPPORTED_FORMAT),
        ("", Trouble.UNSUPPORTED_FORMAT),
        ("NIC0 PIX X\nNIC1 X PIX\n", Trouble.NO_GPU_ROWS),
    ],
)
def test_a_text_of_which_nothing_stands_says_why(text: str, trouble: Trouble) -> None:
    assert refused(text) is trouble


CLASSES = st.sampled_from(["NV1", "NV4", "NV12", "NV18", "PIX", "PXB", "PHB", "NODE", "SYS"])


@st.composite
def machines(draw: st.DrawFn) -> tuple[tuple[str, ...], ...]:
    size = draw(st.integers(1, 18))
    links = {(a, b): draw(CLASSES) for a in range(size) for b in range(a)}
    return tuple(
        tuple("X" if a == b else links[max(a, b), min(a, b)] for b in range(size))
        for a in range(size)
    )


@given(machines(), st.sampled_from(["\t", " ", "     ", " \t "]), st.sampled_from(["\n", "\r\n"]))
def test_every_matrix_that_can_be_printed_is_read_back(
    matrix: tuple[tuple[str, ...], ...], blank: str, end: str
) -> None:
    head = blank.join(["", *(f"GPU{at}" for at in range(len(matrix))), "CPU Affinity"])
    rows = [blank.join([f"GPU{at}", *row, "0-7"]) for at, row in enumerate(matrix)]
    assert one(end.join([head, *rows, ""])).matrix == matrix
