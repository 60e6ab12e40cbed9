"""The constants of every time estimate: low, typical and high, each with its source and date."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from evaluator.ranges import Range


@dataclass(frozen=True, slots=True)
class Constant:
    """One fitted or published figure. `unit` is that of `range`; "1" is a share or a factor."""

    name: str
    range: Range
    unit: str
    words: str
    source: str
    date: str


@cache
def constants() -> Mapping[str, Constant]:
    """Every constant of `data/timing.toml` by its dotted name."""
    text = files("evaluator").joinpath("data/timing.toml").read_text("utf-8")
    tables = tomllib.loads(text)
    return {
        f"{family}.{name}": _constant(f"{family}.{name}", entry)
        for family, entries in tables.items()
        for name, entry in entries.items()
    }


def _constant(name: str, entry: Mapping[str, object]) -> Constant:
    low, typical, high = (float(str(entry[end])) for end in ("low", "typical", "high"))
    texts = (str(entry[key]) for key in ("unit", "words", "source", "date"))
    return Constant(name, Range(low, typical, high), *texts)


_watching: ContextVar[list[str] | None] = ContextVar("_watching", default=None)


@contextmanager
def watched() -> Iterator[list[str]]:
    """The names of constants in the order in which they are read meanwhile."""
    read: list[str] = []
    token = _watching.set(read)
    try:
        yield read
    finally:
        _watching.reset(token)


def figure(name: str) -> Range:
    """The three values of a constant. Raises KeyError for a name that the file does not hold."""
    read = _watching.get()
    if read is not None:
        read.append(name)
    return constants()[name].range
