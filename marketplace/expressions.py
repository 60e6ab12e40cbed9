"""What one column must hold, as people type it: `>=8`, `2..4`, `1 or 8`, `not spot`, `unknown`.

An expression becomes a tree without negations: each leaf is a check that what is unknown never
passes, unless `unknown` itself was asked for. One tree serves a Python value, an array and a query.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any, TypeVar

Answer = TypeVar("Answer")

LONGEST = 200
"""Characters of one expression. It bounds the depth of the tree too."""

OPPOSITES = (
    ("lt", "gte"),
    ("gt", "lte"),
    ("eq", "ne"),
    ("has", "lacks"),
    ("is", "is_not"),
    ("known", "unknown"),
)
NEGATED = dict(OPPOSITES) | {other: one for one, other in OPPOSITES}
COMPARED = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte", "=": "eq", "!=": "ne"}
SPELLED = {"=": "is", "!=": "is_not"}

TOKEN = re.compile(
    r"""(?:(?P<mark><=|>=|!=|<|>|=|\(|\))|"(?P<quoted>[^"]*)"|(?P<word>[^\s()<>=!"]+))"""
)
RANGE = re.compile(r"(?P<low>-?[0-9.]*?)\.\.(?P<high>-?[0-9.]*)")
NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?")
JOINERS = frozenset({"and", "or", "not", "(", ")"})


class InvalidExpression(ValueError):
    """Says what was read and what could stand there instead."""


@dataclass(frozen=True, slots=True)
class Check:
    """A leaf. `value` is a Decimal, folded text, or None for `known` and `unknown`."""

    op: str
    value: Any = None


@dataclass(frozen=True, slots=True)
class Every:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Some:
    parts: tuple[Node, ...]


Node = Check | Every | Some


def parse_numbers(text: str) -> Node:
    """An expression over a column of numbers. Raises InvalidExpression."""
    return _Reader(text, _number, "a number, such as >=8, 2..4, or 1 or 8").whole()


def parse_words(text: str) -> Node:
    """An expression over a column of words, matched anywhere and without case; `=` is exact."""
    return _Reader(text, _word, 'words, such as spot, not spot, or ="on demand"').whole()


def negated(node: Node) -> Node:
    """What passes exactly where the value is known and `node` fails."""
    if isinstance(node, Check):
        return Check(NEGATED[node.op], node.value)
    parts = tuple(map(negated, node.parts))
    return Some(parts) if isinstance(node, Every) else Every(parts)


def fold(
    node: Node,
    check: Callable[[Check], Answer],
    every: Callable[[Answer, Answer], Answer],
    some: Callable[[Answer, Answer], Answer],
) -> Answer:
    """The tree read bottom up: queries, arrays and plain values differ in the three functions."""
    if isinstance(node, Check):
        return check(node)
    answers = [fold(part, check, every, some) for part in node.parts]
    return reduce(every if isinstance(node, Every) else some, answers)


def matches(node: Node, value: Any) -> bool:
    """Whether one value passes; None is unknown."""
    return bool(fold(node, lambda check: holds(check, value), operator.and_, operator.or_))


def holds(check: Check, value: Any) -> bool:
    if value is None or check.value is None:
        return (check.op == "unknown") == (value is None) and check.value is None
    return HOLDING[check.op](value.casefold() if isinstance(value, str) else value, check.value)


HOLDING: dict[str, Callable[[Any, Any], bool]] = {
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "is": operator.eq,
    "is_not": operator.ne,
    "has": lambda value, part: part in value,
    "lacks": lambda value, part: part not in value,
}


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    at: int
    quoted: bool = False

    @property
    def joins(self) -> bool:
        return not self.quoted and self.text.casefold() in JOINERS


class _Reader:
    """Recursive descent: `or` binds least, then `and`, then `not`."""

    def __init__(self, text: str, leaf: Callable[[str, str], Node | None], expected: str) -> None:
        self.text, self.leaf, self.expected = text, leaf, expected
        if len(text) > LONGEST:
            raise InvalidExpression(f"{len(text)} characters were read; {LONGEST} can be used.")
        self.tokens, self.at = list(self._tokens()), 0

    def whole(self) -> Node:
        found = self._some()
        if self.at < len(self.tokens):
            raise self._refusal()
        return found

    def _tokens(self) -> Iterator[_Token]:
        at = self._ink(0)
        while at < len(self.text):
            found = TOKEN.match(self.text, at)
            if found is None:
                raise InvalidExpression(
                    f"{self._place(at)} cannot be read; expected {self.expected}."
                )
            quoted = found["quoted"] is not None
            text = found["quoted"] if quoted else found["mark"] or found["word"]
            yield _Token(text, found.end() - len(text) - quoted, quoted)
            at = self._ink(found.end())

    def _ink(self, at: int) -> int:
        """Where the next character that is no blank stands."""
        return len(self.text) - len(self.text[at:].lstrip())

    def _some(self) -> Node:
        parts = [self._every()]
        while self._took("or"):
            parts.append(self._every())
        return parts[0] if len(parts) == 1 else Some(tuple(parts))

    def _every(self) -> Node:
        parts = [self._one()]
        while self._took("and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def _one(self) -> Node:
        if self._took("not"):
            return negated(self._one())
        if self._took("("):
            inner = self._some()
            if not self._took(")"):
                raise InvalidExpression("A bracket is opened and not closed.")
            return inner
        return self._leaf()

    def _leaf(self) -> Node:
        mark = next((mark for mark in COMPARED if self._took(mark)), "")
        start, words = self.at, []
        while self.at < len(self.tokens) and not self._now.joins and self._now.text not in COMPARED:
            words.append(self._now.text)
            self.at += 1
        if not words or (node := self.leaf(mark, " ".join(words))) is None:
            self.at = start
            raise self._refusal()
        return node

    @property
    def _now(self) -> _Token:
        return self.tokens[self.at]

    def _took(self, word: str) -> bool:
        here = self.at < len(self.tokens) and not self._now.quoted
        taken = here and self._now.text.casefold() == word
        self.at += taken
        return taken

    def _refusal(self) -> InvalidExpression:
        if self.at >= len(self.tokens):
            return InvalidExpression(f"It ends where {self.expected} should follow.")
        place = self._place(self._now.at)
        return InvalidExpression(f"{place} cannot be read; expected {self.expected}.")

    def _place(self, at: int) -> str:
        read = "".join(one if one.isprintable() else "�" for one in self.text[at : at + 20])
        return f"“{read}” at character {at + 1}"


def _known(mark: str, text: str) -> Check | None:
    asked = text.casefold()
    return Check(asked) if not mark and asked in ("known", "unknown") else None


def _number(mark: str, text: str) -> Node | None:
    if asked := _known(mark, text):
        return asked
    if NUMBER.fullmatch(text):
        return Check(COMPARED[mark or "="], Decimal(text))
    return None if mark else _range(text)


def _range(text: str) -> Node | None:
    """`2..4`, `2..` or `..4`, both ends included."""
    found = RANGE.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    ends = [(op, end) for op, end in (("gte", found["low"]), ("lte", found["high"])) if end]
    if not all(NUMBER.fullmatch(end) for _, end in ends):
        return None
    checks = tuple(Check(op, Decimal(end)) for op, end in ends)
    if len(checks) == 2 and checks[0].value > checks[1].value:
        raise InvalidExpression(f"The range {text} begins above its end.")
    return checks[0] if len(checks) == 1 else Every(checks)


def _word(mark: str, text: str) -> Node | None:
    if asked := _known(mark, text):
        return asked
    if mark and mark not in SPELLED:
        return None
    return Check(SPELLED.get(mark, "has"), text.casefold())
