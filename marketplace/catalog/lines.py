"""Visible elements as lines of text: blocks become lines, inline elements become their parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from lxml import etree

from marketplace.catalog.document import Element
from marketplace.catalog.text import MAX_TEXT, clean

_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd"),
        *("details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure"),
        *("footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html", "legend"),
        *("li", "main", "menu", "nav", "ol", "option", "p", "pre", "search", "section", "summary"),
        *("table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
    )
)
_FORMATTING = frozenset(
    (
        "b",
        "strong",
        "i",
        "em",
        "u",
        "font",
        "mark",
        "small",
        "big",
        "tt",
        "code",
        "abbr",
        "ins",
        "wbr",
    )
)
_STRUCK = frozenset(["s", "del", "strike"])
_STRUCK_CLASS = re.compile(
    r"(?:^|[\s_-])(?:old|was|strike|struck|crossed|list|regular|original|previous|before)[_-]?(?:price)?(?:$|\s)"
    r"|line-through", re.I,
)  # fmt: skip
_FOOTNOTE = re.compile(r"[\d*†‡§¹²³a-c,()\[\] ]{0,6}")
_GLUE_BEFORE = re.compile(r"^[/.,%:;)\]!?]")
_GLUE_AFTER = frozenset("$€£₹¥/([")
_MOST_PARTS = 200
"""More inline parts in one line are a page without blocks; what follows is not read."""


@dataclass(slots=True)
class Line:
    """One line as a visitor reads it. `element` is the block that holds it."""

    element: Element
    text: str
    parts: tuple[str, ...]
    struck: str = ""


@dataclass(slots=True)
class _Builder:
    lines: list[Line] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    glue: bool = True
    struck: list[str] = field(default_factory=list)
    owner: Element = None
    closed: bool = False

    def add(self, text: str | None, owner: Element) -> None:
        if not text:
            return
        text = text[: 4 * MAX_TEXT]
        if self.owner is None and text.strip():
            self.owner = owner
        if self.glue and self.parts and not self.parts[-1][-1:].isspace():
            self.parts[-1] += text
        elif (text.strip() or self.parts) and len(self.parts) < _MOST_PARTS:
            self.parts.append(text)
        self.glue, self.closed = True, False

    def split(self, *, formatting: bool, opening: bool = False) -> None:
        """An inline element begins or ends: a new part, unless it only formats letters.

        Two elements that touch are two words, as in <b>8x L4</b><i>24 GB</i>.
        """
        touching = opening and self.closed
        self.glue = self.glue and formatting and not touching
        self.closed = not opening

    def end(self) -> None:
        text = _join(self.parts)
        parts = tuple(filter(None, map(clean, self.parts)))
        struck = clean(" ".join(self.struck))
        if text or struck:
            self.lines.append(Line(self.owner, text, parts, struck))
        self.parts, self.glue, self.struck, self.owner, self.closed = [], True, [], None, False


def _join(parts: list[str]) -> str:
    pieces: list[str] = []
    last = " "
    for part in parts:
        tight = last.isspace() or part[:1].isspace()
        glued = bool(_GLUE_BEFORE.match(part)) or last in _GLUE_AFTER
        pieces.append(part if tight or glued else " " + part)
        last = part[-1:] or last
    return clean("".join(pieces))


def read_lines(roots: list[Element], skip: frozenset[Element] = frozenset()) -> list[Line]:
    """The lines under some elements, without the elements of `skip` below them."""
    builder = _Builder()
    for root in roots:
        _read(root, builder, skip)
        builder.end()
    return builder.lines


def _read(root: Element, builder: _Builder, skip: frozenset[Element]) -> None:
    walker = etree.iterwalk(root, events=("start", "end"))
    for event, element in walker:
        if event == "start":
            _start(element, root, builder, skip, walker)
        else:
            _close(element, root, builder)


def _start(
    element: Element, root: Element, builder: _Builder, skip: frozenset[Element], walker: Element
) -> None:
    if not isinstance(element.tag, str):
        walker.skip_subtree()
    elif element is not root and (element in skip or _is_left_out(element, builder)):
        walker.skip_subtree()
        builder.split(formatting=False)
    elif element.tag == "pre":
        for line in (element.text or "")[: 4 * MAX_TEXT].split("\n"):
            builder.end()
            builder.add(line, element)
    elif element.tag in _BLOCKS:
        builder.end()
        builder.add(element.text, element)
    else:
        builder.split(formatting=element.tag in _FORMATTING, opening=True)
        builder.add(_label_of_picture(element) or element.text, _block_of(element))


def _is_left_out(element: Element, builder: _Builder) -> bool:
    """Footnote marks would join a price (2.99 with a 2 above is not 2.992); old prices are gone."""
    if element.tag == "sup":
        return bool(_FOOTNOTE.fullmatch("".join(element.itertext())))
    if element.tag in _STRUCK or _is_struck(element):
        builder.struck.append(" ".join(element.itertext())[:MAX_TEXT])
        return True
    return element.tag in ("select", "textarea")


def _is_struck(element: Element) -> bool:
    style = (element.get("style") or "").replace(" ", "").lower()
    if "line-through" in style:
        return True
    classes = element.get("class") or ""
    return element.tag in ("span", "small", "div", "p", "b", "em") and (
        (bool(_STRUCK_CLASS.search(classes)) and "price" in classes.lower())
        or "line-through" in classes
    )


def _label_of_picture(element: Element) -> str | None:
    """A dot or an icon says its state in words for those who cannot see it."""
    if element.tag == "img":
        return f" {element.get('alt') or ''} "
    empty = not (element.text or "").strip() and len(element) == 0
    return (element.get("title") or element.get("aria-label")) if empty else None


def _block_of(element: Element) -> Element:
    for parent in (element, *element.iterancestors()):
        if parent.tag in _BLOCKS:
            return parent
    return element


def _close(element: Element, root: Element, builder: _Builder) -> None:
    if not isinstance(element.tag, str):
        return
    if element.tag in _BLOCKS:
        builder.end()
    else:
        builder.split(formatting=element.tag in _FORMATTING)
    if element is not root:
        parent = element.getparent()
        builder.add(element.tail, _block_of(parent) if parent is not None else element)


def text_of(element: Element) -> str:
    """All visible text of an element in one line, footnotes and old prices left out."""
    return clean(" ".join(line.text for line in read_lines([element])))


def language_of(element: Element) -> str:
    """The nearest `lang` attribute, empty where none is given."""
    for parent in (element, *element.iterancestors()):
        language = parent.get("lang") or parent.get("{http://www.w3.org/XML/1998/namespace}lang")
        if language:
            return str(language)[:20]
    return ""


def headings_above(element: Element, limit: int = 400) -> Iterator[str]:
    """Texts of headings before an element, nearest first, with their short notes."""
    for count, before in enumerate(_before(element)):
        if count > limit:
            return
        if before.tag in ("h1", "h2", "h3", "h4", "h5", "h6", "caption", "legend"):
            yield text_of(before)


def _before(element: Element) -> Iterator[Element]:
    while element is not None:
        yield from element.itersiblings(preceding=True)
        element = element.getparent()
