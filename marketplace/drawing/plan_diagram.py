"""A plan as boxes: tensor groups of GPUs, stages from left to right, copies from top to bottom.

Arrows carry what moves in one unit of work. The link's word is told by the pattern of the line and
by a letter on it, never by colour alone. A wide plan is drawn by its first and last parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from evaluator.exchanges import Traffic
from evaluator.link_verdicts import LinkVerdict, LinkWord
from evaluator.placement import Placement, Rank
from evaluator.plans import Plan

CHIP, STEP, PER_ROW, PAD, TITLE = 26.0, 30.0, 4, 10.0, 18.0
LEFT, TOP, MARGIN, LETTER = 14.0, 14.0, 8.0, 6.6
"""`LETTER` is the widest that a letter of the words gets: nothing may be cut off."""
JOINED, LEADING = " + ", 13.0
"""Between parts of the words on a wire, which are written one below the other."""
DRAWN = 1.2
"""Pixels of a page for one unit of the picture."""
MOST_COLUMNS, MOST_ROWS, MOST_CHIPS = 4, 3, 8
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
    """Between boxes: wide and high enough for words, or for lines alone."""

    across: float
    down: float
    under: float


TOLD = Spacing(210.0, 62.0, 34.0)
SMALL = Spacing(26.0, 26.0, 12.0)


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
    """A line between boxes, or under the chips of one. `words` may be empty: told once each."""

    path: str
    mark_x: float
    mark_y: float
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
    def right(self) -> float:
        """Where the words end."""
        length = max((len(part) for part, _ in self.lines), default=0) * LETTER
        return self.words_x + (length / 2 if self.anchor == "middle" else length)


@dataclass(frozen=True, slots=True)
class PlanDiagram:
    width: float
    height: float
    boxes: tuple[Box, ...]
    wires: tuple[Wire, ...]
    notes: tuple[str, ...]
    word: str
    letter: str
    description: str

    @property
    def drawn_width(self) -> float:
        return self.width * DRAWN

    @property
    def drawn_height(self) -> float:
        return self.height * DRAWN


def plan_diagram(
    plan: Plan,
    placed: Placement,
    moved: Sequence[Traffic],
    link: LinkVerdict,
    spacing: Spacing = TOLD,
) -> PlanDiagram:
    """`placed` is the plan's placement, `moved` its traffic, `link` the word for its links."""
    cells = _cells(placed, link)
    columns = _some(plan.pp, MOST_COLUMNS)
    rows = _some(len({key[0] for key in cells}), MOST_ROWS)
    label = _labels(moved)
    size = _box_size(plan)
    boxes = {
        (row, column): _box(cells[row, column], plan, size, _corner(size, spacing, x, y))
        for y, row in enumerate(rows)
        for x, column in enumerate(columns)
    }
    wires = tuple(_wires(plan, boxes, rows, columns, label))
    last = boxes[rows[-1], columns[-1]]
    told = wires if spacing is TOLD else ()
    return PlanDiagram(
        width=max(last.x + last.width, *(wire.right for wire in told), 0.0) + MARGIN,
        height=last.bottom + (spacing.under if plan.tp * plan.cp > 1 else MARGIN),
        boxes=tuple(boxes.values()),
        wires=wires,
        notes=tuple(_notes(plan, rows, len({key[0] for key in cells}), columns)),
        word=link.word.value,
        letter=LETTERS[link.word],
        description=_sentence(plan, link, moved),
    )


Cell = tuple[tuple[Rank, ...], tuple[int, ...]]


def _cells(placed: Placement, link: LinkVerdict) -> Mapping[tuple[int, int], Cell]:
    """Ranks by copy and stage, with the numbers of the GPUs that a known topology gives them."""
    found: dict[tuple[int, int], list[Rank]] = {}
    copies: dict[tuple[int, int], int] = {}
    for rank in placed.ranks:
        copy = copies.setdefault((rank.replica, rank.data), len(copies))
        found.setdefault((copy, rank.stage), []).append(rank)
    seen = iter(link.groups if len(link.groups) == len(found) else ())
    return {
        key: (tuple(ranks), tuple(next(seen, ())) or tuple(rank.gpu for rank in ranks))
        for key, ranks in found.items()
    }


def _some(count: int, most: int) -> list[int]:
    """All of a few; else the first ones and the last."""
    return list(range(count)) if count <= most else [*range(most - 1), count - 1]


def _box_size(plan: Plan) -> tuple[float, float]:
    drawn = min(plan.tp * plan.cp, MOST_CHIPS)
    wide, high = min(drawn, PER_ROW), -(-drawn // PER_ROW)
    width = wide * STEP - (STEP - CHIP) + 2 * PAD
    return max(width, 150.0 if plan.nodes > 1 else 92.0), high * STEP - (
        STEP - CHIP
    ) + 2 * PAD + TITLE


def _corner(
    size: tuple[float, float], spacing: Spacing, column: int, row: int
) -> tuple[float, float]:
    width, height = size
    return LEFT + column * (width + spacing.across), TOP + row * (height + spacing.down)


def _box(cell: Cell, plan: Plan, size: tuple[float, float], corner: tuple[float, float]) -> Box:
    (ranks, gpus), (width, height), (x, y) = cell, size, corner
    shown = gpus[:MOST_CHIPS]
    left = x + (width - min(len(shown), PER_ROW) * STEP + STEP - CHIP) / 2
    chips = tuple(
        Chip(left + place % PER_ROW * STEP, y + TITLE + PAD + place // PER_ROW * STEP, f"{gpu}")
        for place, gpu in enumerate(shown)
    )
    return Box(x, y, width, height, _title(ranks[0], plan), chips, len(gpus) - len(shown))


def _title(rank: Rank, plan: Plan) -> str:
    where = f", machine {rank.machine + 1}" if plan.nodes > 1 else ""
    if plan.pp > 1 and rank.layers:
        return f"layers {rank.first}–{rank.first + rank.layers - 1}{where}"
    if plan.replicas > 1:
        return f"replica {rank.replica + 1}{where}"
    if plan.dp > 1:
        return f"{'shard' if plan.shard > 1 else 'copy'} {rank.data + 1}{where}"
    return f"all layers{where}"


def _labels(moved: Sequence[Traffic]) -> dict[str, str]:
    """Words of an arrow by its use, in the first unit of work: decode steps before prompts."""
    found: dict[str, list[str]] = {}
    for one in moved:
        if one.per == moved[0].per:
            sent = f"{_size(one.sent_bytes)} per {one.per.removeprefix('optimizer ')}"
            found.setdefault(USES.get(one.purpose, COPIES), []).append(f"{sent} ({one.operation})")
    return {use: _shortened(told) for use, told in found.items()}


def _shortened(told: Sequence[str]) -> str:
    more = [f"{len(told) - MOST_TOLD} more"] if len(told) > MOST_TOLD else []
    return JOINED.join([*told[:MOST_TOLD], *more])


MOST_TOLD = 2
COPIES = "copies"
USES = {"tensor parallel": "tensor", "context": "tensor", "pipeline": "stages"}


def _wires(
    plan: Plan,
    boxes: Mapping[tuple[int, int], Box],
    rows: Sequence[int],
    columns: Sequence[int],
    label: Mapping[str, str],
) -> Iterator[Wire]:
    first = boxes[rows[0], columns[0]]
    if plan.tp * plan.cp > 1:
        yield from (_inside(box, "") for box in list(boxes.values())[:-1])
        yield _inside(list(boxes.values())[-1], label.get("tensor", ""))
    for row in rows if plan.pp > 1 else ():
        for left, right in pairwise(columns):
            told = label.get("stages", "") if boxes[row, left] is first else ""
            yield _across(boxes[row, left], boxes[row, right], told)
    for column in columns if plan.dp > 1 else ():
        for upper, lower in pairwise(rows):
            told = label.get(COPIES, "") if boxes[upper, column] is first else ""
            yield _down(boxes[upper, column], boxes[lower, column], told)


def _inside(box: Box, words: str) -> Wire:
    y = box.bottom + 8
    path = f"M{box.x + 8:.1f} {box.bottom:.1f}V{y:.1f}H{box.x + box.width - 8:.1f}V{box.bottom:.1f}"
    return Wire(path, box.x + box.width - 24, y, words, box.x, y + 21)


def _across(left: Box, right: Box, words: str) -> Wire:
    start, end, y = left.x + left.width, right.x, left.middle_y
    middle = (start + end) / 2
    return Wire(f"M{start:.1f} {y:.1f}H{end:.1f}", middle, y, words, middle, y - 14, "middle")


def _down(upper: Box, lower: Box, words: str) -> Wire:
    x, y = upper.x + 20, lower.y - 22
    path = f"M{x:.1f} {upper.bottom:.1f}V{lower.y:.1f}"
    return Wire(path, x, y, words, x + 14, y + 4)


def _notes(plan: Plan, rows: Sequence[int], copies: int, columns: Sequence[int]) -> Iterator[str]:
    if copies > len(rows):
        yield f"{copies - len(rows)} of {copies} copies are left out of the picture."
    if plan.pp > len(columns):
        yield f"{plan.pp - len(columns)} of {plan.pp} stages are left out of the picture."
    if plan.tp * plan.cp > MOST_CHIPS:
        yield f"{MOST_CHIPS} of {plan.tp * plan.cp} GPUs of a group are drawn."


def _sentence(plan: Plan, link: LinkVerdict, moved: Sequence[Traffic]) -> str:
    if not plan.exchanges:
        alone = "one GPU holds" if plan.gpus == 1 else f"{plan.gpus} GPUs each hold"
        return f"{plan.label}: {alone} everything, and nothing moves between GPUs."
    told = "; ".join(one.words for one in moved) or "how much moves is not known"
    return f"{plan.label}: {told}. Link {link.word.replace('_', ' ')}: {link.reason}"


def _size(byte_count: float) -> str:
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if byte_count >= size:
            return f"{byte_count / size:.3g} {unit}"
    return f"{byte_count:.0f} B"
