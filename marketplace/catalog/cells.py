"""The lines of a card as cells: terms with their definitions, "Label: value", figure over label."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

from marketplace.catalog.cards import Card
from marketplace.catalog.document import Element
from marketplace.catalog.identity import sku_in, url_in
from marketplace.catalog.lines import Line, language_of, read_lines
from marketplace.catalog.reading.availability import read_stock
from marketplace.catalog.reading.labels import Attribute, classify
from marketplace.catalog.reading.money import find_money
from marketplace.catalog.reading.subjects import leads_with_gpu
from marketplace.catalog.records import Cell, Record, labelled

_PAIR = re.compile(r"^(?P<label>[^:=]{2,48}?)\s?[:=]\s{0,3}(?P<value>\S.*)$")
_FIGURE = re.compile(r"^[\d.,  ]{1,12}(?:\s?[x×]\s?[\d.,]{1,8})?\s?(?:[KMGT]i?B|[KMGT])?$")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6", "dt", "summary", "legend")
_TITLE_CLASS = re.compile(r"title|name|heading|model", re.I)
_PRICE_LABEL = re.compile(
    r"(?:on[- ]?demand|spot|reserved|hourly|monthly|weekly|daily|our|your|rental|list|preis|prix"
    r"|price|pricing|rates?|cost)"
    r"(?:\s(?:price|rate|cost|from|pro|par|per|/|gpu|hour|hr|month|machine|server|std\.?|stunde|heure|node))*",
    re.I,
)  # fmt: skip
_MOST_LINES = 200
"""A card with more lines is a page in a wrapper; what follows is not read."""


def read_card(card: Card, others: frozenset[Element]) -> Record:
    """One card as a record, without the cards that stand inside it."""
    read = read_lines(list(card.roots), others - set(card.roots))[:_MOST_LINES]
    lines = _joined([part for line in read for part in _between_bars(line)])
    title, rest = _split_title(lines, card)
    cells = tuple(_cells(rest))
    root = card.roots[0]
    record = Record(
        title=title,
        cells=cells,
        language=language_of(root),
        url=next(filter(None, map(url_in, card.roots)), ""),
    )
    return replace(record, sku=next(filter(None, (sku_in(root, record),)), ""))


def _between_bars(line: Line) -> list[Line]:
    """ "8x H100 | 192 vCPU | 2 TB RAM" is several lines in one."""
    segments = [segment.strip() for segment in line.text.split(" | ")]
    if len(segments) < 3:
        return [line]
    words = [one for segment in segments for one in _without_badge(segment) if one]
    return [Line(line.element, one, (one,), line.struck) for one in words]


_BADGE = re.compile(r"(?P<words>.*\S)\s\((?P<badge>[^()]{2,30})\)")


def _without_badge(words: str) -> tuple[str, ...]:
    """ "Oslo (2 left)" is a place and its stock."""
    match = _BADGE.fullmatch(words)
    return match.groups() if match and read_stock(match["badge"]).words else (words,)


_RATE_TAIL = re.compile(
    r"(?:/|(?:per|pro|je|par|por|an?|each|billed|incl|excl|plus|zzgl|inkl)(?![a-z]))"
    r"[^\d$€£₹:]{0,44}",
    re.I,
)
_RATE_HEAD = re.compile(
    r"(?:from|starting(?:\s(?:at|from))?|as\slow\sas|ab|à\spartir\sde|desde|now|only|just"
    r"|our\sprice|on[- ]demand|spot|reserved)\s?:?",
    re.I,
)


def _joined(lines: list[Line]) -> list[Line]:
    """ "From", "$28.80" and "per instance" in three lines are one rate."""
    joined: list[Line] = []
    for line in lines:
        before = joined[-1] if joined else None
        tail = before and _holds_money(before) and _RATE_TAIL.fullmatch(line.text)
        head = before and _RATE_HEAD.fullmatch(before.text) and _holds_money(line)
        if before and (tail or head):
            text = f"{before.text} {line.text}"
            joined[-1] = Line(before.element, text, (*before.parts, *line.parts), before.struck)
        else:
            joined.append(line)
    return joined


def _holds_money(line: Line) -> bool:
    return any(True for _ in find_money(line.text[:200]))


def _split_title(lines: list[Line], card: Card) -> tuple[str, list[Line]]:
    """The heading, or the first line or part that begins with a GPU. The rest keeps its order."""
    heading = next((one for one in lines if _is_heading(one.element, card)), None)
    named = next((one for one in lines if leads_with_gpu(one.text, one.parts)), None)
    chosen = heading if heading and (leads_with_gpu(heading.text) or not named) else named
    chosen = chosen or heading or (lines[0] if lines else None)
    if chosen is None:
        return "", lines
    title = _title_part(chosen)
    return title, [_without(line, title) if line is chosen else line for line in lines]


def _is_heading(element: Element, card: Card) -> bool:
    if element.tag in _HEADINGS:
        return True
    return element not in card.roots and bool(_TITLE_CLASS.search(element.get("class") or ""))


def _title_part(line: Line) -> str:
    if line.element.tag in _HEADINGS or len(line.parts) == 1:
        return line.text
    part = next((one for one in line.parts if leads_with_gpu(one)), line.text)
    return part if len(part) > 3 else line.text


def _without(line: Line, title: str) -> Line:
    """What is left of a line whose first part became the title."""
    rest = line.text.replace(title, " ", 1).strip()
    parts = tuple(part for part in line.parts if part != title)
    return Line(line.element, rest, parts, line.struck)


def _cells(lines: list[Line]) -> Iterator[Cell]:
    waiting: Line | None = None
    skip = False
    for line, following in zip_longest(lines, lines[1:]):
        if skip:
            skip = False
            continue
        if not line.text:
            continue
        if _is_figure_over_label(line, following, waiting) and following is not None:
            yield labelled(following.text, line.text)
            skip = True
        elif waiting is not None and not _is_label(line):
            yield replace(labelled(waiting.text, line.text), parts=line.parts)
            waiting = None
        elif _is_label(line):
            if waiting is not None:
                yield Cell(waiting.text, parts=waiting.parts)
            waiting = line
        else:
            yield from _one_line(line)
    if waiting is not None:
        yield Cell(waiting.text, parts=waiting.parts)


_BY_ITSELF = (
    Attribute.GPU,
    Attribute.AVAILABILITY,
    Attribute.QUANTITY,
    Attribute.LINK,
    Attribute.URL,
)
"""Words that also stand alone as a badge or a button: "Available", "NVLink", "Details"."""


def _is_label(line: Line) -> bool:
    """A line that is nothing but a known label, such as a dt or "Region" over its value."""
    attribute = classify(line.text.rstrip(": "))
    if attribute is None or len(line.text) > 40 or re.search(r"\d", line.text):
        return False
    if line.element.tag in ("dt", "th") or line.text.endswith(":"):
        return True
    if attribute is Attribute.PRICE and not _PRICE_LABEL.fullmatch(line.text.strip()):
        return False
    return attribute not in _BY_ITSELF or line.text.lower() in (
        "availability",
        "status",
        "gpu",
        "interconnect",
    )


def _is_figure_over_label(line: Line, following: Line | None, waiting: Line | None) -> bool:
    return (
        waiting is None
        and following is not None
        and bool(_FIGURE.match(line.text))
        and classify(following.text) is not None
        and len(following.text) < 40
    )


def _one_line(line: Line) -> Iterator[Cell]:
    """ "Label: value" in one line, label and value as inline parts, or plain text."""
    parts = line.parts
    if len(parts) >= 2 and len(parts) % 2 == 0 and all(map(_is_part_label, parts[::2])):
        for label, value in zip(parts[::2], parts[1::2], strict=True):
            yield labelled(label.rstrip(": "), value)
        return
    pairs = [pair for part in parts if (pair := _pair(part))] if len(parts) > 1 else []
    if pairs:
        yield from pairs
        rest = [part for part in parts if _pair(part) is None]
        yield Cell(" ".join(rest), parts=tuple(rest))
        return
    yield _pair(line.text) or Cell(line.text, parts=parts)


def _pair(text: str) -> Cell | None:
    match = _PAIR.match(text)
    if match is None or classify(match["label"]) is None or match["value"].startswith("//"):
        return None
    return labelled(match["label"], match["value"])


def _is_part_label(part: str) -> bool:
    attribute = classify(part.rstrip(": "))
    return attribute is not None and not re.search(r"\d", part) and len(part) < 40
