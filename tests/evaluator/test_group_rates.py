"""A benchmark is read at the plan's own message: neither the average of its rows nor their peak."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.connections import Rate, Topology, rates_of
from evaluator.group_rates import enough_at, rate_at, reached, speeds_of
from evaluator.units import GB, KIB, MIB
from tests.evaluator.pasted import alike, benchmark_text, matrix_text, seen

CURVE = ((64 * KIB, 1.5), (MIB, 12.0), (64 * MIB, 30.0), (8 << 30, 42.0))


def curve(*points: tuple[int, float], ranks: int = 8) -> tuple[Rate, ...]:
    return tuple(Rate("all_reduce", ranks, size, round(gb * GB)) for size, gb in points)


@pytest.mark.parametrize(
    ("message", "rate"),
    [
        (64 * KIB, 1.5),
        (MIB, 12.0),
        (64 * MIB, 30.0),
        (8 << 30, 42.0),
        (0, 42.0),
        (8 * KIB, 1.5),
        (32 << 30, 42.0),
        (8 * MIB, 25.714),
    ],
)
def test_the_rate_at_a_message_is_its_row_or_lies_between_its_neighbours(
    message: int, rate: float
) -> None:
    found = rate_at(curve(*CURVE), message)
    assert found
    assert found.bytes_per_s / GB == pytest.approx(rate, rel=1e-3)


def test_a_size_outside_of_what_was_run_is_said() -> None:
    found = rate_at(curve((1 << 30, 40.0)), 2 * MIB)
    assert found
    assert found.words == "40 GB/s at 1 GiB messages, the nearest run to the plan's 2 MiB"


@given(st.integers(1, 1 << 34))
def test_between_two_rows_the_rate_stays_between_them(message: int) -> None:
    found = rate_at(curve(*CURVE), message)
    assert found
    assert 1.5 <= found.bytes_per_s / GB <= 42.0 + 1e-9


@given(st.integers(1, 1 << 32), st.integers(2, 16), st.booleans())
def test_more_is_asked_of_larger_messages_and_never_more_than_of_the_largest(
    message: int, ranks: int, fabric: bool
) -> None:
    small, large = (
        enough_at(20 * GB, ranks, size, fabric=fabric) for size in (message, 2 * message)
    )
    assert 0 < small < large < 20 * GB


@pytest.mark.parametrize(
    ("messages", "suffices"), [((), True), ((64 * MIB,), True), ((MIB, 64 * MIB), False)]
)
def test_the_message_at_which_a_group_does_worst_counts(
    messages: tuple[int, ...], suffices: bool
) -> None:
    """Good for large messages, a hundred times too slow for those of a decode step."""
    found = reached(
        curve((MIB, 0.4), (64 * MIB, 30.0), (8 << 30, 42.0)), messages, 20 * GB, fabric=False
    )
    assert found
    assert found.suffices is suffices


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_bandwidth_and_latency_are_known_per_size_of_group(ranks: int) -> None:
    text = "\n".join(
        benchmark_text(size, [(8 * KIB, 0.5), (8 << 30, 40.0 + size)]) for size in (2, 4, 8)
    )
    topology = seen(matrix_text(alike(8, "NODE")) + text).topology
    (speed,) = [one for one in speeds_of(topology) if one.ranks == ranks]
    assert speed.bytes_per_s == (40 + ranks) * GB
    assert speed.latency_s == pytest.approx(8 * KIB * 2 * (ranks - 1) / ranks / 0.5e9, rel=0.05)


def test_runs_over_several_machines_say_nothing_of_groups_in_one() -> None:
    topology = seen(benchmark_text(16, [(8 << 30, 90.0)], nodes=2)).topology
    assert {(rate.ranks, rate.nodes) for rate in topology.rates} == {(16, 2)}
    assert rates_of(topology, 16) == ()
    assert speeds_of(topology) == ()


def test_nothing_run_is_nothing_known() -> None:
    assert rate_at((), 1) is None
    assert rate_at(curve((MIB, 0.0)), MIB) is None
    assert speeds_of(Topology()) == ()
