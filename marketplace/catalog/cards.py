"""Repeated cards and list items: which elements are the records of a page.

No class name is known beforehand. Lines that begin with a GPU and lines that hold a rate are
counted for every element above them; the kind of element that most often holds exactly one of
each is the card.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from marketplace.catalog.document import Element
from marketplace.catalog.lines import Line
from marketplace.catalog.reading.availability import read_stock
from marketplace.catalog.reading.money import find_money
from marketplace.catalog.reading.names import names_gpu
from marketplace.catalog.reading.subjects import leads_with_gpu

MAX_CLIMB = 14
"""Levels from a line up to its card. A card's own markup is never deeper than this."""
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6", "dt", "summary", "legend"})
_GENERIC = frozenset({"html", "body", "main"})
MAX_KINDS = 12

Kind = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """The elements of one record, usually one. Cards inside them are records of their own."""

    roots: tuple[Element, ...]


@dataclass(slots=True)
class _Mention:
    """A line that names a GPU first (`gpu`), or says how to rent it (`rate`)."""

    line: Line
    gpu: bool
    rate: bool
    ancestors: list[Element] = field(default_factory=list)


def find_cards(lines: list[Line]) -> list[Card]:
    """The cards of a page in reading order, found over and over until no kind repeats."""
    mentions = [one for line in lines if (one := _mention(line))]
    cards: list[Card] = []
    while True:
        found = _best(mentions, alone=not cards)
        if not found:
            return cards
        cards.extend(found)
        taken = {root for card in found for root in card.roots}
        mentions = [one for one in mentions if not taken.intersection(one.ancestors)]


def _mention(line: Line) -> _Mention | None:
    gpu = leads_with_gpu(line.text, line.parts)
    rate = _has_rate(line)
    if not gpu and not rate:
        return None
    return _Mention(line, gpu, rate, _climb(line.element))


def _has_rate(line: Line) -> bool:
    if any(True for _ in find_money(line.text[:400])):
        return True
    return any(read_stock(part).words for part in (line.text, *line.parts))


def _climb(element: Element) -> list[Element]:
    found = [element]
    for parent in element.iterancestors():
        if len(found) >= MAX_CLIMB:
            break
        found.append(parent)
    return [one for one in found if one.tag not in _GENERIC]


def _best(mentions: list[_Mention], *, alone: bool) -> list[Card]:
    """The kind with the most complete cards, or headings that stand in a row without a wrapper."""
    grouped = _best_kind(mentions)
    flat = _flat_cards(mentions)
    best = flat if len(flat) > max(1, len(grouped)) or _head(flat, grouped) else grouped
    if len(best) > 1 or (alone and best):
        return best
    return []


def _head(flat: list[Card], grouped: list[Card]) -> bool:
    """Whether each grouped card is the text under one of the headings, which names its GPU."""
    under = {root for card in flat for root in card.roots[1:]}
    return len(flat) > 1 and all(root in under for card in grouped for root in card.roots)


def _best_kind(mentions: list[_Mention]) -> list[Card]:
    scored: list[tuple[tuple[int, ...], list[Element]]] = []
    for kind in _promising(mentions):
        members = _without_wrappers(_members(mentions, kind))
        complete = [one for one, (gpus, rates) in members.items() if gpus and rates]
        if complete:
            crowded = sum(gpus > 1 for gpus, _ in members.values())
            named = sum(_is_named(one) for one in complete)
            # Reading order of `members` is kept; outer elements win a draw as they hold the badge.
            depth = -min(sum(1 for _ in one.iterancestors()) for one in complete)
            scored.append(((len(complete), -crowded, named, depth), list(members)))
    if not scored:
        return []
    _, members_of_best = max(scored, key=lambda pair: pair[0])
    return [Card((one,)) for one in members_of_best]


def _without_wrappers(members: dict[Element, tuple[int, int]]) -> dict[Element, tuple[int, int]]:
    """An element around cards that is no card itself shares a class with them by chance."""
    around = {parent for one in members for parent in one.iterancestors()}
    return {one: said for one, said in members.items() if all(said) or one not in around}


def _promising(mentions: list[_Mention]) -> list[Kind]:
    """Kinds of elements that hold both a GPU and a rate, the commonest first."""
    holds: dict[Element, list[bool]] = defaultdict(lambda: [False, False])
    for mention in mentions:
        for element in mention.ancestors:
            flags = holds[element]
            flags[0], flags[1] = flags[0] or mention.gpu, flags[1] or mention.rate
    counts = Counter(
        kind for element, flags in holds.items() if all(flags) for kind in _kinds(element)
    )
    return [kind for kind, _ in counts.most_common(MAX_KINDS)]


def _kinds(element: Element) -> Iterator[Kind]:
    """Ways in which an element may be one of many: same classes, one class, same parent."""
    classes = tuple(sorted((element.get("class") or "").split()))
    yield ("same", element.tag, classes)
    yield ("child", element.tag, element.getparent())
    for name in classes:
        yield ("class", element.tag, name)


def _is_of(element: Element, kind: Kind) -> bool:
    return element.tag == kind[1] and kind in _kinds(element)


def _members(mentions: list[_Mention], kind: Kind) -> dict[Element, tuple[int, int]]:
    """Each member with how many GPU lines and rates are its own, not of a member inside it."""
    found: dict[Element, list[int]] = {}
    for mention in mentions:
        owner = next((one for one in mention.ancestors if _is_of(one, kind)), None)
        if owner is not None:
            counts = found.setdefault(owner, [0, 0])
            counts[0] += mention.gpu
            counts[1] += mention.rate
    return {element: (gpus, rates) for element, (gpus, rates) in found.items()}


def _is_named(element: Element) -> bool:
    return any(name == "id" or name.startswith("data-") for name in element.attrib)


def _flat_cards(mentions: list[_Mention]) -> list[Card]:
    """Headings (or dt terms) side by side with their texts: each reaches to the next one."""
    heads: dict[tuple[Element, str], list[Element]] = defaultdict(list)
    for mention in mentions:
        element = mention.line.element
        if mention.gpu and element.tag in _HEADINGS and element.getparent() is not None:
            heads[(element.getparent(), element.tag)].append(element)
    best = max(heads.values(), key=len, default=[])
    cards = [Card(tuple(_reach(head, best[0].tag))) for head in best]
    complete = [card for card in cards if _speaks_of_renting(card, mentions)]
    return cards if len(complete) * 2 > len(cards) else []


def _reach(head: Element, tag: str) -> Iterable[Element]:
    yield head
    for sibling in head.itersiblings():
        if sibling.tag == tag:
            return
        yield sibling


def _speaks_of_renting(card: Card, mentions: list[_Mention]) -> bool:
    roots = set(card.roots)
    return any(one.rate and roots.intersection(one.ancestors) for one in mentions)


def names_any_gpu(lines: Iterable[Line]) -> bool:
    return any(names_gpu(line.text) for line in lines)
