"""How many GPUs, how many machines, and shares of one GPU."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evaluator.gpus import Label
from marketplace.catalog.reading.names import label_of
from marketplace.catalog.text import bounded

_WORDS = {
    "single": 1, "one": 1, "dual": 2, "two": 2, "double": 2, "twin": 2, "three": 3, "triple": 3,
    "quad": 4, "four": 4, "six": 6, "hexa": 6, "octo": 8, "octa": 8, "eight": 8, "ten": 10,
    "sixteen": 16, "five": 5, "seven": 7, "nine": 9, "twelve": 12,
    "zwei": 2, "drei": 3, "vier": 4, "sechs": 6, "acht": 8, "zehn": 10, "sechzehn": 16,
    "deux": 2, "trois": 3, "quatre": 4, "huit": 8, "seize": 16,
    "dos": 2, "cuatro": 4, "ocho": 8, "due": 2, "quattro": 4, "otto": 8, "dwa": 2, "dwie": 2,
    "cztery": 4, "osiem": 8, "twee": 2, "dois": 2, "duas": 2, "oito": 8,
}  # fmt: skip
WORD = "|".join(_WORDS)
"""Numbers of GPUs as people write them out, for patterns without regard to case."""
CARDS = r"cards?|grafikkarten?|cartes?|tarjetas?|sched[ae]|placas?|kart[ya]?"
_MAKER = (
    r"(?:(?:nvidia|amd|intel|geforce|tesla|instinct|radeon|quadro|dedicated|full|new|gpus?|hgx|dgx"
    rf"|{CARDS})"
    r"[\s:-]{0,3}){0,4}"
)
_BEFORE = re.compile(
    rf"(?:(?<![\d.,])(?P<times>\d{{1,3}}(?:,\d{{3}}){{1,4}}|\d{{1,15}})\s?[x×✕*]\s?[\s_-]?|(?P<glued>(?<![\w.])\d{{1,3}})"
    rf"|(?<![\w.,$€£])(?P<plain>\d{{1,3}})(?:-gpu)?[\s-](?!gb\b)"
    rf"|(?<![a-z])(?P<word>{WORD})[-\s](?:gpu\s)?){_MAKER}$",
    re.I,
)
_AFTER = re.compile(
    r"(?<![a-z0-9])(?<!pcie )(?<!pcie)[x×✕]\s?(?P<times>\d{1,4})(?![\w.]|\s?[GT]i?B)", re.I
)
_GLUED_AFTER = re.compile(r"^[\w -]{2,24}?(?<=\d)x(?P<times>\d{1,3})(?![\w.])", re.I)
_GPUS = re.compile(
    rf"(?<![\w./$€£])(?:(?P<times>\d{{1,15}})(?:\s?[x×])?|(?P<word>{WORD}))[\s-]?(?:full\s|nvidia\s|amd\s)?"
    rf"(?:gpus?|accelerators?|{CARDS})(?![a-z/]|\shours?|-hours?)",
    re.I,
)
_LABELLED = re.compile(
    rf"\b(?:gpus?|count|qty|quantity)\s?[:=]?\s(?P<word>{WORD})\b"
    r"|\b(?:gpus?|count|qty|quantity)\s?[:=]\s?(?P<times>\d{1,9})(?!\w)",
    re.I,
)
_NODES = re.compile(
    r"(?<![\w.])(?P<nodes>\d{1,4}|two|four|eight)[\s-]?(?:x\s)?(?:nodes?|servers|machines|hosts|systems)(?![a-z])",
    re.I,
)
_TIMES_EACH = re.compile(
    r"(?:nodes?|servers|machines|hosts|systems)\s?(?:of|with|[x×]|à|,|each\swith)\s{0,2}\d{1,3}\s?[x×]"
    r"|\b(?:per|each|every|a)\s(?:node|server|machine)",
    re.I,
)
_MULTIPLE = re.compile(
    r"(?<![\w.])(?P<nodes>\d{1,3})\s?[x×]\s{0,2}\(?(?:hgx|dgx|node|server)?\s?\(?(?P<each>\d{1,3})\s?[x×]",
    re.I,
)
_FRACTION = re.compile(
    r"(?<![\d/.])(?P<share>[1-9]/[1-9]\d?|0?\.\d{1,3})\s?(?:[x×]\s?)?(?:of\s(?:an?|one)\s|th\s)?"
    rf"(?:{_MAKER}(?:gpu|$)|vgpu)|(?P<sign>[½¼⅓⅛¾])|(?P<mig>\b[1-7]g\.\d{{1,3}}gb\b)"
    r"|(?P<word>\b(?:half|quarter|third|fractional|shared|sliced?|partial)\b)(?=\s(?:an?\s|of\s|slice\s)?(?:nvidia\s|gpu|vgpu|$))",
    re.I,
)
_NEGATIVE = re.compile(r"\s{0,3}[-−]\d")
_OPEN = re.compile(r"\b(?:up\sto|bis\szu|1\s?(?:x\s)?(?:-|–|to))\s?\d{1,4}(?!\d)", re.I)
_UP_TO = re.compile(r"\b(?:up\sto|bis\szu|1\s?(?:x\s)?(?:-|–|to)\s?)\s?$", re.I)
_PLATFORM = re.compile(r"\b(?:hgx|dgx)\b", re.I)


@dataclass(frozen=True, slots=True)
class Count:
    """GPUs over all `nodes` of one rental. `gpus` None is unknown. `fraction` is a share's words."""

    gpus: int | None = None
    nodes: int = 1
    fraction: str = ""
    stated: bool = False


def read_count(text: str, label: Label | None = None) -> Count:
    """Count beside a GPU name. A name alone is one GPU; a board name such as HGX leaves it open."""
    text = bounded(text)
    label = label or label_of(text)
    before, after = _around(text, label)
    fraction = _fraction(text, before)
    if fraction:
        return Count(1, 1, fraction, True)
    if _MULTIPLE.search(text):
        return _of_machines(_MULTIPLE.search(text))
    gpus = _beside_any(before, after, label) if label.words else _leading(text)
    gpus = _anywhere(text) if gpus is None else gpus
    nodes = read_nodes(text)
    if _NEGATIVE.match(text) and gpus:
        return Count(-gpus, nodes, stated=True)
    if gpus is None:
        open_ended = _PLATFORM.search(text) or _OPEN.search(before[-80:])
        return Count(None if open_ended or nodes > 1 else 1, nodes)
    if nodes > 1 and _TIMES_EACH.search(text):
        return Count(gpus * nodes, nodes, stated=True)
    return Count(gpus, nodes, stated=True)


def _of_machines(match: re.Match[str] | None) -> Count:
    assert match is not None  # noqa: S101
    nodes, each = int(match["nodes"]), int(match["each"])
    return Count(nodes * each, nodes, stated=True)


def _around(text: str, label: Label) -> tuple[str, str]:
    at = text.find(label.words) if label.words else -1
    if at < 0:
        return "", text
    return text[:at], text[at:]


def _beside_any(before: str, after: str, label: Label) -> int | None:
    """Beside the name, or beside the same name further on: "HGX H100, 8x H100 SXM5"."""
    found = _beside(before, after)
    rest = after[1:]
    again = label_of(rest) if found is None else None
    if again is None or again.model != label.model:
        return found
    return _beside(*_around(rest, again))


def _beside(before: str, after: str) -> int | None:
    match = _BEFORE.search(before[-80:])
    if match and not _UP_TO.search(before[: max(0, len(before) - len(match[0]))]):
        digits = match["times"] or match["glued"] or match["plain"]
        return int(digits.replace(",", "")) if digits else _WORDS[match["word"].lower()]
    behind = _AFTER.search(after[:120]) or _GLUED_AFTER.match(after[:40])
    return int(behind["times"]) if behind else None


def _leading(text: str) -> int | None:
    """The count of a machine whose card we do not know: "8x Zephyr 9000"."""
    match = re.match(r"\W{0,3}(\d{1,15})\s?[x×✕*]\s?(?!\d)", text) or _AFTER.search(text[:120])
    return int(match[1]) if match else None


def _anywhere(text: str) -> int | None:
    match = _GPUS.search(text) or _LABELLED.search(text)
    if match is None or _UP_TO.search(text[: match.start()][-20:]):
        return None
    word = match.groupdict().get("word")
    return _WORDS[word.lower()] if word else int(match["times"])


def read_nodes(text: str) -> int:
    """Machines of one rental; 1 unless more are named."""
    match = _NODES.search(bounded(text))
    if match is None:
        return 1
    word = match["nodes"].lower()
    return max(1, int(word) if word.isdigit() else _WORDS[word])


def _fraction(text: str, before: str) -> str:
    match = _FRACTION.search(before) or _FRACTION.search(text)
    return match[0].strip() if match else ""


def read_gpu_total(text: str) -> int | None:
    """ "8 GPUs", "8x GPUs", "GPUs: 8" in a line that names no model."""
    return _anywhere(bounded(text))
