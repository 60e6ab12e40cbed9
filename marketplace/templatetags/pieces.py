"""Parts of a page that are written once for each content: equal values, equal markup.

A piece sees nothing but the values that it is given by name, and is kept under exactly those. So
it can never be stale: whatever could change it stands in its key. It may not read a clock.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any

from django import template
from django.db.models import Model
from django.template import Context, Node, TemplateSyntaxError
from django.template.base import FilterExpression, Parser, Token, token_kwargs
from django.utils.safestring import SafeString, mark_safe

from marketplace.templating.values import printed_value

register = template.Library()

MOST_PIECES = 4_000
"""In each process, the one asked for longest ago goes first. Most are of some hundred bytes."""


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


_lock = Lock()
_pieces: OrderedDict[Key, str] = OrderedDict()


class PieceNode(Node):
    """`{% piece "_bar.svg" bar=bar %}`: as an include with `only`, for values that never change."""

    child_nodelists = ()
    plain = True

    def __init__(self, name: str, values: Mapping[str, FilterExpression]) -> None:
        self.name = name
        self.values = tuple(values.items())
        self._getters = {name: printed_value(value) for name, value in self.values}

    def render(self, context: Context) -> SafeString:
        values = {name: get(context) for name, get in self._getters.items()}
        try:
            key = Key(self.name, values.values())
        except TypeError:  # a value that is no key
            markup = self._made(context, values)
        else:
            markup = _kept(key) or _keep(key, self._made(context, values))
        return mark_safe(markup)  # noqa: S308  markup of a template

    def _made(self, context: Context, values: Mapping[str, Any]) -> str:
        mutable = [name for name, value in values.items() if isinstance(value, Model)]
        if mutable:
            raise TemplateSyntaxError(f"{self.name}: {mutable} can change and stay equal")
        engine = context.template.engine  # type: ignore[union-attr]  # a template is being rendered
        return str(engine.get_template(self.name).render(Context(values)))


def _kept(key: Key) -> str | None:
    with _lock:
        markup = _pieces.get(key)
        if markup is not None:
            _pieces.move_to_end(key)
        return markup


def _keep(key: Key, markup: str) -> str:
    with _lock:
        _pieces[key] = markup
        while len(_pieces) > MOST_PIECES:
            _pieces.popitem(last=False)
    return markup


def forget_pieces() -> None:
    with _lock:
        _pieces.clear()


@register.tag
def piece(parser: Parser, token: Token) -> PieceNode:
    _, name, *given = token.split_contents()
    values = token_kwargs(given, parser)
    if given or name[0] not in "\"'":
        raise TemplateSyntaxError('write {% piece "file" name=value %}')
    return PieceNode(name[1:-1], values)
