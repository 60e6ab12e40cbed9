"""Saved catalog pages with what must come out of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from marketplace.catalog.base import Page


@dataclass(frozen=True, slots=True)
class PageCase:
    """One case file: its pages, what was listed before, and what is expected."""

    name: str
    pages: tuple[Page, ...]
    expect: Mapping[str, Any]
    known: tuple[str, ...] = ()
    may_quarantine: frozenset[str] = frozenset()
    may_stay: frozenset[str] = frozenset()
    today: date = field(default_factory=lambda: datetime.now(UTC).date())


class UnreadableCase(ValueError):
    """A case file that cannot be judged: the file, and what is wrong with it."""


def case_files(path: Path) -> list[Path]:
    """The *.json files of a folder that hold page cases, or the one file. Raises OSError."""
    if not path.exists():
        raise FileNotFoundError(f"path: read {path}, expected a case file or a folder of them")
    files = [path] if path.is_file() else sorted(path.glob("*.json"))
    return [path.with_suffix(".json") if one.suffix == ".html" else one for one in files]


def read_case(file: Path) -> PageCase:
    """One case. Raises UnreadableCase, naming the file."""
    try:
        data = json.loads(file.read_text("utf-8"))
        expect = data["expect"]
        return PageCase(
            name=str(data.get("case", file.stem)),
            pages=tuple(_pages(file, data.get("source", {}))),
            expect=expect,
            known=tuple(
                str(row["id"])
                for row in data.get("prior_listings", ())
                if row.get("status", "listed") == "listed"
            ),
            may_quarantine=_ids(data, expect, "may_quarantine"),
            may_stay=_ids(data, expect, "may_stay"),
            today=_day(data.get("as_of")),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise UnreadableCase(f"{file.name}: {type(problem).__name__}: {problem}") from problem


def _ids(data: Mapping[str, Any], expect: Mapping[str, Any], key: str) -> frozenset[str]:
    listed = (*data.get(key, ()), *expect.get(key, ()))
    return frozenset(str(one["id"] if isinstance(one, dict) else one) for one in listed)


def _pages(file: Path, source: Mapping[str, Any]) -> Iterator[Page]:
    """`source.pages` maps addresses to files; without it the page has the name of its case."""
    url = str(source.get("url", "https://provider.example/"))
    files = source.get("pages") or {url: f"{file.stem}.html"}
    for address, name in files.items():
        body = (file.parent / str(name)).read_bytes()
        yield Page(str(address), body, str(source.get("content_type", "")))


def _day(stated: str | None) -> date:
    if not stated:
        return datetime.now(UTC).date()
    return datetime.fromisoformat(stated.replace("Z", "+00:00")).date()
