"""Strict readers for documents that people write. Every refusal says what was read and expected."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any, TypeGuard

LARGEST = 10**15
"""Above any parameter count, token count or byte count of a model: a typing error."""
SHOWN = 60
TEXT_LIMIT = 200


class InvalidWorkload(ValueError):
    """A field that cannot be used: its name, what was read, what was expected."""

    def __init__(self, field: str, read: object, expected: str) -> None:
        self.field, self.read, self.expected = field, read, expected
        super().__init__(f"{field}: read {shown(read)}, expected {expected}")


class UnknownKeys(str):
    """Names of keys, already fit to print."""


def shown(value: object) -> str:
    """A value as a short text, however long or deep it is."""
    if value is None:
        return "nothing"
    if isinstance(value, UnknownKeys):
        return f"unknown keys {value}"
    if isinstance(value, Mapping):
        return f"an object of {len(value)} keys"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    text = _long_number(value) if isinstance(value, int) and abs(value) > LARGEST else _repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _long_number(value: int) -> str:
    """Without a text of all its digits, which takes long and is refused by Python above 4300."""
    kind = "a negative number" if value < 0 else "a number"
    return f"{kind} of about {round(value.bit_length() * 0.30103)} digits"


def _repr(value: object) -> str:
    return ascii(value[:SHOWN]) if isinstance(value, str) else repr(value)


def _is_text(value: object, limit: int) -> TypeGuard[str]:
    """Whether it can be stored and printed: a lone surrogate fails in every file and page."""
    return (
        isinstance(value, str)
        and len(value) <= limit
        and "\x00" not in value
        and not any("\ud800" <= letter <= "\udfff" for letter in value)
    )


class Fields:
    """Reads the keys of one object and remembers which were asked for."""

    def __init__(self, document: object, path: str = "") -> None:
        if not isinstance(document, Mapping):
            raise InvalidWorkload(path or "the document", document, "an object of keys and values")
        self.document: Mapping[str, Any] = document
        self.path = path
        self._asked: set[str] = set()

    def name(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        return self.document.get(key) is not None

    def raw(self, key: str) -> Any:
        """The value, or None where it is absent or null."""
        self._asked.add(key)
        return self.document.get(key)

    def refuse(self, key: str, expected: str) -> InvalidWorkload:
        return InvalidWorkload(self.name(key), self.document.get(key), expected)

    def unread(self) -> tuple[str, ...]:
        """Keys nobody asked for, sorted."""
        return tuple(sorted(str(key) for key in self.document if key not in self._asked))

    def finish(self) -> None:
        """Refuses keys that were not asked for, by name."""
        if unknown := self.unread():
            listed = ", ".join(shown(key) for key in unknown[:10])
            expected = f"only {', '.join(sorted(self._asked))}"
            raise InvalidWorkload(self.path or "the document", UnknownKeys(listed), expected)

    def integer(self, key: str, low: int = 1, high: int = LARGEST) -> int | None:
        value = self.raw(key)
        if value is None:
            return None
        expected = f"a whole number from {low} to {high}"
        if isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.refuse(key, expected)
        return value

    def number(self, key: str, low: float = 0.0, high: float = float(LARGEST)) -> float | None:
        value = self.raw(key)
        if value is None:
            return None
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        if not plain or not low < value <= high:
            raise self.refuse(key, f"a number above {low:g}, at most {high:g}")
        return float(value)

    def count(self, key: str, high: float) -> float:
        """A number of at least 0 that must be there."""
        value = self.raw(key)
        if value == 0 and not isinstance(value, bool):
            return 0.0
        number = self.number(key, high=high)
        if number is None:
            raise self.refuse(key, f"a number from 0 to {high:g}")
        return number

    def money(self, key: str) -> Decimal | None:
        """A positive amount; a JSON number is taken by its shortest decimal text."""
        number = self.number(key)
        return None if number is None else Decimal(str(self.document[key]))

    def flag(self, key: str) -> bool | None:
        value = self.raw(key)
        if value is not None and not isinstance(value, bool):
            raise self.refuse(key, "true or false")
        return value

    def text(self, key: str, limit: int = TEXT_LIMIT) -> str | None:
        value = self.raw(key)
        if value is None:
            return None
        if not _is_text(value, limit):
            raise self.refuse(key, f"a text of at most {limit} characters")
        return value

    def choice(self, key: str, words: Collection[str]) -> str | None:
        value = self.raw(key)
        if value is not None and (not isinstance(value, str) or value not in words):
            raise self.refuse(key, f"one of {', '.join(words)}")
        return value

    def texts(self, key: str, limit: int = 100) -> tuple[str, ...]:
        value = self.raw(key)
        if value is None:
            return ()
        fine = isinstance(value, list | tuple) and len(value) <= limit
        if not fine or not all(_is_text(one, TEXT_LIMIT) for one in value):
            raise self.refuse(key, f"a list of at most {limit} texts")
        return tuple(value)

    def table(self, key: str) -> Fields | None:
        value = self.raw(key)
        return None if value is None else Fields(value, self.name(key))

    def keys(self) -> tuple[str, ...]:
        return tuple(str(key) for key in self.document)
