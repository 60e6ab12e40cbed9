"""Where the time goes: compute, transfer and wait on one axis, lane by lane, plan beside plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

from evaluator.ranges import Range
from evaluator.token_path import Doing, TokenPath
from marketplace.drawing.axes import Tick, ticks

LEFT, RIGHT, WIDTH, NARROW = 96.0, 30.0, 760.0, 360.0
LETTER, LEADING = 7.4, 15.0
"""The widest that a letter of a name gets, and from one line of a name to the next. A page of a
phone has room for `NARROW` without its words getting small."""
LANE, LANE_GAP, HEAD, STRIP_GAP, TOP, BOTTOM = 18.0, 4.0, 20.0, 18.0, 8.0, 30.0
MOST_LANES = 4
MOST_STRETCHED = 3.0
"""A range that ends farther than so many times the longest typical value is cut off, and says so:
one unknown link would press all else into a corner."""
KINDS = {
    Doing.COMPUTE: "compute",
    Doing.COLLECTIVE: "transfer",
    Doing.HOP: "transfer",
    Doing.WAIT: "wait",
}
COMPUTING = frozenset({"matrix products", "attention", "passes over activations", "optimizer"})
"""Terms of an optimizer step that are work; the bubble is a wait, all others are transfers."""
BUBBLE = "pipeline bubble"


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a GPU does for `seconds`. `kind` is compute, transfer or wait."""

    kind: str
    what: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Strip:
    """One plan: lanes of GPUs that do the same, and how long all of it takes.

    `tokens` are those that one optimizer step trains, None for a decode step.
    """

    name: str
    total: Range
    lanes: tuple[tuple[str, tuple[Stretch, ...]], ...]
    left_out: int = 0
    conditional: bool = False
    tokens: int | None = None

    @property
    def work(self) -> str:
        """What is done in that time, where plans differ in it: steps of other sizes."""
        if self.tokens is None:
            return ""
        rate = self.tokens / float(self.total.typical)
        return f"{self.tokens:,} tokens, {figure(rate)} tokens/s"

    @property
    def shares(self) -> dict[str, float]:
        """Share of the time of the first lane by kind."""
        found = dict.fromkeys(("compute", "transfer", "wait"), 0.0)
        whole = sum(one.seconds for one in self.lanes[0][1]) or 1.0
        for one in self.lanes[0][1]:
            found[one.kind] += one.seconds / whole
        return found


def strip_of_token(name: str, path: TokenPath) -> Strip:
    """One token through a decode step. GPUs that do the same share a lane."""
    alike: dict[tuple[Stretch, ...], list[int]] = {}
    for gpu in dict.fromkeys(one.gpu for one in path.segments):
        stretches = tuple(
            Stretch(KINDS[one.kind], one.what, float(one.end.typical - one.start.typical))
            for one in path.of_gpu(gpu)
        )
        alike.setdefault(stretches, []).append(gpu)
    lanes = [(_gpus(gpus), stretches) for stretches, gpus in alike.items()]
    shown = lanes if len(lanes) <= MOST_LANES else [*lanes[: MOST_LANES - 1], lanes[-1]]
    return Strip(name, path.total, tuple(shown), len(lanes) - len(shown), path.conditional)


def strip_of_step(
    name: str,
    total: Range,
    terms: Iterable[tuple[str, float]],
    *,
    conditional: bool = False,
    tokens: int | None = None,
) -> Strip:
    """One optimizer step by its terms, which every GPU shares: work first, waits last."""
    found = [Stretch(_kind(term), term, seconds) for term, seconds in terms]
    order = {"compute": 0, "transfer": 1, "wait": 2}
    ordered = tuple(sorted(found, key=lambda one: order[one.kind]))
    return Strip(name, total, (("every GPU", ordered),), conditional=conditional, tokens=tokens)


def _kind(term: str) -> str:
    if term in COMPUTING:
        return "compute"
    return "wait" if term == BUBBLE else "transfer"


def _gpus(gpus: Sequence[int]) -> str:
    if len(gpus) == 1:
        return f"GPU {gpus[0]}"
    whole = list(gpus) == list(range(gpus[0], gpus[-1] + 1))
    return f"GPUs {gpus[0]}–{gpus[-1]}" if whole else f"{len(gpus)} GPUs"


@dataclass(frozen=True, slots=True)
class Piece:
    x: float
    width: float
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Lane:
    y: float
    name: str
    pieces: tuple[Piece, ...]

    @property
    def text_y(self) -> float:
        return self.y + LANE / 2 + 4


@dataclass(frozen=True, slots=True)
class Row:
    """A strip in its place. `low` to `high` is the range of the whole, drawn under its lanes;
    `beyond` says where it ends if that is outside the picture. `names` are the lines of its name,
    each with its height.
    """

    names: tuple[tuple[str, float], ...]
    lanes: tuple[Lane, ...]
    low: float
    end: float
    high: float
    whisker_y: float
    beyond: str = ""


@dataclass(frozen=True, slots=True)
class Timeline:
    height: float
    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    unit: str
    what: str
    description: str
    width: float = WIDTH
    lane: float = LANE

    @property
    def base(self) -> float:
        return self.height - BOTTOM + 8

    @property
    def caption_y(self) -> float:
        return self.height - 6


def timeline(strips: Sequence[Strip], what: str, width: float = WIDTH) -> Timeline | None:
    """Strips on one axis of time; `what` is what they take it for. None where nothing is timed."""
    if not strips:
        return None
    typical = max(float(strip.total.typical) for strip in strips)
    longest = min(MOST_STRETCHED * typical, max(float(strip.total.high) for strip in strips))
    scale = (width - LEFT - RIGHT) / longest
    factor, unit = (1000.0, "ms") if longest < 2 else (1.0, "s")
    rows, y = [], TOP
    for strip in strips:
        far = f"to {figure(strip.total.high * factor)} {unit} →"
        row = _row(strip, y, scale, width, far)
        rows.append(row)
        y = row.whisker_y + STRIP_GAP
    marks = tuple(
        Tick(LEFT + tick.at, tick.words) for tick in ticks(longest * factor, scale / factor)
    )
    told = _sentence(strips, what, factor, unit)
    return Timeline(y + BOTTOM - 8, tuple(rows), marks, unit, what, told, width)


def _row(strip: Strip, y: float, scale: float, width: float, far: str) -> Row:
    told = f"{strip.name}: {strip.work}" if strip.work else strip.name
    names = tuple(
        (line, y + 13 + LEADING * place)
        for place, line in enumerate(wrap(told, int(width / LETTER)))
    )
    first = names[-1][1] + HEAD - 13
    lanes = tuple(
        Lane(first + place * (LANE + LANE_GAP), name, tuple(_pieces(stretches, strip, scale)))
        for place, (name, stretches) in enumerate(strip.lanes)
    )
    total = strip.total
    return Row(
        names=names,
        lanes=lanes,
        low=LEFT + total.low * scale,
        end=LEFT + total.typical * scale,
        high=min(LEFT + total.high * scale, width - RIGHT),
        whisker_y=lanes[-1].y + LANE + 8,
        beyond=far if LEFT + total.high * scale > width - RIGHT + 1 else "",
    )


def _pieces(stretches: Iterable[Stretch], strip: Strip, scale: float) -> Iterator[Piece]:
    """A lane is as long as the typical total, also where a span of worlds moved that."""
    whole = sum(one.seconds for one in stretches) or 1.0
    fit = float(strip.total.typical) / whole
    x = LEFT
    for one in stretches:
        width = one.seconds * fit * scale
        yield Piece(x, width, one.kind, f"{one.what}: {one.seconds / whole:.0%}")
        x += width


def _sentence(strips: Sequence[Strip], what: str, factor: float, unit: str) -> str:
    return " ".join(_told(strip, what, factor, unit) for strip in strips)


def _told(strip: Strip, what: str, factor: float, unit: str) -> str:
    total, shares = strip.total, strip.shares
    spread = f"{figure(total.low * factor)} to {figure(total.high * factor)}"
    parts = ", ".join(f"{kind} {share:.0%}" for kind, share in shares.items())
    done = f"{what} of {strip.work}" if strip.work else what
    return f"{strip.name}: {figure(total.typical * factor)} {unit} ({spread}) for {done}: {parts}."


def figure(value: float) -> str:
    """Three digits, and never a power of ten."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table_of(strips: Sequence[Strip]) -> list[Mapping[str, object]]:
    """The same as rows: plan, GPUs, what, kind, share of the time and typical seconds."""
    return [
        {
            "plan": strip.name,
            "gpus": name,
            "what": one.what,
            "kind": one.kind,
            "share": share,
            "seconds": share * float(strip.total.typical),
        }
        for strip in strips
        for name, stretches in strip.lanes
        for one, share in _shared(stretches)
    ]


def _shared(stretches: Sequence[Stretch]) -> Iterator[tuple[Stretch, float]]:
    whole = sum(one.seconds for one in stretches) or 1.0
    return ((one, one.seconds / whole) for one in stretches)
