"""Every warning code there is: what it says, and that the product itself produces it."""

from __future__ import annotations

import pytest

from evaluator.findings import Code, finding, gaps_of
from evaluator.meanings import CLEARS
from tests.codes.judged import JUDGED
from tests.codes.pages import PAGES, Maker
from tests.codes.rows import ROWS
from tests.codes.visits import VISITS

TABLES = (PAGES, VISITS, JUDGED, ROWS)
MAKERS: dict[Code, Maker] = {code: make for table in TABLES for code, make in table.items()}
"""Each code with what makes it from real inputs. A code without an entry fails its test."""


@pytest.mark.parametrize("code", Code, ids=lambda code: code.value)
def test_each_code_names_the_gap_the_remedy_and_what_clears_it(code: Code) -> None:
    words = {name: f"<{name}>" for name in gaps_of(code)}
    made = finding(code, **words)
    assert made.sentence.endswith((".", ">"))
    assert made.remedy
    assert all(word in made.sentence + made.remedy for word in words.values())
    assert CLEARS.search(code.meaning.remedy + made.clearing)


@pytest.mark.django_db
@pytest.mark.parametrize("code", Code, ids=lambda code: code.value)
def test_each_code_is_produced_from_what_a_user_or_a_source_gives(code: Code) -> None:
    made = [found for found in MAKERS[code]() if found.code is code]
    assert made
    assert all("{" not in found.sentence + found.remedy for found in made)
    assert all(found.remedy for found in made)


def test_no_code_is_made_twice() -> None:
    assert sum(map(len, TABLES)) == len(MAKERS) == len(Code)
