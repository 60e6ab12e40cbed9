"""The machine that a record describes: GPUs, memory, host, links, place and stock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from evaluator.gpus import UNREAD, Label
from evaluator.units import GB, MIB
from marketplace.catalog.reading import availability, links
from marketplace.catalog.reading.counts import Count, read_count, read_gpu_total, read_nodes
from marketplace.catalog.reading.labels import Attribute as A
from marketplace.catalog.reading.labels import is_per_gpu
from marketplace.catalog.reading.names import NO_ALIASES, Aliases, label_of, label_with
from marketplace.catalog.reading.numbers import read_integer
from marketplace.catalog.reading.places import read_place, read_place_field
from marketplace.catalog.reading.sizes import Size, SizeKind, find_sizes, read_size, read_unit_hint
from marketplace.catalog.reading.subjects import leads_with_gpu
from marketplace.catalog.records import Cell, Record
from marketplace.catalog.text import bounded
from marketplace.catalog.vram import Figure, Scope, stated


@dataclass(frozen=True, slots=True)
class Hardware:
    """What one record says. None is unsaid. `disagreements` are values said twice, differently."""

    label: Label = UNREAD
    count: Count = field(default_factory=Count)
    form_factor: str | None = None
    figures: tuple[Figure, ...] = ()
    vcpus: int | None = None
    ram_bytes: int | None = None
    disk_bytes: int | None = None
    link: links.LinkReading = links.UNREAD
    fabric: str | None = None
    region: str = ""
    zone: str = ""
    stock: availability.Stock = availability.UNSAID
    disagreements: tuple[str, ...] = ()


def read_hardware(record: Record, aliases: Aliases = NO_ALIASES) -> Hardware:
    """Everything but the price. Rows without a GPU name come back with an unread label.

    `aliases` are a curator's spellings; they speak only where no known name stands.
    """
    label, rivals = _label(record)
    if label.model is None and aliases:
        named = (label_with(text, aliases) for text in _naming(record))
        label = next((one for one in named if one.model), label)
    count, contradiction = _count(record, label)
    gpus = count.gpus
    return Hardware(
        label=label,
        count=count,
        form_factor=_form_factor(record, label),
        figures=tuple(_figures(record)),
        vcpus=_vcpus(record, gpus),
        ram_bytes=_ram(record, gpus),
        disk_bytes=_disk(record),
        link=_link(record),
        fabric=_fabric(record),
        region=record.region or _region(record),
        zone=next((read_place_field(cell.text) for cell in record.of(A.ZONE)), ""),
        stock=_stock(record),
        disagreements=tuple(filter(None, (*rivals, contradiction))),
    )


# --- GPUs


def _naming(record: Record) -> list[str]:
    """Texts that may name the GPU, the most telling first."""
    leading = [cell.text for cell in record.unlabelled if leads_with_gpu(cell.text, cell.parts)]
    named = [cell.text for cell in record.of(A.GPU, A.TITLE)]
    return [record.title, *named, *leading, record.subject, record.sku]


def _label(record: Record) -> tuple[Label, list[str]]:
    stated_cells = [label_of(cell.text) for cell in record.of(A.GPU)]
    column = next((one for one in stated_cells if one.model), UNREAD)
    title = label_of(record.title)
    if column.model and title.model and column.model != title.model:
        return column, [f"{title.words} and {column.words}"]
    labels = [column, title, *(label_of(text) for text in _naming(record))]
    return next((one for one in labels if one.model), UNREAD), []


def _count(record: Record, label: Label) -> tuple[Count, str]:
    """The count column, else what stands beside the name, else a line such as "8 GPUs"."""
    share = _share_column(record)
    if share:
        return Count(1, 1, share, True), ""
    texts = [text for text in _naming(record) if text]
    named_texts = [text for text in texts if label_of(text).model]
    aliased = [read_count(text, label) for text in texts if label.words and label.words in text]
    beside = (
        [read_count(text) for text in named_texts] or aliased or list(map(read_count, texts[:1]))
    )
    named = next((one for one in beside if one.stated), beside[0] if beside else Count())
    column = _count_column(record)
    nodes = max([named.nodes, *_node_cells(record)])
    if column is not None and not named.fraction:
        differs = named.stated and named.gpus != column and named.gpus != 1
        words = f"{named.gpus} and {column} GPUs" if differs else ""
        return Count(column, nodes, stated=True), words
    if _broken_column(record):
        return Count(None, nodes, stated=True), ""
    if named.stated:
        return Count(named.gpus, nodes, named.fraction, True), ""
    loose = next((n for cell in record.unlabelled if (n := read_gpu_total(cell.text))), None)
    if loose is not None:
        return Count(loose, nodes, stated=True), ""
    return Count(named.gpus if nodes == 1 else None, nodes, named.fraction), ""


_SHARE = re.compile(
    r"\W{0,2}(?P<share>(?=[^1-9]{0,4}[1-9])0?[.,]\d{1,3}|[1-9]/[1-9]\d?|[½¼⅓⅛¾])"
    r"\s?(?:[x×]|gpus?|cards?|pcs)?\W{0,2}",
    re.I,
)


def _share_column(record: Record) -> str:
    """A share of one GPU in the count column, in its words: a name beside it would mean a whole."""
    found = (_SHARE.fullmatch(cell.text) for cell in record.of(A.GPU_COUNT))
    return next((match["share"] for match in found if match), "")


def _broken_column(record: Record) -> bool:
    """One and a half GPUs are no count that a name beside them could repair."""
    texts = [cell.text for cell in record.of(A.GPU_COUNT)]
    return any(re.fullmatch(r"\W{0,2}\d{1,15}[.,]\d{1,3}\W{0,2}", text) for text in texts)


def _count_column(record: Record) -> int | None:
    for cell in record.of(A.GPU_COUNT, A.GPU):
        match = re.fullmatch(
            r"\W{0,2}[x×]?\s?(\d{1,15})(?:[.,]0{1,2})?\s?(?:[x×]|gpus?|cards?|pcs)?\W{0,2}",
            cell.text,
            re.I,
        )
        if match and (cell.attribute is A.GPU_COUNT or len(match[1]) < 4):
            per_node = re.search(r"per (?:node|server|machine)", cell.label, re.I)
            return int(match[1]) * (max([1, *_node_cells(record)]) if per_node else 1)
    return None


def _node_cells(record: Record) -> list[int]:
    cells = [read_integer(cell.text) or read_nodes(cell.text) for cell in record.of(A.NODES)]
    return [number for number in cells if 1 <= number <= 10_000]


def _form_factor(record: Record, label: Label) -> str | None:
    texts = [record.title, *(cell.text for cell in record.of(A.GPU, A.TITLE, A.FORM_FACTOR))]
    found = [one.form_factor for text in texts if (one := label_of(text)).form_factor]
    fields = [_form_field(cell.text) for cell in record.of(A.FORM_FACTOR)]
    known = [one for one in (label.form_factor, *found, *fields) if one]
    if known:
        return max((one for one in known if one.startswith(known[0])), key=len)
    # A note holds for many rows: it names the form of those that do not name their own.
    own = links.read_form_factor([*(cell.text for cell in record.unlabelled), *record.notes])
    above = label_of(record.subject)
    return own or (above.form_factor if above.model == label.model else None)


def _form_field(text: str) -> str | None:
    match = re.match(r"\s{0,2}(SXM\d?|OAM|NVL|PCI-?e)\b", text, re.I)
    return ("PCIe" if match[1][0] in "Pp" else match[1].upper()) if match else None


# --- memory of the GPUs


def _figures(record: Record) -> Iterator[Figure]:
    seen: set[tuple[int, Scope]] = set()
    own = [*_labelled_figures(record), *_named_figures(record), *_loose_figures(record)]
    # A heading names the card of the rows under it, which say the count only.
    above = [_figure(one, one.scope) for one in find_sizes(record.subject) if _is_gpu_memory(one)]
    for figure in own or above:
        if (figure.byte_count, figure.scope) not in seen:
            seen.add((figure.byte_count, figure.scope))
            yield figure


def _labelled_figures(record: Record) -> Iterator[Figure]:
    for cell in record.of(A.VRAM, A.VRAM_TOTAL):
        scope = _labelled_scope(cell)
        found = [size for size in find_sizes(cell.text) if _is_gpu_memory(size)]
        for size in found:
            yield _figure(size, scope if size.scope is Scope.UNKNOWN else size.scope)
        if not found and (figure := _machine_figure(cell, scope)):
            yield figure
    if not record.of(A.VRAM, A.VRAM_TOTAL):
        yield from _figures_of_memory(record)


def _figures_of_memory(record: Record) -> Iterator[Figure]:
    """A bare "Memory" beside another RAM column is the GPU's."""
    if record.of(A.RAM):
        for cell in record.of(A.MEMORY):
            yield from (_figure(size, size.scope) for size in find_sizes(cell.text))


def _labelled_scope(cell: Cell) -> Scope:
    if cell.attribute is A.VRAM_TOTAL or re.search(r"\btotal\b|\bcombined\b", cell.label, re.I):
        return Scope.TOTAL
    if is_per_gpu(cell.label) or re.search(r"\beach\b", cell.label, re.I):
        return Scope.EACH
    return Scope.UNKNOWN


def _machine_figure(cell: Cell, scope: Scope) -> Figure | None:
    """A bare number takes the unit of its label; without one only a published size can prove GB."""
    size = read_size(cell.text, cell.label)
    if size is None:
        number = read_integer(cell.text)
        return Figure(number * GB, scope, f"{cell.text} GB", marketing=True) if number else None
    hint = read_unit_hint(cell.label)
    as_gb = size.each_bytes // MIB * GB if hint == MIB else None
    return Figure(size.each_bytes, scope, size.words, bytes_if_gb=as_gb)


def _named_figures(record: Record) -> Iterator[Figure]:
    """Sizes beside the GPU's name: each or total is for the published sizes to decide."""
    texts = [record.title, *(cell.text for cell in record.of(A.GPU, A.TITLE))]
    texts += [cell.text for cell in record.unlabelled if leads_with_gpu(cell.text, cell.parts)]
    for text in texts:
        model = label_of(text).model
        if model:
            # The 3 of "Gaudi 3 128 GB" would group with the digits after it.
            rest = re.sub(re.escape(model), ";", bounded(text), count=1, flags=re.I)
            yield from (_figure(one, one.scope) for one in find_sizes(rest) if _is_gpu_memory(one))


def _loose_figures(record: Record) -> Iterator[Figure]:
    for cell in record.unlabelled:
        for size in find_sizes(cell.text):
            if size.kind is SizeKind.VRAM or _is_of_each_card(size):
                yield _figure(size, size.scope)


LARGEST_CARD_GB = 300


def _is_of_each_card(size: Size) -> bool:
    """ "24GB each" in a line that says of what: memory of a host is not counted by pieces."""
    small = 0 < size.each_bytes <= LARGEST_CARD_GB * GB
    return size.kind is SizeKind.PLAIN and size.scope is Scope.EACH and size.count == 1 and small


def _is_gpu_memory(size: Size) -> bool:
    return size.kind in (SizeKind.PLAIN, SizeKind.VRAM)


def _figure(size: Size, scope: Scope) -> Figure:
    """ "8 x 80 GB" names each; the count in front is that of the GPUs."""
    unit = size.unit if size.unit.upper() in ("G", "GB", "GIB", "TB", "TIB", "MB", "MIB") else ""
    if not unit:
        return Figure(size.each_bytes, scope, size.words)
    return stated(size.number, unit, Scope.EACH if size.count > 1 else scope, size.words)


# --- the host

_CORES = tuple(
    re.compile(rf"(?<![\w.,])(\d{{1,2}},\d{{3}}|\d{{1,5}})\s?(?:x\s)?(?:{words})(?![a-z])", re.I)
    for words in (
        r"v-?cpus?|virtual\s(?:cpus?|cores?)|v-?cores?",
        r"(?:cpu\s)?threads?",
        r"(?:physical\s|cpu\s)?cores?|cpus?|kerne|cœurs|rdzeni",
    )
)
_OCPU = re.compile(r"(?<![\w.])(\d{1,4})\s?ocpus?\b", re.I)
_MOST_VCPUS = 16_384


def _vcpus(record: Record, gpus: int | None) -> int | None:
    for cell in record.of(A.VCPU):
        number = read_integer(cell.text) or _cores([cell.text])
        if number:
            per_gpu = is_per_gpu(cell.label) or is_per_gpu(cell.text)
            return _plausible(number * (gpus or 0) if per_gpu else number, _MOST_VCPUS)
    texts = [cell.text for cell in (*record.unlabelled, *record.of(A.CPU_MODEL))]
    number = _cores(texts)
    per_gpu = any(
        re.search(r"(?:cpus?|cores?|threads?)\s?(?:per|/)\s?gpu", text, re.I) for text in texts
    )
    return _plausible(number * (gpus or 0) if number and per_gpu else number, _MOST_VCPUS)


def _cores(texts: list[str]) -> int | None:
    """vCPUs where they are named, else threads, else cores."""
    for pattern in _CORES:
        for text in texts:
            if match := pattern.search(bounded(text)):
                return int(match[1].replace(",", ""))
    match = next((one for text in texts if (one := _OCPU.search(text))), None)
    # An OCPU is a core with two threads, each of which is sold as a vCPU elsewhere.
    return 2 * int(match[1]) if match else None


def _plausible(number: int | None, most: int) -> int | None:
    return number if number and 0 < number <= most else None


_MOST_RAM = 256 * 1024 * GB
_MOST_DISK = 10_000_000 * GB


def _ram(record: Record, gpus: int | None) -> int | None:
    cells = record.of(A.RAM) or record.of(A.MEMORY)
    for cell in cells:
        size = read_size(cell.text, cell.label)
        if size and size.total_bytes:
            per_gpu = is_per_gpu(cell.label) or size.scope is Scope.EACH
            return _plausible(
                size.total_bytes * (gpus or 0) if per_gpu else size.total_bytes, _MOST_RAM
            )
    sizes = [one for one in _loose_sizes(record) if one.kind is SizeKind.RAM]
    if not sizes:
        return None
    share = (gpus or 0) if sizes[0].scope is Scope.EACH else 1
    return _plausible(sizes[0].total_bytes * share, _MOST_RAM)


def _loose_sizes(record: Record) -> list[Size]:
    texts = [cell.text for cell in (*record.unlabelled, *record.of(A.CPU_MODEL, A.TITLE))]
    return [size for text in texts for size in find_sizes(text)]


def _disk(record: Record) -> int | None:
    cells = record.of(A.DISK)
    sizes = [size for cell in cells for size in _disk_sizes(cell)]
    sizes = sizes or [one for one in _loose_sizes(record) if one.kind is SizeKind.DISK]
    return _plausible(sum(size.total_bytes for size in sizes), _MOST_DISK)


def _disk_sizes(cell: Cell) -> list[Size]:
    if re.search(r"network|shared|boot|object|backup", cell.label, re.I):
        return []
    found = [one for one in find_sizes(cell.text) if one.kind in (SizeKind.DISK, SizeKind.PLAIN)]
    alone = None if found else read_size(cell.text, cell.label)
    return found or ([alone] if alone and alone.kind is SizeKind.PLAIN else [])


# --- links, place, stock


def _link(record: Record) -> links.LinkReading:
    fields = [links.read_link_field(cell.text, cell.label) for cell in record.of(A.LINK)]
    field_reading = next((one for one in fields if one.link), links.UNREAD)
    if field_reading.link:
        return field_reading
    own = [record.title, *(cell.text for cell in (*record.unlabelled, *record.of(A.GPU, A.TITLE)))]
    reading = links.read_link(own)
    if reading.link is None:
        pieces = (piece for cell in record.unlabelled for piece in (cell.text, *cell.parts))
        reading = links.read_matrix(pieces)
    return reading if reading.link else links.read_link(record.notes)


def _fabric(record: Record) -> str | None:
    cells = [cell.text for cell in (*record.of(A.FABRIC, A.LINK), *record.unlabelled)]
    return links.read_fabric([*cells, record.title])


def _region(record: Record) -> str:
    for cell in record.of(A.REGION):
        if stated_place := read_place_field(cell.text):
            return stated_place
    pieces = (piece for cell in record.unlabelled for piece in _pieces(cell))
    return next((place for piece in pieces if (place := read_place(piece))), "")


def _pieces(cell: Cell) -> Iterable[str]:
    return (cell.text, *cell.parts, *re.split(r"\s[·•|]\s|\s?;\s", cell.text)[:12])


def _stock(record: Record) -> availability.Stock:
    fields = [availability.read_stock_field(cell.text) for cell in record.of(A.AVAILABILITY)]
    counts = [availability.read_stock_field(cell.text) for cell in record.of(A.QUANTITY)]
    badges = [
        availability.read_stock(piece) for cell in record.unlabelled for piece in _pieces(cell)
    ]
    said = [one for one in (*fields, *counts, *badges) if one.state is not availability.A.UNKNOWN]
    # "Ask us" beside a state is about the price.
    said.sort(key=lambda one: one.state is availability.A.ON_REQUEST)
    first = next(iter(said), availability.UNSAID)
    numbers = [one.quantity for one in (*counts, *said) if one.quantity is not None]
    return availability.Stock(first.state, numbers[0] if numbers else None, first.words)
