"""Memory and disk sizes in running text, told apart by the words around them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import lru_cache

from evaluator.units import GB, GIB, KIB, MB, MIB, TB, TIB
from marketplace.catalog.reading.numbers import NUMBER, read_number
from marketplace.catalog.text import bounded
from marketplace.catalog.vram import Scope


class SizeKind(Enum):
    """What a size measures. PLAIN has no words beside it; OTHER is traffic, LPDDR, backup."""

    VRAM = "vram"
    RAM = "ram"
    DISK = "disk"
    OTHER = "other"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class Size:
    """`each_bytes` times `count` as in "8 x 3.84 TB"; `words` is what was printed."""

    each_bytes: int
    count: int
    kind: SizeKind
    scope: Scope
    words: str
    start: int
    number: Decimal = Decimal(0)
    unit: str = ""

    @property
    def total_bytes(self) -> int:
        return self.each_bytes * self.count


UNITS = {
    "kb": 1000, "kib": KIB, "mb": MB, "mib": MIB, "gb": GB, "gib": GIB, "g": GB,
    "tb": TB, "tib": TIB, "t": TB, "pb": 1000 * TB, "go": GB, "to": TB, "mo": MB,
    "гб": GB, "тб": TB,
}  # fmt: skip
_SPELLINGS = {"go": "GB", "to": "TB", "mo": "MB", "t": "TB", "гб": "GB", "тб": "TB"}
_SIZE = re.compile(
    rf"(?<![\w.,/])(?:(?P<count>\d{{1,4}})\s?[x×*]\s?)?(?P<number>{NUMBER})[\s-]?"
    r"(?P<unit>[KMGTP]i?B|[KMGT]o|GIB|TIB|[gmt]i?b|ГБ|ТБ|(?<=\d)[GT](?=\b))(?![\w/]|\sper\ss|ps)"
)
_PER_SECOND = re.compile(r"^\s?(?:/s|ps|/sec|per\ssec)", re.I)

_AFTER: tuple[tuple[SizeKind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(rf"^[\s-]{{0,2}}\(?(?:of\s|à\s|de\s)?(?:{words})", re.I))
    for kind, words in (
        (SizeKind.OTHER, r"lpddr|unified|traffic|transfer|egress|bandwidth|backup|swap|boot\b|object"
                         r"|network\s(?:storage|volume)|shared\sstorage|snapshot|l[123]\b|cache|os\b"),
        (SizeKind.VRAM, r"(?:ecc\s)?(?:hbm|gddr|vram|video|v-?ram|gpu\s?(?:memory|ram|mem)|graphics"
                        r"|(?:on-?board\s)?(?:memory|speicher)?\s?(?:per|/|je|pro|par|por)\s?(?:gpu|card|karte)"
                        r"|(?:each\s)gpu|total\s(?:vram|gpu)|combined\s(?:vram|gpu)|grafikspeicher)"),
        (SizeKind.RAM, r"(?:ecc\s|reg(?:istered)?\s|system\s|host\s|cpu\s|main\s)*"
                       r"(?:ddr|ram\b|memory|mem\b|rdimm|lrdimm|dimm|arbeitsspeicher|mémoire|memoria|pamięci)"),
        (SizeKind.DISK, r"(?:of\s|local\s|fast\s|enterprise\s|direct-attached\s|ephemeral\s|u\.[23]\s|m\.2\s"
                        r"|gen\s?\d\s|pcie\s?(?:gen\s?)?\d?(?:\.0)?\s|datacent(?:er|re)\s|sata\s)*"
                        r"(?:nvme|ssd|hdd|disk|storage|scratch|sata|festplatte|stockage|disque|disco|dysk|volume)"),
    )
)  # fmt: skip
_BEFORE: tuple[tuple[SizeKind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(rf"(?:{words})[^\w]{{0,4}}(?:\((?:total|each|per\sgpu)\)|total|each|per\sgpu)?[^\w]{{0,4}}$", re.I))
    for kind, words in (
        (SizeKind.OTHER, r"lpddr\w{0,2}|boot|backup|traffic|transfer|egress|network\sstorage|cache|swap"),
        (SizeKind.VRAM, r"vram|video\s(?:memory|ram)|gpu\s?(?:memory|ram|mem)|graphics\s(?:memory|ram)|hbm\w{0,3}|gddr\w{0,3}|grafikspeicher"),
        (SizeKind.RAM, r"\bram|(?:system|host|main)\s(?:memory|ram)|memory|\bmem|ddr\w{0,4}|arbeitsspeicher|mémoire|memoria"),
        (SizeKind.DISK, r"nvme|ssds?|hdds?|disks?|storage|scratch|local\sdrive|festplatte|stockage|dysk"),
    )
)  # fmt: skip
_TOTAL = re.compile(
    r"\b(?:total|combined|in\sall|aggregate|altogether|overall|insgesamt|gesamt|sum)\b", re.I
)
_EACH = re.compile(
    r"(?:\bper|/|\bje|\bpro|\bpar|\bpor)\s?(?:gpu|card|accelerator|karte|device|chip)|\beach\b|\bapiece\b|\bje\b", re.I
)  # fmt: skip


def find_sizes(text: str) -> list[Size]:
    """All sizes of a text, each with the words between its neighbours deciding what it is."""
    return list(_sizes(bounded(text)))


@lru_cache(maxsize=2048)
def _sizes(text: str) -> tuple[Size, ...]:
    matches = [one for one in _SIZE.finditer(text) if not _PER_SECOND.match(text, one.end())]
    starts = [0, *(one.end() for one in matches)]
    ends = [*(one.start() for one in matches[1:]), len(text)]
    sizes = (
        _size(match, text[start : match.start()], text[match.end() : end])
        for match, start, end in zip(matches, starts, ends, strict=False)
    )
    return tuple(size for size in sizes if size)


def _size(match: re.Match[str], before: str, after: str) -> Size | None:
    number = read_number(_without_point(match))
    factor = UNITS.get(match["unit"].lower())
    if number is None or factor is None or number.value <= 0:
        return None
    count = int(match["count"]) if match["count"] else 1
    return Size(
        int(number.value * factor), count, _kind(before, after), _scope(before, after),
        match[0], match.start(), number.value, _SPELLINGS.get(match["unit"].lower(), match["unit"]),
    )  # fmt: skip


_POINT_OF_THOUSANDS = re.compile(r"[1-9]\.\d{3}")


def _without_point(match: re.Match[str]) -> str:
    """ "2.048 GB" is how much of Europe writes 2048 GB: no memory is sold in megabytes of GB."""
    number, unit = match["number"], match["unit"].lower()
    grouped = unit in ("gb", "go") and _POINT_OF_THOUSANDS.fullmatch(number)
    return number.replace(".", "") if grouped else number


_CLAUSE = re.compile(r"[,;|•·+]|\s[-–—]\s|\sand\s|\swith\s|\splus\s")


def _kind(before: str, after: str) -> SizeKind:
    for kind, pattern in _AFTER:
        if pattern.match(after):
            return kind
    clause = _CLAUSE.split(before)[-1]
    for kind, pattern in _BEFORE:
        if pattern.search(clause):
            return kind
    return SizeKind.PLAIN


def _scope(before: str, after: str) -> Scope:
    near = _CLAUSE.split(after)[0][:40]
    lead = _CLAUSE.split(before)[-1][-40:]
    if _EACH.search(near) or _EACH.search(lead):
        return Scope.EACH
    return Scope.TOTAL if _TOTAL.search(near) or _TOTAL.search(lead) else Scope.UNKNOWN


def read_unit_hint(label: str) -> int | None:
    """Bytes per unit that a header or field name states: "RAM (GiB)", "memory mib", "disk bytes"."""
    words = re.findall(r"[A-Za-z]{1,12}", label)
    if any(word.lower() in ("byte", "bytes") for word in words):
        return 1
    for word in reversed(words):
        if word.lower() in UNITS and len(word) > 1 and word.lower() not in ("mo", "go", "to"):
            return UNITS[word.lower()]
    return None


def read_size(text: str, label: str = "") -> Size | None:
    """The size in a labelled cell. A bare number takes the unit of its header, else it is unknown."""
    found = find_sizes(text)
    if found:
        return found[0]
    hint = read_unit_hint(label)
    number = _bare(bounded(text))
    if hint is None or number is None or number <= 0:
        return None
    return Size(int(number * hint), 1, SizeKind.PLAIN, Scope.UNKNOWN, f"{text} ({label})", 0)


def _bare(text: str) -> Decimal | None:
    match = re.fullmatch(rf"\s*({NUMBER})\s*", text)
    number = read_number(match[1]) if match else None
    return number.value if number else None


def sum_disks(sizes: Iterator[Size]) -> int | None:
    """Bytes of all local disks named; None when there is none."""
    total = sum(size.total_bytes for size in sizes if size.kind is SizeKind.DISK)
    return total or None
