"""The provider's own name for a record, and the address of its page."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from marketplace.catalog.document import Element
from marketplace.catalog.reading.labels import Attribute
from marketplace.catalog.records import Record, slug_of
from marketplace.catalog.text import clean

_STRONG = tuple(
    f"data-{name}"
    for name in (
        *("sku", "product-sku", "product-id", "plan-id", "server-id", "machine-id", "instance-id"),
        *("listing-id", "offer-id", "item-id", "plan", "slug", "instance-type", "ref", "code"),
        *("id", "key"),
    )
)
_POSITIONAL = re.compile(
    r"(?:row|card|item|col|column|slide|tab|panel|accordion|collapse|heading|section|box|block|el)"
    r"[-_:]?\d{1,6}|(?:react|radix|headlessui|ember|uid|elementor|wp-block)\S{1,60}|\d{1,2}"
    r"|:r\w{1,4}:",
    re.I,
)
_SAFE = ("http", "https", "")
_LONGEST = 200


def sku_in(root: Element, record: Record) -> str:
    """The provider's own identifier: data attribute, reference column, id, link, else the title.

    An id that only counts positions ("row-3") would give a machine the name of its neighbour.
    """
    return (
        _data_sku(root)
        or _referenced(record)
        or _own_id(root)
        or _linked(record.url)
        or _named(record)
        or slug_of(record.title)
    )[:_LONGEST]


def _data_sku(root: Element) -> str:
    for element in _near(root):
        for name in _STRONG:
            value = clean(element.get(name) or "")
            if value:
                return value
    return ""


def _near(root: Element) -> list[Element]:
    """The element itself, then what stands in it, as far as one card may reach."""
    found = []
    for element in root.iter():
        if isinstance(element.tag, str):
            found.append(element)
        if len(found) >= 60:
            break
    return found


def _referenced(record: Record) -> str:
    cells = record.of(Attribute.SKU)
    ranked = sorted(cells, key=lambda cell: _rank(cell.label))
    return next((clean(cell.text) for cell in ranked if clean(cell.text)), "")


def _named(record: Record) -> str:
    """The provider's name of a plan, where a column gives it beside the GPU."""
    for cell in record.of(Attribute.TITLE):
        name = clean(cell.text)
        if name and cell.label and len(name) <= 60 and (name != record.title or " " not in name):
            return name if " " not in name else slug_of(name)
    return ""


def _rank(label: str) -> int:
    words = label.lower()
    return 0 if "sku" in words else 1 if "slug" in words or "ref" in words else 2


def _own_id(root: Element) -> str:
    for element in _near(root):
        value = clean(element.get("id") or "")
        if value and not _POSITIONAL.fullmatch(value):
            return value
    return ""


def _linked(url: str) -> str:
    parts = urlsplit(url)
    last = parts.path.rstrip("/").rpartition("/")[2]
    useful = re.search(r"\d", last) and not re.fullmatch(r"\d{1,3}|page\d*", last)
    return clean(last) if useful else ""


def url_in(root: Element) -> str:
    """The first link of a record that a browser may follow. `javascript:` is no link."""
    for link in root.iter("a"):
        address = clean(link.get("href") or "")
        if address and is_safe(address) and not address.startswith("#"):
            return address[:1000]
    return ""


def is_safe(address: str) -> bool:
    """Only http and https, absolute or relative, survive."""
    try:
        scheme = urlsplit(address).scheme.lower()
    except ValueError:
        return False
    return scheme in _SAFE and not re.match(r"[\w+.-]{1,30}\s{0,4}:(?!//)", address)
