"""A workload's memory per GPU as stacked bars against the memory that common cards report.

A bar is as long as the memory that a card must report to hold its rank, so what an engine leaves
free is a part of it, and a bar fits where it ends before a card's line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluator.budgets import MemoryBudget, RankBudget
from evaluator.ranges import Range
from evaluator.units import GIB
from marketplace.drawing.axes import Tick, ticks, tiers

WIDTH, NARROW, BAR, GAP, BOTTOM = 640.0, 340.0, 30.0, 34.0, 34.0
"""A page of a phone has room for `NARROW` without its words getting small."""
TOP, TIER, WORD = 20.0, 14.0, 46.0
TONES, MOST_ROWS = 6, 4
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LETTERED = 13.0
"""Narrower parts carry no letter; the key and the table still name them."""
ROOM = 1.08
KEPT_FREE = "kept free"


@dataclass(frozen=True, slots=True)
class CardSize:
    """Cards of one memory size: what the smallest of them reports, and whether the job fits."""

    label: str
    reported_bytes: int
    names: tuple[str, ...]
    word: str


@dataclass(frozen=True, slots=True)
class Part:
    """A component of a bar. `letter` stands in the bar and in the key, beside its tone."""

    name: str
    letter: str
    tone: int
    x: float
    width: float
    typical: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def lettered(self) -> bool:
        return self.width >= LETTERED


@dataclass(frozen=True, slots=True)
class Bar:
    """The GPUs of one rank class. `ghost` is where the bar would end with twice the batch."""

    rank: str
    y: float
    parts: tuple[Part, ...]
    low: float
    end: float
    high: float
    ghost: float | None
    needed: Range
    doubled: Range | None

    @property
    def label_y(self) -> float:
        return self.y - 8

    @property
    def middle(self) -> float:
        return self.y + BAR / 2

    @property
    def letter_y(self) -> float:
        return self.y + BAR / 2 + 4


@dataclass(frozen=True, slots=True)
class Line:
    """What cards of one size report. `tier` is the row of its words; None leaves them out.

    `words_x` is the middle of the words: off the line where the edge of the picture is near.
    """

    x: float
    words: str
    word: str
    tier: int | None
    words_x: float

    @property
    def y(self) -> float:
        return 12 + TIER * (self.tier or 0)


@dataclass(frozen=True, slots=True)
class MemoryBars:
    """`left_out` counts rank classes that need less than those drawn."""

    height: float
    top: float
    bars: tuple[Bar, ...]
    lines: tuple[Line, ...]
    ticks: tuple[Tick, ...]
    left_out: int
    description: str
    width: float = WIDTH
    bar: float = BAR

    @property
    def base(self) -> float:
        return self.height - BOTTOM + 10

    @property
    def caption_y(self) -> float:
        return self.height - 8


def memory_bars(
    memory: MemoryBudget,
    doubled: MemoryBudget,
    cards: Sequence[CardSize],
    batch: str,
    width: float = WIDTH,
) -> MemoryBars | None:
    """None without a budget. `doubled` is the budget with twice the batch, which `batch` names."""
    ranked = sorted(memory.ranks, key=lambda rank: rank.bytes.typical, reverse=True)
    if not ranked:
        return None
    shown = ranked[:MOST_ROWS]
    most = _longest(memory, shown, cards)
    scale = width / (ROOM * most)
    lines = tuple(_lines(cards, most * ROOM, scale, width))
    top = TOP + TIER * (1 + max((line.tier or 0 for line in lines), default=0))
    ghosts = {rank.rank: doubled.usable_for(rank) for rank in doubled.ranks}
    bars = tuple(
        _bar(memory, rank, top + 22 + place * (BAR + GAP), scale, ghosts.get(rank.rank), most)
        for place, rank in enumerate(shown)
    )
    return MemoryBars(
        height=bars[-1].y + BAR + BOTTOM,
        top=top,
        bars=bars,
        lines=lines,
        ticks=ticks(most * ROOM / GIB, scale * GIB),
        left_out=len(ranked) - len(shown),
        description=_sentence(memory, bars[0], cards, batch),
        width=width,
    )


def _longest(memory: MemoryBudget, shown: Sequence[RankBudget], cards: Sequence[CardSize]) -> float:
    """The longest whisker, or the first card line beyond it: an answer to "which card then?"."""
    need = max(float(memory.usable_for(rank).high) for rank in shown)
    beyond = (card.reported_bytes for card in cards if card.reported_bytes >= need)
    return max(need, min(beyond, default=need))


def _bar(
    memory: MemoryBudget, rank: RankBudget, y: float, scale: float, ghost: Range | None, most: float
) -> Bar:
    needed = memory.usable_for(rank)
    parts = tuple(_parts(rank, needed, scale))
    return Bar(
        rank=rank.rank,
        y=y,
        parts=parts,
        low=needed.low * scale,
        end=needed.typical * scale,
        high=needed.high * scale,
        ghost=min(ghost.typical, most * ROOM) * scale if ghost else None,
        needed=needed,
        doubled=ghost,
    )


def _parts(rank: RankBudget, needed: Range, scale: float) -> Iterator[Part]:
    sizes = [(part.name.replace("_", " "), float(part.bytes.typical)) for part in rank.components]
    free = float(needed.typical) - sum(size for _, size in sizes)
    x = 0.0
    for place, (name, size) in enumerate([*sizes, (KEPT_FREE, max(0.0, free))]):
        if size:
            tone = 0 if name == KEPT_FREE else place % TONES + 1
            yield Part(name, LETTERS[place], tone, x, size * scale, size)
        x += size * scale


def _lines(cards: Sequence[CardSize], most: float, scale: float, width: float) -> Iterator[Line]:
    inside = [card for card in cards if card.reported_bytes <= most]
    middles = [_inwards(card.reported_bytes * scale, width) for card in inside]
    for card, middle, row in zip(inside, middles, tiers(middles, WORD), strict=True):
        yield Line(card.reported_bytes * scale, card.label, card.word, row, middle)


def _inwards(x: float, width: float) -> float:
    """Words at an edge would be cut off."""
    return min(max(x, WORD / 2), width - WORD / 2)


def _sentence(memory: MemoryBudget, bar: Bar, cards: Sequence[CardSize], batch: str) -> str:
    need = bar.needed
    first = next((card for card in cards if card.word in ("fits", "tight")), None)
    holds = f"the smallest that holds it is {first.label}" if first else "no card here holds it"
    told = (
        f"{bar.rank}: a GPU must report {_gib(need.typical)} "
        f"({_gib(need.low)} to {_gib(need.high)}); {holds}."
    )
    return f"{told} With {batch} it would be {_gib(bar.doubled.typical)}." if bar.doubled else told


def _gib(byte_count: float) -> str:
    return f"{byte_count / GIB:,.1f} GiB"
