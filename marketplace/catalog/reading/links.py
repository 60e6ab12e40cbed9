"""What a page says of the links between GPUs. A form factor is no link, a network is no link."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evaluator.findings import Code, Finding, finding
from evaluator.gpus import candidates
from evaluator.links import CARRIED_BY
from evaluator.machine import LinkClass
from marketplace.catalog.text import bounded

_NV = r"nv[\s-]?link"
_NOT = r"(?:\bno|\bwithout|\bnot|\bnon|\blacks?|\bohne|\bkein|\bsans|\bsin)"
_DENIED = re.compile(
    rf"{_NOT}\s(?:\w{{1,12}}\s)?(?:{_NV}|nv[\s-]?switch)"
    rf"|(?:{_NV}|nv[\s-]?switch)(?:\sbridges?)?\s?[:=(–—-]?\s?(?:is\s|are\s)?"
    r"(?:no\b|none|not\s|n/a|✗|✘|×(?!\s?\d)|unavailable|disabled|false)",
    re.I,
)
_OFFERED = re.compile(
    rf"{_NV}-?\s?c2c|(?:{_NV}|nv[\s-]?switch)(?:\sbridges?)?[\s-](?:ready|capable|compatible|optional|on\srequest|upgrad\w{{1,8}})"
    rf"|(?:optional|supports?|available\swith)\s(?:an?\s)?{_NV}",
    re.I,
)
_P2P_OFF = re.compile(
    r"(?:p2p|peer[\s-]to[\s-]peer|peer\saccess)[^.;]{0,40}?"
    r"(?:disabled|not\s(?:supported|available|possible|enabled)|unavailable|\boff\b|blocked)"
    r"|\bno\s(?:p2p|peer[\s-]to[\s-]peer)|(?:disabled|without)\s(?:p2p|peer[\s-]to[\s-]peer)", re.I,
)  # fmt: skip
_P2P_ON = re.compile(
    r"(?:p2p|peer[\s-]to[\s-]peer|peer\saccess)[^.;]{0,30}?(?:enabled|supported|over\spcie|via\spcie|works|\bon\b)"
    r"|pcie[\s_-](?:p2p|peer)", re.I,
)  # fmt: skip
_SWITCH = re.compile(r"nv[\s-]?switch", re.I)
_PAIRS = re.compile(
    rf"{_NV}[^.;]{{0,60}}?(?:\bpairs?\b|pair-?wise|2[\s-]way|two[\s-]way|\bpaired\b|between\stwo|gpus?\s?\d\s?[-–&+]\s?\d\b|paarweise|par\spaires?|por\spares|em\spares|a\scoppie)"
    rf"|(?:\bpairs?\b|\bpaired\b|pair-?wise|2[\s-]way|two[\s-]way|paarweise)[^.;]{{0,60}}?{_NV}|nvlink[\s_-]pairs?", re.I,
)  # fmt: skip
_BRIDGE = re.compile(
    rf"{_NV}[\s_-]{{1,2}}bridg|{_NV}-?brücke|bridged\s(?:by|with|via)\s(?:an?\s)?{_NV}"
    rf"|bridge[ds]?\s?\(?{_NV}|(?:ponts?|puentes?|pontes?|ponti)\s{_NV}", re.I,
)  # fmt: skip
_NVLINK = re.compile(rf"(?<![a-z]){_NV}(?![a-z])", re.I)
_XGMI = re.compile(r"infinity[\s-]?fabric|\bxgmi\b", re.I)
_ALL = re.compile(
    r"\ball\b(?:[\s-]to[\s-]all)?|every\sgpu|full(?:y)?[\s-](?:mesh|connected)|each\sother|any[\s-]to[\s-]any", re.I
)  # fmt: skip
_PCIE_LINK = re.compile(
    r"(?:shar(?:e|ing)|connected|joined|communicat\w{1,6}|linked|talk\w{0,3}|interconnect(?:ed)?|attached)"
    r"[^.;]{0,40}?pci-?e|pci-?e[\s-]only|(?:over|via|through|across|only)\s(?:the\s)?pci-?e"
    r"|pci-?e\s(?:interconnect|fabric|between)|gpu[\s-]to[\s-]gpu\sover\spci-?e", re.I,
)  # fmt: skip
_MATRIX_ROW = re.compile(
    r"^\s{0,8}GPU\d{1,2}\s{1,8}((?:(?:X|NV\d{1,2}|SYS|NODE|PHB|PXB|PIX)\s{0,8}){1,16})"
)

_FABRIC = re.compile(
    r"(?:\d{1,4}(?:\.\d{1,2})?\s?[x×]?\s?)?(?:\d{1,4}\s?)?(?:[TG]b(?:it)?(?:/s|ps)\s|[TG]bE\s)?"
    r"(?:[nhe]dr\s|quantum-?2?\s|mellanox\s)?(?:infini-?band|\broce(?:v2)?\b|\befa\b|spectrum-x|slingshot|omni-?path)"
    r"(?:\s(?:[nhex]dr\d{0,3}|\d{1,4}\s?[TG]b(?:it)?(?:/s|ps)))?", re.I,
)  # fmt: skip
_FORM_WORDS = re.compile(
    r"\b(?P<form>SXM[2-6]?|OAM|NVL(?!ink|\d))\b(?![-\s]?(?:ready|switch))"
    r"|\b(?P<pcie>PCI-?e)\s(?:cards?|versions?|variants?|editions?|form[\s-]factor|gpus?|models?|boards?"
    r"|add-in|machines?|servers?|nodes?|systems?|instances?|accelerators?)", re.I,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LinkReading:
    """The class that the words claim, None when they claim none. `words` is what was read."""

    link: LinkClass | None = None
    words: str = ""
    reaches_all: bool = False


UNREAD = LinkReading()
_RANK = (
    LinkClass.P2P_DISABLED, LinkClass.NVLINK_PAIRS, LinkClass.NVLINK_BRIDGE, LinkClass.NVSWITCH,
    LinkClass.NVLINK, LinkClass.XGMI, LinkClass.PCIE_P2P, LinkClass.PCIE,
)  # fmt: skip
"""The narrower claim wins: "NVLink, bridges between pairs" joins pairs."""


def read_link(texts: Iterable[str]) -> LinkReading:
    """The narrowest link that any of the texts claims."""
    found = [one for text in texts for one in _claims(bounded(text))]
    return min(found, key=lambda one: _RANK.index(one.link or LinkClass.PCIE), default=UNREAD)


def _claims(text: str) -> Iterator[LinkReading]:
    if _P2P_OFF.search(text):
        yield LinkReading(LinkClass.P2P_DISABLED, text)
    denied = bool(_DENIED.search(text))
    claimed = _OFFERED.sub(" ", _DENIED.sub(" ", text))
    for pattern, link in (
        (_PAIRS, LinkClass.NVLINK_PAIRS),
        (_BRIDGE, LinkClass.NVLINK_BRIDGE),
        (_SWITCH, LinkClass.NVSWITCH),
        (_NVLINK, LinkClass.NVLINK),
        (_XGMI, LinkClass.XGMI),
        (_PCIE_LINK, LinkClass.PCIE),
    ):
        if pattern.search(claimed):
            yield LinkReading(link, text, bool(_ALL.search(claimed)))
    if _P2P_ON.search(text) and not _P2P_OFF.search(text):
        yield LinkReading(LinkClass.PCIE_P2P, text)
    if denied and _NVLINK.search(text):
        # Without NVLink only PCIe is left; without NVSwitch NVLink still may be there.
        yield LinkReading(LinkClass.PCIE, text)


def read_link_field(value: str, label: str) -> LinkReading:
    """A cell under "Interconnect", "NVLink" or "P2P": yes and no count there."""
    words = bounded(value)
    bare = words.lower().strip(" .✓✔")
    subject = bounded(label)
    if not bare or bare in ("-", "–", "—", "n/a", "null", "unknown", "tbd"):
        return LinkReading(LinkClass.NVLINK, subject) if _ticked(words, subject) else UNREAD
    if bare in ("no", "none", "false", "✗", "✘", "nein", "non"):
        return LinkReading(_denial(subject), f"{label}: {words}")
    if bare in ("yes", "true", "included", "ja", "oui") and _NVLINK.search(subject):
        return LinkReading(LinkClass.NVLINK, f"{label}: {words}")
    if re.fullmatch(r"pci-?e(?:[\s-]?(?:gen\s?)?\d(?:\.0)?)?(?:\sx\d{1,2})?", bare):
        return LinkReading(LinkClass.PCIE, words)
    return read_link([f"{words}" if not bare.startswith("bridge") else f"NVLink {words}"])


def _ticked(words: str, subject: str) -> bool:
    return bool(words.strip(" .") in ("✓", "✔") and _NVLINK.search(subject))


def _denial(subject: str) -> LinkClass:
    return LinkClass.P2P_DISABLED if re.search(r"p2p|peer", subject, re.I) else LinkClass.PCIE


def read_matrix(lines: Iterable[str]) -> LinkReading:
    """A printed topology matrix. It shows some machine, so it declares and measures nothing."""
    rows = [match[1].split() for line in lines if (match := _MATRIX_ROW.match(line[:400]))]
    cells = [cell for row in rows for cell in row if cell != "X"]
    if len(rows) < 2 or not cells:
        return UNREAD
    joined = [cell for cell in cells if cell.startswith("NV")]
    words = "topology matrix " + " / ".join(" ".join(row) for row in rows[:8])
    if not joined:
        return LinkReading(LinkClass.PCIE, words)
    whole = len(joined) == len(cells)
    return LinkReading(LinkClass.NVLINK if whole else LinkClass.NVLINK_PAIRS, words, whole)


def read_fabric(texts: Iterable[str]) -> str | None:
    """The network between machines, in the provider's words."""
    for text in texts:
        match = _FABRIC.search(bounded(text))
        if match:
            return match[0].strip()
    return None


def read_form_factor(texts: Iterable[str]) -> str | None:
    """SXM, PCIe, NVL or OAM said of the cards themselves; a PCIe slot or switch says nothing."""
    for text in texts:
        match = _FORM_WORDS.search(bounded(text))
        if match:
            return match["form"].upper() if match["form"] else "PCIe"
    return None


def judge_link(
    reading: LinkReading, model: str | None, form_factor: str | None, gpu_count: int | None
) -> Iterator[Finding]:
    """What a claim leaves open, by what the cards of that name permit at all."""
    if gpu_count == 1:
        return
    link = reading.link
    if link is None:
        if form_factor:
            yield finding(Code.FORM_FACTOR_ONLY, form_factor=form_factor)
        return
    kinds = _permitted(model, form_factor)
    if link in CARRIED_BY and kinds and not CARRIED_BY[link] & kinds:
        yield finding(Code.IMPLAUSIBLE_LINK, link=reading.words[:80], gpu_model=model)
    elif link in (LinkClass.NVLINK_PAIRS, LinkClass.NVLINK_BRIDGE):
        if gpu_count != 2:
            yield finding(Code.LINK_PAIRS_ONLY)
    elif (
        link is LinkClass.NVLINK
        and not reading.reaches_all
        and _may_join_pairs_at_most(kinds, form_factor)
    ):
        yield finding(Code.LINK_SCOPE_UNKNOWN)


def _permitted(model: str | None, form_factor: str | None) -> frozenset[str]:
    cards = candidates(model, form_factor=form_factor) if model else ()
    return frozenset(link.kind for card in cards for link in card.permits)


def _may_join_pairs_at_most(kinds: frozenset[str], form_factor: str | None) -> bool:
    """Also where a version with a switch exists: "8x H100 NVLink" may be cards with bridges."""
    return form_factor in ("PCIe", "NVL") or "nvlink_bridge_optional" in kinds
