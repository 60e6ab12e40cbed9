"""What people type over a column: read, negated, and refused with the place that cannot be read."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketplace.expressions import (
    LONGEST,
    InvalidExpression,
    matches,
    negated,
    parse_numbers,
    parse_words,
)


@pytest.mark.parametrize(
    ("text", "passing", "failing"),
    [
        (">=8", [8, 16], [7]),
        ("> 8", [9], [8]),
        ("<=0.5", [0.5], [0.6]),
        ("8", [8], [80]),
        ("!=8", [7], [8]),
        ("2..4", [2, 3, 4], [1, 5]),
        ("2..", [2, 99], [1]),
        ("..4", [0, 4], [5]),
        ("-1..1", [-1, 0], [2]),
        ("1 or 8", [1, 8], [2]),
        (">2 and <5", [3], [2, 5]),
        ("1 or 4..8 and not 6", [1, 5], [6, 2]),
        ("not (1 or 8)", [2], [1, 8]),
        ("NOT 2..4", [1, 5], [3]),
        ("unknown or 8", [None, 8], [7]),
        ("known", [0], [None]),
        ("not unknown", [0], [None]),
    ],
)
def test_numbers(text: str, passing: list[float | None], failing: list[float | None]) -> None:
    node = parse_numbers(text)
    assert [one for one in passing if not matches(node, one)] == []
    assert [one for one in failing if matches(node, one)] == []


@pytest.mark.parametrize(
    ("text", "passing", "failing"),
    [
        ("4090", ["RTX 4090"], ["H100"]),
        ("rtx 4090", ["NVIDIA RTX 4090 24GB"], ["RTX 6000"]),
        ('="rtx 4090"', ["RTX 4090"], ["NVIDIA RTX 4090"]),
        ("!=H100", ["A100"], ["H100"]),
        ("not spot", ["on demand"], ["spot"]),
        ("eu or us and not west", ["eu-west", "us-east"], ["us-west"]),
        ('"and"', ["sand"], ["sea"]),
        ("unknown", [None], ["x"]),
    ],
)
def test_words(text: str, passing: list[str | None], failing: list[str | None]) -> None:
    node = parse_words(text)
    assert [one for one in passing if not matches(node, one)] == []
    assert [one for one in failing if matches(node, one)] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "It ends where a number"),
        (">=", "It ends where a number"),
        ("8 or", "It ends where a number"),
        ("8 9", "“8 9” at character 1"),
        ("8 or eight", "“eight” at character 6"),
        ("2,4", "“2,4” at character 1"),
        ("..", "“..” at character 1"),
        ("8..2", "begins above its end"),
        (">=2..4", "“2..4” at character 3"),
        ("(8", "not closed"),
        ("8)", "“)” at character 2"),
        ("8 !", "“!” at character 3"),
        ("1" * 16, "cannot be read"),
        ("\u202e8x", "“�8x” at character 1"),
        ("1 or " * 50, "250 characters were read"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(text: str, said: str) -> None:
    with pytest.raises(InvalidExpression, match=None) as refused:
        parse_numbers(text)
    assert said in str(refused.value)


def test_words_are_not_greater_than_others() -> None:
    with pytest.raises(InvalidExpression, match="at character 2"):
        parse_words(">a")


VALUES = st.integers(0, 9)
TERMS = st.one_of(
    VALUES.map(str),
    st.builds("{}{}".format, st.sampled_from(["<", "<=", ">", ">=", "=", "!="]), VALUES),
    st.builds(lambda one, more: f"{one}..{one + more}", VALUES, VALUES),
)
EXPRESSIONS = st.recursive(
    TERMS,
    lambda inner: st.one_of(
        st.builds("({} or {})".format, inner, inner),
        st.builds("({} and {})".format, inner, inner),
        st.builds("not {}".format, inner),
    ),
    max_leaves=6,
).filter(lambda text: len(text) <= LONGEST)


@given(EXPRESSIONS, VALUES)
def test_a_negation_passes_exactly_where_the_expression_fails(text: str, value: int) -> None:
    node = parse_numbers(text)
    assert matches(negated(node), value) is not matches(node, value)
    assert negated(negated(node)) == node


@given(EXPRESSIONS)
def test_nothing_but_the_word_itself_passes_what_is_unknown(text: str) -> None:
    node = parse_numbers(text)
    assert not matches(node, None)
    assert not matches(negated(node), None)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse, value in ((parse_numbers, Decimal(3)), (parse_words, "three")):
        with suppress(InvalidExpression):
            assert matches(parse(text), value) in (True, False)
