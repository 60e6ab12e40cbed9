"""A fetched body as a tree of what a visitor sees. Bytes in, elements out, in linear time."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lxml import etree

from marketplace.catalog.microdata import items_of
from marketplace.catalog.text import strip_unseen

Element = Any
"""An lxml element. lxml has no types of its own."""

_UNSEEN_TAGS = frozenset(
    (
        *("script", "style", "template", "noscript", "iframe", "object", "embed", "svg", "math"),
        *("head", "title", "meta", "link", "canvas", "audio", "video", "datalist"),
    )
)
_HIDING = re.compile(
    r"display:none|visibility:hidden|visibility:collapse|opacity:0(?:\.0{1,9})?(?:;|$|!)"
    r"|font-size:0(?:px|em|rem|pt|%)?(?:;|$|!)|(?:left|top|text-indent):-\d{3,9}"
    r"|clip-path:inset\(100%\)"
)
_RESPONSIVE = re.compile(r":(?:block|flex|grid|inline|table)|^d-\w{2,3}-(?:block|flex|grid|inline)")
_HIDING_CLASSES = frozenset({"hidden", "d-none", "is-hidden"})
_META_CHARSET = re.compile(rb"<meta[^>]{1,200}?charset\s{0,9}=\s{0,9}[\"']?([\w.:-]{1,40})", re.I)
_ROW_ENDS = re.compile(
    r"</(?:tr|li|article|section|div|tbody|table|ul|ol|dl|main|p)\s{0,4}>\s{0,80}$", re.I
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A body as text. `replaced` counts bytes that are not valid in the page's encoding."""

    text: str
    encoding: str
    replaced: int


@dataclass(frozen=True, slots=True)
class Document:
    """`root` holds visible elements only, `scripts` the texts of JSON blocks, by type.

    `torn` says that the body breaks off inside a row.
    `hid_text` says that text which no visitor sees was taken out. `next_links` are the (rel, href)
    of links that carry a relation, the head included. `dates` are those the page gives itself,
    `items` its microdata.
    """

    root: Element
    scripts: tuple[tuple[str, str], ...]
    replaced: int
    hid_text: bool
    whole: bool
    next_links: tuple[tuple[str, str], ...] = ()
    dates: tuple[str, ...] = ()
    text_start: str = ""
    torn: bool = False
    items: tuple[dict[str, Any], ...] = ()


def decode(body: bytes, content_type: str = "") -> Decoded:
    """By byte order mark, header, meta element, else UTF-8, else the web's default windows-1252."""
    for mark, encoding in _BOMS:
        if body.startswith(mark):
            return _decoded(body[len(mark) :], encoding)
    stated = _stated_encoding(body, content_type)
    if stated:
        return _decoded(body, stated)
    utf8 = _decoded(body, "utf-8")
    return utf8 if not utf8.replaced else _decoded(body, "windows-1252")


def _stated_encoding(body: bytes, content_type: str) -> str | None:
    header = re.search(r"charset\s{0,9}=\s{0,9}\"?([\w.:-]{1,40})", content_type, re.I)
    meta = _META_CHARSET.search(body[:2048])
    for name in (header and header[1], meta and meta[1].decode("ascii", "replace")):
        try:
            if name:
                return codecs.lookup(name).name
        except LookupError:
            continue
    return None


def _decoded(body: bytes, encoding: str) -> Decoded:
    try:
        return Decoded(body.decode(encoding), encoding, 0)
    except UnicodeDecodeError:
        text = body.decode(encoding, "replace")
        genuine = body.count("\ufffd".encode()) if encoding == "utf-8" else 0
        return Decoded(text, encoding, max(1, text.count("\ufffd") - genuine))
    except (LookupError, TypeError, UnicodeError):
        return Decoded(body.decode("utf-8", "replace"), "utf-8", 0)


def read_document(body: bytes, content_type: str = "") -> Document:
    """Parse a body and keep what is visible. Never raises: an empty body gives an empty tree."""
    decoded = decode(body, content_type)
    root = _parse(decoded.text)
    scripts = tuple(_json_scripts(root))
    relations, dates = tuple(_relations(root)), tuple(_dates(root))
    whole, items = _is_whole(decoded.text), tuple(items_of(root))
    hid = _prune(root, _hidden_selectors(root))
    return Document(
        root,
        scripts,
        decoded.replaced,
        hid,
        whole,
        relations,
        dates,
        decoded.text[:20_000],
        torn=not whole and not _ROW_ENDS.search(decoded.text[-200:]),
        items=items,
    )


def _relations(root: Element) -> Iterator[tuple[str, str]]:
    for element in root.iter("link", "a"):
        if element.get("rel"):
            yield element.get("rel"), element.get("href") or ""


def _dates(root: Element) -> Iterator[str]:
    """What `<meta>` names as the day of the last change."""
    for element in root.iter("meta"):
        name = (
            element.get("name") or element.get("property") or element.get("http-equiv") or ""
        ).lower()
        if name in (
            "last-modified",
            "date",
            "dcterms.modified",
            "article:modified_time",
            "revised",
        ):
            yield element.get("content") or ""


def _parse(text: str) -> Element:
    parser = etree.HTMLParser(
        huge_tree=True, remove_comments=True, remove_pis=True, encoding="utf-8"
    )
    # A NUL ends the document for the parser; lone surrogates cannot be encoded.
    source = text.replace("\x00", "").encode("utf-8", "ignore")
    try:
        root = etree.fromstring(source, parser) if source.strip() else None
    except etree.LxmlError:
        root = None
    return root if root is not None else etree.Element("html")


def _is_whole(text: str) -> bool:
    """A document that opens `<html` and never closes it was cut on its way.

    Short bodies and fragments may leave the end tag out, as the standard allows.
    """
    tail = text.rstrip()[-4096:].lower()
    if "<html" not in text[:4096].lower():
        return True
    return "</html" in tail or "</body" in tail


def _json_scripts(root: Element) -> Iterator[tuple[str, str]]:
    for script in root.iter("script"):
        kind = (script.get("type") or "").strip().lower().split(";")[0]
        text = script.text or ""
        inside = any(parent.tag in ("template", "noscript") for parent in script.iterancestors())
        if text.strip() and not inside:
            yield kind, text


def _hidden_selectors(root: Element) -> frozenset[str]:
    """Simple selectors (.class, #id) that a style sheet of the page hides outside @media."""
    hidden: set[str] = set()
    for style in root.iter("style"):
        hidden.update(_hidden_in(style.text or ""))
    return frozenset(hidden)


def _hidden_in(css: str) -> Iterator[str]:
    depth, pieces = 0, re.split(r"([{}])", css)
    for before, brace, after in zip(pieces[::2], pieces[1::2], pieces[2::2], strict=False):
        if brace == "{" and depth == 0 and _hides(after):
            selectors = (selector.strip() for selector in before.split("}")[-1].split(","))
            yield from (one for one in selectors if re.fullmatch(r"[.#][\w-]{1,80}", one))
        depth += 1 if brace == "{" else -1


def _hides(declarations: str) -> bool:
    return bool(_HIDING.search("".join(declarations.lower().split())))


def _prune(root: Element, selectors: frozenset[str]) -> bool:
    """Take unseen elements out, keeping the text after them. True when a listing's text went."""
    unseen = [one for one in root.iter() if one.tag in _UNSEEN_TAGS or _is_hidden(one, selectors)]
    found = [one for one in unseen if _may_hold_listings(one) and _says_something(one)]
    for element in unseen:
        _remove(element)
    return bool(found)


def _may_hold_listings(element: Element) -> bool:
    """A template, or an element that only its style hides. A script is no text."""
    return element.tag == "template" or element.tag not in _UNSEEN_TAGS


def _is_hidden(element: Element, selectors: frozenset[str]) -> bool:
    if element.get("hidden") is not None and element.get("hidden") != "until-found":
        return True
    if element.tag == "input" or _hides(element.get("style") or ""):
        return True
    classes = (element.get("class") or "").split()
    if _HIDING_CLASSES & set(classes) and not any(map(_RESPONSIVE.search, classes)):
        return True
    return any(f".{name}" in selectors for name in classes) or (
        f"#{element.get('id')}" in selectors
    )


def _says_something(element: Element) -> bool:
    return bool(strip_unseen("".join(element.itertext())).strip())


def _remove(element: Element) -> None:
    parent = element.getparent()
    if parent is None:
        return
    tail = element.tail
    previous = element.getprevious()
    parent.remove(element)
    if tail and previous is not None:
        previous.tail = (previous.tail or "") + tail
    elif tail:
        parent.text = (parent.text or "") + tail
