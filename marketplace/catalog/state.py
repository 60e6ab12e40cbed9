"""JSON that a page hands to its own script (Next.js, Nuxt and the like) as records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from evaluator.findings import Code, Finding, finding
from marketplace.catalog.identity import is_safe
from marketplace.catalog.reading.labels import Attribute, classify, plain_label
from marketplace.catalog.reading.names import names_gpu
from marketplace.catalog.records import Cell, Origin, Record, labelled, slug_of
from marketplace.catalog.text import clean

Found = tuple[list[dict[str, Any]], tuple[Cell, ...]]

MAX_DEPTH = 24
MAX_NODES = 400_000
_ASSIGNED = re.compile(
    r"(?:window\.|self\.|globalThis\.|var\s|let\s|const\s)?"
    r"(?P<name>__[A-Z][A-Z_]{2,40}__|(?:plans|catalog|products|machines|servers|instances|pricing|offers"
    r"|gpus|inventory|initialState|pageData))\s?=\s?(?=[\[{])", re.I,
)  # fmt: skip
_CONTEXT = frozenset({Attribute.CURRENCY, Attribute.BASIS, Attribute.UNIT})
_OFFERING = frozenset({Attribute.PRICE, Attribute.AVAILABILITY, Attribute.QUANTITY, Attribute.VRAM,
                       Attribute.GPU_COUNT, Attribute.REGION})  # fmt: skip
_PLACES = re.compile(
    r"regions?|locations?|data ?cent(?:er|re)s?|zones?|sites?|availability|capacity|stock"
)


@dataclass(slots=True)
class State:
    """Records of embedded state, rows that are no GPU machines by reason, and findings."""

    records: list[Record] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def leave_out(self, reason: str) -> None:
        self.left_out[reason] = self.left_out.get(reason, 0) + 1


def read_state(scripts: tuple[tuple[str, str], ...]) -> State:
    """Every list of objects that names GPUs and offers them. Analytics layers are not read."""
    state = State()
    for kind, text in scripts:
        for data in _documents(kind, text, state):
            for items, context in _lists(data, (), 0):
                _read_items(items, context, state)
    return state


def _documents(kind: str, text: str, state: State) -> Iterator[Any]:
    if kind in ("application/json", "text/json"):
        try:
            yield json.loads(text)
        except (ValueError, RecursionError) as error:
            state.findings.append(finding(Code.MALFORMED_STRUCTURED_DATA, words=str(error)[:120]))
    elif kind in ("", "text/javascript", "module", "application/javascript"):
        decoder = json.JSONDecoder()
        for match in _ASSIGNED.finditer(text):
            try:
                yield decoder.raw_decode(text, match.end())[0]
            except (ValueError, RecursionError):
                continue


def _lists(data: Any, context: tuple[Cell, ...], depth: int) -> Iterator[Found]:
    """Lists of objects that look like machines, with the currency or basis stated above them."""
    if depth > MAX_DEPTH:
        return
    if isinstance(data, dict):
        here = (*context, *_context_of(data))
        deeper = [one for value in data.values() for one in _lists(value, here, depth + 1)]
        yield from deeper or _as_map(data, context)
    elif isinstance(data, list):
        deeper = [one for item in data[:MAX_NODES] for one in _lists(item, context, depth + 1)]
        objects = [item for item in data if isinstance(item, dict)]
        if not deeper and objects and _look_like_machines(objects):
            yield objects, context
        yield from deeper


def _as_map(data: dict[str, Any], context: tuple[Cell, ...]) -> Iterator[Found]:
    """Machines under their ids instead of in a list."""
    mapped = {key: value for key, value in data.items() if isinstance(value, dict)}
    if len(mapped) > 1 and len(mapped) == len(data) and _are_machines(list(mapped.values())):
        yield [{"id": key, **value} for key, value in mapped.items()], context


def _context_of(data: dict[str, Any]) -> Iterator[Cell]:
    for key, value in data.items():
        if isinstance(value, str) and classify(str(key)) in _CONTEXT:
            yield labelled(str(key), clean(value))


def _look_like_machines(objects: list[dict[str, Any]]) -> bool:
    return any(_is_machine(tuple(_flatten(one))) for one in objects[:50])


def _are_machines(objects: list[dict[str, Any]]) -> bool:
    """Parts of one machine lie under names as well, but only one of them is its GPU."""
    machines = sum(_is_machine(tuple(_flatten(one))) for one in objects[:50])
    return machines > 1 and machines * 2 > len(objects[:50])


def _is_machine(cells: tuple[Cell, ...]) -> bool:
    kinds = {cell.attribute for cell in cells}
    return (
        bool(kinds & _OFFERING) and len(cells) > 2 and any(names_gpu(cell.text) for cell in cells)
    )


def _read_items(items: list[dict[str, Any]], context: tuple[Cell, ...], state: State) -> None:
    for item in items[:MAX_NODES]:
        cells = tuple(_flatten(item))
        if _is_unlisted(cells):
            state.leave_out("not public")
            continue
        record = _record(item, cells, context)
        state.records.extend(_per_region(record, item))


def record_of_object(item: dict[str, Any]) -> Record:
    """One object as a record, whether or not it looks like a machine: a profile says that it is."""
    return _record(item, tuple(_flatten(item)), ())


def _is_unlisted(cells: tuple[Cell, ...]) -> bool:
    for cell in cells:
        if cell.attribute is Attribute.LISTED:
            negative = bool(
                re.search(r"hidden|internal|private|deprecated|staff", cell.label, re.I)
            )
            if (cell.text.lower() in ("true", "1", "yes")) == negative:
                return True
    return False


def _record(item: dict[str, Any], cells: tuple[Cell, ...], context: tuple[Cell, ...]) -> Record:
    own = {cell.attribute for cell in cells}
    inherited = tuple(cell for cell in context if cell.attribute not in own)
    title = _title(cells)
    return Record(
        sku=_sku(cells) or slug_of(title), title=title, cells=(*cells, *inherited), language="en",
        url=_url(cells), origin=Origin.STATE,
    )  # fmt: skip


def _title(cells: tuple[Cell, ...]) -> str:
    titles = [cell.text for cell in cells if cell.attribute is Attribute.TITLE]
    return next((text for text in titles if names_gpu(text)), titles[0] if titles else "")


def _sku(cells: tuple[Cell, ...]) -> str:
    shallow = [cell for cell in cells if cell.attribute is Attribute.SKU and " " not in cell.label]
    found = shallow or [cell for cell in cells if cell.attribute is Attribute.SKU]
    ranked = sorted(found, key=lambda cell: _RANK.get(plain_label(cell.label), 3))
    return ranked[0].text[:200] if ranked else ""


_RANK = {"sku": 0, "slug": 1, "id": 2}


def _url(cells: tuple[Cell, ...]) -> str:
    texts = [cell.text for cell in cells if cell.attribute is Attribute.URL]
    return next((text[:1000] for text in texts if "/" in text and is_safe(text)), "")


def _flatten(item: dict[str, Any], path: str = "", depth: int = 0) -> Iterator[Cell]:
    """Every scalar with its path of keys as label. Lists of regions are left to `_per_region`."""
    if depth > 5:
        return
    for key, value in item.items():
        label = f"{path} {key}".strip()
        if isinstance(value, dict):
            yield from _flatten(value, label, depth + 1)
        elif isinstance(value, list):
            yield from _flatten_list(value, label, depth)
        elif (text := _scalar(value)) != "":
            yield _cell(label, text)


def _flatten_list(values: list[Any], label: str, depth: int) -> Iterator[Cell]:
    objects = [value for value in values if isinstance(value, dict)]
    if not objects:
        text = ", ".join(filter(None, map(_scalar, values[:50])))
        if text:
            yield _cell(label, text)
    elif not _PLACES.fullmatch(plain_label(label.rpartition(" ")[2])):
        for one in objects[:20]:
            words = " ".join(str(value) for value in one.values() if isinstance(value, str))
            yield from _flatten(one, f"{label} {clean(words)[:60]}", depth + 1)


def _cell(label: str, text: str) -> Cell:
    """The whole path decides ("gpu memory mib"), else as much of its end as is a label."""
    plain = plain_label(label)
    words = plain.split()
    ends = (" ".join(words[-length:]) for length in (len(words), 3, 2, 1))
    return Cell(text, plain, next(filter(None, map(classify, ends)), None))


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, (dict, list)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return clean(
        format(value, "f").rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    )


def _per_region(record: Record, item: dict[str, Any]) -> list[Record]:
    """One record for each region that the object counts apart."""
    places = [
        one
        for key, value in item.items()
        if isinstance(value, list) and _PLACES.fullmatch(plain_label(str(key)))
        for one in _places(value)
    ]
    made = [_in_region(record, place) for place in places[:200]]
    return [one for one in made if one] or [record]


def _places(values: list[Any]) -> list[dict[str, Any]]:
    """Regions as objects, or as plain codes where there are several."""
    codes = [{"region": value} for value in values if isinstance(value, str)]
    objects = [value for value in values if isinstance(value, dict)]
    return objects or (codes if len(codes) > 1 else [])


def _in_region(record: Record, place: dict[str, Any]) -> Record | None:
    cells = tuple(_flatten(place))
    named = [
        cell
        for cell in cells
        if cell.attribute in (Attribute.REGION, Attribute.SKU, Attribute.TITLE)
    ]
    if not named:
        return None
    rest = tuple(cell for cell in cells if cell not in named)
    kinds = {cell.attribute for cell in rest}
    kept = tuple(cell for cell in record.cells if cell.attribute not in kinds & _OFFERING)
    return replace(record, region=named[0].text[:120], cells=(*kept, *rest))
