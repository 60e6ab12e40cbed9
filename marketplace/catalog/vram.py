"""Memory per GPU from figures that may count one GPU, the whole machine, or another unit.

The judge is the list of published sizes of the model (catalog.md, section 1, rule 4). A figure
that fits only as a total is divided; one that fits both ways stays ambiguous; one that fits
neither way is not believed. Host RAM is never asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache

from evaluator.findings import Code, Finding, finding
from evaluator.gpus import SIZE_TOLERANCE, Label, specs_of
from evaluator.units import GB, GIB, MB, MIB, TB, TIB, gb
from marketplace.catalog.card_sizes import (
    SAME_SIZE,
    doubled_size,
    host_bytes,
    is_published,
    label_bytes,
    nearest_card,
    sizes_of,
)

TOTAL_TOLERANCE = 0.04
"""A divided total has to be nearer than a stated size, or 8 x H100 with 600 GB would pass as 80."""

LARGEST_MODIFICATION, SMALLEST_SHARE = 2 * (1 + SAME_SIZE), 1 / 16
"""One card may carry doubled memory or be a slice; beyond that the figure is no card's memory."""

LARGEST_TOTAL = 10**6 * TB
"""More memory than all GPUs of any rental have; a number of so many digits is no figure."""

UNIT_BYTES = {
    "B": 1, "BYTES": 1, "MB": MB, "MIB": MIB, "G": GB, "GB": GB, "GIB": GIB, "TB": TB, "TIB": TIB,
}  # fmt: skip


class Scope(StrEnum):
    """What the words around a figure say it counts."""

    EACH = "each"
    TOTAL = "total"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Figure:
    """One memory figure. `rounding_bytes` is half of its last digit, for "1.5 TB".

    `bytes_if_gb` is what the number means if its field wrongly counts GB; None where the unit is
    certain. A `marketing` figure is printed text in GB or TB and names a label, not a byte count.
    """

    byte_count: int
    scope: Scope = Scope.UNKNOWN
    words: str = ""
    bytes_if_gb: int | None = None
    rounding_bytes: int = 0
    marketing: bool = False


@dataclass(frozen=True, slots=True)
class Resolved:
    """`bytes_per_gpu` is a label size times 10^9, else the bytes stated; None is unknown.

    `reported_bytes` is the stated figure brought to one GPU. `possible_bytes` holds every size
    the figures allow, ascending. A row with `impossible` belongs into quarantine.
    """

    bytes_per_gpu: int | None = None
    reported_bytes: int | None = None
    possible_bytes: tuple[int, ...] = ()
    findings: tuple[Finding, ...] = ()
    impossible: Finding | None = None

    @property
    def ambiguous(self) -> bool:
        return len(self.possible_bytes) > 1


@dataclass(frozen=True, slots=True)
class _Reading:
    """One way to understand one figure."""

    figure: Figure
    each_bytes: int
    size_gb: int
    own: bool
    divided: bool
    unit_corrected: bool
    exact: bool


def stated(number: Decimal, unit: str, scope: Scope = Scope.UNKNOWN, words: str = "") -> Figure:
    """A printed figure such as 80 "GB" or 1.5 "TB". Raises ValueError for an unknown unit."""
    scale = UNIT_BYTES.get(unit.upper())
    if scale is None:
        raise ValueError(f"memory unit: read {unit!r}, expected one of {', '.join(UNIT_BYTES)}")
    decimals = max(0, -int(number.as_tuple().exponent))
    rounding = scale // (2 * 10**decimals) if scale >= TB else 0
    words = words or f"{number} {unit}"
    marketing = unit.upper() in ("G", "GB", "TB")
    return Figure(int(number * scale), scope, words, None, rounding, marketing)


def figures_of(label: Label) -> tuple[Figure, ...]:
    """The figures beside a GPU's name. Their scope is not said."""
    return tuple(
        Figure(
            byte_count=int(number * GB),
            words=f"{label.words}",
            rounding_bytes=50 * GB if number >= 1000 and number % 100 == 0 else 0,
            marketing=True,
        )
        for number in label.label_gb
    )


def resolve(model: str | None, gpu_count: int | None, figures: Sequence[Figure]) -> Resolved:
    """Memory of one GPU of a machine with `gpu_count` of them. `model` is a canonical name.

    Several figures have to agree; what the first one says wins an ambiguity.
    """
    return _resolved(model, gpu_count, tuple(figures))


@lru_cache(maxsize=8192)
def _resolved(model: str | None, gpu_count: int | None, figures: tuple[Figure, ...]) -> Resolved:
    """Many rows say the same."""
    usable = [figure for figure in figures if figure.byte_count > 0 and not _is_host(model, figure)]
    if not usable:
        return _unknown("no figure is stated" if not figures else _words(figures))
    if any(figure.byte_count > LARGEST_TOTAL for figure in usable):
        expected = f"at most {LARGEST_TOTAL} bytes"
        return Resolved(
            impossible=finding(
                Code.VALUE_OUT_OF_RANGE, field="vram", value=_words(usable), expected=expected
            )
        )
    if not model or not specs_of(model):
        return _resolve_unlisted(gpu_count, usable)
    readings = [list(_readings(model, gpu_count, figure)) for figure in usable]
    fitting = [options for options in readings if options]
    if not fitting:
        return _resolve_nonstandard(model, gpu_count, usable)
    return _agree(model, fitting, all_fit=len(fitting) == len(usable), words=_words(usable))


def _readings(model: str, gpu_count: int | None, figure: Figure) -> Iterator[_Reading]:
    """Every way in which the figure is a published size; readings of its own model win."""
    found = [
        reading
        for byte_count, corrected in _units(figure)
        for each_bytes, divided in _shares(byte_count, gpu_count, figure.scope)
        if (reading := _read(model, figure, each_bytes, divided, corrected))
    ]
    plain = [reading for reading in found if not reading.unit_corrected] or found
    yield from [reading for reading in plain if reading.own] or plain


def _units(figure: Figure) -> list[tuple[int, bool]]:
    corrected = [(figure.bytes_if_gb, True)] if figure.bytes_if_gb else []
    return [(figure.byte_count, False), *corrected]


def _shares(byte_count: int, gpu_count: int | None, scope: Scope) -> Iterator[tuple[int, bool]]:
    """(bytes per GPU, whether the figure was divided for it)."""
    if scope is not Scope.TOTAL or gpu_count == 1:
        yield byte_count, False
    if scope is not Scope.EACH and gpu_count and gpu_count > 1:
        yield byte_count // gpu_count, True


def _read(
    model: str, figure: Figure, each_bytes: int, divided: bool, corrected: bool
) -> _Reading | None:
    tolerance = TOTAL_TOLERANCE if divided else SIZE_TOLERANCE
    each_bytes, spec = nearest_card(model, each_bytes, figure.marketing, tolerance)
    if spec is None:
        return None
    rounding = each_bytes * figure.rounding_bytes // max(figure.byte_count, 1)
    return _Reading(
        figure, each_bytes, spec.label_gb, spec.model == model, divided, corrected,
        exact=is_published(spec, each_bytes, figure.marketing, rounding),
    )  # fmt: skip


def _agree(
    model: str, readings: Sequence[Sequence[_Reading]], *, all_fit: bool, words: str
) -> Resolved:
    """The size that every figure allows."""
    sizes = [{reading.size_gb for reading in options} for options in readings]
    shared = set.intersection(*sizes)
    if not shared:
        possible = _in_bytes(set.union(*sizes))
        return Resolved(None, None, possible, (finding(Code.CONFLICTING_VALUES, words=words),))
    chosen = _choose(readings, shared)
    possible = _in_bytes(shared | _doubled_sizes(model, readings, chosen))
    findings = list(_findings(model, chosen, [r for options in readings for r in options]))
    if len(shared) > 1:
        listed = " or ".join(str(size) for size in sorted(shared))
        findings.append(finding(Code.VRAM_AMBIGUOUS, words=chosen.figure.words, sizes=listed))
    if not all_fit:
        findings.append(finding(Code.CONFLICTING_VALUES, words=words))
    return Resolved(chosen.size_gb * GB, chosen.each_bytes, possible, tuple(findings))


def _in_bytes(sizes_gb: Iterable[int]) -> tuple[int, ...]:
    return tuple(size * GB for size in sorted(sizes_gb))


def _doubled_sizes(
    model: str, readings: Sequence[Sequence[_Reading]], chosen: _Reading
) -> set[int]:
    """Two cards whose total was divided may as well be two modified cards of that size each."""
    figure = chosen.figure
    alone = len(readings) == 1 and chosen.divided and figure.scope is Scope.UNKNOWN
    return {2 * chosen.size_gb} if alone and doubled_size(model, figure.byte_count) else set()


def _choose(readings: Sequence[Sequence[_Reading]], shared: set[int]) -> _Reading:
    """The undivided reading of the first figure that has one, else the first reading."""
    allowed = [reading for options in readings for reading in options if reading.size_gb in shared]
    return min(allowed, key=lambda reading: reading.divided)


def _findings(model: str, chosen: _Reading, readings: Iterable[_Reading]) -> Iterator[Finding]:
    same = [reading for reading in readings if reading.size_gb == chosen.size_gb]
    words = chosen.figure.words
    if all(reading.divided for reading in same):
        yield finding(Code.VRAM_TOTAL_DIVIDED, words=words, each=chosen.size_gb)
    for reading in same:
        if reading.unit_corrected:
            yield finding(Code.VRAM_UNIT_CORRECTED, words=reading.figure.words)
    if not any(reading.exact and reading.own for reading in same):
        yield finding(Code.VRAM_NONSTANDARD, words=words, gpu_model=model)


def _resolve_nonstandard(model: str, gpu_count: int | None, figures: Sequence[Figure]) -> Resolved:
    """No published size. A modified card or a slice is kept as stated; the rest is refused."""
    for figure in figures:
        for byte_count, corrected in _units(figure):
            for each_bytes, _ in _shares(byte_count, gpu_count, figure.scope):
                if _may_be_modified(model, gpu_count, figure.scope, each_bytes):
                    return _nonstandard(model, figure, each_bytes, corrected)
    words = _words(figures)
    if gpu_count is None:
        return _unknown(words)
    return Resolved(impossible=finding(Code.VRAM_IMPOSSIBLE, words=words, gpu_model=model))


def _may_be_modified(model: str, gpu_count: int | None, scope: Scope, each_bytes: int) -> bool:
    if gpu_count == 1 or scope is Scope.EACH:
        sizes = [size for spec in specs_of(model) for size in sizes_of(spec)]
        return min(sizes) * SMALLEST_SHARE <= each_bytes <= max(sizes) * LARGEST_MODIFICATION
    return doubled_size(model, each_bytes) is not None


def _nonstandard(model: str, figure: Figure, each_bytes: int, corrected: bool) -> Resolved:
    size = doubled_size(model, each_bytes) or label_bytes(each_bytes)
    findings = [finding(Code.VRAM_NONSTANDARD, words=figure.words, gpu_model=model)]
    if corrected:
        findings.append(finding(Code.VRAM_UNIT_CORRECTED, words=figure.words))
    return Resolved(size, each_bytes, (size,), tuple(findings))


def _resolve_unlisted(gpu_count: int | None, figures: Sequence[Figure]) -> Resolved:
    """A model without published sizes: only words or a single GPU tell each from total."""
    for figure in figures:
        shares = list(_shares(figure.byte_count, gpu_count, figure.scope))
        if len(shares) == 1 and gpu_count and (figure.bytes_if_gb is None):
            each_bytes, divided = shares[0]
            each = f"{gb(each_bytes):g}"
            code = finding(Code.VRAM_TOTAL_DIVIDED, words=figure.words, each=each)
            return Resolved(each_bytes, each_bytes, (each_bytes,), (code,) if divided else ())
    return _unknown(_words(figures))


def _unknown(words: str) -> Resolved:
    return Resolved(findings=(finding(Code.VRAM_UNKNOWN, words=words),))


def _is_host(model: str | None, figure: Figure) -> bool:
    return any(abs(figure.byte_count - size) <= size * SAME_SIZE for size in host_bytes(model))


def _words(figures: Iterable[Figure]) -> str:
    return (
        ", ".join(dict.fromkeys(figure.words for figure in figures if figure.words)) or "no words"
    )
