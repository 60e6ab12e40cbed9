"""Ranges from uncertain constants: named causes, quadrature, spans."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.calibration import constants
from evaluator.estimates import Estimate, Result, Setting, estimate, hull
from evaluator.ranges import Range, exact


def product(*factors: tuple[str, Range]):  # type: ignore[no-untyped-def]
    def model(setting: Setting) -> Result:
        value = 1.0
        for name, values in factors:
            value *= setting.take(name, values)
        return Result(value, {"all": value})

    return model


def test_one_uncertain_factor_gives_its_own_range() -> None:
    found = estimate(product(("a", Range(2, 4, 8))), "s")
    assert (found.value.low, found.value.typical, found.value.high) == pytest.approx((2, 4, 8))


def test_two_alike_factors_add_in_quadrature() -> None:
    found = estimate(product(("a", Range(1, 2, 4)), ("b", Range(1, 2, 4))), "s")
    assert found.value.high == pytest.approx(4 * 2**2**0.5)


def test_the_widest_assumption_is_named() -> None:
    found = estimate(product(("narrow", Range(9, 10, 11)), ("wide", Range(1, 2, 4))), "s")
    assert found.widest == "wide"
    assert found.widest_factor == pytest.approx(4)


def test_what_is_exact_is_no_assumption() -> None:
    assert estimate(product(("a", exact(3))), "s").widest == ""


def test_the_dominating_term_is_named_with_its_share() -> None:
    one = Estimate(exact(10), "s", (("all-reduce", 8.4), ("products", 1.6)))
    assert one.dominating == "all-reduce: 84% of the time"


def test_a_span_holds_every_world_and_says_that_it_is_conditional() -> None:
    slow, fast = Estimate(Range(4, 8, 9), "s"), Estimate(Range(1, 2, 3), "s")
    span = hull([slow, fast], "the link")
    assert (span.value.low, span.value.typical, span.value.high) == (1, 4, 9)
    assert span.conditional
    assert span.widest == "the link"


factors = st.tuples(st.floats(0.1, 1), st.floats(1, 10), st.floats(1, 10)).map(
    lambda parts: Range(parts[0] * parts[1], parts[1], parts[1] * parts[2])
)


@given(factors, factors)
def test_a_known_factor_never_widens_the_range(one: Range, other: Range) -> None:
    before = estimate(product(("a", one), ("b", other)), "s").value
    after = estimate(product(("a", exact(one.typical)), ("b", other)), "s").value
    assert after.high / after.low <= before.high / before.low * (1 + 1e-9)


def test_every_constant_has_a_source_a_date_and_words() -> None:
    for constant in constants().values():
        assert constant.source
        assert constant.date
        assert constant.words
