"""A record in the provider's words becomes an Entry, a Quarantined row, or is no GPU machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from evaluator.findings import Code, Finding, finding
from evaluator.machine import Availability
from marketplace.catalog.base import Entry, Quarantined
from marketplace.catalog.hardware import Hardware, read_hardware
from marketplace.catalog.offers import NO_CONTEXT, Offers, PriceContext, read_offers, settle
from marketplace.catalog.reading import availability, links
from marketplace.catalog.reading.counts import Count
from marketplace.catalog.reading.labels import Attribute as A
from marketplace.catalog.reading.names import NO_ALIASES, Aliases
from marketplace.catalog.reading.prices import Rate, Role
from marketplace.catalog.reading.subjects import is_disguised, speaks_of_gpus
from marketplace.catalog.records import Record
from marketplace.catalog.vram import Resolved, resolve

MOST_GPUS = 16_384
"""More GPUs than any rental; a larger count is a slip or a trap."""

_LONGEST_WORDS = 300


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row that is no GPU machine, and why."""

    reason: str


Outcome = Entry | Quarantined | LeftOut


def normalise(
    records: Sequence[Record],
    context: PriceContext = NO_CONTEXT,
    aliases: Aliases = NO_ALIASES,
) -> Outcome:
    """One machine from all records of it on a page, the one that visitors see first."""
    primary = records[0]
    readings = [read_hardware(record, aliases) for record in records]
    hardware, conflicts = _merged(readings)
    if hardware.label.model is None and not _is_gpu_machine(records):
        return LeftOut("no GPU named")
    count = hardware.count.gpus
    if count is not None and not 0 < count <= MOST_GPUS:
        return _refused(primary, hardware, _out_of_range("gpu_count", count))
    memory = resolve(hardware.label.model, count, hardware.figures)
    if memory.impossible:
        return _refused(primary, hardware, memory.impossible)
    offers, price_conflicts = _offers(records, context, hardware.count)
    if offers.refusal:
        return _refused(primary, hardware, offers.refusal)
    if hardware.label.model is None and not (offers.quotes or hardware.count.stated):
        return LeftOut("no GPU named")
    return _entry(primary, hardware, memory, offers, [*conflicts, *price_conflicts])


def _out_of_range(name: str, value: object) -> Finding:
    return finding(Code.VALUE_OUT_OF_RANGE, field=name, value=value, expected=f"1 to {MOST_GPUS}")


def _is_gpu_machine(records: Sequence[Record]) -> bool:
    """A model that we do not know yet, or a name in disguise: listed as unknown, not dropped."""
    texts = [
        text
        for record in records
        for text in (record.title, *(cell.text for cell in record.of(A.GPU, A.VRAM)))
    ]
    return any(speaks_of_gpus(text) for text in texts if text)


# --- several records of one machine


def _merged(readings: Sequence[Hardware]) -> tuple[Hardware, list[Finding]]:
    """What the first record leaves unsaid is taken from the next; what differs is a finding."""
    first = readings[0]
    disagreements = list(first.disagreements)
    for other in readings[1:]:
        disagreements += _differences(first, other)
        first = _filled(first, other)
    return first, [finding(Code.CONFLICTING_VALUES, words=words) for words in disagreements]


def _differences(first: Hardware, other: Hardware) -> Iterator[str]:
    if first.label.model and other.label.model and first.label.model != other.label.model:
        yield f"{first.label.model} and {other.label.model}"
    counts = first.count.gpus, other.count.gpus
    if first.count.stated and other.count.stated and counts[0] != counts[1]:
        yield f"{counts[0]} and {counts[1]} GPUs"
    for name in ("vcpus", "ram_bytes", "disk_bytes"):
        mine, theirs = getattr(first, name), getattr(other, name)
        if mine and theirs and abs(mine - theirs) > mine * 0.08:
            yield f"{name} {mine} and {theirs}"


def _filled(first: Hardware, other: Hardware) -> Hardware:
    return Hardware(
        label=first.label if first.label.model else other.label,
        count=first.count if first.count.stated or not other.count.stated else other.count,
        form_factor=first.form_factor or other.form_factor,
        figures=first.figures or other.figures,
        vcpus=first.vcpus or other.vcpus,
        ram_bytes=first.ram_bytes or other.ram_bytes,
        disk_bytes=first.disk_bytes or other.disk_bytes,
        link=first.link if first.link.link else other.link,
        fabric=first.fabric or other.fabric,
        region=first.region or other.region,
        zone=first.zone or other.zone,
        stock=first.stock if first.stock.words else other.stock,
        disagreements=first.disagreements,
    )


def _offers(
    records: Sequence[Record], context: PriceContext, count: Count
) -> tuple[Offers, list[Finding]]:
    """Prices of the first record that has any; another record may confirm or contradict them."""
    found = [read_offers(record, context) for record in records]
    shown = next((index for index, some in enumerate(found) if _priced(some)), 0)
    rates = found[shown]
    conflicts: list[Finding] = []
    for others in found[shown + 1 :]:
        rates, doubts = _cross_checked(rates, others)
        conflicts += doubts
    return settle(rates, count.gpus, count.nodes), conflicts


def _priced(found: Sequence[Rate]) -> bool:
    return any(rate.role is Role.RATE and rate.amount != 0 for rate in found)


def _cross_checked(rates: list[Rate], others: list[Rate]) -> tuple[list[Rate], list[Finding]]:
    checked, doubts = [], []
    for rate in rates:
        rivals = [one for one in others if _same_offer(rate, one)]
        if any(one.amount == rate.amount for one in rivals):
            rate = replace(rate, ambiguous_amount=False)
        elif rivals:
            words = f"{rate.amount} is shown, {rivals[0].amount} is in the structured data"
            doubts.append(finding(Code.CONFLICTING_VALUES, words=words))
        checked.append(rate)
    return checked, doubts


def _same_offer(rate: Rate, other: Rate) -> bool:
    usable = Role.RATE is rate.role is other.role and other.amount != 0
    units = rate.unit is None or other.unit is None or rate.unit is other.unit
    bases = rate.basis is other.basis or "unknown" in (rate.basis.value, other.basis.value)
    same = (rate.purchase, rate.term) == (other.purchase, other.term)
    return usable and units and bases and same and rate.currency == other.currency


# --- the result


def _refused(record: Record, hardware: Hardware, reason: Finding) -> Quarantined:
    return Quarantined(record.sku, reason, hardware.region, hardware.zone, _words(record, hardware))


def _entry(
    record: Record, hardware: Hardware, memory: Resolved, offers: Offers, conflicts: list[Finding]
) -> Entry:
    count, stock = hardware.count, _stock(record, hardware, offers)
    single = count.gpus == 1
    findings = [
        *conflicts, *memory.findings, *offers.findings,
        *_hardware_findings(record, hardware),
        *([finding(Code.AVAILABILITY_UNKNOWN)] if stock.state is Availability.UNKNOWN else []),
    ]  # fmt: skip
    return Entry(
        sku=record.sku, region=hardware.region, zone=hardware.zone,
        title=(record.title or record.subject)[:300],
        url=record.url, gpu_model=hardware.label.model, gpu_count=count.gpus, nodes=count.nodes,
        gpu_fraction=count.fraction, vram_bytes_per_gpu=memory.bytes_per_gpu,
        vram_reported_bytes=memory.reported_bytes, form_factor=hardware.form_factor,
        link=None if single else hardware.link.link, inter_node=hardware.fabric,
        availability=stock.state, quantity=stock.quantity, vcpus=hardware.vcpus,
        ram_bytes=hardware.ram_bytes, local_storage_bytes=hardware.disk_bytes,
        quotes=offers.quotes, findings=tuple(dict.fromkeys(findings)),
        words=_words(record, hardware),
    )  # fmt: skip


def _hardware_findings(record: Record, hardware: Hardware) -> Iterator[Finding]:
    label, count = hardware.label, hardware.count
    if label.model is None:
        marked = " (letters of another script)" if is_disguised(record.title) else ""
        yield finding(Code.GPU_UNKNOWN, words=f"{record.title[:80]}{marked}")
    yield from links.judge_link(hardware.link, label.model, hardware.form_factor, count.gpus)
    if count.nodes > 1:
        yield finding(Code.MULTI_NODE, nodes=count.nodes)
    if count.fraction:
        yield finding(Code.FRACTIONAL_GPU, words=count.fraction)


def _stock(record: Record, hardware: Hardware, offers: Offers) -> availability.Stock:
    """Where no price and no state is printed, "Contact us" in the price's place is the state."""
    if hardware.stock.state is not Availability.UNKNOWN or offers.quotes:
        return hardware.stock
    asked = [availability.read_stock(cell.text) for cell in record.of(A.PRICE)]
    said = (one for one in asked if one.state is not Availability.UNKNOWN)
    return next(said, hardware.stock)


def _words(record: Record, hardware: Hardware) -> dict[str, str]:
    """The provider's own text for each attribute that was read from it."""
    words = {
        "title": record.title, "gpu": hardware.label.words, "link": hardware.link.words,
        "availability": hardware.stock.words, "source": record.origin.value,
        "vram": ", ".join(figure.words for figure in hardware.figures),
    }  # fmt: skip
    for cell in record.cells:
        name = cell.attribute.value if cell.attribute else "text"
        words[name] = (
            f"{words[name]} | {cell.text}"
            if words.get(name) and name == "text"
            else (words.get(name) or cell.text)
        )
    return {name: text[:_LONGEST_WORDS] for name, text in words.items() if text}
