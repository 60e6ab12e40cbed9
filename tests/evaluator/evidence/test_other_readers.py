"""Tables, slots, logs and benchmarks: small texts, and what must come out."""

from __future__ import annotations

import json

import pytest

from evaluator.evidence import (
    Format,
    Reading,
    Sign,
    Standing,
    Trouble,
    UnreadableEvidence,
    read_evidence,
)
from evaluator.evidence.benchmarks import (
    Benchmark,
    InvalidBenchmark,
    consistent,
    from_row,
    from_words,
    to_words,
)


def one(text: str) -> Reading:
    (reading,) = read_evidence(text)
    return reading


GPU = "GPU {}: NVIDIA H100 (UUID: GPU-0)\n"


@pytest.mark.parametrize(
    ("lines", "active", "inactive", "signs"),
    [
        ("  Link 0: 26.562 GB/s\n  Link 1: 26.562 GB/s\n", 2, (), set()),
        ("  Link 0: 26.562 GB/s\n  Link 1: <inactive>\n", 1, (1,), {Sign.INACTIVE_LINKS}),
        ("Device does not have or support Nvlink\n", 0, (), set()),
        ("Nvlink queries are not supported for Devices in MIG mode\n", None, None, {Sign.MIG_MODE}),
    ],
)
def test_link_status(
    lines: str, active: int | None, inactive: tuple[int, ...] | None, signs: set[Sign]
) -> None:
    reading = one(GPU.format(0) + lines)
    assert reading.format is Format.NVLINK_STATUS
    assert reading.nvlinks
    assert (reading.nvlinks[0].active, reading.nvlinks[0].inactive) == (active, inactive)
    assert reading.signs == signs


def test_a_plain_list_with_slices_counts_cards() -> None:
    reading = one(GPU.format(0) + "  MIG 3g.40gb     Device  0: (UUID: MIG-0)\n" + GPU.format(1))
    assert (reading.format, reading.gpu_count) == (Format.SMI_LIST, 2)
    assert [slice.profile for slice in reading.mig_instances] == ["3g.40gb"]


TABLE = """| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4 |
|   0  NVIDIA A100-SXM4-80GB   On  | 00000000:07:00.0 Off |   0 |
| N/A   32C    P0    62W / 400W |   10MiB / 81920MiB |  0%  Default |
|                               |                    |     Disabled |
"""


def test_the_table() -> None:
    reading = one(TABLE)
    assert (reading.gpu_names, reading.vram_mib) == (("NVIDIA A100-SXM4-80GB",), (81920,))
    assert (reading.driver, reading.cuda, reading.mig_enabled) == ("550.54.15", "12.4", False)
    assert reading.power_limit_w == (400.0,)


@pytest.mark.parametrize(
    ("now", "width", "busy", "signs"),
    [
        (5, 16, 0, set()),
        (1, 16, 0, {Sign.PCIE_IDLE_DOWNTRAINED}),
        (1, 16, 90, {Sign.PCIE_LINK_NARROW}),
        (5, 4, 0, {Sign.PCIE_LINK_NARROW}),
    ],
)
def test_a_slot_is_judged_by_width_and_under_load(
    now: int, width: int, busy: int, signs: set[Sign]
) -> None:
    reading = one(
        "        GPU Link Info\n            PCIe Generation\n                Max      : 5\n"
        f"                Current  : {now}\n            Link Width\n"
        "                Max      : 16x\n"
        f"                Current  : {width}x\n    Utilization\n        Gpu      : {busy} %\n"
    )
    assert reading.format is Format.SMI_QUERY
    assert reading.signs == signs


LOG = "h{}:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via {}\n"


@pytest.mark.parametrize(
    ("road", "name", "signs"),
    [
        ("P2P/CUMEM", "P2P", set()),
        ("P2P/direct pointer", "P2P", set()),
        ("SHM/direct/direct", "SHM", {Sign.P2P_UNUSABLE}),
        ("direct shared memory", "SHM", {Sign.P2P_UNUSABLE}),
        ("NET/IB/0/GDRDMA", "NET/IB/GDRDMA", set()),
        ("NET/IBext_v8/2", "NET/IB", {Sign.RDMA_WITHOUT_GPUDIRECT}),
        ("NET/Socket/0", "NET/Socket", {Sign.INTER_NODE_OVER_TCP}),
        ("NET/AWS Libfabric/0", "NET/AWS Libfabric", {Sign.RDMA_WITHOUT_GPUDIRECT}),
        ("NET/Libfabric/3/GDRDMA", "NET/Libfabric/GDRDMA", set()),
    ],
)
def test_roads_in_a_log(road: str, name: str, signs: set[Sign]) -> None:
    reading = one(LOG.format(1, road) + LOG.format(2, road))
    assert [(one.name, one.channels) for one in reading.transports or ()] == [(name, 2)]
    assert reading.nodes == 2
    assert reading.signs == signs


def table(switch: str, cell: float) -> str:
    title = f"Bidirectional P2P={switch} Bandwidth Matrix (GB/s)\n   D\\D     0      1\n"
    return title + f"     0 900.00  {cell:.2f}\n     1  {cell:.2f} 900.00\n"


def log_of(*words: str) -> Reading:
    lines = "".join(f"node-{at}:{at}:1 [0] NCCL INFO {text}\n" for at, text in enumerate(words, 1))
    return one(lines)


def test_a_plugin_over_tcp_is_no_rdma() -> None:
    channel = "Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Libfabric/0"
    signs = log_of("NET/OFI Selected provider is tcp (found 1 nics)", channel).signs
    assert signs == {Sign.INTER_NODE_OVER_TCP}


def test_a_missing_verbs_device_says_nothing_beside_channels_of_another_network() -> None:
    channel = "Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Libfabric/0/GDRDMA"
    assert log_of("NET/IB : No device found.", channel).signs == frozenset()
    assert Sign.INTER_NODE_OVER_TCP in log_of("NET/IB : No device found.", "nNodes 2").signs


def test_a_driver_that_waits_for_the_fabric_manager_is_told() -> None:
    words = "init.cc:416 NCCL WARN Cuda failure 802 'system not yet initialized'"
    assert "802" in (log_of(words).fabric_state or "")
    started = log_of(words, "Channel 00/0 : 1[1] -> 0[0] via P2P/CUMEM")
    assert started.fabric_state is None
    multicast = log_of(
        "transport/nvls.cc:254 NCCL WARN Cuda failure 802 'system not yet initialized'"
    )
    assert multicast.fabric_state is None
    assert Sign.NVLS_UNAVAILABLE in multicast.signs


def test_a_last_row_that_was_cut_early_is_told() -> None:
    row = "1073741824 268435456 float sum -1 104000 10.32 15.49 0 104100 10.31 15.47 0\n"
    (whole,), (cut,) = read_evidence(row), read_evidence(row + "2147483648 536870912 float sum")
    assert (whole.standing, cut.standing) == (Standing.OK, Standing.PARTIAL)
    assert len(cut.rows or ()) == 1


@pytest.mark.parametrize(("on", "unusable"), [(52.0, False), (15.0, True), (10.0, True)])
def test_peer_access_must_beat_the_copy_over_the_host(on: float, unusable: bool) -> None:
    reading = one(table("Disabled", 15.0) + table("Enabled", on))
    assert (Sign.P2P_UNUSABLE in reading.signs) is unusable
    assert [bandwidth.span for bandwidth in reading.bandwidth][1]


@pytest.mark.parametrize(
    ("answer", "end", "unusable"),
    [("Yes", "Test passed", False), ("No", "", True), ("Yes", "Verification error @ 0", True)],
)
def test_simple_p2p(answer: str, end: str, unusable: bool) -> None:
    reading = one(f"> Peer access from NVIDIA L4 (GPU0) -> NVIDIA L4 (GPU1) : {answer}\n{end}\n")
    assert (reading.format, reading.gpu_count) == (Format.SIMPLE_P2P, 2)
    assert (Sign.P2P_UNUSABLE in reading.signs) is unusable


def test_nvbandwidth_as_text_and_as_json() -> None:
    text = one(
        "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
        "           0         1\n 0     55.10     55.20\n\nSUM host_to_device_memcpy_ce 110.30\n"
    )
    test = {"name": "host_to_device_memcpy_ce", "status": "Passed", "sum": 110.3}
    matrix = {"bandwidth_matrix": [["55.10", "55.20"]]}
    told = one(json.dumps({"nvbandwidth": {"testcases": [test | matrix]}}) + "\n")
    for reading in (text, told):
        assert (reading.host_to_device_gb_s, reading.gpu_count) == (110.3, 2)
        assert reading.whole


COLUMN = "{t}  {alg}  {bus}  {wrong}"
ROW = f"  1073741824  268435456  float  sum  -1  {COLUMN}  {COLUMN}\n"


def row(alg: float, bus: float, wrong: str = "0") -> str:
    return ROW.format(t=4000.0, alg=alg, bus=bus, wrong=wrong)


def test_a_benchmark_tells_its_ranks_by_the_two_bandwidths() -> None:
    reading = one("# all_reduce_perf -b 1G\n" + row(250.0, 437.5) + "# Avg bus bandwidth : 53\n")
    assert (reading.ranks, reading.top_row and reading.top_row.best_busbw_gb_s) == (8, 437.5)
    assert reading.rows
    assert consistent(from_row(reading.rows[0], reading.ranks)) is True


@pytest.mark.parametrize("text", [row(250.0, 437.5, "3"), "# Out of bounds values : 50 FAILED\n"])
def test_wrong_results_are_no_evidence(text: str) -> None:
    with pytest.raises(UnreadableEvidence) as refused:
        read_evidence(text)
    assert refused.value.trouble is Trouble.DATA_CORRUPTION


def test_one_rank_proves_no_link() -> None:
    assert one(row(900.0, 0.0)).problems[0].trouble is Trouble.SINGLE_RANK


def test_a_benchmark_that_collapses_at_a_large_size_is_told() -> None:
    small = row(250.0, 437.5).replace("1073741824", "33554432")
    assert Sign.BANDWIDTH_COLLAPSE in one(small + row(40.0, 70.0)).signs


def test_the_json_of_a_benchmark() -> None:
    column = {"time": 4000.0, "alg_bw": 250.0, "bus_bw": 437.5, "nwrong": 0}
    result = {"size": 1 << 30, "out_of_place": column, "in_place": column}
    devices = [{"hostname": "n", "device_info": "NVIDIA H100"}] * 8
    told = {"args": ["all_reduce_perf"], "devices": devices, "results": [result]}
    reading = one(json.dumps(told, indent=1) + "\n")
    assert (reading.gpu_count, reading.gpu_names) == (8, ("NVIDIA H100",))
    assert reading.rows
    assert (reading.rows[0].operation, reading.rows[0].busbw_gb_s) == ("all_reduce", 437.5)


def test_an_environment_report_holds_several_outputs() -> None:
    text = (
        "PyTorch version: 2.6.0\nGPU models and configuration: \n"
        "GPU 0: NVIDIA L4\nGPU 1: NVIDIA L4\n"
        "Nvidia driver version: 550.90.07\nGPU Topology:\n\tGPU0\tGPU1\tCPU Affinity\n"
        "GPU0\t X \tPHB\t0-7\nGPU1\tPHB\t X \t0-7\n"
    )
    environment, matrix = read_evidence(text)
    assert (environment.gpu_names, environment.driver) == (("NVIDIA L4",) * 2, "550.90.07")
    assert matrix.matrix == (("X", "PHB"), ("PHB", "X"))


def test_a_stored_benchmark_comes_back_whole() -> None:
    benchmark = Benchmark("all_gather", 361.4, 1 << 34, None, "H200", 8, 1, "NV18", healthy=True)
    assert from_words(to_words(benchmark)) == benchmark
    assert consistent(benchmark) is None


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"op": "gossip"}, "op"),
        ({"busbw_gbs": None}, "busbw_gbs"),
        ({"busbw_gbs": -1}, "busbw_gbs"),
        ({"gpus": 0}, "gpus"),
        ({"gpus": 1}, "busbw_gbs"),
    ],
)
def test_a_row_that_cannot_be_a_fact_names_its_field(
    changes: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidBenchmark, match=f"^{field} is "):
        from_words({"op": "all_reduce", "busbw_gbs": 100.0, "gpus": 8} | changes)


@pytest.mark.parametrize(
    ("mode", "virtual"),
    [("None", False), ("Pass-Through", True), ("VGPU", True), ("Host VGPU", None), ("N/A", None)],
)
def test_a_query_says_whether_it_is_seen_from_a_guest(mode: str, virtual: bool | None) -> None:
    text = f"""==============NVSMI LOG==============

Driver Version                            : 570.86.15
CUDA Version                              : 12.8

Attached GPUs                             : 1
GPU 00000000:04:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    GPU Virtualization Mode
        Virtualization Mode               : {mode}
        Host VGPU Mode                    : N/A
    FB Memory Usage
        Total                             : 81559 MiB
"""
    (reading,) = read_evidence(text)
    assert reading.virtual is virtual
