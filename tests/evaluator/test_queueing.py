"""Queues: the worked examples, and when no percentile is printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.queueing import OpenLoop, closed_rate, saturation_wait

EXAMPLE = OpenLoop(slots=8, arrivals_per_s=1.6, service_seconds=4.0)


def test_erlang_c_of_eight_slots() -> None:
    assert EXAMPLE.waiting_probability() == pytest.approx(0.458, abs=0.001)
    assert EXAMPLE.mean_wait() == pytest.approx(1.14, abs=0.01)


@pytest.mark.parametrize(("share", "seconds"), [(0.95, 5.5), (0.99, 9.6)])
def test_percentiles_of_eight_slots(share: float, seconds: float) -> None:
    found = EXAMPLE.percentile(share)
    assert found is not None
    assert found.typical == pytest.approx(seconds, abs=0.06)
    assert (found.low, found.high) == (found.typical / 2, found.typical * 2)
    assert EXAMPLE.exceeds(found.typical) == pytest.approx(1 - share)


def test_no_percentile_is_printed_above_nine_tenths() -> None:
    assert OpenLoop(8, 1.81, 4.0).percentile(0.95) is None
    assert OpenLoop(8, 1.79, 4.0).percentile(0.95) is not None


def test_a_queue_that_grows_without_end_has_no_mean() -> None:
    assert OpenLoop(8, 2.5, 4.0).mean_wait() is None
    assert OpenLoop(8, 2.5, 4.0).waiting_probability() == 1.0


def test_a_percentile_below_the_share_that_never_waits_is_zero() -> None:
    found = EXAMPLE.percentile(0.5)
    assert found is not None
    assert found.high == 0


@pytest.mark.parametrize(("users", "seconds"), [(100, 7.1), (150, 34.2), (200, 61.4), (250, 88.6)])
def test_users_beyond_saturation_wait_their_turn(users: int, seconds: float) -> None:
    assert saturation_wait(users, 87, 1.84) == pytest.approx(seconds, abs=0.1)


def test_littles_law_of_a_published_row() -> None:
    request = 0.68869 + 499 * 0.03875
    assert closed_rate(25, 500, request) == pytest.approx(623.4, rel=0.02)


loops = st.builds(OpenLoop, st.integers(1, 64), st.floats(0.01, 5), st.floats(0.01, 20))


@given(loops, st.floats(1, 3))
def test_more_arrivals_never_wait_less(loop: OpenLoop, more: float) -> None:
    busier = OpenLoop(loop.slots, loop.arrivals_per_s * more, loop.service_seconds)
    assert busier.waiting_probability() >= loop.waiting_probability() - 1e-9


@given(loops)
def test_probabilities_stay_between_zero_and_one(loop: OpenLoop) -> None:
    assert 0 <= loop.waiting_probability() <= 1
