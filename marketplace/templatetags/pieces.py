"""Parts of a page that are written once for each content: equal values, equal markup.

A piece sees nothing but the values that it is given by name, and is kept under exactly those, or
under what a value says that it is to be `kept_as`. So it can never be stale: whatever could change
it stands in its key. It may not read a clock.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Any

from django import template
from django.db.models import Model
from django.template import Context, Node, Template, TemplateSyntaxError
from django.template.base import FilterExpression, Parser, Token, token_kwargs
from django.utils.safestring import SafeString, mark_safe

from marketplace.templating.values import printed_value

register = template.Library()

MOST_CHARACTERS = 16_000_000
"""Of all pieces in each process; the one asked for longest ago goes first. Most have some hundred,
a table of plans has tens of thousands."""


class Key:
    """The name of a piece and its values with their types: 1 and True print differently.

    A row is large, so it is hashed once and compared only with what has the same hash.
    """

    __slots__ = ("_hash", "parts")

    def __init__(self, name: str, values: Iterable[Any]) -> None:
        self.parts = (name, *((type(value), value) for value in values))
        self._hash = hash(self.parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self._hash == other._hash and self.parts == other.parts


class Pieces:
    """Markup by its key, MOST_CHARACTERS of it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._markup: OrderedDict[Key, str] = OrderedDict()
        self._characters = 0

    def __iter__(self) -> Iterator[Key]:
        return iter(list(self._markup))

    def get(self, key: Key) -> str | None:
        with self._lock:
            markup = self._markup.get(key)
            if markup is not None:
                self._markup.move_to_end(key)
            return markup

    def keep(self, key: Key, markup: str) -> str:
        with self._lock:
            self._characters += len(markup) - len(self._markup.get(key, ""))
            self._markup[key] = markup
            while self._characters > MOST_CHARACTERS:
                _, oldest = self._markup.popitem(last=False)
                self._characters -= len(oldest)
        return markup

    def clear(self) -> None:
        with self._lock:
            self._markup.clear()
            self._characters = 0


_pieces = Pieces()


class PieceNode(Node):
    """`{% piece "_bar.svg" bar=bar %}`: as an include with `only`, for values that never change."""

    child_nodelists = ()
    plain = True

    def __init__(self, name: str, values: Mapping[str, FilterExpression]) -> None:
        self.name = name
        self.values = tuple(values.items())
        self._held: Template | None = None
        self._getters = {name: printed_value(value) for name, value in self.values}

    def render(self, context: Context) -> SafeString:
        values = {name: get(context) for name, get in self._getters.items()}
        try:
            key = Key(self.name, map(_kept_as, values.values()))
        except TypeError:  # a value that is no key
            markup = self._made(context, values)
        else:
            markup = _pieces.get(key) or _pieces.keep(key, self._made(context, values))
        return mark_safe(markup)  # noqa: S308  markup of a template

    def _made(self, context: Context, values: Mapping[str, Any]) -> str:
        mutable = [name for name, value in values.items() if isinstance(value, Model)]
        if mutable:
            raise TemplateSyntaxError(f"{self.name}: {mutable} can change and stay equal")
        page: Any = context.template
        return str(self._template(page.engine).render(Context(values)))

    def _template(self, engine: Any) -> Template:
        """Looked up at the first use: a piece may hold itself."""
        if self._held is None:
            self._held = engine.get_template(self.name)
        return self._held


def _kept_as(value: Any) -> Any:
    return getattr(value, "kept_as", value)


def forget_pieces() -> None:
    _pieces.clear()


@register.tag
def piece(parser: Parser, token: Token) -> PieceNode:
    _, name, *given = token.split_contents()
    values = token_kwargs(given, parser)
    if given or name[0] not in "\"'":
        raise TemplateSyntaxError('write {% piece "file" name=value %}')
    return PieceNode(name[1:-1], values)
