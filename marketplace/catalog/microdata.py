"""schema.org microdata (itemscope, itemprop) as the objects that JSON-LD would hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from marketplace.catalog.text import clean

MAX_ITEMS, MAX_DEPTH = 20_000, 8

Element = Any
"""An lxml element. lxml has no types of its own."""


def items_of(root: Element) -> Iterator[dict[str, Any]]:
    """Top items in reading order, as far as MAX_ITEMS. Properties that repeat become lists.

    HTML Living Standard, section 5.2.4: the value is `content` of a meta, the address of a link,
    the machine value of data and time, else the text.
    """
    found = 0
    for element in root.iter():
        is_top = isinstance(element.tag, str) and element.get("itemscope") is not None
        if is_top and element.get("itemprop") is None:
            yield _item(element, 0)
            found += 1
            if found >= MAX_ITEMS:
                return


def _item(element: Element, depth: int) -> dict[str, Any]:
    item: dict[str, Any] = {"@type": (element.get("itemtype") or "").split()}
    for child in _properties(element):
        value = _value(child, depth)
        for name in (child.get("itemprop") or "").split():
            item[name] = [*_listed(item[name]), value] if name in item else value
    return item


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _properties(element: Element) -> Iterator[Element]:
    """Elements with itemprop that belong to the item and not to one inside of it."""
    waiting = list(reversed(element))
    while waiting:
        child = waiting.pop()
        if not isinstance(child.tag, str):
            continue
        if child.get("itemprop") is not None:
            yield child
        if child.get("itemscope") is None:
            waiting.extend(reversed(child))


def _value(element: Element, depth: int) -> Any:
    if element.get("itemscope") is not None:
        return _item(element, depth + 1) if depth < MAX_DEPTH else ""
    if element.tag == "meta" or element.get("content"):
        return clean(element.get("content") or "")
    if element.tag in ("a", "link", "area"):
        return clean(element.get("href") or "")
    if element.tag in ("data", "meter"):
        return clean(element.get("value") or "")
    return clean("".join(element.itertext())[:2000])
