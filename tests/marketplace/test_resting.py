"""What lives long is set aside from the collector, and what was set aside is let go again."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from marketplace.resting import MANY, made_to_rest


class Row:
    """One that holds itself, so that only the collector can let it go."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def nothing_set_aside() -> Iterator[None]:
    yield
    gc.unfreeze()


def rows(count: int) -> list[Row]:
    return [Row() for _ in range(count)]


def test_many_rows_are_set_aside() -> None:
    before = gc.get_freeze_count()
    held = made_to_rest(lambda: rows(MANY), list)
    assert gc.get_freeze_count() - before >= len(held)


def test_few_are_not() -> None:
    before = gc.get_freeze_count()
    assert len(made_to_rest(lambda: rows(10), list)) == 10
    assert gc.get_freeze_count() == before


def test_those_of_before_are_let_go() -> None:
    old = made_to_rest(lambda: rows(MANY), list)
    seen = weakref.ref(old[0])
    del old
    made_to_rest(lambda: rows(MANY), list)
    assert seen() is None


def test_the_collector_goes_on_after_a_failure() -> None:
    def fails() -> list[Row]:
        assert not gc.isenabled()
        raise ValueError("no rows")

    with pytest.raises(ValueError, match="no rows"):
        made_to_rest(fails, list)
    assert gc.isenabled()
