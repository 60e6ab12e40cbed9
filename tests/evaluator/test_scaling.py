"""Scaling: the worked examples, unclamped efficiencies, curves of a machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.facts import Fact, Grade
from evaluator.machine import LinkClass, Machine
from evaluator.plans import Plan
from evaluator.ranges import exact
from evaluator.scaling import (
    Point,
    amdahl_share,
    amdahl_speedup,
    fit_serial,
    gains,
    grown,
    gustafson_share,
    gustafson_speedup,
    marginal_value,
    strong_curve,
    strong_efficiency,
    weak_curve,
    weak_efficiency,
)
from tests.evaluator.cards import H100, served, trained


def machine(link: LinkClass = LinkClass.NVSWITCH) -> Machine:
    declared = {"grade": Grade.DECLARED, "source": "a page"}
    return Machine(
        specs=(H100,),
        gpu_count=Fact(8, **declared),
        usable_bytes_per_gpu=Fact(H100.usable_bytes, **declared),
        link=Fact(link, **declared),
    )


def test_405b_from_512_to_2048_gpus() -> None:
    base, wide = (512, 1 / 55.19), (2048, 1 / 14.22)
    assert strong_efficiency(base, wide) == pytest.approx(0.970, abs=0.001)
    assert amdahl_share(55.19 / 14.22, 4) == pytest.approx(0.0103, abs=0.0001)


def test_eight_l40s_instead_of_four_are_worth_nothing() -> None:
    assert marginal_value((4, 177.7), (8, 176.2), 177.7 / 4) == pytest.approx(-0.0, abs=0.01)


def test_capacity_makes_two_gpus_worth_more_than_six() -> None:
    points = [Point(Plan(tp=n), exact(rate)) for n, rate in ((1, 912), (2, 6170))]
    first, second = gains(points)
    assert first.efficiency == 1
    assert second.efficiency == pytest.approx(6.8 / 2, abs=0.02)
    assert second.marginal > 5
    assert second.pays


def test_weak_efficiency_compares_times() -> None:
    assert weak_efficiency(19.2, 19.78) == pytest.approx(0.971, abs=0.001)


@given(st.floats(0, 1), st.floats(1.5, 1000))
def test_serial_shares_are_found_again(serial: float, factor: float) -> None:
    assert amdahl_share(amdahl_speedup(serial, factor), factor) == pytest.approx(serial, abs=1e-6)
    again = gustafson_share(gustafson_speedup(serial, factor), factor)
    assert again == pytest.approx(serial, abs=1e-6)


def test_a_fit_needs_two_points() -> None:
    assert fit_serial([(1, 10.0)]) is None
    found = fit_serial([(n, 10 * amdahl_speedup(0.05, n)) for n in (1, 2, 4, 8)])
    assert found is not None
    assert found.amdahl == pytest.approx(0.05)
    assert found.scatter == pytest.approx(0, abs=1e-9)


def test_a_training_curve_rises_with_the_gpus_of_a_switched_machine() -> None:
    points = strong_curve(trained(global_batch=64), machine(), [4, 8])
    assert [point.gpus for point in points] == [4, 8]
    assert points[1].rate.typical > 1.5 * points[0].rate.typical


def test_counts_on_which_nothing_fits_are_absent() -> None:
    points = strong_curve(served("llama-3.1-70b", "bf16", concurrency=8), machine(), [1, 4])
    assert [point.gpus for point in points] == [4]


def test_a_weak_curve_grows_the_work_with_the_gpus() -> None:
    assert grown(trained(global_batch=8), 8, 4).training.global_batch == 16  # type: ignore[union-attr]
    assert grown(served(concurrency=4), 8, 2).serving.concurrency == 16  # type: ignore[union-attr]
    points = weak_curve(trained(global_batch=16), machine(), [4, 8])
    assert [point.gpus for point in points] == [4, 8]


def test_an_added_gpu_is_worth_what_it_brings_over_the_fastest_before() -> None:
    curve = [Point(Plan(dp=gpus), exact(rate)) for gpus, rate in ((2, 4.0), (3, 1.0), (4, 3.0))]
    assert [(gain.pays, gain.marginal) for gain in gains(curve)[1:]] == [
        (False, -1.5),
        (False, -0.25),
    ]
