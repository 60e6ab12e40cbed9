"""The links of a machine as shapes: pair by pair, with NUMA brackets and NICs at the edge.

Plain numbers that a template draws. Knows neither Django nor rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluator.connections import Topology, family
from evaluator.links import words_of
from evaluator.machine import LinkClass

CELL, SMALL_CELL, FEW = 44.0, 32.0, 10
"""A side of a cell in the picture's own units; smaller where there are more GPUs than a few."""
MOST_SHRUNK = 560.0
MOST_DRAWN = 72
"""GPUs of the largest machine that is rented as one; beyond it a paste is no machine."""
LEFT, TOP, GAP, BRACKET = 74.0, 24.0, 14.0, 18.0
TAB = 11.0
"""Height of the corner that holds a declaration."""

TONES = {
    "NV": "fabric",
    "XGMI": "fabric",
    "C2C": "fabric",
    "PIX": "switch",
    "PXB": "switch",
    "PHB": "host",
    "NODE": "node",
    "PCIE": "host",
    "SYS": "far",
    "DIS": "far",
}
MEANINGS = {
    "fabric": "a link made for GPUs (NV# counts its lanes)",
    "switch": "PCIe below one host bridge (PIX, PXB)",
    "host": "through a host bridge (PHB, in AMD's word PCIE)",
    "node": "between host bridges of one NUMA node (NODE)",
    "far": "between NUMA nodes (SYS)",
    "unseen": "not seen",
}
DECLARED = {
    LinkClass.NVSWITCH: "NV",
    LinkClass.NVLINK: "NV",
    LinkClass.XGMI: "XGMI",
}
"""Declarations that speak of every pair. One that joins pairs does not say which."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A pair, or a GPU and a NIC. `declared` is set where the catalog says otherwise."""

    x: float
    y: float
    side: float
    letters: str
    tone: str
    title: str
    declared: str = ""
    grouped: bool = False

    @property
    def middle(self) -> float:
        return self.x + self.side / 2

    @property
    def base(self) -> float:
        """Where the letters stand: lower where a declaration takes the corner above them."""
        return self.y + self.side / 2 + (TAB / 2 + 3 if self.declared else 4)

    @property
    def tab_width(self) -> float:
        return 6.0 * len(self.declared) + 4

    @property
    def tab_x(self) -> float:
        return self.x + self.side - 1 - self.tab_width

    @property
    def tab_middle(self) -> float:
        return self.tab_x + self.tab_width / 2


@dataclass(frozen=True, slots=True)
class Label:
    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Bracket:
    """GPUs of one NUMA node, beside their rows."""

    y: float
    height: float
    text: str

    @property
    def middle(self) -> float:
        return self.y + self.height / 2 + 4


@dataclass(frozen=True, slots=True)
class LinkMatrix:
    """`rows` is the same as text, for the table; `description` states the finding."""

    width: float
    height: float
    cells: tuple[Cell, ...]
    columns: tuple[Label, ...]
    names: tuple[Label, ...]
    brackets: tuple[Bracket, ...]
    tones: tuple[tuple[str, str], ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    description: str

    @property
    def shrinks(self) -> bool:
        """Whether a phone has room for it, with larger letters in its cells."""
        return self.width <= MOST_SHRUNK


def link_matrix(
    topology: Topology,
    declared: LinkClass | None = None,
    groups: Sequence[Sequence[int]] = (),
) -> LinkMatrix | None:
    """The picture of every pair. None where no pair was seen, or more than can be looked at."""
    if not topology.matrix or topology.gpus > MOST_DRAWN:
        return None
    side = CELL if topology.gpus <= FEW else SMALL_CELL
    grid = _Grid(topology, DECLARED.get(declared) if declared else None, side, groups)
    cells = tuple(grid.cells())
    tones = {cell.tone for cell in cells}
    nics = [nic.name for nic in topology.nics]
    return LinkMatrix(
        width=grid.nic_x(len(nics)) + (0 if nics else -GAP) + 2,
        height=TOP + topology.gpus * side + 4,
        cells=cells,
        columns=tuple(grid.columns()),
        names=tuple(Label(BRACKET + 4, grid.y(at) + side / 2 + 4, f"GPU{at}") for at in grid.gpus),
        brackets=tuple(grid.brackets()),
        tones=tuple((tone, words) for tone, words in MEANINGS.items() if tone in tones),
        heads=(*(f"GPU{at}" for at in grid.gpus), *nics),
        rows=tuple(grid.texts()),
        description=describe(topology, declared),
    )


def picture_of(
    topology: Topology | None,
    declared: LinkClass | None,
    groups: Sequence[Sequence[int]] = (),
) -> LinkMatrix | None:
    """The same where it may be that nothing was seen at all."""
    return link_matrix(topology, declared, groups) if topology else None


@dataclass(frozen=True, slots=True)
class _Grid:
    topology: Topology
    declared: str | None
    side: float
    groups: Sequence[Sequence[int]]

    @property
    def gpus(self) -> range:
        return range(self.topology.gpus)

    def y(self, gpu: int) -> float:
        return TOP + gpu * self.side

    def x(self, gpu: int) -> float:
        return LEFT + gpu * self.side

    def nic_x(self, nic: int) -> float:
        return LEFT + self.topology.gpus * self.side + GAP + nic * self.side

    def cells(self) -> Iterator[Cell]:
        for one in self.gpus:
            yield from (self._pair(one, to) for to in self.gpus if to != one)
            for at, nic in enumerate(self.topology.nics):
                word = nic.to_gpus[one] if one < len(nic.to_gpus) else None
                yield self._cell(self.nic_x(at), one, word, f"GPU {one} and {nic.name}")

    def _pair(self, one: int, to: int) -> Cell:
        word = self.topology.between(one, to)
        against = self.declared if word and self.declared != family(word) else None
        together = any(one in group and to in group for group in self.groups)
        title = f"GPUs {one} and {to}"
        return self._cell(self.x(to), one, word, title, against or "", together)

    def _cell(
        self,
        x: float,
        gpu: int,
        word: str | None,
        title: str,
        declared: str = "",
        grouped: bool = False,
    ) -> Cell:
        tone = TONES.get(family(word), "unseen") if word else "unseen"
        said = f"{title}: {word or 'not seen'}" + (f", {declared} declared" if declared else "")
        return Cell(x, self.y(gpu), self.side, word or "?", tone, said, declared, grouped)

    def columns(self) -> Iterator[Label]:
        half = self.side / 2
        yield from (Label(self.x(at) + half, TOP - 8, str(at)) for at in self.gpus)
        for at, nic in enumerate(self.topology.nics):
            yield Label(self.nic_x(at) + half, TOP - 8, nic.name.replace("NIC", "N")[:6])

    def brackets(self) -> Iterator[Bracket]:
        numa = self.topology.numa
        start = 0
        for at in range(1, len(numa) + 1):
            if at == len(numa) or numa[at] != numa[start]:
                height = (at - start) * self.side
                yield Bracket(self.y(start) + 2, height - 4, f"{numa[start] or '?'}")
                start = at

    def texts(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        for one in self.gpus:
            pairs = ("–" if to == one else self.topology.between(one, to) for to in self.gpus)
            nics = (
                nic.to_gpus[one] if one < len(nic.to_gpus) else None for nic in self.topology.nics
            )
            yield f"GPU{one}", tuple(word or "unknown" for word in (*pairs, *nics))


def describe(topology: Topology, declared: LinkClass | None = None) -> str:
    """What the picture shows, in sentences."""
    parts = [f"{topology.gpus} GPUs."]
    if topology.all_to_all:
        parts.append(f"Every pair has {topology.between(0, 1)}.")
    elif topology.islands:
        islands = "; ".join(", ".join(map(str, island)) for island in topology.islands)
        parts.append(f"Fast links join only these: {islands}.")
    elif topology.whole:
        parts.append("No pair has a link made for GPUs.")
    missing = sum(topology.between(*pair) is None for pair in topology.pairs)
    if missing:
        parts.append(f"{missing} of {len(topology.pairs)} pairs were not seen.")
    if topology.gpus > 1 and not topology.all_to_all:
        worst = topology.worst_pair(range(topology.gpus))
        word = topology.between(*worst) or "not seen"
        parts.append(f"The slowest pair is {worst[0]} and {worst[1]}: {word}.")
    if declared:
        parts.append(f"Declared: {words_of(declared)}.")
    return " ".join(parts)
