"""The part of CSS selectors that a profile needs, as XPath. Nothing else of XPath gets in.

tag, .class, #id, [name], [name=value], :nth-child(n), with descendants (space) and children (>).
"""

from __future__ import annotations

import re
from functools import lru_cache

from lxml import etree

from marketplace.catalog.document import Element

LONGEST = 300
_NAME = r"[A-Za-z_][\w-]{0,80}"
_STEP = re.compile(
    rf"(?P<tag>{_NAME}|\*)?(?P<rest>(?:[.#]{_NAME}|\[{_NAME}(?:=\"?[\w ./:-]{{1,80}}\"?)?\]"
    r"|:nth-child\(\d{1,3}\)){0,8})",
    re.ASCII,
)
_PART = re.compile(
    rf"[.](?P<class>{_NAME})|#(?P<id>{_NAME})"
    rf"|\[(?P<name>{_NAME})(?:=\"?(?P<value>[\w ./:-]{{1,80}}?)\"?)?\]"
    r"|:nth-child\((?P<place>\d{1,3})\)",
    re.ASCII,
)


class InvalidSelector(ValueError):
    """What was read and which selectors are understood."""


def select(root: Element, selector: str) -> list[Element]:
    """All elements under `root`, in reading order. Raises InvalidSelector."""
    found: list[Element] = _compiled(selector)(root)
    return found


@lru_cache(maxsize=512)
def _compiled(selector: str) -> etree.XPath:
    return etree.XPath(to_xpath(selector))


def to_xpath(selector: str) -> str:
    """ "ul.plans > li" as a path from some element. Raises InvalidSelector."""
    words = re.sub(r"\s{0,9}>\s{0,9}", " > ", selector[: LONGEST + 1]).split()
    if not words or len(selector) > LONGEST or words[0] == ">" or words[-1] == ">":
        raise _invalid(selector)
    path, axis = ".", "//"
    for word in _steps(words):
        if word == ">":
            axis = "/"
            continue
        path, axis = f"{path}{axis}{_step(word, selector)}", "//"
    return path


def _steps(words: list[str]) -> list[str]:
    """Words, with the blanks inside of a quoted value put back."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1].count("[") > joined[-1].count("]"):
            joined[-1] += f" {word}"
        else:
            joined.append(word)
    return joined


def _step(word: str, selector: str) -> str:
    match = _STEP.fullmatch(word)
    if match is None or not word:
        raise _invalid(selector)
    tag = (match["tag"] or "*").lower()
    return tag + "".join(_condition(part) for part in _PART.finditer(match["rest"]))


def _condition(part: re.Match[str]) -> str:
    if part["class"]:
        return f"[contains(concat(' ', normalize-space(@class), ' '), ' {part['class']} ')]"
    if part["id"]:
        return f"[@id='{part['id']}']"
    if part["place"]:
        return f"[count(preceding-sibling::*) = {int(part['place']) - 1}]"
    return f"[@{part['name']}='{part['value']}']" if part["value"] else f"[@{part['name']}]"


def _invalid(selector: str) -> InvalidSelector:
    return InvalidSelector(
        f"read {selector[:80]!r}, expected tags, .classes, #ids, [name=value] or :nth-child(n), "
        "joined by blanks or >"
    )
