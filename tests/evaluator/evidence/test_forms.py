"""The same outputs as people bring them: through logs, editors, forums, versions of a tool."""

from __future__ import annotations

import pytest

from evaluator.connections import FaultKind
from evaluator.evidence import (
    Format,
    Reading,
    Sign,
    Trouble,
    UnreadableEvidence,
    read_evidence,
)
from evaluator.evidence.readings import troubles
from evaluator.sightings import sight
from tests.evaluator.pasted import benchmark_text, cells, matrix_text

ROWS = cells([(0, 1), (2, 3)], "NV12", "NODE", "SYS", ["0", "0", "1", "1"])
MATRIX = matrix_text(ROWS, ["0", "0", "1", "1"], {"NIC0": ["NODE", "NODE", "SYS", "SYS"]})


def one(text: str) -> Reading:
    (reading,) = read_evidence(text)
    return reading


def each_line(prefix: str) -> str:
    return "\n".join(prefix + line for line in MATRIX.split("\n"))


FORMS = {
    "a container's log": each_line("2026-11-02T10:00:01.123Z stdout F "),
    "a pod": each_line("[pod/trainer-0] "),
    "mpirun": each_line("[1,0]<stdout>: "),
    "torchrun": each_line("[rank0]: "),
    "ray": each_line("(RayWorker pid=71, ip=10.0.0.7) "),
    "compose": each_line("trainer-1  | "),
    "an editor": "\n".join(f"{at:3d}  {line}" for at, line in enumerate(MATRIX.split("\n"), 1)),
    "a quotation": each_line("> "),
    "a web page": MATRIX.replace("\n", "<br>\n"),
    "a code block of a page": f"<pre><code>{MATRIX}</code></pre>",
    "blanks": MATRIX.replace("\t", "    "),
    "one blank": MATRIX.replace("\t", " "),
    "a markdown fence": f"Mine:\n```bash\n{MATRIX}\n```\n",
    "underlined": MATRIX.replace("\tGPU0", "\x1b[4m\tGPU0", 1).replace("ID\n", "ID\x1b[0m\n", 1),
    "escapes as text": MATRIX.replace("\tGPU0", "^[[4m\tGPU0", 1).replace("ID\n", "ID^[[0m\n", 1),
    "lines of Windows": MATRIX.replace("\n", "\r\n"),
    "lost blanks": MATRIX.replace("NODE\tNODE", "NODENODE").replace("SYS\tSYS", "SYSSYS"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_matrix_says_the_same_in_whatever_form_it_comes(form: str) -> None:
    reading = one(FORMS[form])
    assert reading.matrix == tuple(map(tuple, ROWS))
    assert reading.whole
    assert reading.numa_affinity == ("0", "0", "1", "1")
    assert reading.gpu_numa_id == (None,) * 4


WRAPPED = """\
        GPU0    GPU1    GPU2    GPU3    GPU4
GPU5    GPU6    GPU7    CPU Affinity
NUMA Affinity   GPU NUMA ID
"""


def test_a_header_that_a_narrow_terminal_wrapped_is_one_header() -> None:
    rows = [["X" if at == to else "NV18" for to in range(8)] for at in range(8)]
    lines = (
        f"GPU{at}    {'    '.join(row[:5])}\n{'    '.join(row[5:])}    0-55    0\nN/A\n"
        for at, row in enumerate(rows)
    )
    reading = one(WRAPPED + "".join(lines))
    assert reading.matrix == tuple(map(tuple, rows))
    assert reading.numa_affinity == ("0",) * 8


def test_a_header_that_stands_twice_names_no_gpu_twice() -> None:
    head = MATRIX.split("\n")[1]
    assert one(MATRIX.replace(head, f"{head}\n{head}", 1)).matrix == tuple(map(tuple, ROWS))


def test_a_row_whose_x_is_not_its_own_is_not_believed() -> None:
    shifted = MATRIX.replace("GPU2\tSYS\tSYS\tX\tNV12", "GPU2\tSYS\tX\tX\tNV12")
    reading = one(shifted)
    assert reading.matrix
    assert (reading.matrix[2][3], reading.matrix[1][2]) == ("NV12", "SYS")
    assert Trouble.UNKNOWN_CLASS in troubles(reading.problems)


def test_a_last_row_that_was_cut_before_its_x_moves_no_class() -> None:
    lines = [line for line in MATRIX.split("\n")[:6] if not line.startswith("GPU1")]
    matrix = one("\n".join(lines[:-1]) + "\nGPU3\tSYS\tNV12").matrix
    assert matrix
    assert (matrix[3][0], matrix[3][1], matrix[3][2]) == ("SYS", None, "NV12")


def test_without_a_header_a_gpu_stands_in_the_column_of_its_number() -> None:
    headless = "GPU0\tX\tNV4\tSYS\nGPU1\tNV4\tX\tSYS\nGPU2\tSYS\tX\n"
    reading = one(headless)
    assert reading.gpu_count == 3
    assert reading.matrix
    assert reading.matrix[2] == ("SYS", "SYS", "X")


H100 = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\n"


@pytest.mark.parametrize("left_out", ["...", "[...]", "(…)"])
def test_links_that_somebody_left_out_are_not_counted_as_absent(left_out: str) -> None:
    reading = one(f"{H100}\t Link 0: 26.562 GB/s\n\t {left_out}\n\t Link 17: 26.562 GB/s\n")
    assert reading.nvlinks
    assert reading.nvlinks[0].active is None
    assert Sign.INCOMPLETE in reading.signs


@pytest.mark.parametrize("tag", ["[1,0]<stdout>:", "0: ", "2025-03-01T10:00:00.1Z ", "rank0 | "])
def test_a_benchmark_says_the_same_behind_the_tags_of_a_launcher(tag: str) -> None:
    plain = benchmark_text(8, [(1 << 24, 380.0), (8 << 30, 480.0)])
    tagged = "".join(f"{tag}{line}\n" for line in plain.split("\n")[:-1])
    assert one(tagged) == one(plain)


def test_a_class_that_no_version_prints_is_told_although_no_other_is_there() -> None:
    reading = one("\tGPU0\tGPU1\nGPU0\t X \tQQX\nGPU1\tQQX\t X \n\n")
    assert reading.format is Format.TOPO_MATRIX
    assert troubles(reading.problems) == {Trouble.UNKNOWN_CLASS}
    assert reading.matrix == (("X", None), (None, "X"))


@pytest.mark.parametrize(
    "words",
    [
        "Invalid combination of input arguments. Please run 'nvidia-smi topo -h' for help.",
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). "
        "Error 802: system not yet initialized",
    ],
)
def test_a_tool_that_failed_is_not_called_unsupported(words: str) -> None:
    with pytest.raises(UnreadableEvidence) as refused:
        read_evidence(f"{words}\n")
    assert refused.value.trouble is Trouble.COMMAND_FAILED


def test_rows_with_their_time_are_rows() -> None:
    text = benchmark_text(8, [(8 << 30, 480.0)])
    stamped = text.replace(" 0\n", " 0  2026-11-02 10:00:01\n")
    assert one(stamped).rows == one(text).rows


def test_a_lost_line_of_a_rank_leaves_the_size_of_the_group_open() -> None:
    head = "# nThread 1 nGpus 4\n"
    lines = [f"#  Rank  {at} Pid 1 on box device  {at} [0x1a] NVIDIA L40S\n" for at in range(4)]
    row = f"  8589934592  2147483648  float  sum  -1 {2 * '  500.0  16.00  24.00  0'}\n"
    assert one(head + "".join(lines) + row).ranks == 4
    joined = [lines[0].strip() + lines[1], *lines[2:]]
    for damaged in (lines[:3], [*lines[:1], *lines[2:]], joined):
        reading = one(head + "".join(damaged) + row)
        assert reading.ranks is None
        assert Trouble.TRUNCATED in troubles(reading.problems)
        assert sight([reading]).topology.rates == ()


CSV = """$ nvidia-smi --query-gpu=index,name,pcie.link.gen.max,pcie.link.width.current --format=csv
index, name, pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, \
pcie.link.width.max, power.limit [W], ecc.mode.current
0, NVIDIA L40S, 4, 4, 16, 16, 350.00 W, Enabled
1, NVIDIA L40S, 1, 4, 8, 16, 350.00 W, Disabled
"""


def test_a_query_of_slots_shows_the_narrow_one() -> None:
    reading = one(CSV)
    assert reading.format is Format.SMI_CSV
    assert reading.pcie
    assert [slot.width_now for slot in reading.pcie] == [16, 8]
    assert {Sign.PCIE_LINK_NARROW, Sign.PCIE_IDLE_DOWNTRAINED} <= reading.signs
    assert (reading.power_limit_w, reading.ecc) == ((350.0, 350.0), (True, False))
    assert [fault.gpus for fault in sight([reading]).topology.faults] == [(1,)]


def test_a_query_of_the_fabric_shows_the_gpu_that_is_not_ready() -> None:
    rows = "NVIDIA H100 80GB HBM3, Completed, Success\nNVIDIA H100 80GB HBM3, In Progress, N/A\n"
    topology = sight([one(f"name, fabric.state, fabric.status\n{rows}")]).topology
    assert [fault.kind for fault in topology.faults] == [FaultKind.FABRIC_MANAGER]


def test_a_query_of_which_rows_are_lost_keeps_the_numbers_of_the_others() -> None:
    rest = "\n".join(line for line in CSV.split("\n") if not line.startswith("0,"))
    assert [slot.gpu for slot in one(rest).pcie or ()] == [1]


ROCM = """\
=================== Link accessibility between two GPUs ===================
       GPU0         GPU1
GPU0   True         False
GPU1   False        True
====================== Link Type between two GPUs =======================
       GPU0         GPU1
GPU0   0            PCIE
GPU1   PCIE         0
========================== End of ROCm SMI Log ===========================
"""


def test_accessibility_of_amd_cards_is_peer_access() -> None:
    topology = sight([one(ROCM)]).topology
    assert topology.reach(0, 1) is False
    allowed = sight([one(ROCM.replace("False", "True"))]).topology
    assert allowed.reach(0, 1) is True


def test_a_row_of_amd_cards_that_lost_a_cell_gives_it_to_no_other_pair() -> None:
    three = ["GPU0", "GPU1", "GPU2"]
    rows = [["0", "PCIE", "XGMI"], ["PCIE", "0", "XGMI"], ["XGMI", "XGMI", "0"]]
    head = "=== Link Type between two GPUs ===\n       GPU0   GPU1   GPU2\n"

    def text(of: list[list[str]]) -> str:
        lines = (f"{name}   {'   '.join(row)}\n" for name, row in zip(three, of, strict=True))
        return head + "".join(lines) + "=== End of ROCm SMI Log ===\n"

    damaged = [["0", "XGMI"], ["XGMI", "0"], rows[2]]
    whole, cut = one(text(rows)).matrix, one(text(damaged)).matrix
    assert whole
    assert cut
    assert (whole[0][1], cut[0][1], cut[0][2]) == ("PCIE", None, "XGMI")


TABLES = """ACCESS TABLE:
             0000:03:00.0 0000:0c:00.0 0000:13:00.0
0000:03:00.0 ENABLED      ENABLED      DISABLED
0000:0c:00.0 ENABLED      ENABLED      DISABLED
0000:13:00.0 DISABLED     DISABLED     ENABLED
LINK TYPE TABLE:
             0000:03:00.0 0000:0c:00.0 0000:13:00.0
0000:03:00.0 SELF         XGMI         PCIE
0000:0c:00.0 XGMI         SELF         PCIE
0000:13:00.0 PCIE         PCIE         SELF
"""


def test_peer_access_that_some_pairs_have_is_told_by_pair() -> None:
    topology = sight([one(TABLES)]).topology
    assert [topology.reach(*pair) for pair in ((0, 1), (0, 2), (1, 2))] == [True, False, False]
    assert topology.faults == ()
    none = sight([one(TABLES.replace("ENABLED ", "DISABLED"))]).topology
    assert [fault.kind for fault in none.faults] == [FaultKind.NO_PEER_ACCESS]


def test_a_row_of_addresses_that_lost_a_cell_gives_it_to_no_other_pair() -> None:
    damaged = TABLES.replace(
        "0000:03:00.0 SELF         XGMI         PCIE", "0000:03:00.0 SELF PCIE"
    )
    matrix = one(damaged).matrix
    assert matrix
    assert (matrix[0][1], matrix[0][2]) == ("XGMI", "PCIE")


def test_tables_of_different_sizes_are_not_one_machine() -> None:
    third = "       GPU0         GPU1         GPU2\n"
    reading = one(ROCM.replace("       GPU0         GPU1\n", third, 1))
    assert not reading.whole
