"""Prices over time as a step chart: plain numbers that a template draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from marketplace.drawing.axes import round_step

WIDTH, HEIGHT = 480.0, 180.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 12.0, 14.0, 34.0
HEADROOM = Decimal("1.1")
MOST_SERIES, MOST_PARTS = 4, 4
SHORTEST_SECONDS = 3600.0
"""A first price that was seen a moment ago still has a line."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A price for a machine-hour while it was in force; `until` None is now."""

    amount: Decimal
    currency: str
    name: str
    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Series:
    """One way to buy. `path` holds horizontal and vertical steps; a gap is where it had no price.

    `tone` counts from 1 and stands for a colour and a dash.
    """

    name: str
    path: str
    tone: int


@dataclass(frozen=True, slots=True)
class Tick:
    y: float
    words: str


@dataclass(frozen=True, slots=True)
class PriceHistory:
    """`description` says in words what is drawn, `left_out` how many prices are not."""

    series: tuple[Series, ...]
    ticks: tuple[Tick, ...]
    first: str
    last: str
    currency: str
    description: str
    left_out: int
    width: float = WIDTH
    height: float = HEIGHT

    @property
    def left(self) -> float:
        return LEFT

    @property
    def right(self) -> float:
        return WIDTH - RIGHT

    @property
    def base(self) -> float:
        return HEIGHT - BOTTOM

    @property
    def days_y(self) -> float:
        return HEIGHT - 10


def price_history(observed: Iterable[Observation], now: datetime) -> PriceHistory | None:
    """From the first observation to now, in the currency that most of them have.

    None without an observation: nothing is drawn of what is not known.
    """
    observed = sorted(observed, key=lambda one: one.since)
    if not observed:
        return None
    currency = Counter(one.currency for one in observed).most_common(1)[0][0]
    names = list(dict.fromkeys(one.name for one in observed if one.currency == currency))
    drawn = [
        one for one in observed if one.currency == currency and one.name in names[:MOST_SERIES]
    ]
    scale = _Scale(drawn[0].since, now, max(one.amount for one in drawn) * HEADROOM)
    lines = [
        _series(name, [one for one in drawn if one.name == name], tone, scale)
        for tone, name in enumerate(names[:MOST_SERIES], 1)
    ]
    return PriceHistory(
        series=tuple(lines),
        ticks=tuple(Tick(scale.y(part), _amount(part)) for part in _parts(scale.most)),
        first=f"{scale.start:%Y-%m-%d}",
        last=f"{now:%Y-%m-%d}",
        currency=currency or "currency not stated",
        description=" ".join(_sentence(name, drawn) for name in names[:MOST_SERIES]),
        left_out=len(observed) - len(drawn),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    start: datetime
    end: datetime
    most: Decimal

    def x(self, moment: datetime) -> float:
        span = max((self.end - self.start).total_seconds(), SHORTEST_SECONDS)
        share = (moment - self.start).total_seconds() / span
        return LEFT + min(max(share, 0.0), 1.0) * (WIDTH - LEFT - RIGHT)

    def y(self, amount: Decimal) -> float:
        return HEIGHT - BOTTOM - float(amount / self.most) * (HEIGHT - TOP - BOTTOM)


def _series(name: str, held: Sequence[Observation], tone: int, scale: _Scale) -> Series:
    steps, end = [], None
    for one in held:
        x, y = scale.x(one.since), scale.y(one.amount)
        # A step where one price takes the place of another, a new start after a gap.
        joins = end is not None and abs(end - x) < 0.5
        steps.append(f"{'L' if joins else 'M'}{x:.1f} {y:.1f}")
        end = WIDTH - RIGHT if one.until is None else scale.x(one.until)
        steps.append(f"H{end:.1f}")
    return Series(name, "".join(steps), tone)


def _parts(most: Decimal) -> Iterator[Decimal]:
    """Round amounts from nothing up."""
    step = Decimal(str(round_step(float(most), MOST_PARTS)))
    return (step * place for place in range(int(most / step) + 1))


def _amount(amount: Decimal) -> str:
    return f"{amount:,.2f}" if amount else "0"


def _sentence(name: str, drawn: Sequence[Observation]) -> str:
    held = [one for one in drawn if one.name == name]
    first, last = held[0], held[-1]
    currency = last.currency or "(currency not stated)"
    now = f"{_amount(last.amount)} {currency} per machine and hour"
    ended = "" if last.until is None else f", until {last.until:%Y-%m-%d}"
    if len(held) == 1:
        return f"{name}: {now} since {first.since:%Y-%m-%d}{ended}."
    lowest, highest = min(one.amount for one in held), max(one.amount for one in held)
    return (
        f"{name}: {len(held)} prices since {first.since:%Y-%m-%d}, from {_amount(lowest)} to "
        f"{_amount(highest)}, last {now}{ended}."
    )
