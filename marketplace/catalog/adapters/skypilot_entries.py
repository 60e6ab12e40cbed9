"""From a read row to an Entry: memory, form factor, link, prices, and what is doubtful in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from evaluator.findings import Code, Finding, finding
from evaluator.gpus import known_sizes_gb, relatives_of
from evaluator.machine import LinkClass
from evaluator.prices import Basis, Purchase, Quote, TimeUnit
from evaluator.units import GB
from marketplace.catalog.adapters.skypilot_memory import Custom, memory_of
from marketplace.catalog.adapters.skypilot_rows import (
    Draft,
    RefusedRow,
    byte_count,
    number,
    whole,
    words_of,
)
from marketplace.catalog.base import Entry
from marketplace.catalog.reading.links import UNREAD, LinkReading, judge_link
from marketplace.catalog.vram import Resolved

_LINK_WORD = re.compile(r"(?<![a-z])(?<!no[-_ ])nv(?P<what>link|switch)(?![a-z])", re.IGNORECASE)
_LINKS = {"link": LinkClass.NVLINK, "switch": LinkClass.NVSWITCH}
_PRICES = (("Price", Purchase.ON_DEMAND), ("SpotPrice", Purchase.SPOT))
_PLACES = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class _Card:
    """The GPU after every name in the row was heard."""

    model: str | None
    form_factor: str | None
    findings: tuple[Finding, ...] = ()


def entry_of(draft: Draft, custom: Custom) -> Entry:
    """`custom` is how the file writes memory. Raises RefusedRow."""
    memory = memory_of(draft, custom)
    if memory.impossible:
        raise RefusedRow(memory.impossible)
    row, card, claim = draft.row, _card(draft, memory), _link_claim(draft)
    quotes = tuple(_quotes(draft))
    return Entry(
        sku=row["InstanceType"].strip(),
        region=row["Region"].strip(),
        zone=row.get("AvailabilityZone", "").strip(),
        title=f"{draft.fraction or draft.gpu_count}x {row['AcceleratorName']}"[:300],
        gpu_model=card.model,
        gpu_count=draft.gpu_count,
        gpu_fraction=draft.fraction,
        vram_bytes_per_gpu=memory.bytes_per_gpu,
        vram_reported_bytes=memory.reported_bytes,
        form_factor=card.form_factor,
        link=claim.link,
        vcpus=whole(row, "vCPUs"),
        ram_bytes=byte_count(row, "MemoryGiB"),
        local_storage_bytes=byte_count(row, "StorageGiB"),
        quotes=quotes,
        findings=(
            *memory.findings,
            *card.findings,
            *judge_link(claim, card.model, card.form_factor, draft.gpu_count),
            *_price_findings(quotes),
            *_share(draft),
            finding(Code.AVAILABILITY_UNKNOWN),
        ),
        words=words_of(row),
    )


def _card(draft: Draft, memory: Resolved) -> _Card:
    """Names or sizes that contradict each other leave the form factor unknown."""
    if draft.model is None:
        unknown = finding(Code.GPU_UNKNOWN, words=draft.row["AcceleratorName"] or "without a name")
        return _Card(None, None, (unknown,))
    model = _model_of_size(draft.model, memory)
    stated = {label.form_factor for label in draft.labels if label.form_factor}
    form_factor = max(stated, key=len, default=None)
    agree = form_factor is None or all(form_factor.startswith(form) for form in stated)
    if model == draft.model and agree and not _other_models(draft):
        return _Card(model, form_factor)
    conflict = finding(Code.CONFLICTING_VALUES, words=f"{draft.names} ({_size_words(memory)})")
    return _Card(model, form_factor if agree and model == draft.model else None, (conflict,))


def _model_of_size(model: str, memory: Resolved) -> str:
    """A board sold in one size only is not that board when its memory is its relative's.

    "H100_NVL" with 80 GB is an H100 whose label took the link for the board.
    """
    if memory.bytes_per_gpu is None or not model.endswith(" NVL"):
        return model
    size = memory.bytes_per_gpu // GB
    if size in known_sizes_gb(model):
        return model
    return next((name for name in relatives_of(model) if size in known_sizes_gb(name)), model)


def _other_models(draft: Draft) -> set[str]:
    """Models in other columns that are neither this one nor a shorter name of it."""
    others = {label.model for label in draft.labels if label.model}
    return {name for name in others if name != draft.model and not _shortens(name, draft.model)}


def _shortens(name: str | None, model: str | None) -> bool:
    return bool(name and model and model.startswith(f"{name} "))


def _size_words(memory: Resolved) -> str:
    return f"{memory.bytes_per_gpu // GB} GB" if memory.bytes_per_gpu else "memory unknown"


def _link_claim(draft: Draft) -> LinkReading:
    """Only a link word counts, and only between several GPUs."""
    if draft.gpu_count < 2:
        return UNREAD
    columns = ("AcceleratorName", "InstanceType", "UpstreamCloudId")
    text = " ".join(draft.row.get(column, "") for column in columns)
    found = {match["what"].lower(): match[0] for match in _LINK_WORD.finditer(text)}
    strongest = max(found, default="")
    return LinkReading(_LINKS[strongest], found[strongest]) if strongest else UNREAD


def _quotes(draft: Draft) -> Iterator[Quote]:
    for column, purchase in _PRICES:
        amount = number(draft.row, column)
        if amount is not None:
            yield Quote(
                amount=_without_noise(amount),
                currency="USD",
                unit=TimeUnit.HOUR,
                basis=Basis.MACHINE,
                purchase=purchase,
                words=draft.row[column].strip(),
            )


def _without_noise(amount: Decimal) -> Decimal:
    """0.36979999999999996 is a binary 0.3698; the words keep what was written."""
    rounded = amount.quantize(_PLACES)
    return amount if amount == rounded else rounded.normalize()


def _price_findings(quotes: tuple[Quote, ...]) -> Iterator[Finding]:
    if not quotes:
        yield finding(Code.PRICE_MISSING)
    elif all(quote.purchase is Purchase.SPOT for quote in quotes):
        yield finding(Code.NO_ON_DEMAND_PRICE, purchase=Purchase.SPOT.value)


def _share(draft: Draft) -> Iterator[Finding]:
    if draft.fraction:
        yield finding(Code.FRACTIONAL_GPU, words=f"{draft.fraction} of {draft.names or 'a GPU'}")
