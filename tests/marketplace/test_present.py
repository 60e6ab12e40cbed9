"""Formatting keeps every digit of money, names its unit, and never prints a guess."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.budgets import FitWord
from evaluator.facts import Grade
from evaluator.host import HostWord
from evaluator.ranges import Range, exact
from evaluator.topology import LinkWord
from evaluator.units import GB, GIB
from evaluator.verdict import Status
from marketplace.standings import STATES
from marketplace.templatetags import outward, present

AMOUNTS = st.decimals(
    min_value=Decimal("0.00000001"), max_value=Decimal(10) ** 11, places=8, allow_nan=False
)
BYTES = st.integers(min_value=0, max_value=10**16)


@given(AMOUNTS)
def test_no_digit_of_an_amount_is_lost_or_added(amount: Decimal) -> None:
    printed, _, currency = present.money(amount, "USD").rpartition(" ")
    assert Decimal(printed.replace(",", "")) == amount
    assert currency == "USD"


@given(AMOUNTS)
def test_an_amount_has_at_least_its_cents(amount: Decimal) -> None:
    assert len(present.money(amount, "EUR").split(" ")[0].partition(".")[2]) >= 2


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (Decimal(1290) / 730, "≈ 1.76712 EUR"),
        (Decimal("1.76712329"), "≈ 1.76712 EUR"),
        (Decimal("19.92000000"), "19.92 EUR"),
        (Decimal("0.00012345"), "0.00012345 EUR"),
    ],
)
def test_a_quotient_is_rounded_and_says_so(amount: Decimal, words: str) -> None:
    assert present.derived_money(amount, "EUR") == words


def test_a_missing_currency_is_said() -> None:
    assert present.money(Decimal("2.5"), "") == "2.50 (currency not stated)"


@given(BYTES)
def test_bytes_name_their_unit_and_are_right_to_a_tenth(count: int) -> None:
    for text, unit, size in ((present.gib(count), " GiB", GIB), (present.gb(count), " GB", GB)):
        assert text.endswith(unit)
        assert abs(float(text.removesuffix(unit).replace(",", "")) - count / size) <= 0.051


@pytest.mark.parametrize(
    "unknown", [present.gib, present.gb, present.gb_per_s, present.money, present.purchase]
)
def test_unknown_is_never_a_number(unknown: object) -> None:
    assert unknown(None) == "unknown"  # type: ignore[operator]


def test_a_range_without_width_is_no_span() -> None:
    assert present.gib_span(exact(3 * GIB)) == ""
    assert present.gib_span(Range(GIB, 2 * GIB, 3 * GIB)) == "1.0–3.0 GiB"


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=20_000)))
def test_an_age_is_never_older_than_the_truth(distance: timedelta) -> None:
    number, unit, _ = present.in_words(distance).replace(",", "").split(" ")
    seconds = {"s": 1, "min": 60, "h": 3600, "d": 86_400}[unit] * int(number)
    assert seconds <= distance.total_seconds() < seconds + max(86_400 * (unit == "d"), 3600)


def test_a_time_to_come_is_not_called_past() -> None:
    assert present.in_words(timedelta(hours=-3)) == "in 3 h"


def test_an_age_carries_its_exact_time() -> None:
    assert 'title="2026-11-30 07:05 UTC"' in present.age(datetime(2026, 11, 30, 7, 5, tzinfo=UTC))
    assert present.age(None) == "never"


def test_a_price_names_its_five_parts() -> None:
    price = SimpleNamespace(
        amount=Decimal("1.49000000"),
        currency="USD",
        unit="hour",
        basis="gpu",
        purchase="reserved",
        term="1 year",
    )
    assert present.rate(price) == "1.49 USD per GPU-hour, reserved, 1 year"


def test_an_unknown_basis_is_said() -> None:
    price = SimpleNamespace(
        amount=Decimal(3), currency=None, unit="month", basis="unknown", purchase="spot", term=""
    )
    assert "per month (of a machine or of a GPU: not stated)" in present.rate(price)
    assert "currency not stated" in present.rate(price)


@given(st.text())
def test_no_word_becomes_markup(text: str) -> None:
    assert "<script" not in present.status(text + "<script>").lower()


@given(st.text(alphabet="`<>&ab \"'"))
def test_commands_become_code_and_nothing_else_becomes_markup(text: str) -> None:
    made = present.with_code(text)
    bare = made.replace("<code>", "").replace("</code>", "")
    assert "<" not in bare
    assert made.count("<code>") == made.count("</code>") == len(re.findall("`[^`]+`", text))


def test_a_command_in_a_remedy_is_code() -> None:
    assert present.with_code("Ask for `nvidia-smi -L`.") == "Ask for <code>nvidia-smi -L</code>."


@pytest.mark.parametrize("word", [*Status, *FitWord, *LinkWord, *HostWord, *STATES])
def test_every_word_of_judgement_has_a_tone_of_its_own_shape(word: str) -> None:
    tone = present.TONE_OF.get(word, "none")
    assert (tone == "none") == (word in ("unknown", "never"))
    assert f'href="#mark-{tone}"' in present.status(word)


def test_each_grade_has_its_own_shape() -> None:
    assert len({present.grade(level) for level in Grade}) == len(Grade)
    assert present.grade(None) == present.grade(Grade.UNKNOWN)


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "java\nscript:alert(1)",
        " javascript:alert(1)",
        "data:text/html,x",
        "https:relative",
        "//evil.example",
        "http://[broken",
        "https://a.example\\@b.example",
        "vbscript:x",
        "",
    ],
)
def test_only_plain_web_addresses_become_links(address: str) -> None:
    assert "<a " not in outward.outward(address)


@given(st.text(max_size=60))
def test_a_link_never_has_another_scheme(text: str) -> None:
    made = outward.outward(text)
    assert "href" not in made or text.lower().startswith(("http://", "https://"))


def test_a_link_tells_browsers_and_crawlers_that_it_leads_away() -> None:
    made = outward.outward('https://a.example/?q="x"')
    assert 'rel="nofollow noopener noreferrer external"' in made
    assert "&quot;x&quot;" in made


@pytest.mark.parametrize(
    ("number", "forms", "said"),
    [(1, "GPU", "1 GPU"), (8, "GPU", "8 GPUs"), (2, "class,classes", "2 classes")],
)
def test_counts_read_as_people_say_them(number: int, forms: str, said: str) -> None:
    assert present.counted(number, forms) == said
