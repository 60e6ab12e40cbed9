"""GPU models and their published figures. A label may match several cards; none sets a topology."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from evaluator.units import GB, GIB, MIB

SIZE_TOLERANCE = 0.07
"""A reported size this close to a published one is that size (gpuhunt's rule, catalog.md 3)."""


@dataclass(frozen=True, slots=True)
class PermittedLink:
    """What a form factor can carry, one direction. Never evidence that a machine carries it."""

    kind: str
    generation: int | None = None
    bytes_per_s: int | None = None


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """Published figures of one card. None is unknown. Bytes/s in one direction, dense TFLOPS.

    `devices` is how many GPUs the driver shows for one card; its memory is divided among them.
    """

    id: str
    model: str
    name: str
    vendor: str
    form_factor: str
    label_gb: int
    source: str
    architecture: str = ""
    compute_capability: str | None = None
    memory_type: str = ""
    driver_reported_mib: int | None = None
    usable_bytes: int | None = None
    memory_bytes_per_s: int | None = None
    dense_tflops: Mapping[str, float] = field(default_factory=dict)
    pcie_generation: int | None = None
    pcie_lanes: int | None = None
    pcie_bytes_per_s: int | None = None
    peer_to_peer: str | None = None
    permits: tuple[PermittedLink, ...] = ()
    tdp_watts: int | None = None
    devices: int = 1
    aliases: tuple[str, ...] = ()
    cross_checked_with: tuple[str, ...] = ()
    note: str = ""


@cache
def specs() -> tuple[GpuSpec, ...]:
    """Every card of `data/gpus.toml`, in file order."""
    return tuple(_spec(dict(table)) for table in _published()["gpu"])


@cache
def _published() -> dict[str, Any]:
    return tomllib.loads(files("evaluator").joinpath("data/gpus.toml").read_text("utf-8"))


def _spec(table: dict[str, Any]) -> GpuSpec:
    links = tuple(PermittedLink(**link) for link in table.pop("permits", ()))
    lists: dict[str, Any] = {
        key: tuple(table.pop(key, ())) for key in ("aliases", "cross_checked_with")
    }
    return GpuSpec(permits=links, **lists, **table)


@cache
def specs_of(model: str) -> tuple[GpuSpec, ...]:
    """All cards sold under a canonical model name such as "A100" or "RTX A6000"."""
    return tuple(spec for spec in specs() if spec.model == model)


@cache
def relatives_of(model: str) -> tuple[str, ...]:
    """Models that short names are confused with: H100 and H100 NVL, RTX 3060 and RTX 3060 Ti."""
    root = _root(model)
    names = dict.fromkeys(spec.model for spec in specs() if _root(spec.model) == root)
    return tuple(name for name in names if name != model)


def _root(model: str) -> str:
    return re.sub(r"( NVL| Ti| SUPER| D)+$", "", model)


def known_sizes_gb(model: str) -> tuple[int, ...]:
    """Published label sizes of a model, ascending. Empty for an unknown model."""
    return tuple(sorted({spec.label_gb for spec in specs_of(model)}))


def size_matching(model: str, vram_bytes: float) -> int | None:
    """Label size in GB of the card whose label (as GB or GiB) or driver report is nearest.

    None when no published size lies within SIZE_TOLERANCE.
    """
    distances = [
        (abs(vram_bytes - reference) / reference, spec.label_gb)
        for spec in specs_of(model)
        for reference in _sizes_in_bytes(spec)
    ]
    distance, size = min(distances, default=(1.0, 0))
    return size if distance <= SIZE_TOLERANCE else None


def _sizes_in_bytes(spec: GpuSpec) -> list[int]:
    reported = [spec.driver_reported_mib * MIB] if spec.driver_reported_mib else []
    return [spec.label_gb * GB, spec.label_gb * GIB, *reported]


def candidates(
    model: str, *, label_gb: int | None = None, form_factor: str | None = None
) -> tuple[GpuSpec, ...]:
    """The cards a catalog's words may mean. Words that exclude every card are set aside."""
    found = specs_of(model)
    for fits in (
        lambda spec: label_gb is None or spec.label_gb == label_gb,
        lambda spec: form_factor is None or _same_form(spec.form_factor, form_factor),
    ):
        found = tuple(filter(fits, found)) or found
    return found


def _same_form(published: str, stated: str) -> bool:
    """ "SXM" names every SXM generation; "PCIe LP" is a PCIe card."""
    return published.upper().startswith(stated.upper()) or stated.upper() in published.upper()


# --- names in a provider's text


@dataclass(frozen=True, slots=True)
class Label:
    """What a text calls a GPU. `words` is the part that was read, exactly as written.

    `form_factor` is "SXM" to "SXM6", "PCIe", "NVL" or "OAM" as stated; two that disagree give
    None. `label_gb` holds the memory figures beside the name in GB or GiB as written: each, total
    or both. Link words (NVLink, NVSwitch, bridge) are not read here.
    """

    model: str | None = None
    form_factor: str | None = None
    label_gb: tuple[Decimal, ...] = ()
    words: str = ""


UNREAD = Label()

# Every quantifier is bounded and no two neighbours match the same character, so reading is linear.
_LOOKALIKE = "\u0370-\u058f\u10a0-\u10ff\u13a0-\u13ff\uff10-\uff5a\U0001d400-\U0001d7ff\u017f\u212a"
_HIDDEN = "\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u0300-\u036f"
_NO_LETTER_BEFORE = f"(?<![A-Za-z0-9{_LOOKALIKE}{_HIDDEN}])"
_WORD_ENDS = (
    f"(?:(?![A-Za-z0-9{_LOOKALIKE}{_HIDDEN}])|(?=[xX][0-9]{{1,3}}(?![A-Za-z0-9]))"
    "|(?=(?:SXM[2-6]?|PCI-?E)(?![A-Za-z0-9])))"
)
_OTHER_CARD = r"(?![\s_-]{0,2}(?:Ti|Super|S|D|Ada|SFF|Pro|Laptop|Mobile)(?![A-Za-z0-9]))"
"""RTX 3080 Ti is no RTX 3080: a suffix that our list does not know makes another card."""

_MIXED_WORD = re.compile(f"[A-Za-z0-9][{_LOOKALIKE}]|[{_LOOKALIKE}][A-Za-z0-9]|[\u202a-\u202e]")
_PLAIN = str.maketrans(
    dict.fromkeys("‐‑‒–—−", "-") | dict.fromkeys("™®©\u00a0\u2007\u2009\u202f", " ")
)
_FLAGS = re.IGNORECASE | re.ASCII

_END = r"(?:(?![A-Za-z0-9])|(?=x[0-9]{1,3}(?![A-Za-z0-9])))"
_PCIE = r"PCI(?:-?E| Express)"
_NO_SLOT = r"(?![\s_-]?(?:switch|slot|lane|bus|link|SSD|NVMe))"
_LANES = r"(?:[\s_-]?(?:Gen[\s_-]?)?[3-6](?:\.[0-9])?)?"
_FORM = rf"(?P<form>SXM[2-6]?|NVL|OAM|{_PCIE}{_LANES}{_NO_SLOT}){_END}"
_FORM_ALONE = re.compile(
    rf"(?<![A-Za-z0-9])(?:SXM[2-6]?|NVL|OAM|{_PCIE}(?![\s_-]?(?:Gen|[3-6]|x[0-9])){_NO_SLOT}){_END}",
    _FLAGS,
)
_FIGURE = (
    r"(?P<figure>[0-9]{1,3}(?:,[0-9]{3}|[0-9]?(?:\.[0-9]{1,3})?))\s?(?P<unit>TiB|TB|To|GiB|GB|Go|G)"
    r"(?![A-Za-z0-9/]|[\s_-]?(?:RAM|DDR|LPDDR|NVMe|SSD|HDD|disk|storage|system|host))"
)
_MORE = (
    r"(?:x[0-9]{1,3}|[0-9]{1,3}x|HBM[234]?e?|GDDR[567]X?|NVLink|NVSwitch|GPUs?|Tensor Core"
    r"|Generation|Blackwell|Workstation|Server|Edition|Max-Q|bare-?metal)(?![A-Za-z0-9])"
)
_TAIL = re.compile(rf"[\s_./()|-]{{0,3}}(?:{_FIGURE}|{_FORM}|{_MORE})", _FLAGS)
_FIGURE_BEFORE = re.compile(rf"(?:^|[x×]\s?){_FIGURE}\s(?:NVIDIA\s|AMD\s)?$", _FLAGS)


def read_label(text: str) -> Label:
    """The first GPU named in a bare label, an instance type or a sentence; longest name wins.

    Letters of another script inside a name make it no name (a "Н100" with a Cyrillic letter).
    """
    plain = text.translate(_PLAIN)
    found = _names().search(plain)
    if not found or _MIXED_WORD.search(plain, max(0, found.start() - 16), found.end() + 16):
        return UNREAD
    start, end = found.span("name")
    tail = list(_tail(plain, end))
    before = _FIGURE_BEFORE.search(plain, max(0, start - 24), start)
    figures = [item for item in tail if item["figure"]] or ([before] if before else [])
    return Label(
        model=_models_by_key()[_key(found["name"])],
        form_factor=_form_factor(plain, found["name"], tail),
        label_gb=tuple(_gigabytes(item) for item in figures),
        words=text[start : tail[-1].end() if tail else end],
    )


def _tail(text: str, position: int) -> Iterator[re.Match[str]]:
    while item := _TAIL.match(text, position):
        yield item
        position = item.end()


_GB_IN = {"TB": 1000, "TO": 1000, "TIB": 1024}


def _gigabytes(item: re.Match[str]) -> Decimal:
    return Decimal(item["figure"].replace(",", "")) * _GB_IN.get(item["unit"].upper(), 1)


def _form_factor(text: str, name: str, beside: Iterable[re.Match[str]]) -> str | None:
    """What stands beside the name outweighs words elsewhere: a disk has a PCIe form too."""
    if _key(name).endswith("NVL"):
        return "NVL"
    stated = {_form_name(item["form"]) for item in beside if item["form"]}
    stated = stated or {_form_name(item[0]) for item in _FORM_ALONE.finditer(text)}
    longest = max(stated, key=len, default=None)
    return longest if longest and all(longest.startswith(form) for form in stated) else None


def _form_name(form: str) -> str:
    return "PCIe" if form.upper().startswith("PCI") else form.upper()


@cache
def _names() -> re.Pattern[str]:
    spellings = sorted((name for name, _ in _spellings()), key=len, reverse=True)
    names = "|".join(map(_pattern, spellings))
    count = r"(?:[0-9]{1,3}[xX]?|[xX])?"
    return re.compile(f"{_NO_LETTER_BEFORE}{count}(?P<name>{names})", _FLAGS)


def _pattern(spelling: str) -> str:
    words = r"[\s_-]{0,2}".join(map(re.escape, spelling.split()))
    geforce = re.match(r"RTX|GTX|Quadro|Titan|[AT]?[0-9]", spelling)
    return f"{words}{_WORD_ENDS}{_OTHER_CARD if geforce else ''}"


@cache
def _models_by_key() -> dict[str, str]:
    return {_key(spelling): model for spelling, model in _spellings()}


def _spellings() -> list[tuple[str, str]]:
    """Every model under its own name and under those of the `[spellings]` table."""
    own = [(spec.model, spec.model) for spec in specs()]
    others: Mapping[str, list[str]] = _published()["spellings"]
    return own + [(name, model) for model, names in others.items() for name in names]


def _key(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).upper()
