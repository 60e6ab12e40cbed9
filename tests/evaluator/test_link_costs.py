"""What collectives cost: published curves lie in the ranges, and better links never cost more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.exchanges import Operation, bus_factor
from evaluator.gpus import GpuSpec
from evaluator.link_costs import (
    Fabric,
    Group,
    Wire,
    bandwidth,
    busbw_range,
    fabric_of,
    seconds,
    wire_of,
)
from evaluator.machine import LinkClass
from evaluator.ranges import Range
from evaluator.units import GB, MIB
from tests.evaluator.cards import A100, B200, H100, H200, L40S, card, wire

REDUCE, GATHER = Operation.ALL_REDUCE, Operation.ALL_GATHER
HALF_GIB = 512 * MIB


def holds(found: Range | None, value: float) -> bool:
    return found is not None and found.low <= value <= found.high


def on_nvswitch(
    spec: GpuSpec, gpus: int, size: int, op: Operation = REDUCE, switch: bool | None = None
) -> Range:
    found = busbw_range(op, wire(LinkClass.NVSWITCH, spec), gpus, 1, None, size, switch=switch)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("spec", "gpus", "gb_per_s"),
    [
        (A100, 2, 193), (A100, 4, 217), (A100, 8, 222),
        (H100, 2, 318), (H100, 4, 350), (H100, 8, 445),
        (B200, 2, 534), (B200, 4, 634), (B200, 8, 704),
    ],
)  # fmt: skip
def test_published_tables_of_switched_machines_lie_in_a_narrow_range(
    spec: GpuSpec, gpus: int, gb_per_s: float
) -> None:
    found = on_nvswitch(spec, gpus, HALF_GIB)
    assert holds(found, gb_per_s * GB)
    assert found.high / found.low < 1.5


@pytest.mark.parametrize(("gpus", "gb_per_s"), [(4, 363), (5, 414), (6, 436), (7, 460), (8, 473)])
def test_the_switch_adds_up_from_five_gpus_of_an_h200(gpus: int, gb_per_s: float) -> None:
    assert holds(on_nvswitch(H200, gpus, 8 * 2**30), gb_per_s * GB)


def test_the_switch_adds_up_all_reduces_only() -> None:
    large = 16 * 2**30
    assert on_nvswitch(H200, 8, large, GATHER).high < on_nvswitch(H200, 8, large).typical
    assert holds(on_nvswitch(H200, 8, large, switch=False), 367.2 * GB)
    assert not holds(on_nvswitch(H200, 8, large), 367.2 * GB)


@pytest.mark.parametrize(("gpus", "gb_per_s"), [(2, 20.1), (4, 5.2), (8, 1.45)])
def test_pcie_of_unknown_paths_spans_what_machines_of_one_card_showed(
    gpus: int, gb_per_s: float
) -> None:
    found = busbw_range(REDUCE, wire(LinkClass.PCIE, L40S), gpus, 1, None, HALF_GIB)
    assert holds(found, gb_per_s * GB)


@pytest.mark.parametrize(("gpus", "gb_per_s"), [(2, 47.7), (8, 313)])
def test_a_mesh_is_fast_only_when_all_eight_take_part(gpus: int, gb_per_s: float) -> None:
    mesh = wire(LinkClass.XGMI, card("mi300x"))
    assert holds(busbw_range(REDUCE, mesh, gpus, 1, None, 4 * 2**30), gb_per_s * GB)


@pytest.mark.parametrize(
    ("spec", "gpus", "microseconds"),
    [(A100, 2, 10), (A100, 8, 23), (H100, 4, 10), (B200, 8, 25)],
)
def test_the_smallest_messages_cost_the_latency_alone(
    spec: GpuSpec, gpus: int, microseconds: float
) -> None:
    found = seconds(REDUCE, Group(gpus, 1, wire(LinkClass.NVSWITCH, spec)), 8)
    assert found.low <= microseconds * 1e-6 <= found.high


def test_four_machines_of_b200_take_between_the_slower_level_and_the_sum() -> None:
    group = Group(32, 4, wire(LinkClass.NVSWITCH, B200), Fabric(50 * GB))
    found = seconds(REDUCE, group, 4 * 2**30)
    assert found.low >= 16.1e-3
    assert found.low <= 22.05e-3 <= found.high


def test_one_all_reduce_of_a_70b_layer() -> None:
    """134 MB: 0.53 ms at 445 GB/s, 18.1 ms at 13 GB/s; times 320 calls 0.17 or 5.8 s."""
    size = 8192 * 8192 * 2
    fast = seconds(REDUCE, Group(8, 1, wire(LinkClass.NVSWITCH)), size)
    assert fast.low <= 0.53e-3 <= fast.high
    moved = float(bus_factor(REDUCE, 8)) * size
    assert moved / (445 * GB) * 320 == pytest.approx(0.17, rel=0.02)
    slow = seconds(REDUCE, Group(8, 1, Wire(LinkClass.PCIE, 31.5 * GB, benchmarked=13 * GB)), size)
    assert slow.typical == pytest.approx(18.1e-3, rel=0.02)
    assert slow.typical * 320 == pytest.approx(5.8, rel=0.02)


def test_the_middle_sizes_are_slower_than_two_constants_say() -> None:
    group = Group(8, 1, wire(LinkClass.NVSWITCH, A100))
    tiny, large = seconds(REDUCE, group, 8), seconds(REDUCE, group, 2**33)
    straight = tiny.typical + large.typical * MIB / 2**33
    assert seconds(REDUCE, group, MIB).typical > 1.5 * straight


@pytest.mark.parametrize(
    ("words", "gpus", "gb_per_s"),
    [
        ("ib_ndr", 8, 50), ("InfiniBand HDR", 8, 25), ("2x HDR", 8, 6.25), ("EFA 3200 Gb/s", 8, 50),
        ("EFA 4x100 Gb/s", 8, 6.25), ("roce_400", 8, 50), ("InfiniBand 4x200 Gb/s", 8, 12.5),
        ("rdma_400", 8, 50), ("efa", 8, 50), ("tcp_100", 8, 1.5625), ("25GbE", 4, 0.78125),
    ],
)  # fmt: skip
def test_network_words_become_a_rate_for_each_gpu(words: str, gpus: int, gb_per_s: float) -> None:
    found = fabric_of(words, gpus)
    assert found is not None
    assert found.card_bytes_per_s == pytest.approx(gb_per_s * GB)


@pytest.mark.parametrize("words", ["", "unknown", "InfiniBand", "8 NICs PIX"])
def test_words_without_a_rate_name_no_network(words: str) -> None:
    assert fabric_of(words, 8) is None


def test_a_link_that_the_card_does_not_have_is_no_wire() -> None:
    assert wire_of(LinkClass.NVSWITCH, L40S) is None


def test_fewer_links_than_the_card_could_have_carry_less() -> None:
    assert wire(LinkClass.NVSWITCH, H100, links=12).line_bytes_per_s == 300 * GB


sizes = st.integers(1, 2**34)
counts = st.integers(2, 8)
rates = st.floats(1 * GB, 1000 * GB)


@given(counts, sizes, rates, st.floats(1, 4))
def test_more_bandwidth_is_never_slower(gpus: int, size: int, rate: float, more: float) -> None:
    slow, fast = (Wire(LinkClass.NVSWITCH, rate * factor, 5) for factor in (1, more))
    before, after = (seconds(REDUCE, Group(gpus, 1, one), size) for one in (slow, fast))
    assert after.low <= before.low
    assert after.typical <= before.typical
    assert after.high <= before.high


@given(counts, sizes, sizes)
def test_a_larger_message_is_never_faster(gpus: int, one: int, other: int) -> None:
    group = Group(gpus, 1, wire(LinkClass.NVSWITCH))
    small, large = (seconds(REDUCE, group, size) for size in sorted((one, other)))
    assert small.typical <= large.typical


@given(counts, st.floats(0.1, 500))
def test_a_benchmark_within_the_class_never_widens_its_range(gpus: int, gb_per_s: float) -> None:
    known = wire(LinkClass.NVSWITCH)
    tested = Wire(known.kind, known.line_bytes_per_s, known.switch_from, benchmarked=gb_per_s * GB)
    before, after = (bandwidth(one, REDUCE, gpus) for one in (known, tested))
    assert after.high / after.low <= max(before.high / before.low, 1.05 / 0.95 + 1e-9)


def test_a_group_without_its_link_has_no_range() -> None:
    assert busbw_range(REDUCE, None, 8, 1, None, MIB) is None
    assert busbw_range(REDUCE, wire(LinkClass.NVSWITCH), 16, 2, None, MIB) is None
