"""Boxes of a plan and the lines between them, each with the word for the link that it lies on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from evaluator.link_verdicts import SEVERITY, LinkVerdict, LinkWord
from evaluator.links import Use
from evaluator.plans import Plan

CHIP = 26.0
LEFT, LETTER = 14.0, 6.6
"""`LETTER` is the widest that a letter of the words gets: nothing may be cut off."""
JOINED, LEADING = " + ", 13.0
"""Between parts of the words on a wire, which are written one below the other."""
COPIES = "copies"
LETTERS = {
    LinkWord.PROVEN: "P",
    LinkWord.CLAIMED: "C",
    LinkWord.UNKNOWN: "?",
    LinkWord.INSUFFICIENT: "X",
    LinkWord.CONTRADICTED: "X",
    LinkWord.NOT_NEEDED: "",
}


@dataclass(frozen=True, slots=True)
class Spacing:
    """Between boxes: wide and high enough for words, or for lines alone.

    `stages` and `copies` are drawn at most; `stacked` puts them all into one column.
    """

    across: float
    down: float
    under: float
    told: bool = True
    stages: int = 4
    copies: int = 3
    stacked: bool = False

    @property
    def left(self) -> float:
        """Room on the left, where the arrows between copies go around the stages."""
        return LEFT + ROUND if self.stacked else LEFT


ROUND = 14.0
TOLD = Spacing(210.0, 62.0, 34.0)
STACKED = Spacing(0.0, 62.0, 34.0, stages=3, copies=2, stacked=True)
SMALL = Spacing(26.0, 26.0, 12.0, told=False)


@dataclass(frozen=True, slots=True)
class Chip:
    """One GPU, by the number that its driver would give it."""

    x: float
    y: float
    text: str
    side: float = CHIP

    @property
    def middle(self) -> float:
        return self.x + self.side / 2

    @property
    def base(self) -> float:
        return self.y + self.side / 2 + 4


@dataclass(frozen=True, slots=True)
class Box:
    """GPUs that share every layer of one stage of one copy; alone, a single GPU."""

    x: float
    y: float
    width: float
    height: float
    title: str
    chips: tuple[Chip, ...]
    more: int = 0
    machine: int = 0

    @property
    def title_y(self) -> float:
        return self.y + 13

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def middle_y(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class Wire:
    """A line between boxes, or under the chips of one. `words` may be empty: told once each.

    `what` is drawn, over a link of which `word` holds.
    """

    path: str
    mark_x: float
    mark_y: float
    what: str
    word: LinkWord
    words: str = ""
    words_x: float = 0.0
    words_y: float = 0.0
    anchor: str = "start"

    @property
    def lines(self) -> list[tuple[str, float]]:
        """Each part of the words below the one before, about the height where they stand."""
        parts = self.words.split(JOINED) if self.words else []
        top = self.words_y - LEADING * (len(parts) - 1) / 2
        return [(part, top + LEADING * at) for at, part in enumerate(parts)]

    @property
    def letter(self) -> str:
        return LETTERS[self.word]

    @property
    def right(self) -> float:
        """Where the words end."""
        length = max((len(part) for part, _ in self.lines), default=0) * LETTER
        return self.words_x + (length / 2 if self.anchor == "middle" else length)


@dataclass(frozen=True, slots=True)
class Wiring:
    """All lines of a picture, each with the word for the link that it lies on."""

    plan: Plan
    boxes: Mapping[tuple[int, int], Box]
    rows: Sequence[int]
    columns: Sequence[int]
    link: LinkVerdict
    label: Mapping[str, str]
    spacing: Spacing

    def wires(self) -> Iterator[Wire]:
        if self.plan.tp * self.plan.cp > 1:
            yield from self._inside()
        if self.plan.pp > 1:
            yield from self._between_stages()
        if self.plan.dp > 1:
            yield from self._between_copies()

    def _inside(self) -> Iterator[Wire]:
        word, boxes = self._word(INSIDE), list(self.boxes.values())
        for box in boxes:
            yield _inside(box, word, self.label.get("tensor", "") if box is boxes[-1] else "")

    def _between_stages(self) -> Iterator[Wire]:
        draw, told = _down if self.spacing.stacked else _across, self.label.get("stages", "")
        for row in self.rows:
            for left, right in pairwise(self.columns):
                one, other = self.boxes[row, left], self.boxes[row, right]
                word = self._word(STAGES, one.machine != other.machine)
                yield draw(one, other, "between stages", word, self._once(one, told))

    def _between_copies(self) -> Iterator[Wire]:
        around = self.spacing.stacked and len(self.columns) > 1
        draw, told = _around if around else _down, self.label.get(COPIES, "")
        what = f"between {copies_of(self.plan)}"
        for column in self.columns[:1] if around else self.columns:
            for upper, lower in pairwise(self.rows):
                one, other = self.boxes[upper, column], self.boxes[lower, column]
                word = self._word(BETWEEN, one.machine != other.machine)
                yield draw(one, other, what, word, self._once(one, told))

    def _once(self, box: Box, told: str) -> str:
        return told if box is self.boxes[self.rows[0], self.columns[0]] else ""

    def _word(self, uses: Collection[Use], apart: bool | None = None) -> LinkWord:
        """The worst word of the groups that do this, apart from each other or in one machine."""
        found = [part for part in self.link.parts if part.use in uses]
        there = [part for part in found if apart is None or (part.machines > 1) is apart]
        words = [part.word for part in there or found] or [self.link.word]
        return max(words, key=SEVERITY.__getitem__)


INSIDE, STAGES = (Use.TENSOR, Use.CONTEXT), (Use.PIPELINE,)
BETWEEN = (Use.EXPERT, Use.SHARDED, Use.DATA)


def _inside(box: Box, word: LinkWord, words: str) -> Wire:
    y, what = box.bottom + 8, "inside a group"
    path = f"M{box.x + 8:.1f} {box.bottom:.1f}V{y:.1f}H{box.x + box.width - 8:.1f}V{box.bottom:.1f}"
    return Wire(path, box.x + box.width - 24, y, what, word, words, box.x, y + 21)


def _across(left: Box, right: Box, what: str, word: LinkWord, words: str) -> Wire:
    start, end, y = left.x + left.width, right.x, left.middle_y
    middle = (start + end) / 2
    path = f"M{start:.1f} {y:.1f}H{end:.1f}"
    return Wire(path, middle, y, what, word, words, middle, y - 14, "middle")


def _down(upper: Box, lower: Box, what: str, word: LinkWord, words: str) -> Wire:
    x, y = upper.x + 20, lower.y - 22
    path = f"M{x:.1f} {upper.bottom:.1f}V{lower.y:.1f}"
    return Wire(path, x, y, what, word, words, x + 14, y + 4)


def _around(upper: Box, lower: Box, what: str, word: LinkWord, words: str) -> Wire:
    """Past the boxes between the two, on their left."""
    x, y = upper.x - ROUND, lower.y - 22
    path = f"M{upper.x:.1f} {upper.middle_y:.1f}H{x:.1f}V{lower.middle_y:.1f}H{lower.x:.1f}"
    return Wire(path, x, y, what, word, words, x + 14, y + 4)


def part_of(plan: Plan) -> str:
    """What one of the data ranks holds: groups that share experts are no copies of a model."""
    if plan.ep > 1 and plan.shard == 1:
        return "group"
    return "shard" if plan.shard > 1 else "copy"


def copies_of(plan: Plan) -> str:
    alone = plan.dp > 1 and plan.replicas == 1
    return f"{part_of(plan)}s" if alone and part_of(plan) != "copy" else "copies"
