"""A plan as boxes: tensor groups of GPUs, stages from left to right, copies from top to bottom.

Arrows carry what moves in one unit of work. The word for the link of each arrow is told by the
pattern of the line and by a letter on it, never by colour alone. A wide plan is drawn by its first
and last parts; on a narrow screen all boxes stand one below the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from evaluator.exchanges import Traffic
from evaluator.link_verdicts import LinkVerdict
from evaluator.placement import Placement, Rank
from evaluator.plans import Plan
from marketplace.drawing.plan_wires import (
    CHIP,
    COPIES,
    JOINED,
    TOLD,
    Box,
    Chip,
    Spacing,
    Wire,
    Wiring,
    copies_of,
    part_of,
)

STEP, PER_ROW, PAD, TITLE = 30.0, 4, 10.0, 18.0
TOP, MARGIN = 14.0, 8.0
DRAWN = 1.2
"""Pixels of a page for one unit of the picture."""
MOST_CHIPS = 8


@dataclass(frozen=True, slots=True)
class PlanDiagram:
    width: float
    height: float
    boxes: tuple[Box, ...]
    wires: tuple[Wire, ...]
    notes: tuple[str, ...]
    description: str

    @property
    def drawn_width(self) -> float:
        return self.width * DRAWN

    @property
    def drawn_height(self) -> float:
        return self.height * DRAWN

    @property
    def patterns(self) -> list[tuple[str, str]]:
        """The words that lines stand for, each with its letter, in the order of the lines."""
        return list(dict.fromkeys((wire.word.value, wire.letter) for wire in self.wires))

    @property
    def arrows(self) -> list[Wire]:
        """One line of each kind and each link, with the words that one of its kind bears."""
        words = {wire.what: wire.words for wire in self.wires if wire.words}
        kinds = {(wire.what, wire.word): wire for wire in reversed(self.wires)}
        return [replace(kinds[key], words=words.get(key[0], "")) for key in reversed(kinds)]


def plan_diagram(
    plan: Plan,
    placed: Placement,
    moved: Sequence[Traffic],
    link: LinkVerdict,
    spacing: Spacing = TOLD,
) -> PlanDiagram:
    """`placed` is the plan's placement, `moved` its traffic, `link` the word for its links."""
    cells = _cells(placed, link)
    columns = _some(plan.pp, spacing.stages)
    rows = _some(len({key[0] for key in cells}), spacing.copies)
    size = _box_size(plan)
    boxes = {
        (row, column): _box(
            cells[row, column], plan, size, _corner(size, spacing, x, y, len(columns))
        )
        for y, row in enumerate(rows)
        for x, column in enumerate(columns)
    }
    wires = tuple(Wiring(plan, boxes, rows, columns, link, _labels(moved), spacing).wires())
    last = boxes[rows[-1], columns[-1]]
    told = wires if spacing.told else ()
    return PlanDiagram(
        width=max(last.x + last.width, *(wire.right for wire in told), 0.0) + MARGIN,
        height=last.bottom + (spacing.under if plan.tp * plan.cp > 1 else MARGIN),
        boxes=tuple(boxes.values()),
        wires=wires,
        notes=tuple(_notes(plan, rows, len({key[0] for key in cells}), columns)),
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
    size: tuple[float, float], spacing: Spacing, column: int, row: int, columns: int
) -> tuple[float, float]:
    width, height = size
    if spacing.stacked:
        column, row = 0, row * columns + column
    return spacing.left + column * (width + spacing.across), TOP + row * (height + spacing.down)


def _box(cell: Cell, plan: Plan, size: tuple[float, float], corner: tuple[float, float]) -> Box:
    (ranks, gpus), (width, height), (x, y) = cell, size, corner
    shown = gpus[:MOST_CHIPS]
    left = x + (width - min(len(shown), PER_ROW) * STEP + STEP - CHIP) / 2
    chips = tuple(
        Chip(left + place % PER_ROW * STEP, y + TITLE + PAD + place // PER_ROW * STEP, f"{gpu}")
        for place, gpu in enumerate(shown)
    )
    more, first = len(gpus) - len(shown), ranks[0]
    return Box(x, y, width, height, _title(first, plan), chips, more, first.machine)


def _title(rank: Rank, plan: Plan) -> str:
    where = f", machine {rank.machine + 1}" if plan.nodes > 1 else ""
    if plan.pp > 1 and rank.layers:
        return f"layers {rank.first}–{rank.first + rank.layers - 1}{where}"
    if plan.replicas > 1:
        return f"replica {rank.replica + 1}{where}"
    if plan.dp > 1:
        return f"{part_of(plan)} {rank.data + 1}{where}"
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
USES = {"tensor parallel": "tensor", "context": "tensor", "pipeline": "stages"}


def _notes(plan: Plan, rows: Sequence[int], copies: int, columns: Sequence[int]) -> Iterator[str]:
    if copies > len(rows):
        yield _left_out(copies - len(rows), copies, copies_of(plan))
    if plan.pp > len(columns):
        yield _left_out(plan.pp - len(columns), plan.pp, "stages")
    if plan.tp * plan.cp > MOST_CHIPS:
        yield f"{MOST_CHIPS} of {plan.tp * plan.cp} GPUs of a group are drawn."


def _left_out(count: int, of: int, what: str) -> str:
    return f"{count} of {of} {what} {'is' if count == 1 else 'are'} left out of the picture."


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
