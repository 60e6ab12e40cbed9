"""Formatting at the last moment: units, money, ages, and words that carry a shape."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from functools import lru_cache
from typing import Protocol

from django import template
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from evaluator import advice
from evaluator.budgets import Fit, MemoryBudget
from evaluator.candidates import Candidate
from evaluator.facts import Grade
from evaluator.link_verdicts import Doubt, GroupVerdict, cost_to_settle
from evaluator.links import links_told
from evaluator.outlook import Outlook, deadline_words, queue_words, words_of
from evaluator.prices import HOURS_IN, TimeUnit
from evaluator.queueing import OpenLoop
from evaluator.ranges import Range
from evaluator.spending import Cost, DeadlineVerdict
from evaluator.units import GB, GIB
from evaluator.verdict import PlanVerdict
from marketplace import cost_scatter, pictures
from marketplace.pictures import FitBar, MemoryPicture

register = template.Library()

UNKNOWN = "unknown"

AGES = ((60, 1, "s"), (3600, 60, "min"), (48 * 3600, 3600, "h"))
"""Below so many seconds, an age is counted in this many seconds, called so; above, in days."""

MOST_TEXTS = 2_000
"""Sentences and marks that each process keeps as they are printed: most pages repeat them."""

CODE = re.compile("`([^`]+)`")

TONES = {
    "good": ("ready", "fits", "proven", "pass", "fresh", "published", "unchanged", "available"),
    "fair": ("conditional", "tight", "claimed", "ageing", "stale", "held", "running", "limited"),
    "bad": (
        "hidden",
        "unsuitable",
        "does_not_fit",
        "insufficient",
        "contradicted",
        "fail",
        "failed",
    ),
    "off": ("not_needed", "off", "gone", "abandoned", "sold_out"),
}
TONE_OF = {word: tone for tone, words in TONES.items() for word in words}
"""Tone gives colour and shape together; a word that has none is drawn as unknown."""


@register.filter
def gib(byte_count: float | None) -> str:
    """Bytes as GiB (2^30), one decimal."""
    return UNKNOWN if byte_count is None else f"{byte_count / GIB:,.1f} GiB"


@register.filter
def gib_number(byte_count: float | None) -> str:
    """The same without its unit, for a column whose head states it."""
    return gib(byte_count).removesuffix(" GiB")


@register.filter
def gb(byte_count: float | None) -> str:
    """Bytes as GB (10^9), one decimal where there is one."""
    return UNKNOWN if byte_count is None else f"{_short(byte_count / GB)} GB"


@register.filter
def gb_per_s(bytes_per_s: float | None) -> str:
    """Bytes/s in one direction as GB/s."""
    return UNKNOWN if bytes_per_s is None else f"{_short(bytes_per_s / GB)} GB/s"


@register.filter
def bandwidth(bytes_per_s: float | None) -> str:
    """Bytes/s in one direction with two digits, in GB/s or, where it is little, in MB/s."""
    if bytes_per_s is None:
        return UNKNOWN
    size, unit = (GB, "GB/s") if bytes_per_s >= GB / 10 else (10**6, "MB/s")
    number = bytes_per_s / size
    return f"{number:,.0f} {unit}" if number >= 10 else f"{number:.2g} {unit}"


def _short(number: float) -> str:
    return f"{number:,.1f}".removesuffix(".0")


@register.filter
def gib_span(span: Range | None) -> str:
    """Both ends of a byte range in GiB; empty for a range without width."""
    if span is None or span.low == span.high:
        return ""
    return f"{span.low / GIB:,.1f}–{span.high / GIB:,.1f} GiB"


class Axed(Protocol):
    """What time and cost mean for the workload of a page."""

    def time_of(self, one: Candidate) -> Range | None: ...

    def cost_of(self, one: Candidate) -> Cost | None: ...


@register.filter
def money_span(cost: Cost | None) -> str:
    """Low to high; one figure where both read alike."""
    return advice.span(cost)


@register.filter
def spanned(values: Range) -> str:
    """Both ends with three digits."""
    return cost_scatter.span(values)


@register.filter
def spanned_ms(values: Range) -> str:
    """A range of seconds in milliseconds."""
    return cost_scatter.span(
        Range(*(end * 1000 for end in (values.low, values.typical, values.high)))
    )


@register.filter
def grouped(number: int) -> str:
    """A whole number with its thousands set apart."""
    return f"{number:,}"


@register.filter
def queued(loop: OpenLoop) -> str:
    """How busy, and how long requests wait."""
    return queue_words(loop)


@register.filter
def deadline(found: DeadlineVerdict) -> str:
    """Whether it holds, and by how much."""
    return deadline_words(found)


@register.filter
def time_on(candidate: Candidate, axes: Axed) -> str:
    """From low to high in the axis' unit; empty where it was not timed."""
    time = axes.time_of(candidate)
    return cost_scatter.span(time) if time else ""


@register.filter
def cost_on(candidate: Candidate, axes: Axed) -> str:
    """From low to high in the axis' unit; empty without a comparable price."""
    cost = axes.cost_of(candidate)
    return (
        cost_scatter.span(Range(*map(float, (cost.low, cost.typical, cost.high)))) if cost else ""
    )


@register.filter
def outlook_words(outlook: Outlook, currency: str | None = "") -> str:
    """Speed, hours and cost of a plan from low to high, in one line."""
    return words_of(outlook, currency or "")


@register.filter
def money(value: Decimal | None, currency: str | None = "") -> str:
    """An exact amount, never rounded, with its currency or the words that none was stated."""
    if value is None:
        return UNKNOWN
    return f"{_digits(value)} {currency or '(currency not stated)'}"


MOST_DIGITS, ROUNDED_DIGITS = 8, 6


@register.filter
def derived_money(value: Decimal | None, currency: str | None = "") -> str:
    """An amount that was worked out. A quotient, such as an hour of a month's price, has no last
    digit: beyond MOST_DIGITS it is rounded and says so.
    """
    if value is None or len(value.normalize().as_tuple().digits) <= MOST_DIGITS:
        return money(value, currency)
    return f"≈ {money(Context(prec=ROUNDED_DIGITS).plus(value), currency)}"


def _digits(value: Decimal) -> str:
    whole, _, cents = f"{value:,f}".partition(".")
    return f"{whole}.{cents.rstrip('0').ljust(2, '0')}"


BASES = {"machine": "per machine-{}", "gpu": "per GPU-{}"}
BASIS_NOT_STATED = "per {} (of a machine or of a GPU: not stated)"


class Priced(Protocol):
    """A price in its five parts: a row of the catalog or a quote of the evaluator."""

    amount: Decimal
    currency: str | None
    unit: str
    basis: str
    purchase: str
    term: str


@register.filter
def rate(price: Priced | None) -> str:
    """All five parts in the order in which they were published."""
    if price is None:
        return "no price published"
    return f"{money(price.amount, price.currency)} {terms(price)}"


@register.filter
def terms(price: Priced) -> str:
    """What an amount buys, where the amount itself stands beside it."""
    per = BASES.get(price.basis, BASIS_NOT_STATED).format(price.unit)
    return f"{per}, {purchase(price)}"


@register.filter
def purchase(price: Priced | None) -> str:
    """ "on demand", "spot", or "reserved, 1 year"."""
    if price is None:
        return UNKNOWN
    term = f", {price.term}" if price.term else ""
    return f"{words(price.purchase)}{term}"


@register.filter
def age(moment: datetime | None) -> str:
    """How long ago, with the exact time as its title."""
    if moment is None:
        return "never"
    exact = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    distance = in_words(timezone.now() - moment)
    markup = f'<time datetime="{exact}" title="{exact}">{distance}</time>'
    return mark_safe(markup)  # noqa: S308  digits and words of ours


def in_words(distance: timedelta) -> str:
    """ "3 h ago", or "in 3 h" for a time to come."""
    seconds = distance.total_seconds()
    return f"in {_span(-seconds)}" if seconds < 0 else f"{_span(seconds)} ago"


def _span(seconds: float) -> str:
    for limit, size, unit in AGES:
        if seconds < limit:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds // 86400):,} d"


@register.filter
def words(name: str | None) -> str:
    """An enum's value as people write it: "does not fit", "NVLink between pairs"."""
    return links_told(str(name or UNKNOWN)).replace("_", " ")


@register.filter
def percent(share: float | None) -> str:
    """A share as per cent with one decimal, and nothing below zero that rounds to it."""
    return "–" if share is None else f"{share:z.1%}"


@register.filter
def figure(value: object) -> str:
    """A value of a case: a number with four digits, or its words."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return words(str(value))
    return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


@register.filter
@lru_cache(MOST_TEXTS)
def with_code(sentence: str) -> SafeString:
    """A sentence whose `commands` between backticks are set as code; the rest stays text."""
    marked = CODE.sub(r"<code>\1</code>", escape(sentence))
    return mark_safe(marked)  # noqa: S308  # escaped before the one tag was put in


@register.filter
@lru_cache(MOST_TEXTS)
def status(word: str | None) -> SafeString:
    """A word of the tables of truth with a tone and a shape, so that colour is never alone."""
    tone = TONE_OF.get(str(word), "none")
    return format_html(
        '<span class="status {0}"><svg class="mark" aria-hidden="true"><use href="#mark-{0}"/>'
        "</svg>{1}</span>",
        tone,
        words(word),
    )


@register.filter
@lru_cache(MOST_TEXTS)
def grade(level: int | None) -> SafeString:
    """A grade's word behind the shape that only this grade has."""
    word = Grade(level or 0).word
    return format_html(
        '<span class="grade {0}"><svg class="mark" aria-hidden="true"><use href="#grade-{0}"/>'
        "</svg>{0}</span>",
        word,
    )


@register.filter
def gpu_groups(groups: Iterable[Iterable[int]]) -> str:
    """ "GPUs 0, 1 and GPUs 2, 3"."""
    return " and ".join(f"GPUs {', '.join(map(str, group))}" for group in groups)


@register.filter
def derivation(price: Priced, listing: Listed) -> str:
    """How an hour of the whole rental follows from the price as published."""
    gpus = (listing.gpu_count or 1) * listing.nodes if price.basis == "gpu" else 1
    factor = f" × {counted(gpus, 'GPU')}" if price.basis == "gpu" else ""
    hours = HOURS_IN.get(TimeUnit(price.unit), Decimal(1))
    share = f" ÷ {figure(float(hours))} hours of a {price.unit}" if hours != 1 else ""
    each = "GPU" if price.basis == "gpu" else price.basis
    return f"{money(price.amount, price.currency)} per {each}-{price.unit}{factor}{share}"


class Listed(Protocol):
    """How many GPUs a rental has."""

    gpu_count: int | None
    nodes: int


class Rented(Protocol):
    """What an hour of a listing costs, for all machines of one rental."""

    machine_hour_amount: Decimal | None
    machine_hour_currency: str
    nodes: int


@register.filter
def price_to_settle(verdict: PlanVerdict, listing: Rented) -> str:
    """One hour of as many rentals as the test needs: two machines show what a network does."""
    return _test_hour(verdict.link, verdict.plan.nodes, listing)


@register.filter
def price_of_group(part: GroupVerdict, listing: Rented) -> str:
    """The same for one group: within a machine one rental shows it."""
    return _test_hour(part, part.machines, listing)


def _test_hour(doubt: Doubt, machines: int, listing: Rented) -> str:
    rentals = max(1, min(2, machines) // listing.nodes)
    cost = cost_to_settle(doubt, listing.machine_hour_amount, rentals)
    return money(cost, listing.machine_hour_currency)


@register.filter
def fit_bar(fit: Fit) -> FitBar | None:
    """The need against the usable memory as a bar, where both are known."""
    return pictures.fit_bar(fit)


@register.filter
def memory_picture(memory: MemoryBudget, fit: Fit) -> MemoryPicture | None:
    """The budget of a plan against what may be used, where there is a budget to draw."""
    return pictures.memory_picture(memory, fit)


@register.filter
def counted(number: int | None, forms: str) -> str:
    """ "1 GPU", "8 GPUs": `forms` is "GPU,GPUs", or one word that takes an s."""
    if number is None:
        return UNKNOWN
    one, _, many = forms.partition(",")
    return f"{number:,} {one if number == 1 else many or one + 's'}"
