"""`nvidia-smi -q`, whole or an excerpt: the slot as negotiated, power, ECC, MIG, the fabric."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from evaluator.evidence.lines import Line, Paste
from evaluator.evidence.readings import (
    Format,
    PcieLink,
    Problem,
    Reading,
    Sign,
    Standing,
    Trouble,
)

GPU_LINE = re.compile(
    r"\s{0,40}GPU\s{1,4}[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d\s{0,40}"
)
NUMBER = re.compile(r"\d{1,8}(?:\.\d{1,4})?")
SLOT = ("PCIe Generation", "Link Width")
MARKS = ("GPU Link Info", "PCIe Generation", "Attached GPUs", "Fabric")
BUSY_PERCENT = 5
LONGEST_KEY = 60


@dataclass(slots=True)
class Card:
    """Values of one GPU by section and key, the first that was printed."""

    values: dict[tuple[str, str], str] = field(default_factory=dict)

    def number(self, section: str, key: str) -> int | None:
        """A whole number; None for N/A and where nothing was printed."""
        match = NUMBER.match(self.values.get((section, key), ""))
        return int(float(match[0])) if match else None


def read_query(paste: Paste) -> Iterator[Reading]:
    """One reading for all that a paste holds of it."""
    start = _start(paste)
    if start is None:
        return
    head, *cards = _gather(paste)
    if not cards or _has_slot(head):
        cards = [head, *cards]  # an excerpt begins inside a GPU
    if any(card.values for card in cards):
        yield _reading(start, head, cards, paste)


def _start(paste: Paste) -> int | None:
    for line in paste.lines:
        text = line.text.strip()
        if text in SLOT or text == "GPU Link Info" or text.startswith("Attached GPUs"):
            return line.number
    return None


def _gather(paste: Paste) -> list[Card]:
    """The lines before the first GPU, then those of each GPU."""
    cards = [Card()]
    sections: list[tuple[int, str]] = []
    for line in paste.lines:
        if GPU_LINE.fullmatch(line.text):
            cards.append(Card())
            sections = []
        else:
            _take(line, cards[-1], sections)
    return cards


def _take(line: Line, card: Card, sections: list[tuple[int, str]]) -> None:
    """A value under the section that its indent puts it in, or the title of a section."""
    key, colon, value = line.text.partition(" : ")
    name = key.strip()
    if not name or len(name) > LONGEST_KEY:
        return
    indent = len(key) - len(key.lstrip())
    while sections and sections[-1][0] >= indent:
        sections.pop()
    if colon:
        card.values.setdefault((sections[-1][1] if sections else "", name), value.strip())
    else:
        sections.append((indent, name))


def _reading(start: int, head: Card, cards: list[Card], paste: Paste) -> Reading:
    slots = tuple(_slot(at, card) for at, card in enumerate(cards) if _has_slot(card))
    attached = head.number("", "Attached GPUs")
    count = attached or len(cards)
    problems = tuple(_problems(attached, cards, slots, paste))
    names = tuple(
        card.values["", "Product Name"] for card in cards if ("", "Product Name") in card.values
    )
    memory = [card.number("FB Memory Usage", "Total") for card in cards]
    return Reading(
        format=Format.SMI_QUERY,
        line=start,
        standing=Standing.PARTIAL if problems else Standing.OK,
        problems=problems,
        signs=frozenset(_signs(cards, slots, names, problems)),
        gpu_count=count,
        gpu_names=names or None,
        vram_mib=_whole(memory),
        driver=head.values.get(("", "Driver Version")),
        cuda=head.values.get(("", "CUDA Version")),
        mig_enabled=_mig(cards),
        power_limit_w=_power(cards),
        virtual=_virtual(cards),
        ecc=_ecc(cards),
        fabric_state=_fabric(cards),
        pcie=slots or None,
    )


def _has_slot(card: Card) -> bool:
    return any(section in SLOT for section, _ in card.values)


def _slot(gpu: int, card: Card) -> PcieLink:
    generation, width = SLOT
    return PcieLink(
        gpu=gpu,
        generation_max=card.number(generation, "Max"),
        generation_now=card.number(generation, "Current"),
        host_generation_max=card.number(generation, "Host Max"),
        width_max=card.number(width, "Max"),
        width_now=card.number(width, "Current"),
    )


def _problems(
    attached: int | None, cards: list[Card], slots: tuple[PcieLink, ...], paste: Paste
) -> Iterator[Problem]:
    if attached and len(cards) < attached:
        expected = f"{attached} GPUs, {len(cards)} were printed"
        yield Problem(Trouble.TRUNCATED, paste.last, expected=expected)
    elif any(slot.width_max is None and slot.generation_max is not None for slot in slots):
        yield Problem(Trouble.TRUNCATED, paste.last, expected="generation and width of the slot")


def _signs(
    cards: list[Card],
    slots: tuple[PcieLink, ...],
    names: tuple[str, ...],
    problems: tuple[Problem, ...],
) -> Iterator[Sign]:
    if problems:
        yield Sign.INCOMPLETE
    if _mig(cards):
        yield Sign.MIG_MODE
    if len(set(names)) > 1:
        yield Sign.MIXED_MODELS
    for slot in slots:
        if (slot.generation_now or 0) < (slot.generation_max or 0) and slot.generation_now:
            busy = cards[slot.gpu].number("Utilization", "Gpu") or 0
            idle = busy < BUSY_PERCENT
            yield Sign.PCIE_IDLE_DOWNTRAINED if idle else Sign.PCIE_LINK_NARROW
        if slot.width_now and slot.width_max and slot.width_now < slot.width_max:
            yield Sign.PCIE_LINK_NARROW


def _whole(figures: list[int | None]) -> tuple[int, ...] | None:
    known = [figure for figure in figures if figure is not None]
    return tuple(known) if known and len(known) == len(figures) else None


def _mig(cards: list[Card]) -> bool | None:
    words = [card.values.get(("MIG Mode", "Current")) for card in cards]
    known = [word == "Enabled" for word in words if word in ("Enabled", "Disabled")]
    return any(known) if known else None


GUEST = {"None": False, "Pass-Through": True, "VGPU": True}
"""What the driver says of itself. A hypervisor's own modes say nothing of a guest."""


def _virtual(cards: list[Card]) -> bool | None:
    """Whether any GPU is seen from inside a virtual machine."""
    words = (
        value
        for card in cards
        for (_, key), value in card.values.items()
        if key == "Virtualization Mode"
    )
    known = [GUEST[word] for word in words if word in GUEST]
    return any(known) if known else None


def _power(cards: list[Card]) -> tuple[float, ...] | None:
    """The limit in force; newer drivers name it `Current Power Limit`."""
    found: list[float] = []
    for card in cards:
        for (_, key), value in card.values.items():
            match = NUMBER.match(value)
            if key in ("Power Limit", "Current Power Limit") and match:
                found.append(float(match[0]))
                break
    return tuple(found) if found and len(found) == len(cards) else None


def _ecc(cards: list[Card]) -> tuple[bool | None, ...] | None:
    known = {"Enabled": True, "Disabled": False}
    states = tuple(known.get(card.values.get(("ECC Mode", "Current"), "")) for card in cards)
    return states if any(state is not None for state in states) else None


def _fabric(cards: list[Card]) -> str | None:
    """The state of NVSwitch on the GPU that is worst off: anything but Completed and Success."""
    states = [
        " / ".join(card.values[key] for key in keys if key in card.values)
        for card in cards
        for keys in [(("Fabric", "State"), ("Fabric", "Status"))]
    ]
    known = [state for state in states if state]
    return next((state for state in known if state != "Completed / Success"), None) or (
        known[0] if known else None
    )
