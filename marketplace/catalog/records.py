"""A record: what one card, row or object of a page says, in the provider's words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from marketplace.catalog.reading.labels import Attribute, classify


class Origin(Enum):
    """Where a record was read. What a visitor sees outweighs what only machines read."""

    VISIBLE = "visible"
    STRUCTURED = "structured data"
    STATE = "embedded state"


@dataclass(frozen=True, slots=True)
class Cell:
    """A text, the label beside or above it if there is one, and its inline parts."""

    text: str
    label: str = ""
    attribute: Attribute | None = None
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """`notes` are words that hold for several records: caption, section row, header.

    `subject` is a heading that may name the GPU of rows that do not.
    """

    sku: str = ""
    title: str = ""
    cells: tuple[Cell, ...] = ()
    notes: tuple[str, ...] = ()
    subject: str = ""
    language: str = ""
    url: str = ""
    region: str = ""
    origin: Origin = Origin.VISIBLE
    page: int = 0

    def of(self, *attributes: Attribute) -> list[Cell]:
        """The cells that a label assigns to one of the attributes, in reading order."""
        return [cell for cell in self.cells if cell.attribute in attributes]

    @property
    def unlabelled(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.attribute is None]

    @property
    def words(self) -> str:
        return " | ".join(filter(None, (self.title, *(cell.text for cell in self.cells))))


def labelled(label: str, text: str) -> Cell:
    """A cell whose label is classified; of a two-level header the last level decides."""
    return Cell(text, label, classify(label) or classify(label.rpartition(" / ")[2]))


def slug_of(text: str) -> str:
    """A stable identifier from a title, for pages that give none."""
    words = re.sub(r"[^\w]+", "-", text.lower().replace("×", "x")).strip("-")
    return words[:120]
