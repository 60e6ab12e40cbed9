"""The day that a page gives itself: "Prices as of 3 March 2025", "Stand: 01.02.2025"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, timedelta

from evaluator.findings import Code, Finding, finding
from marketplace.catalog.text import bounded

STALE_AFTER = timedelta(days=30)
"""A price list that dates itself further back is old news, however fresh the fetch."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_OTHERS = {
    "mai": 5,
    "mär": 3,
    "okt": 10,
    "dez": 12,
    "fév": 2,
    "avr": 4,
    "aoû": 8,
    "déc": 12,
    "jui": 7,
}
_SAYS = re.compile(
    r"\b(?:as\sof|last\s(?:updated?|modified|changed|checked)|updated?(?:\son)?"
    r"|valid\s(?:from|until|to)|effective|stand|prices?\s(?:from|of|checked)|price\slist|snapshot"
    r"|captured|generated|mise\sà\sjour|aktualisiert|zuletzt|archived?)\b",
    re.I,
)
_ISO = re.compile(r"(?<!\d)(20\d\d)-(\d{2})-(\d{2})(?!\d)")
_DOTTED = re.compile(r"(?<!\d)(\d{1,2})\.(\d{1,2})\.(20\d\d)(?!\d)")
_NAMED = re.compile(
    r"(?<!\w)(?:(\d{1,2})(?:st|nd|rd|th|\.)?\s)?([A-Za-zäéû]{3,9})\.?(?:\s(\d{1,2})(?:st|nd|rd|th)?,)?\s(20\d\d)(?!\d)"
)


def read_page_date(stated: Iterable[str], lines: Iterable[str]) -> date | None:
    """The newest day that meta elements or a line of the page name; None when none does."""
    found = [one for text in stated for one in _dates(text)]
    found += [
        one for line in lines if len(line) < 160 and _SAYS.search(line) for one in _dates(line)
    ]
    return max(found, default=None)


def _dates(text: str) -> list[date]:
    words = bounded(text)[:300]
    found = [_day(int(y), int(m), int(d)) for y, m, d in _ISO.findall(words)]
    found += [_day(int(y), int(m), int(d)) for d, m, y in _DOTTED.findall(words)]
    for first, month, second, year in _NAMED.findall(words):
        number = _month(month)
        if number:
            found.append(_day(int(year), number, int(first or second or 28)))
    return [one for one in found if one]


def _month(word: str) -> int | None:
    start = word.lower()[:3]
    return _MONTHS.index(start) + 1 if start in _MONTHS else _OTHERS.get(start)


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def judge_age(dated: date | None, today: date) -> Finding | None:
    """STALE_PAGE for a page that dates itself more than STALE_AFTER before `today`."""
    if dated is None or today - dated <= STALE_AFTER:
        return None
    return finding(Code.STALE_PAGE, date=dated.isoformat())
