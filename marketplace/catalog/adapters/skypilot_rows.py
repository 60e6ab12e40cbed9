"""One row of a SkyPilot catalog file: its numbers with their limits, and the names in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from evaluator.findings import Code, Finding, finding
from evaluator.gpus import Label, relatives_of
from evaluator.units import GB, GIB, MIB
from marketplace.catalog.adapters.gpu_info import GpuInfo, UnreadableGpuInfo, read_gpu_info
from marketplace.catalog.reading.names import NO_ALIASES, Aliases, label_of, label_with
from marketplace.catalog.vram import Figure, figures_of

Row = Mapping[str, str]

ABSENT = frozenset({"", "-", "–", "n/a", "na", "none", "null", "ask"})
"""Words for "no value". A price of zero means the same here: nothing is free."""

LONGEST_WORDS = 300
LONGEST_TEXT = {"InstanceType": 200, "Region": 120, "AvailabilityZone": 120}
"""These name a listing; a cut name would join two machines into one."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_NO_NUMBER = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Limits:
    """What is believed of one column. Outside of it the row is refused, not corrected."""

    low: Decimal
    high: Decimal
    unit: str

    @property
    def words(self) -> str:
        return f"{self.low} to {self.high} {self.unit}"


LIMITS: Mapping[str, Limits] = {
    "AcceleratorCount": Limits(Decimal("0.01"), Decimal(256), "GPUs"),
    "Price": Limits(Decimal("0.001"), Decimal(10_000), "USD per hour"),
    "SpotPrice": Limits(Decimal("0.001"), Decimal(10_000), "USD per hour"),
    "vCPUs": Limits(Decimal("0.1"), Decimal(4096), "vCPUs"),
    "MemoryGiB": Limits(Decimal("0.1"), Decimal(16_384), "GiB"),
    "StorageGiB": Limits(Decimal("0.1"), Decimal(1_048_576), "GiB"),
    "SizeInMiB": Limits(Decimal(1), Decimal(64 * 1024 * 1024), "MiB"),
}


class RefusedRow(ValueError):
    """The row was read and is not believed."""

    def __init__(self, reason: Finding) -> None:
        super().__init__(reason.sentence)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Draft:
    """A row whose fields are read. What its memory figure counts is not decided yet."""

    row: Row
    gpu_count: int
    fraction: str
    model: str | None
    labels: tuple[Label, ...]
    column_figure: Figure | None

    @property
    def accelerator(self) -> str:
        return self.row["AcceleratorName"].strip()

    @property
    def named_figures(self) -> tuple[Figure, ...]:
        """Sizes in the accelerator's own name. One in an instance type may be host RAM."""
        return figures_of(self.labels[0]) or figures_of(self.labels[1])

    @property
    def names(self) -> str:
        return " / ".join(dict.fromkeys(label.words for label in self.labels if label.words))


def is_cpu_only(row: Row) -> bool:
    """No accelerator is named and none is counted."""
    return not row["AcceleratorName"].strip() and not number(row, "AcceleratorCount")


def draft(row: Row, aliases: Aliases = NO_ALIASES) -> Draft:
    """Raises RefusedRow, naming the field, what was read and what was expected."""
    _check_names(row)
    info = _gpu_info(row)
    count = _required_count(row)
    names = (row["AcceleratorName"], info.name, row["InstanceType"], row.get("UpstreamCloudId", ""))
    labels = tuple(map(label_of, names))
    if aliases and not any(label.model for label in labels):
        labels = tuple(label_with(name, aliases) for name in names)
    return Draft(
        row=row,
        gpu_count=max(1, int(count)),
        fraction=f"{count.normalize():f}" if count < 1 else "",
        model=_model(names, labels),
        labels=labels,
        column_figure=_column_figure(info),
    )


def number(row: Row, field: str) -> Decimal | None:
    """The column's value within its limits; None where it is absent or zero."""
    return _within(field, row.get(field, ""))


def whole(row: Row, field: str) -> int | None:
    """The column, where it holds a whole number."""
    value = number(row, field)
    return int(value) if value is not None and value == int(value) else None


def byte_count(row: Row, field: str) -> int | None:
    """A column in GiB as bytes."""
    value = number(row, field)
    return None if value is None else int(value * GIB)


def words_of(row: Row) -> dict[str, str]:
    """The provider's own text, column by column."""
    return {name: text[:LONGEST_WORDS] for name, text in row.items() if text.strip()}


def _within(field: str, text: str) -> Decimal | None:
    text = text.strip()
    if text.lower() in ABSENT:
        return None
    if len(text) > 40 or not (_NUMBER.fullmatch(text) or _NO_NUMBER.fullmatch(text)):
        raise _refused(Code.ROW_UNREADABLE, field, text, "a number")
    value, limits = Decimal(text), LIMITS[field]
    if value.is_zero():
        return None
    if not value.is_finite() or not limits.low <= value <= limits.high:
        raise _refused(Code.VALUE_OUT_OF_RANGE, field, text, limits.words)
    return value


def _refused(code: Code, field: str, value: str, expected: str) -> RefusedRow:
    return RefusedRow(finding(code, field=field, value=value[:80], expected=expected))


def _check_names(row: Row) -> None:
    """The words that identify a listing have to be there, and whole."""
    for field, longest in LONGEST_TEXT.items():
        text = row.get(field, "")
        if len(text) > longest:
            raise _refused(Code.VALUE_OUT_OF_RANGE, field, text, f"at most {longest} characters")
    if not row["InstanceType"].strip():
        raise _refused(Code.ROW_UNREADABLE, "InstanceType", "nothing", "the provider's own name")


def _required_count(row: Row) -> Decimal:
    field = "AcceleratorCount"
    count = number(row, field)
    if count is None or (count > 1 and count != int(count)):
        expected = "a whole number of GPUs, or a share of one"
        raise _refused(Code.VALUE_OUT_OF_RANGE, field, row[field], expected)
    return count


def _gpu_info(row: Row) -> GpuInfo:
    try:
        return read_gpu_info(row["GpuInfo"])
    except UnreadableGpuInfo as error:
        expected = "JSON or a Python literal with one entry in Gpus"
        raise _refused(Code.ROW_UNREADABLE, "GpuInfo", row["GpuInfo"], expected) from error


def _column_figure(info: GpuInfo) -> Figure | None:
    """SizeInMiB, or the total where it is missing. Both may count one GPU, all, or GB."""
    for name, raw in (("SizeInMiB", info.size), ("TotalGpuMemoryInMiB", info.total)):
        value = None if raw is None else _within("SizeInMiB", str(raw))
        if value is not None:
            words = f"{name} {value.normalize():f}"
            return Figure(int(value * MIB), words=words, bytes_if_gb=int(value * GB))
    return None


def _model(names: tuple[str, ...], labels: tuple[Label, ...]) -> str | None:
    """The accelerator's name; a longer name of the same family elsewhere makes it precise.

    Some feeds cut "RTX_3060_Ti" and "H100_NVL" down and keep the full word in the instance type.
    An accelerator's name that nothing is known of is not replaced by another column's.
    """
    told = labels[:2] if any(name.strip() for name in names[:2]) else labels
    named = next((label.model for label in told if label.model), None)
    if named is None:
        return None
    longer = [model for model in _models(labels) if model.startswith(f"{named} ")]
    return longer[0] if longer and longer[0] in relatives_of(named) else named


def _models(labels: tuple[Label, ...]) -> Iterator[str]:
    return (label.model for label in labels if label.model)
